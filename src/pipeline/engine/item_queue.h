#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <iterator>
#include <mutex>
#include <utility>

#include "base/time.h"
#include "pipeline/engine/owned_partition.h"
#include "pipeline/engine/record.h"

namespace baton::pipeline {

/// Passes items from one thread to another, in order. The window bounds its length. Thread-safe.
class ItemQueue {
 public:
  void push(Items items) {
    {
      const std::scoped_lock lock(mutex_);
      std::move(items.begin(), items.end(), std::back_inserter(items_));
    }
    ready_.notify_one();
  }
  struct Limits {
    std::size_t records = 1;
    std::size_t bytes = 0;  // Approximate.
    Duration linger{};
    std::function<bool()> no_more_come{};  // True: lingering is useless.
  };

  /// Waits for the first item, then lingers for more. Empty if the queue is closed and empty.
  Items pop(const Limits& limits) {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return closed_ || !items_.empty(); });
    const auto enough = [&] { return closed_ || items_.size() >= limits.records; };
    constexpr Duration kLook = std::chrono::milliseconds(20);
    for (Duration left = limits.linger; left > Duration::zero() && !enough(); left -= kLook) {
      if (is_awaited() || (limits.no_more_come && limits.no_more_come())) break;
      ready_.wait_for(lock, std::min(left, kLook), enough);
    }
    Items result;
    std::size_t taken = 0;
    while (!items_.empty() && result.size() < limits.records &&
           (result.empty() || taken < limits.bytes)) {
      taken += items_.front().record.bytes();
      result.push_back(std::move(items_.front()));
      items_.pop_front();
    }
    return result;
  }
  /// Tells pop() that no more items will come.
  void close() {
    {
      const std::scoped_lock lock(mutex_);
      closed_ = true;
    }
    ready_.notify_all();
  }

 private:
  /// Whether a revocation waits for the end of one of the records.
  [[nodiscard]] bool is_awaited() const {
    return std::ranges::any_of(items_,
                               [](const Item& item) { return item.assignment->revoking(); });
  }

  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Item> items_;
  bool closed_ = false;
};

}  // namespace baton::pipeline
