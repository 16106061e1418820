#pragma once

#include <compare>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"
#include "base/time.h"
#include "core/stream/catalog.h"
#include "storage/disk/disk.h"
#include "storage/journal/journal.h"
#include "storage/log/partition_log.h"

namespace baton {

/// A partition of a stream, for good: ids of streams are never used again.
struct PartitionName {
  StreamId stream;
  PartitionNumber partition;

  friend auto operator<=>(const PartitionName&, const PartitionName&) = default;
};

/// A round on its way into the log.
struct NewRound {
  Position expected;        // Where it must come to stand.
  std::uint64_t epoch = 0;  // The boot number of the shard that decided it.
  Instant now;
  std::string_view facts;
};

/// Everything that one shard makes durable: rounds of facts, and the record batches of partitions.
/// Handed to the shard when it is opened; the shard writes nothing else but its checkpoints, which
/// can be made again from here.
///
/// A log can have several nodes around it. Then one of them appends, under an epoch (its boot
/// number) that only grows; the others read what it appended, and apply it. Two answers exist for
/// that: position_taken (another node appended: the shard is not this node's any more), and
/// unavailable (whether a round is in the log is unknown; reading will tell).
///
/// Threads: append() and the partitions belong to the shard; sync(), settle(), prepare() and trim()
/// may each run at the same time from another thread.
class ShardLog {
 public:
  ShardLog() = default;
  ShardLog(const ShardLog&) = delete;
  ShardLog& operator=(const ShardLog&) = delete;
  virtual ~ShardLog() = default;

  // Rounds.
  /// The most bytes of facts that one round may have.
  [[nodiscard]] virtual std::uint64_t round_bytes_max() const = 0;
  /// The oldest round there is; next() when there is none.
  [[nodiscard]] virtual Position first() const = 0;
  /// The position that the next round gets.
  [[nodiscard]] virtual Position next() const = 0;
  /// Takes one round; durable only after sync(). Fails with position_taken unless `expected` is
  /// next() and nobody appended under a greater epoch: the shard is not this node's any more, and
  /// what it decided since the last durable round is void. Fails with invalid_argument when the
  /// facts are larger than round_bytes_max(), with journal_full when there is no room. Nothing is
  /// taken then. Any other failure means that the log's content is unknown for good, and the caller
  /// ends the process.
  virtual Status append(const NewRound& round) = 0;
  /// Waits until every round taken before the call is durable; answers the first position that is
  /// not. Fails with resource_exhausted (too many open files: try again), with unavailable (then
  /// settle() tells), with position_taken; any other failure as above.
  virtual Result<Position> sync() = 0;
  /// After unavailable: finds out by reading what became of the rounds that were taken, and appends
  /// those that are missing once more. Answers as sync() does; after unavailable it is to be called
  /// again, later.
  virtual Result<Position> settle() = 0;
  /// Visits every durable round from `from` on, in order. Fails with round_not_found when `from`
  /// was trimmed away, or lies past the end. Not at the same time as trim().
  virtual Status read(Position from, const std::function<Status(const Round&)>& visit) const = 0;
  /// Drops rounds before `before`, perhaps not all of them.
  virtual Status trim(Position before) = 0;
  /// About the bytes that a recovery from `from` would read.
  [[nodiscard]] virtual std::uint64_t bytes_since(Position from) const = 0;

  // Back-pressure.
  [[nodiscard]] virtual Journal::Room room() const = 0;
  /// Does what makes room for more rounds, if it can be done ahead. Fails with disk_full or
  /// resource_exhausted; the room that is there stays usable, and a later call may succeed.
  virtual Status prepare() = 0;

  // Records.
  /// Whether followers learn records from the rounds: then the shard writes batches into its rounds
  /// as well. A log of one node has them in its partitions' files alone, and writes them once.
  [[nodiscard]] virtual bool rounds_carry_records() const = 0;
  /// Opens or makes the partition's log, which must not outlive this.
  virtual Result<std::unique_ptr<PartitionLog>> open_partition(
      const PartitionName& name, const PartitionLog::Opening& opening) = 0;
  /// Whether there is anything of that partition.
  [[nodiscard]] virtual Result<bool> has_partition(const PartitionName& name) const = 0;
  /// Removes what is left of it, durably; its log must be closed. Readers go on until they let go.
  virtual Status remove_partition(const PartitionName& name) = 0;
};

/// The partitions' segments on a disk: a folder for each of them.
class PartitionFolders {
 public:
  /// `folder` is made when it is not there; its parent exists. `disk` must outlive the partitions.
  static Result<PartitionFolders> open(Disk& disk, std::string folder);

  [[nodiscard]] Result<std::unique_ptr<PartitionLog>> open_partition(
      const PartitionName& name, const PartitionLog::Opening& opening) const;
  [[nodiscard]] Result<bool> has_partition(const PartitionName& name) const;
  [[nodiscard]] Status remove_partition(const PartitionName& name) const;

 private:
  PartitionFolders(Disk& disk, std::string folder) : disk_(&disk), folder_(std::move(folder)) {}
  [[nodiscard]] std::string folder_of(const PartitionName& name) const;

  Disk* disk_;
  std::string folder_;
};

/// The log of a single node: a journal of rounds, and a folder of segments for each partition.
class LocalLog final : public ShardLog {
 public:
  LocalLog(std::unique_ptr<Journal> rounds, PartitionFolders partitions)
      : rounds_(std::move(rounds)), partitions_(std::move(partitions)) {}

  [[nodiscard]] std::uint64_t round_bytes_max() const override {
    return rounds_->round_bytes_max();
  }
  [[nodiscard]] Position first() const override { return rounds_->first(); }
  [[nodiscard]] Position next() const override { return rounds_->next(); }
  /// One node alone has the folder, by its lock: the epoch needs no check.
  Status append(const NewRound& round) override {
    return rounds_->append(round.expected, round.now, round.facts);
  }
  Result<Position> sync() override { return rounds_->sync(); }
  Result<Position> settle() override { return rounds_->sync(); }
  Status read(Position from, const std::function<Status(const Round&)>& visit) const override {
    return rounds_->read(from, visit);
  }
  Status trim(Position before) override { return rounds_->trim(before); }
  [[nodiscard]] std::uint64_t bytes_since(Position from) const override {
    return rounds_->bytes_since(from);
  }
  [[nodiscard]] Journal::Room room() const override { return rounds_->room(); }
  Status prepare() override { return rounds_->prepare(); }
  [[nodiscard]] bool rounds_carry_records() const override { return false; }
  Result<std::unique_ptr<PartitionLog>> open_partition(
      const PartitionName& name, const PartitionLog::Opening& opening) override {
    return partitions_.open_partition(name, opening);
  }
  [[nodiscard]] Result<bool> has_partition(const PartitionName& name) const override {
    return partitions_.has_partition(name);
  }
  Status remove_partition(const PartitionName& name) override {
    return partitions_.remove_partition(name);
  }

 private:
  std::unique_ptr<Journal> rounds_;
  PartitionFolders partitions_;
};

/// A LocalLog on the journal in the folder `journal`.
Result<std::unique_ptr<ShardLog>> open_local_log(Disk& disk, std::string journal,
                                                 std::string partitions,
                                                 JournalOptions options = {});

}  // namespace baton
