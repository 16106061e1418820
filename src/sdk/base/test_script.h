#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <baton/v1/queues.pb.h>
#include <baton/v1/status.pb.h>
#include <grpcpp/support/status.h>

/// Building blocks for the scripts of test brokers.
namespace baton::client {

/// A flag that one thread sets and others wait for. A test that waits longer than this hangs.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  [[nodiscard]] bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds{20}, [&] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

/// A list that threads add to, and that a test waits on to grow.
template <class T>
class Log {
 public:
  void add(T entry) {
    const std::lock_guard lock(mutex_);
    entries_.push_back(std::move(entry));
    changed_.notify_all();
  }
  /// The entries as soon as there are at least `count`; fewer after 20 s.
  std::vector<T> wait(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds{20}, [&] { return entries_.size() >= count; });
    return entries_;
  }
  std::vector<T> now() { return wait(0); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<T> entries_;
};

/// A status as the broker sends it: with the Error in its details.
inline grpc::Status refusal(grpc::StatusCode code, std::uint32_t number, const std::string& name) {
  v1::Error error;
  error.set_code(number);
  error.set_name(name);
  error.set_text("scripted " + name);
  v1::CallStatus details;
  details.set_code(code);
  details.set_message(error.text());
  details.add_details()->PackFrom(error);
  return {code, error.text(), details.SerializeAsString()};
}

}  // namespace baton::client
