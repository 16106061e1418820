#include "server/shard/shard_runner.h"

#include <atomic>
#include <future>
#include <memory>
#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "server/shard/one_call.h"
#include "sim/fake_disk.h"
#include "sim/fake_store.h"

namespace baton {
namespace {

/// A local log that can return the errors of a shared one.
class AnsweringLog final : public ShardLog {
 public:
  explicit AnsweringLog(std::unique_ptr<ShardLog> log) : log_(std::move(log)) {}

  [[nodiscard]] std::uint64_t round_bytes_max() const override { return log_->round_bytes_max(); }
  [[nodiscard]] Position first() const override { return log_->first(); }
  [[nodiscard]] Position next() const override { return log_->next(); }
  Status append(const NewRound& round) override {
    if (taken_at_append) return Error{Errc::position_taken, "another node appended"};
    return log_->append(round);
  }
  Result<Position> sync() override {
    if (taken_at_sync) return Error{Errc::position_taken, "another node appended"};
    if (unknown > 0) return Error{Errc::unavailable, "no answer"};
    return log_->sync();
  }
  Result<Position> settle() override {
    ++settled;
    if (int left = unknown; left > 0) unknown.compare_exchange_strong(left, left - 1);
    return sync();
  }
  Status read(Position from, const std::function<Status(const Round&)>& visit) const override {
    return log_->read(from, visit);
  }
  Status trim(Position before) override { return log_->trim(before); }
  [[nodiscard]] std::uint64_t bytes_since(Position from) const override {
    return log_->bytes_since(from);
  }
  [[nodiscard]] Journal::Room room() const override { return log_->room(); }
  Status prepare() override { return log_->prepare(); }
  [[nodiscard]] bool rounds_carry_records() const override { return false; }
  Result<std::unique_ptr<PartitionLog>> open_partition(
      const PartitionName& name, const PartitionLog::Opening& opening) override {
    return log_->open_partition(name, opening);
  }
  [[nodiscard]] Result<bool> has_partition(const PartitionName& name) const override {
    return log_->has_partition(name);
  }
  Status remove_partition(const PartitionName& name) override {
    return log_->remove_partition(name);
  }

  std::atomic<bool> taken_at_append = false;
  std::atomic<bool> taken_at_sync = false;
  std::atomic<int> unknown = 0;
  std::atomic<int> settled = 0;

 private:
  std::unique_ptr<ShardLog> log_;
};

class ShardRunnerTest : public testing::Test {
 protected:
  void SetUp() override {
    log_ = std::make_unique<AnsweringLog>(
        *open_local_log(disk_, "journal", "streams", {.segment_bytes = std::uint64_t{16} << 20U}));
    auto shard = Shard::recover({}, {.log = *log_, .store = store_}, BrokerClock::wall());
    ASSERT_TRUE(shard.has_value()) << to_string(shard.error());
    clock_ = std::make_unique<BrokerClock>((*shard)->started_at());
    (*shard)->begin_serving(clock_->now());
    runner_ = std::make_unique<ShardRunner>(
        ShardRunner::Parts{.shard = *std::move(shard),
                           .log = *log_,
                           .store = store_,
                           .clock = *clock_,
                           .fsync = {.kind = FsyncMode::Kind::always, .interval = {}},
                           .deposed = [this] { deposed_.set_value(); }});
    runner_->start();
  }

  /// Creates a queue: the future gets the command once it is durable, or breaks if the call was
  /// dropped.
  std::future<Command> create(const std::string& queue) {
    std::promise<Command> promise;
    auto done = promise.get_future();
    std::unique_ptr<Call> call = std::make_unique<PromisedCall>(
        QueueCommand(
            CreateQueueCommand{.queue = queue, .settings = {}, .error = {}, .description = {}}),
        std::move(promise));
    if (!runner_->submit(call, Broker::Admission::reserved)) call.reset();
    return done;
  }
  static void expect_dropped(std::future<Command>& done) {
    EXPECT_THROW(static_cast<void>(done.get()), std::future_error);
  }
  /// The log belongs to another node: nothing is confirmed, the process lives, and the runner can
  /// stop.
  void expect_deposed(std::future<Command>& done) {
    deposed_.get_future().wait();
    auto later = create("later");
    expect_dropped(later);
    EXPECT_FALSE(runner_->checkpoint().has_value());
    runner_->stop();
    expect_dropped(done);
  }

  FakeDisk disk_{1};
  FakeStore store_{std::make_shared<FakeStoreMedia>(2)};
  std::unique_ptr<AnsweringLog> log_;
  std::unique_ptr<BrokerClock> clock_;
  std::promise<void> deposed_;
  std::unique_ptr<ShardRunner> runner_;
};

TEST_F(ShardRunnerTest, DropsEverythingWhenAnAppendIsAnothersToMake) {
  create("first").get();
  log_->taken_at_append = true;
  auto done = create("second");
  expect_deposed(done);
}

TEST_F(ShardRunnerTest, ConfirmsNothingThatAnotherNodesRoundTookThePlaceOf) {
  create("first").get();
  log_->taken_at_sync = true;
  auto done = create("second");
  expect_deposed(done);
}

TEST_F(ShardRunnerTest, WaitsForTheLogToTellWhatItHas) {
  log_->unknown = 2;
  create("first").get();
  EXPECT_EQ(log_->settled, 2);
  create("second").get();
  EXPECT_EQ(log_->settled, 2);
}

// A caller who can be told "not now" is told so at once, instead of waiting for a log that may stay
// away for long.
TEST_F(ShardRunnerTest, RefusesBoundedCallsWhileTheLogDoesNotAnswer) {
  log_->unknown = 1'000'000;
  auto waits = create("first");
  while (log_->settled == 0) std::this_thread::yield();
  std::promise<Command> promise;
  std::unique_ptr<Call> call = std::make_unique<PromisedCall>(
      QueueCommand(
          CreateQueueCommand{.queue = "second", .settings = {}, .error = {}, .description = {}}),
      std::move(promise));
  EXPECT_FALSE(runner_->submit(call, Broker::Admission::bounded));
  log_->unknown = 1;
  waits.get();
  while (!runner_->submit(call, Broker::Admission::bounded)) std::this_thread::yield();
}

TEST_F(ShardRunnerTest, StopsWhileTheLogDoesNotAnswer) {
  log_->unknown = 1'000'000;
  auto done = create("first");
  while (log_->settled == 0) std::this_thread::yield();
  runner_->stop();
  expect_dropped(done);
}

}  // namespace
}  // namespace baton
