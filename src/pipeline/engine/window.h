#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <set>

namespace baton::pipeline {

/// Bounds the records in the pipeline, in number and bytes, from the source until they are
/// finished. Thread-safe.
class Window {
 public:
  Window(std::size_t records_max, std::size_t bytes_max)
      : records_max_(records_max), bytes_max_(bytes_max) {}

  /// Waits until there is room (a record larger than the window fits into an empty one). First
  /// come, first served, or small records could keep a large one waiting for ever. False: `give_up`
  /// returned true first.
  bool take(std::size_t bytes, const std::function<bool()>& give_up) {
    std::unique_lock lock(mutex_);
    const std::uint64_t turn = next_turn_++;
    waiting_.insert(turn);
    was_refused_ = was_refused_ || !fits(bytes);
    changed_.wait(lock, [&] { return give_up() || (*waiting_.begin() == turn && fits(bytes)); });
    waiting_.erase(turn);
    const bool taken = !give_up();
    if (taken) add(bytes);
    lock.unlock();
    changed_.notify_all();  // The next waiter's turn.
    return taken;
  }
  /// The same without waiting: false also while others wait for room.
  bool try_take(std::size_t bytes) {
    const std::scoped_lock lock(mutex_);
    const bool has_room = fits(bytes);
    was_refused_ = was_refused_ || !has_room;
    if (!waiting_.empty() || !has_room) return false;
    add(bytes);
    return true;
  }
  void give_back(std::size_t records, std::size_t bytes) {
    {
      const std::scoped_lock lock(mutex_);
      records_ -= records;
      bytes_ -= bytes;
      was_refused_ = false;
    }
    changed_.notify_all();
  }
  /// Wakes all waiters so that each re-checks its give-up condition.
  void look_again() {
    {
      const std::scoped_lock lock(mutex_);
    }
    changed_.notify_all();
  }
  [[nodiscard]] bool has_room() const {
    const std::scoped_lock lock(mutex_);
    return fits(0);
  }
  /// Whether nothing more can come in until a record finishes.
  [[nodiscard]] bool is_full() const {
    const std::scoped_lock lock(mutex_);
    return was_refused_ || !fits(0);
  }
  [[nodiscard]] std::size_t records() const {
    const std::scoped_lock lock(mutex_);
    return records_;
  }
  [[nodiscard]] std::size_t bytes() const {
    const std::scoped_lock lock(mutex_);
    return bytes_;
  }

 private:
  [[nodiscard]] bool fits(std::size_t bytes) const {
    return records_ == 0 || (records_ < records_max_ && bytes_ + bytes <= bytes_max_);
  }
  void add(std::size_t bytes) {
    ++records_;
    bytes_ += bytes;
  }

  const std::size_t records_max_;
  const std::size_t bytes_max_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t records_ = 0;
  std::size_t bytes_ = 0;
  bool was_refused_ = false;  // A caller found no room, and none was made since.
  std::uint64_t next_turn_ = 0;
  std::set<std::uint64_t> waiting_;  // The turns of the waiters.
};

}  // namespace baton::pipeline
