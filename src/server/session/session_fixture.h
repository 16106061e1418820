#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "server/session/server_state.h"
#include "server/session/session.h"
#include "server/session/turn_broker.h"

namespace baton {

/// The protocol's side of a session, without a protocol: requests and outputs are structs.
template <class Kind>
class TestConnection final : public SessionPort {
 public:
  using Output = typename Kind::Output;

  TestConnection(TurnBroker& broker, std::shared_ptr<Kind> session, bool reads = true)
      : broker_(broker), session_(std::move(session)) {
    session_->open(*this, reads);
  }
  TestConnection(const TestConnection&) = delete;
  TestConnection& operator=(const TestConnection&) = delete;
  ~TestConnection() override {
    set_slow(false);
    session_->on_cancel();
    wait([this] { return end_.has_value(); }, "the session did not end");
  }

  void read() override {
    const std::lock_guard lock(mutex_);
    reads_ = true;
  }
  void write(Lock& lock) override {
    Output output = next_output(lock);
    if (lock.owns_lock()) lock.unlock();
    bool slow = false;
    {
      const std::lock_guard own(mutex_);
      outputs_.push_back(std::move(output));
      slow = slow_;
      unwritten_ = slow;
    }
    broker_.changed.notify_all();
    if (!slow) session_->on_written(true);
    lock.lock();
  }
  void finish(const Status& status) override {
    TurnBroker& broker = broker_;  // `this` may be gone once the end is there.
    {
      const std::lock_guard lock(mutex_);
      EXPECT_FALSE(end_.has_value()) << "finished twice";
      end_ = status;
    }
    broker.changed.notify_all();
  }

  /// Whether the session would take another request now.
  [[nodiscard]] bool is_read() {
    const std::lock_guard lock(mutex_);
    return reads_;
  }
  /// One request, which `take` gives to the session.
  template <class Take>
  void request(Take take) {
    wait([this] { return reads_; }, "nobody reads");
    request_without_a_turn(std::move(take));
  }
  /// The same for a session that reads, while the broker does nothing.
  template <class Take>
  void request_without_a_turn(Take take) {
    {
      const std::lock_guard lock(mutex_);
      reads_ = false;
    }
    if (session_->begin_request()) take(*session_);
    session_->end_request();
  }
  /// The client closes its side.
  void close() {
    wait([this] { return reads_; }, "nobody reads");
    session_->on_closed();
  }
  /// The connection breaks.
  void lose() {
    bool due = false;
    {
      const std::lock_guard lock(mutex_);
      due = std::exchange(unwritten_, false);
    }
    session_->on_cancel();
    if (due) session_->on_written(false);
  }
  /// From now on a write lasts until the client ends it.
  void set_slow(bool slow) {
    bool due = false;
    {
      const std::lock_guard lock(mutex_);
      slow_ = slow;
      due = !slow && std::exchange(unwritten_, false);
    }
    if (due) session_->on_written(true);
  }

  /// Lets the broker work until there are `count` outputs, and takes them.
  std::vector<Output> take(std::size_t count) {
    wait([&] { return outputs_.size() >= count; }, "the outputs did not come");
    const std::lock_guard lock(mutex_);
    return std::exchange(outputs_, {});
  }
  std::vector<Output> now() {
    broker_.turn();
    const std::lock_guard lock(mutex_);
    return std::exchange(outputs_, {});
  }
  Status wait_for_end() {
    wait([this] { return end_.has_value(); }, "the session did not end");
    const std::lock_guard lock(mutex_);
    return end_.value_or(gone());
  }

 private:
  Output next_output(Lock& lock) {
    if constexpr (requires { session_->take_output(); }) {
      return session_->take_output();
    } else if constexpr (requires { session_->take_output(lock); }) {
      return session_->take_output(lock);
    } else {
      Output output;
      session_->take_output(output);
      return output;
    }
  }
  template <class Condition>
  void wait(Condition condition, const char* otherwise) {
    broker_.turn_until(mutex_, condition, otherwise);
  }

  TurnBroker& broker_;
  std::shared_ptr<Kind> session_;
  std::mutex mutex_;
  std::vector<Output> outputs_;
  std::optional<Status> end_;
  bool reads_ = false;
  bool slow_ = false;
  bool unwritten_ = false;
};

/// For tests only: sessions over a broker of one real shard.
class SessionTest : public testing::Test {
 protected:
  ~SessionTest() override { state_->background.stop(); }

  TurnBroker broker_;
  std::shared_ptr<ServerState> state_ = std::make_shared<ServerState>(broker_, 1);
};

}  // namespace baton
