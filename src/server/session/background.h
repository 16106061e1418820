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

/// The threads that may wait for the disk, and one clock: what the streams of the api do away from
/// gRPC's threads. Thread-safe.
class Background {
 public:
  using Task = std::function<void()>;

  Background(std::size_t threads, std::function<Instant()> now);
  Background(const Background&) = delete;
  Background& operator=(const Background&) = delete;
  ~Background();

  /// Does the task soon. Whoever posts bounds what is under way.
  void post(Task task);
  /// Does the task at or after `at`.
  void post_at(Instant at, Task task);
  /// Ends the threads; what was not begun is dropped. Idempotent.
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
