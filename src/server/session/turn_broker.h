#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "server/session/calls.h"
#include "server/shard/shard.h"
#include "sim/fake_disk.h"
#include "sim/fake_store.h"
#include "storage/journal/journal.h"

namespace baton {

/// A broker of one real shard on a fake disk, which runs its rounds when the test says so, under
/// the test's clock. Any thread may submit calls; only the test calls turn().
class TurnBroker final : public Broker {
 public:
  TurnBroker() { open(); }

  bool submit(std::unique_ptr<Call>& call, Admission /*admission*/) override {
    {
      const std::lock_guard lock(mutex_);
      if (refusing_) return false;
      const auto* command = std::get_if<StreamCommand>(&call->command);
      if (command != nullptr && std::holds_alternative<ConnectionDownCommand>(*command)) {
        ++connections_down_;
      }
      calls_.push_back(std::move(call));
    }
    changed.notify_all();
    return true;
  }
  bool submit_to(std::size_t /*shard*/, std::unique_ptr<Call>& call, Admission admission) override {
    return submit(call, admission);
  }
  [[nodiscard]] std::size_t shards() const override { return 1; }
  ConsumerNumber next_consumer_number() override { return ConsumerNumber{++consumers_}; }
  Ticket next_ticket() override { return Ticket{++tickets_}; }
  [[nodiscard]] ShardStats stats(std::size_t /*shard*/) const override { return shard_->stats(); }
  Status checkpoint() override { return {}; }
  [[nodiscard]] Instant now() const override { return Instant{now_.load()}; }

  /// Runs rounds until no call waits.
  void turn() {
    do {
      std::deque<std::unique_ptr<Call>> calls;
      {
        const std::lock_guard lock(mutex_);
        calls.swap(calls_);
      }
      round(calls);
    } while (waiting() != 0);
  }
  /// Runs rounds until `condition`, which is asked under `mutex`; otherwise the test fails.
  template <class Condition>
  void turn_until(std::mutex& mutex, const Condition& condition, const char* otherwise) {
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds{20};
    while (true) {
      turn();
      std::unique_lock lock(mutex);
      if (condition()) return;
      if (std::chrono::steady_clock::now() > deadline) {
        FAIL() << otherwise;
        return;
      }
      changed.wait_for(lock, std::chrono::milliseconds{2});
    }
  }
  /// Executes a command of the test itself.
  template <class Wanted>
  Wanted execute(Wanted command) {
    std::optional<Wanted> result;
    baton::submit(*this, Command(std::move(command)), Admission::reserved, [&](Command* done) {
      Wanted* const answer = answer_of<Wanted>(done);
      if (answer != nullptr) result = std::move(*answer);
    });
    turn();
    return *std::move(result);
  }
  [[nodiscard]] std::size_t waiting() {
    const std::lock_guard lock(mutex_);
    return calls_.size();
  }
  [[nodiscard]] std::size_t connections_down() {
    const std::lock_guard lock(mutex_);
    return connections_down_;
  }
  /// Refuses calls, like a broker that is stopping.
  void refuse() {
    const std::lock_guard lock(mutex_);
    refusing_ = true;
  }
  void pass(Duration time) { now_ += time.count(); }

  std::condition_variable changed;  // A call has arrived.

 private:
  void open() {
    log_ = *open_local_log(disk_, "journal", "streams", {.segment_bytes = 8192 * 1024});
    auto shard = Shard::recover({}, {.log = *log_, .store = store_}, now());
    if (!shard.has_value()) {
      ADD_FAILURE() << to_string(shard.error());
      std::abort();
    }
    shard_ = *std::move(shard);
    shard_->begin_serving(now());
  }
  void round(std::deque<std::unique_ptr<Call>>& calls) {
    ASSERT_TRUE(log_->prepare().has_value());
    Held held = shard_->round(calls, {}, now());
    for (const auto& partition : held.unsynced) ASSERT_TRUE(partition->sync().has_value());
    ASSERT_TRUE(log_->sync().has_value());
    held.release();
    for (const PartitionName& name : held.removed) {
      ASSERT_TRUE(log_->remove_partition(name).has_value());
    }
  }

  FakeDisk disk_{1};
  FakeStore store_{std::make_shared<FakeStoreMedia>(2)};
  std::unique_ptr<ShardLog> log_;
  std::unique_ptr<Shard> shard_;
  std::atomic<std::int64_t> now_{1'700'000'000'000'000'000};
  std::atomic<std::uint64_t> tickets_{0};
  std::atomic<std::uint64_t> consumers_{0};
  std::mutex mutex_;
  std::deque<std::unique_ptr<Call>> calls_;
  bool refusing_ = false;
  std::size_t connections_down_ = 0;
};

}  // namespace baton
