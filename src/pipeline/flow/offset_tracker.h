#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace baton::flow {

/// Which records of one partition, in one assignment, are finished: applied, known as duplicates,
/// filtered or confirmed as dead letters. Only offsets before the first unfinished record may be
/// committed, so no record is ever skipped.
///
/// Offsets are those that were delivered: compaction and transactions leave holes. A partition that
/// is revoked and assigned again gets a new tracker, so late calls for the earlier assignment
/// change nothing.
class OffsetTracker {
 public:
  /// Identifies a delivered record.
  using Ticket = std::uint64_t;

  /// `next`: the first offset that is not committed yet.
  explicit OffsetTracker(std::int64_t next) : committable_(next), highest_done_(next - 1) {}

  /// Offsets only grow. O(1).
  Ticket delivered(std::int64_t offset);
  /// The record is finished. Calling it twice is a bug. O(1), amortized.
  void done(Ticket ticket);

  /// Everything below it is finished.
  [[nodiscard]] std::int64_t committable() const { return committable_; }
  [[nodiscard]] std::int64_t highest_done() const { return highest_done_; }
  /// Delivered and not finished.
  [[nodiscard]] std::size_t in_flight() const { return in_flight_; }
  /// Finished, but behind an unfinished record.
  [[nodiscard]] std::size_t waiting() const { return records_.size() - in_flight_; }
  /// The offset that holds committable() back; nullopt if nothing is in flight.
  [[nodiscard]] std::optional<std::int64_t> oldest_in_flight() const;

 private:
  struct Record {
    std::int64_t offset = 0;
    bool done = false;
  };
  std::deque<Record> records_;  // From the oldest in flight on.
  Ticket first_ = 0;            // Of records_.front().
  std::int64_t committable_;
  std::int64_t highest_done_;
  std::size_t in_flight_ = 0;
};

}  // namespace baton::flow
