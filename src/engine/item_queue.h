#pragma once

#include <condition_variable>
#include <deque>
#include <iterator>
#include <mutex>
#include <utility>

#include "base/time.h"
#include "engine/record.h"

namespace baton::pipeline {

/// Items from one thread to another, in order. Its length is bounded by the window. Thread-safe.
class ItemQueue {
 public:
  void push(Items items) {
    {
      const std::scoped_lock lock(mutex_);
      std::move(items.begin(), items.end(), std::back_inserter(items_));
    }
    ready_.notify_one();
  }
  /// Waits for the first, then up to `linger` for more; at most `records` and about `bytes`. Empty:
  /// closed, and nothing is left.
  Items pop(std::size_t records, std::size_t bytes, Duration linger) {
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return closed_ || !items_.empty(); });
    if (!closed_ && items_.size() < records && linger > Duration::zero()) {
      ready_.wait_for(lock, linger, [&] { return closed_ || items_.size() >= records; });
    }
    Items result;
    std::size_t taken = 0;
    while (!items_.empty() && result.size() < records && (result.empty() || taken < bytes)) {
      taken += items_.front().record.bytes();
      result.push_back(std::move(items_.front()));
      items_.pop_front();
    }
    return result;
  }
  /// No more will come.
  void close() {
    {
      const std::scoped_lock lock(mutex_);
      closed_ = true;
    }
    ready_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable ready_;
  std::deque<Item> items_;
  bool closed_ = false;
};

}  // namespace baton::pipeline
