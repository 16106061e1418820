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
  // A producer not seen for this long is forgotten.
  Duration producer_expiry = limits::kProducerExpiry;
};

/// What became of one batch.
struct AppendOutcome {
  ProducerVerdict verdict = ProducerVerdict::append;
  Offset base_offset{-1};  // For append and duplicate.
  std::string text;        // The reason of a refusal.

  /// Whether the records are in the log, from now or from before.
  [[nodiscard]] bool stored() const {
    return verdict == ProducerVerdict::append || verdict == ProducerVerdict::duplicate;
  }
};

struct PartitionDescription {
  Offset first;
  Offset next;     // Offset of the next record.
  Offset visible;  // Readers see everything before it.
  std::uint64_t bytes = 0;
  std::size_t segments = 0;
  std::size_t producers = 0;
  // Why nothing can be appended, with file and position; nullopt when appends work.
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
/// Threads: everything belongs to the shard's thread, except sync(), publish() and reader(), which
/// may run on another one at the same time. Readers run on any thread and share no lock with it.
///
/// Invariant: offsets are dense; what is published never changes and is removed by retention only.
class PartitionLog {
 public:
  /// What an owner knows when it opens a log.
  struct Opening {
    PartitionLogOptions options;
    // Every record before this offset was synced: its loss is damage, not a torn tail. 0 for a new
    // partition.
    Offset synced_end;
    Instant now;
    // Called once for each damage that a reader meets later, on the reader's thread.
    std::function<void(const std::string& text)> damage_found = {};
  };

  /// Opens the partition in `folder`, or creates it; the parent must exist. Keeps every whole
  /// batch, cuts a torn tail past the synced end, rebuilds missing indexes and producer states.
  /// Damage before that end makes the partition read-only (see describe()) and cuts nothing. All
  /// that is there afterwards is durable and published. Fails when the disk does, when there are no
  /// files though something was synced, and with store_too_new. `disk` must outlive the log and its
  /// readers.
  static Result<std::unique_ptr<PartitionLog>> open(Disk& disk, std::string folder,
                                                    const Opening& opening);
  ~PartitionLog();
  PartitionLog(const PartitionLog&) = delete;
  PartitionLog& operator=(const PartitionLog&) = delete;

  /// Stores the batches, in order, in one write, and returns for each what became of it. They are
  /// durable after sync() and visible after publish().
  ///
  /// Fails as a whole, with nothing stored: with disk_full or resource_exhausted (too many open
  /// files; try again later), read_only (the partition is damaged), invalid_argument (more than
  /// kAppendBytesMax). Any other failure means that the disk's content is unknown, and the caller
  /// ends the process.
  Result<std::vector<AppendOutcome>> append(std::span<const CheckedBatch> batches,
                                            LeaderEpoch leader_epoch, Instant now);
  /// Makes everything appended before the call durable; returns the first offset that is not. A
  /// failure means that the disk's content is unknown, and the caller ends the process.
  Result<Offset> sync();
  /// Lets readers see everything before `end`. Never goes back: an older end changes nothing.
  void publish(Offset end);

  /// A reader of this partition.
  [[nodiscard]] PartitionReader reader() const;
  /// The offset that the next record gets.
  [[nodiscard]] Offset next() const;
  [[nodiscard]] PartitionDescription describe() const;

  /// Refuses older epochs of a producer that has started again but sent nothing here yet. Kept in
  /// memory until the next roll: the owner repeats the call after a restart.
  void fence(ProducerId id, ProducerEpoch epoch, Instant now);
  void set_retention(const RetentionRules& rules);
  /// Removes the oldest segments that the rules no longer keep, up to the first one that is being
  /// read, and forgets producers not seen for long. A last segment with only old records is closed
  /// first. Returns what was removed.
  Result<std::vector<DroppedSegment>> drop_old_segments(Instant now);

 private:
  class Writer;
  explicit PartitionLog(std::unique_ptr<Writer> writer);

  std::unique_ptr<Writer> writer_;
};

/// The maximum number of bytes of batches in one append().
inline constexpr std::uint64_t kAppendBytesMax = std::uint64_t{256} << 20U;

/// Removes every file of a partition, durably; the empty folder stays. The log must be closed, but
/// readers may still be open: they go on until they release it. An absent folder is not an error.
Status remove_partition(Disk& disk, const std::string& folder);

}  // namespace baton
