#pragma once

#include <condition_variable>
#include <mutex>

#include "base/time.h"

namespace baton::pipeline {

/// Wakes one thread that waits for any of several events. A ring before the wait is not lost.
/// Thread-safe.
class Bell {
 public:
  void ring() {
    {
      const std::scoped_lock lock(mutex_);
      rung_ = true;
    }
    heard_.notify_one();
  }
  void wait(Duration time) {
    std::unique_lock lock(mutex_);
    heard_.wait_for(lock, time, [this] { return rung_; });
    rung_ = false;
  }

 private:
  std::mutex mutex_;
  std::condition_variable heard_;
  bool rung_ = false;
};

}  // namespace baton::pipeline
