#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "server/shard/broker.h"

namespace baton {

/// For tests of sessions and protocols only: a broker that does what a test says. Calls wait until
/// the test takes them. Its own "shard" thread completes them and delivers messages, as the real
/// one does. Detaches and credits are recorded and completed at once.
class FakeBroker final : public Broker {
 public:
  FakeBroker() : shard_([this] { run_shard(); }) {}
  FakeBroker(const FakeBroker&) = delete;
  FakeBroker& operator=(const FakeBroker&) = delete;
  ~FakeBroker() override {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_all();
    shard_.join();
  }

  bool submit(std::unique_ptr<Call>& call, Admission admission) override {
    return submit_to(0, call, admission);
  }
  bool submit_to(std::size_t /*shard*/, std::unique_ptr<Call>& call, Admission admission) override {
    const std::lock_guard lock(mutex_);
    if (full_ && admission == Admission::bounded) return false;
    // Streams and buckets are tested on a real shard.
    if (refusing_ || !std::holds_alternative<QueueCommand>(call->command)) return false;
    auto& command = std::get<QueueCommand>(call->command);
    if (auto* detach = std::get_if<DetachCommand>(&command)) {
      detaches_.push_back(*detach);
      if (holding_detaches_) {
        waiting_.push_back(std::move(call));
        changed_.notify_all();
        return true;
      }
      work_.emplace_back([done = std::shared_ptr<Call>(std::move(call))] { done->complete(); });
    } else if (std::holds_alternative<QuiesceCommand>(command) && !holding_quiesces_) {
      work_.emplace_back([done = std::shared_ptr<Call>(std::move(call))] { done->complete(); });
    } else if (auto* begun = std::get_if<BegunCommand>(&command)) {
      begun_.push_back(*begun);
      work_.emplace_back([done = std::shared_ptr<Call>(std::move(call))] { done->complete(); });
    } else if (auto* credit = std::get_if<CreditCommand>(&command)) {
      credits_.push_back(*credit);
      work_.emplace_back([done = std::shared_ptr<Call>(std::move(call))] { done->complete(); });
    } else {
      waiting_.push_back(std::move(call));
      ++seen_;
    }
    changed_.notify_all();
    return true;
  }
  [[nodiscard]] std::size_t shards() const override { return 2; }
  ConsumerNumber next_consumer_number() override {
    const std::lock_guard lock(mutex_);
    return ConsumerNumber{++consumers_};
  }
  Ticket next_ticket() override { return Ticket{1}; }
  [[nodiscard]] ShardStats stats(std::size_t shard) const override {
    ShardStats stats;
    stats.enqueued = 40 + shard;
    return stats;
  }
  Status checkpoint() override { return {}; }
  std::vector<ShardInspection> inspect() override {
    ShardInspection shard;
    shard.boot = 3;
    shard.tables.push_back({.name = "leases", .rows = 2, .bytes = 90});
    return {shard, shard};
  }
  [[nodiscard]] Instant now() const override { return {1'700'000'000'000'000'000}; }

  /// The call that has waited longest, which must be a Wanted.
  template <class Wanted>
  std::unique_ptr<Call> take() {
    std::unique_lock lock(mutex_);
    if (!wait(lock, [this] { return !waiting_.empty(); })) {
      ADD_FAILURE() << "no call came";
      std::abort();
    }
    std::unique_ptr<Call> call = std::move(waiting_.front());
    waiting_.pop_front();
    const auto& command = std::get<QueueCommand>(call->command);
    if (!std::holds_alternative<Wanted>(command)) {
      ADD_FAILURE() << "another call came, of kind " << command.index();
      std::abort();
    }
    return call;
  }
  template <class Wanted>
  static Wanted& of(const std::unique_ptr<Call>& call) {
    return std::get<Wanted>(std::get<QueueCommand>(call->command));
  }

  /// Runs `work` on the shard's thread, in order.
  void post(std::function<void()> work) {
    {
      const std::lock_guard lock(mutex_);
      work_.push_back(std::move(work));
    }
    changed_.notify_all();
  }
  void complete(std::unique_ptr<Call> call) {
    post([done = std::shared_ptr<Call>(std::move(call))] { done->complete(); });
  }

  /// The detaches so far; waits until there are `count`.
  std::vector<DetachCommand> detaches(std::size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(wait(lock, [&] { return detaches_.size() >= count; })) << "no detach came";
    return detaches_;
  }
  std::vector<CreditCommand> credits(std::size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(wait(lock, [&] { return credits_.size() >= count; })) << "no credit came";
    return credits_;
  }
  std::vector<BegunCommand> begun(std::size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(wait(lock, [&] { return begun_.size() >= count; })) << "no mark came";
    return begun_;
  }
  [[nodiscard]] std::size_t detach_count() {
    const std::lock_guard lock(mutex_);
    return detaches_.size();
  }
  /// The number of calls ever submitted that wait for the test.
  [[nodiscard]] std::size_t seen() {
    const std::lock_guard lock(mutex_);
    return seen_;
  }
  void set_full(bool full) {
    const std::lock_guard lock(mutex_);
    full_ = full;
  }
  /// From now on quiesces wait like other calls, and the test takes and completes them.
  void hold_quiesces() {
    const std::lock_guard lock(mutex_);
    holding_quiesces_ = true;
  }
  /// From now on detaches wait like other calls, and the test takes and completes them.
  void hold_detaches() {
    const std::lock_guard lock(mutex_);
    holding_detaches_ = true;
  }
  void set_refusing(bool refusing) {
    const std::lock_guard lock(mutex_);
    refusing_ = refusing;
  }

 private:
  template <class Condition>
  bool wait(std::unique_lock<std::mutex>& lock, Condition condition) {
    return changed_.wait_for(lock, std::chrono::seconds{20}, condition);
  }

  void run_shard() {
    std::unique_lock lock(mutex_);
    while (true) {
      changed_.wait(lock, [this] { return stopping_ || !work_.empty(); });
      if (work_.empty()) return;
      std::function<void()> work = std::move(work_.front());
      work_.pop_front();
      lock.unlock();
      work();
      work = nullptr;
      lock.lock();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::unique_ptr<Call>> waiting_;
  std::deque<std::function<void()>> work_;
  std::vector<DetachCommand> detaches_;
  std::vector<CreditCommand> credits_;
  std::vector<BegunCommand> begun_;
  std::size_t seen_ = 0;
  std::uint64_t consumers_ = 0;
  bool full_ = false;
  bool refusing_ = false;
  bool holding_detaches_ = false;
  bool holding_quiesces_ = false;
  bool stopping_ = false;
  std::thread shard_;
};

}  // namespace baton
