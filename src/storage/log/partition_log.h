#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "core/stream/limits.h"
#include "core/stream/producer_table.h"
#include "core/stream/record_batch.h"
#include "core/stream/retention.h"
#include "storage/disk/disk.h"
#include "storage/log/partition_reader.h"

namespace baton {

struct PartitionLogOptions {
  // A new segment begins when an append would make the last one larger.
  std::uint64_t segment_bytes = limits::kSegmentBytesDefault;
  std::uint64_t index_interval_bytes = limits::kIndexIntervalBytesDefault;
  RetentionRules retention = {};
  // A producer not seen for so long is forgotten.
  Duration producer_expiry = limits::kProducerExpiry;
};

/// What became of one batch.
struct AppendOutcome {
  ProducerVerdict verdict = ProducerVerdict::append;
  Offset base_offset{-1};  // Of append and duplicate.
  std::string text;        // Why, of the refusals.

  /// The records are in the log, now or from before.
  [[nodiscard]] bool stored() const {
    return verdict == ProducerVerdict::append || verdict == ProducerVerdict::duplicate;
  }
};

struct PartitionDescription {
  Offset first;
  Offset next;     // What the next record gets.
  Offset visible;  // Readers see everything before it.
  std::uint64_t bytes = 0;
  std::size_t segments = 0;
  std::size_t producers = 0;
  // Why nothing can be appended, with file and position; none when all is well.
  std::optional<std::string> read_only;
  // The first damage that a reader met since the log was opened, with file and position; empty when
  // there is none. Appends go on.
  std::string damaged;
};

/// What retention removed.
struct DroppedSegment {
  Offset first;
  Offset next;
  std::uint64_t bytes = 0;
};

/// The log of one partition: record batches in segment files, with their indexes and what is known
/// of the producers (docs/storage-format.md).
///
/// Threads: everything belongs to the shard's thread, but sync(), publish() and reader(), which may
/// run at the same time from another one. Readers run anywhere and share no lock with it.
///
/// Invariant: offsets are dense; what is published never changes and never goes but by retention.
class PartitionLog {
 public:
  /// What an owner knows when it opens a log.
  struct Opening {
    PartitionLogOptions options;
    // Every record before it was synced: its loss is damage, not a torn tail. 0 for a new
    // partition.
    Offset synced_end;
    Instant now;
    // Hears once of each damage that a reader meets later, from the reader's thread.
    std::function<void(const std::string& text)> damage_found = {};
  };

  /// Opens or makes the partition in `folder`, whose parent must exist. Keeps every whole batch,
  /// cuts a torn tail past the synced end, rebuilds what is missing of indexes and producers.
  /// Damage before that end makes the partition read-only (see describe()) and cuts nothing. All
  /// that is there afterwards is durable and published. Fails when the disk does, when there are no
  /// files though something was synced, and with store_too_new. `disk` must outlive the log and its
  /// readers.
  static Result<std::unique_ptr<PartitionLog>> open(Disk& disk, std::string folder,
                                                    const Opening& opening);
  ~PartitionLog();
  PartitionLog(const PartitionLog&) = delete;
  PartitionLog& operator=(const PartitionLog&) = delete;

  /// Stores the batches, in order, in one write, and answers for each what became of it. They are
  /// durable after sync() and visible after publish().
  ///
  /// Fails as a whole, with nothing stored: with disk_full or resource_exhausted (too many open
  /// files; try again later), read_only (it is damaged), invalid_argument (more than
  /// kAppendBytesMax). Any other failure means that the
  /// disk's content is unknown, and the caller ends the process.
  Result<std::vector<AppendOutcome>> append(std::span<const CheckedBatch> batches,
                                            LeaderEpoch leader_epoch, Instant now);
  /// Makes everything appended before the call durable; answers the first offset that is not. A
  /// failure means that the disk's content is unknown, and the caller ends the process.
  Result<Offset> sync();
  /// Lets readers see everything before `end`. Never goes back: an older end changes nothing.
  void publish(Offset end);

  /// A reader of this partition.
  [[nodiscard]] PartitionReader reader() const;
  /// The offset that the next record gets.
  [[nodiscard]] Offset next() const;
  [[nodiscard]] PartitionDescription describe() const;

  /// Makes older epochs of a producer stale that has started again but sent nothing here yet. In
  /// memory until the next roll: the owner repeats it after a restart.
  void fence(ProducerId id, ProducerEpoch epoch, Instant now);
  void set_retention(const RetentionRules& rules);
  /// Removes the oldest segments that the rules no longer keep, none that is being read and none
  /// behind such a one, and forgets producers not seen for long. A last segment with nothing but
  /// old records is closed first. Answers what went.
  Result<std::vector<DroppedSegment>> drop_old_segments(Instant now);

 private:
  class Writer;
  explicit PartitionLog(std::unique_ptr<Writer> writer);

  std::unique_ptr<Writer> writer_;
};

/// The most bytes of batches in one append().
inline constexpr std::uint64_t kAppendBytesMax = std::uint64_t{256} << 20U;

/// Removes every file of a partition, durably; the empty folder stays. The log must be closed,
/// though readers may still be there: they go on until they let go. An absent folder is fine.
Status remove_partition(Disk& disk, const std::string& folder);

}  // namespace baton
