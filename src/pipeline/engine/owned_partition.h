#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "base/time.h"
#include "pipeline/engine/sink.h"
#include "pipeline/flow/offset_tracker.h"

namespace baton::pipeline {

/// A partition during one assignment to this process. A record that outlives it changes nothing,
/// because a later assignment of the partition is another object. Thread-safe.
class OwnedPartition {
 public:
  struct Progress {
    std::int64_t committable = 0;
    std::int64_t highest_done = 0;
    std::size_t in_flight = 0;
    std::size_t waiting = 0;             // Finished records behind an unfinished one.
    std::chrono::milliseconds newest{};  // When the last delivered record was produced; since 1970.
  };

  OwnedPartition(std::uint32_t partition, std::uint64_t epoch, std::int64_t next,
                 std::optional<SinkMarks> marks = std::nullopt)
      : partition_(partition),
        epoch_(epoch),
        sink_epoch_(marks.has_value() ? marks->epoch : 0),
        is_marked_(marks.has_value()),
        tracker_(next),
        committed_(next) {
    if (!marks.has_value()) return;
    for (const std::int64_t mark : marks->next) marks_.emplace_back(mark);
    begin_marks_ = std::move(marks->next);
  }

  [[nodiscard]] std::uint32_t partition() const { return partition_; }
  [[nodiscard]] std::uint64_t epoch() const { return epoch_; }

  // exactly_once_effect: the sink's mark for each lane.
  [[nodiscard]] bool is_marked() const { return is_marked_; }
  [[nodiscard]] std::uint64_t sink_epoch() const { return sink_epoch_; }
  [[nodiscard]] std::int64_t mark(std::uint32_t lane) const { return marks_[lane].load(); }
  /// The mark at the beginning: records below it are in the sink already.
  [[nodiscard]] std::int64_t begin_mark(std::uint32_t lane) const { return begin_marks_[lane]; }
  void set_mark(std::uint32_t lane, std::int64_t next) { marks_[lane].store(next); }

  flow::OffsetTracker::Ticket delivered(std::int64_t offset, std::chrono::milliseconds produced) {
    const std::scoped_lock lock(mutex_);
    newest_ = produced;
    return tracker_.delivered(offset);
  }
  /// The same for records whose offsets do not grow.
  flow::OffsetTracker::Ticket delivered_next(std::chrono::milliseconds produced) {
    const std::scoped_lock lock(mutex_);
    newest_ = produced;
    return tracker_.delivered(next_++);
  }
  void done(flow::OffsetTracker::Ticket ticket) {
    const std::scoped_lock lock(mutex_);
    tracker_.done(ticket);
    if (tracker_.in_flight() == 0) idle_.notify_all();
  }
  [[nodiscard]] Progress progress() const {
    const std::scoped_lock lock(mutex_);
    return {tracker_.committable(), tracker_.highest_done(), tracker_.in_flight(),
            tracker_.waiting(), newest_};
  }
  /// Waits until everything delivered is finished, or at least everything below `enough`. Asks
  /// `give_up` now and then. True if everything is finished.
  bool wait_idle(Duration time, const std::function<bool()>& give_up,
                 std::int64_t enough = std::numeric_limits<std::int64_t>::max()) {
    constexpr Duration kLook = std::chrono::milliseconds(20);
    std::unique_lock lock(mutex_);
    for (Duration left = time; tracker_.in_flight() > 0; left -= kLook) {
      if (tracker_.committable() >= enough) return false;
      if (left <= Duration::zero() || give_up()) return false;
      idle_.wait_for(lock, kLook);
    }
    return true;
  }

  /// Stops taking in records.
  void revoke() { revoking_.store(true, std::memory_order_release); }
  [[nodiscard]] bool revoking() const { return revoking_.load(std::memory_order_acquire); }
  /// Records still in the pipeline are dropped, not written.
  void drop() { dropped_.store(true, std::memory_order_release); }
  [[nodiscard]] bool dropped() const { return dropped_.load(std::memory_order_acquire); }
  /// The sink says that the partition belongs to another process.
  void fence() {
    fenced_.store(true, std::memory_order_release);
    drop();
  }
  [[nodiscard]] bool fenced() const { return fenced_.load(std::memory_order_acquire); }

  // For the thread that commits.
  [[nodiscard]] std::int64_t committed() const { return committed_.load(); }
  void set_committed(std::int64_t next) { committed_.store(next); }

 private:
  const std::uint32_t partition_;
  const std::uint64_t epoch_;
  const std::uint64_t sink_epoch_;
  const bool is_marked_;
  std::deque<std::atomic<std::int64_t>> marks_;  // Indexed by lane; written by the lane's thread.
  std::vector<std::int64_t> begin_marks_;
  mutable std::mutex mutex_;
  std::condition_variable idle_;
  flow::OffsetTracker tracker_;
  std::int64_t next_ = 0;
  std::chrono::milliseconds newest_{};
  std::atomic<bool> revoking_{false};
  std::atomic<bool> dropped_{false};
  std::atomic<bool> fenced_{false};
  std::atomic<std::int64_t> committed_;
};

}  // namespace baton::pipeline
