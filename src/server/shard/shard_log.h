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

/// Names a partition of a stream for ever: ids of streams are never used again.
struct PartitionName {
  StreamId stream;
  PartitionNumber partition;

  friend auto operator<=>(const PartitionName&, const PartitionName&) = default;
};

/// A round to be appended to the log.
struct NewRound {
  Position expected;        // The position that it must get.
  std::uint64_t epoch = 0;  // The boot number of the shard that decided it.
  Instant now;
  std::string_view facts;
};

/// Everything that one shard makes durable: rounds of facts, and the record batches of partitions.
/// Given to the shard when it is opened. Besides it, the shard writes only its checkpoints, which
/// can be made again from the log.
///
/// Several nodes can share a log. Then one of them appends, under an epoch (its boot number) that
/// only grows; the others read and apply what it appended. Two errors exist for that:
/// position_taken (another node appended: the shard no longer belongs to this node), and
/// unavailable (it is unknown whether a round is in the log; reading will tell).
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
  /// The oldest round; next() if there is none.
  [[nodiscard]] virtual Position first() const = 0;
  /// The position that the next round gets.
  [[nodiscard]] virtual Position next() const = 0;
  /// Takes one round; durable only after sync(). Fails with position_taken unless `expected` is
  /// next() and no node appended under a greater epoch: the shard no longer belongs to this node,
  /// and its decisions since the last durable round are void. Fails with invalid_argument if the
  /// facts are larger than round_bytes_max(), and with journal_full if there is no room. After
  /// these errors nothing was taken. Any other failure means that the log's contents are unknown
  /// for good, and the caller must end the process.
  virtual Status append(const NewRound& round) = 0;
  /// Waits until every round taken before the call is durable; returns the first position that is
  /// not. Fails with resource_exhausted (too many open files: try again), with unavailable
  /// (settle() will tell), or with position_taken; any other failure is as above.
  virtual Result<Position> sync() = 0;
  /// After unavailable: finds out by reading what became of the rounds that were taken, and appends
  /// the missing ones again. Returns the same as sync(); after another unavailable it must be
  /// called again, later.
  virtual Result<Position> settle() = 0;
  /// Visits every durable round from `from` on, in order. Fails with round_not_found if `from` was
  /// trimmed, or is beyond the end. Must not run at the same time as trim().
  virtual Status read(Position from, const std::function<Status(const Round&)>& visit) const = 0;
  /// Drops rounds before `before`, possibly not all of them.
  virtual Status trim(Position before) = 0;
  /// The approximate bytes that a recovery from `from` would read.
  [[nodiscard]] virtual std::uint64_t bytes_since(Position from) const = 0;

  // Back-pressure.
  [[nodiscard]] virtual Journal::Room room() const = 0;
  /// Makes room for more rounds ahead of time, if the log can do that. Fails with disk_full or
  /// resource_exhausted; the existing room stays usable, and a later call may succeed.
  virtual Status prepare() = 0;

  // Records.
  /// Whether followers get records from the rounds: then the shard also writes batches into its
  /// rounds. A log of one node has records only in its partitions' files, and writes them once.
  [[nodiscard]] virtual bool rounds_carry_records() const = 0;
  /// Opens or creates the partition's log, which this object must outlive.
  virtual Result<std::unique_ptr<PartitionLog>> open_partition(
      const PartitionName& name, const PartitionLog::Opening& opening) = 0;
  /// Whether anything of that partition exists.
  [[nodiscard]] virtual Result<bool> has_partition(const PartitionName& name) const = 0;
  /// Removes the rest of the partition, durably; its log must be closed. Existing readers continue
  /// until they are destroyed.
  virtual Status remove_partition(const PartitionName& name) = 0;
};

/// The partitions' segments on a disk: one folder for each partition.
class PartitionFolders {
 public:
  /// `folder` is created if it does not exist; its parent must exist. `disk` must outlive the
  /// partitions.
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

/// A log whose partitions are folders; the derived class has the rounds.
class LogWithFolders : public ShardLog {
 public:
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

 protected:
  explicit LogWithFolders(PartitionFolders partitions) : partitions_(std::move(partitions)) {}

 private:
  PartitionFolders partitions_;
};

/// The log of a single node: a journal of rounds, and a folder of segments for each partition.
class LocalLog final : public LogWithFolders {
 public:
  LocalLog(std::unique_ptr<Journal> rounds, PartitionFolders partitions)
      : LogWithFolders(std::move(partitions)), rounds_(std::move(rounds)) {}

  [[nodiscard]] std::uint64_t round_bytes_max() const override {
    return rounds_->round_bytes_max();
  }
  [[nodiscard]] Position first() const override { return rounds_->first(); }
  [[nodiscard]] Position next() const override { return rounds_->next(); }
  /// Only one process has the folder, by its lock, so the epoch needs no check.
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

 private:
  std::unique_ptr<Journal> rounds_;
};

/// A LocalLog on the journal in the folder `journal`.
Result<std::unique_ptr<ShardLog>> open_local_log(Disk& disk, std::string journal,
                                                 std::string partitions,
                                                 JournalOptions options = {});

}  // namespace baton
