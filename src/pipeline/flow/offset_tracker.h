#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>

namespace baton::flow {

/// Which records of one partition, in one assignment of it, are over and done with: applied, known
/// as duplicates, filtered or confirmed as dead letters. What may be committed ends before the
/// first one that is not, so nothing is ever skipped.
///
/// Offsets are taken as they were delivered: compaction and transactions leave holes. A partition
/// that is taken away and comes back gets a new tracker, so late news of the former life change
/// nothing.
class OffsetTracker {
 public:
  /// Stands for a delivered record.
  using Ticket = std::uint64_t;

  /// `next`: what is committed so far, that is, the first offset that is not.
  explicit OffsetTracker(std::int64_t next) : committable_(next), highest_done_(next - 1) {}

  /// Offsets only grow. O(1).
  Ticket delivered(std::int64_t offset);
  /// The record is terminal. Saying so twice is a bug. O(1), amortized.
  void done(Ticket ticket);

  /// Everything below it is terminal.
  [[nodiscard]] std::int64_t committable() const { return committable_; }
  [[nodiscard]] std::int64_t highest_done() const { return highest_done_; }
  /// Delivered and not terminal.
  [[nodiscard]] std::size_t in_flight() const { return in_flight_; }
  /// Terminal, but waiting for one before them.
  [[nodiscard]] std::size_t waiting() const { return records_.size() - in_flight_; }
  /// What holds the mark back; none: nothing is in flight.
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
