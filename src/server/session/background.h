#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <vector>

#include "base/time.h"

namespace baton {

/// Threads that may wait for the disk, and a clock thread: for work of sessions that must not block
/// a thread of a protocol or of a shard. Thread-safe.
class Background {
 public:
  using Task = std::function<void()>;

  Background(std::size_t threads, std::function<Instant()> now);
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  ~Background();

  /// Runs the task soon. The queue has no bound: the caller limits its tasks under way.
  void post(Task task);
  /// Runs the task at or after `at`.
  void post_at(Instant at, Task task);
  /// Ends the threads and drops the tasks that have not begun. Idempotent.
  void stop();

 private:
  void run();
  void run_clock();

  std::function<Instant()> now_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable wake_clock_;
  std::deque<Task> tasks_;
  std::multimap<Instant, Task> later_;
  bool stopping_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace baton
