#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/stream/types.h"
#include "storage/disk/disk.h"
#include "storage/log/log_index.h"
#include "storage/log/published.h"

namespace baton {

inline constexpr std::string_view kLogSuffix = ".log";
inline constexpr std::string_view kIndexSuffix = ".index";
inline constexpr std::string_view kTimeIndexSuffix = ".timeindex";
inline constexpr std::string_view kSnapshotSuffix = ".snapshot";
inline constexpr std::string_view kBadChecksum = "the checksum of the batch does not fit";

/// "00000000000000000042.log".
std::string log_file_name(Offset base, std::string_view suffix);
/// The base offset in `name`; nullopt for any other name.
std::optional<Offset> parse_log_file_name(std::string_view name, std::string_view suffix);

/// Counts a segment's readers, and whether the segment is gone: never both. Lock-free.
class SegmentHold {
 public:
  /// Returns false when the segment is gone.
  bool take() {
    int readers = readers_.load(std::memory_order_relaxed);
    while (readers != kGone) {
      if (readers_.compare_exchange_weak(readers, readers + 1, std::memory_order_acq_rel)) {
        return true;
      }
    }
    return false;
  }
  void leave() { readers_.fetch_sub(1, std::memory_order_acq_rel); }
  /// Returns false when the segment is being read.
  bool end() {
    int nobody = 0;
    return readers_.compare_exchange_strong(nobody, kGone, std::memory_order_acq_rel);
  }

 private:
  static constexpr int kGone = -1;
  std::atomic<int> readers_ = 0;
};

/// The index of a segment that is no longer written: binary searches in its files, since the
/// indexes of all old segments would not fit into memory.
struct FileIndex {
  std::unique_ptr<File> offsets;
  std::unique_ptr<File> times;
  std::size_t offset_entries = 0;
  std::size_t time_entries = 0;
};

/// One segment as readers see it. Immutable, except for the index of the segment being written,
/// which only grows. The open files live as long as the segment is referenced.
class LogSegment {
 public:
  struct Parts {
    Offset base;
    std::string path;
    std::shared_ptr<File> file = {};
    // Exactly one of the two is set.
    std::shared_ptr<const MemoryIndex> memory = {};
    std::shared_ptr<const FileIndex> files = {};
    // Of a segment that is no longer written.
    std::uint64_t bytes = 0;
    TimestampMs greatest{-1};
    // Kept when the segment is closed, so that existing readers still hold the same segment.
    std::shared_ptr<SegmentHold> hold = std::make_shared<SegmentHold>();
  };
  /// Where a batch is.
  struct Found {
    BatchHeader header;
    std::uint64_t position;
  };

  explicit LogSegment(Parts parts) : parts_(std::move(parts)) {}

  [[nodiscard]] const Parts& parts() const { return parts_; }
  [[nodiscard]] Offset base() const { return parts_.base; }
  [[nodiscard]] const File& file() const { return *parts_.file; }
  [[nodiscard]] SegmentHold& hold() const { return *parts_.hold; }

  /// The batch that contains `offset`, which must be in this segment. A damaged index only costs
  /// time: without it the search begins at the segment's beginning. Fails with malformed.
  [[nodiscard]] Result<Found> find(Offset offset) const;
  /// The first batch before `limit` with a record of at least this timestamp; nullopt if none.
  [[nodiscard]] Result<std::optional<Found>> find_time(TimestampMs at, Offset limit) const;

  /// "file at position 7: why".
  [[nodiscard]] Error damaged(std::uint64_t position, std::string_view why) const;

 private:
  [[nodiscard]] std::size_t offset_entries() const;
  [[nodiscard]] std::size_t time_entries() const;
  [[nodiscard]] Result<OffsetEntry> offset_entry(std::size_t at) const;
  [[nodiscard]] Result<TimeEntry> time_entry(std::size_t at) const;
  [[nodiscard]] Result<std::optional<OffsetEntry>> entry_before(Offset offset) const;
  [[nodiscard]] Result<Offset> offset_before(TimestampMs at) const;
  [[nodiscard]] Result<Found> find_from(const std::optional<OffsetEntry>& entry,
                                        Offset offset) const;

  Parts parts_;
};

/// All segments of a partition, oldest first; the last is being written.
using SegmentList = std::vector<std::shared_ptr<const LogSegment>>;

/// Damage that was found when the log was opened.
struct LogDamage {
  Offset from;
  Offset until;  // The first offset after it; the greatest number when unknown.
  std::string text;
};

/// Damage that readers come upon while the log is open. Thread-safe.
class FoundDamages {
 public:
  /// Called once for each damage, on the reader's thread.
  using Told = std::function<void(const std::string& text)>;
  explicit FoundDamages(Told told) : told_(std::move(told)) {}

  /// Remembers "file at position 7: why", unless it is known already.
  void note(const std::string& text);
  /// The first damage; empty when there is none.
  [[nodiscard]] std::string first() const;

 private:
  const Told told_;
  mutable std::mutex mutex_;
  std::vector<std::string> texts_;
};

/// What the writer and the readers of a partition share.
struct SharedLog {
  SharedLog(SegmentList list, Offset end, std::vector<LogDamage> damage, FoundDamages::Told told)
      : segments(std::make_shared<const SegmentList>(std::move(list))),
        visible(end.value),
        damages(std::move(damage)),
        found(std::move(told)) {}

  // Read `visible` before this list: the list is then at least as new.
  Published<SegmentList> segments;
  std::atomic<std::int64_t> visible;
  const std::vector<LogDamage> damages;  // By offset.
  mutable FoundDamages found;
};

}  // namespace baton
