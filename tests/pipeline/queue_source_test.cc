// A pipeline that reads a queue of a real broker.
#include "pipeline/baton/queue_source.h"

#include <chrono>
#include <csignal>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "e2e/broker_process.h"
#include "pipeline/engine_run.h"

namespace baton::pipeline {
namespace {

using e2e::eventually;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr auto kQueue = "orders";

class QueueSourceTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(broker_.start()); }

  void create(milliseconds visibility = seconds{30}, std::uint32_t attempts = 3) {
    client::QueueSettings settings;
    settings.visibility_timeout = visibility;
    settings.attempts_max = attempts;
    broker_.create(kQueue, settings);
  }
  QueueSourceOptions options(std::size_t prefetch = 1000) {
    QueueSourceOptions options;
    options.connection = broker_.connection();
    options.queue = kQueue;
    options.prefetch = prefetch;
    return options;
  }
  void send(std::size_t count) { broker_.send(kQueue, e2e::numbered("order", count)); }
  /// Every waiting message has been tried this often.
  void expect_attempts(std::uint32_t attempts) {
    const auto peeked = broker_.client().queue(kQueue).peek(1000);
    ASSERT_TRUE(peeked.has_value());
    for (const auto& message : *peeked) EXPECT_EQ(message.attempts, attempts) << message.id;
  }

  static void wait(milliseconds time) {
    const auto until = e2e::Clock::now() + time;
    EXPECT_TRUE(eventually([&] { return e2e::Clock::now() > until; }));
  }

  e2e::BrokerProcess broker_;
  MemorySink sink_;
  MemoryLetters letters_;
};

TEST_F(QueueSourceTest, EveryMessageEndsOnceAndTheQueueIsEmpty) {
  create();
  std::vector<client::NewMessage> messages;
  for (int i = 0; i < 5'000; ++i) {
    messages.push_back({.payload = i % 500 == 7 ? "broken" : fmt::format("order-{}", i),
                        .headers = {{"trace", fmt::format("{}", i)}},
                        .fairness_key = fmt::format("customer-{}", i % 10)});
  }
  const auto sent = broker_.client().queue(kQueue).enqueue(std::move(messages));
  ASSERT_TRUE(sent.has_value());
  QueueSource source(options());
  EngineRun run(source, sink_, letters_);

  EXPECT_TRUE(eventually([&] { return broker_.depth(kQueue) == 0; }));
  EXPECT_EQ(run.stop().value(), Ending::drained);

  EXPECT_EQ(sink_.size(), 4'990U);
  EXPECT_EQ(letters_.size(), 10U);
  EXPECT_EQ(run.counters().received, 5'000U);
  EXPECT_EQ(sink_.replays(), 0U);
  const auto rows = sink_.rows();
  const Record& record = rows.begin()->second;
  const std::string number = record.value.substr(std::string("order-").size());
  EXPECT_EQ(record.headers, (std::vector<std::pair<std::string, std::string>>{{"trace", number}}));
  EXPECT_EQ(record.key, fmt::format("customer-{}", number.back()));
  EXPECT_GT(record.timestamp, std::chrono::hours{24 * 365 * 50});
  // The number is the end of the id.
  const std::string id = sent->at(std::stoul(number)).id;
  const std::string tail = id.substr(20, 3) + id.substr(24);
  EXPECT_TRUE(fmt::format("{:016x}", record.offset).ends_with(tail)) << id << record.offset;
}

// Longer than a lease lasts: leases are extended, and messages beyond the window are given back.
TEST_F(QueueSourceTest, AnOutageCountsNoAttempt) {
  create(seconds{5});
  send(200);
  sink_.set_out(true);
  QueueSource source(options(300));
  EngineOptions engine = EngineRun::quick();
  engine.window_records = 100;  // So that some are not taken.
  EngineRun run(source, sink_, letters_, engine);
  EXPECT_TRUE(eventually([&] { return run.is_out(); }));
  wait(milliseconds{200});
  send(1'800);
  wait(seconds{1});
  const std::uint64_t delivered = broker_.stats(kQueue).delivered_total;
  wait(seconds{7});

  client::QueueStats stats = broker_.stats(kQueue);
  EXPECT_EQ(stats.delivered_total, delivered) << "it takes new ones";
  EXPECT_EQ(stats.lease_expired_total, 0U);
  EXPECT_LE(stats.leased, 200U);
  EXPECT_GE(stats.leased, 100U);
  expect_attempts(0);
  sink_.set_out(false);

  EXPECT_TRUE(eventually([&] { return broker_.depth(kQueue) == 0; }));
  EXPECT_EQ(run.stop().value(), Ending::drained);
  stats = broker_.stats(kQueue);
  EXPECT_EQ(sink_.size(), 2'000U);
  EXPECT_EQ(stats.lease_expired_total, 0U);
  EXPECT_EQ(stats.dead_lettered_total, 0U);
  EXPECT_EQ(letters_.size(), 0U);
  EXPECT_EQ(sink_.replays(), 0U);
}

// Messages that it had written to the network, and that we never got, come when their leases are
// over.
TEST_F(QueueSourceTest, ABrokerThatIsKilledLosesNothing) {
  create(seconds{3}, 0);
  send(5'000);
  sink_.slowness = milliseconds{20};
  QueueSource source(options(400));
  EngineRun run(source, sink_, letters_);
  EXPECT_TRUE(eventually([&] { return sink_.size() > 1'000; }));
  broker_.kill();
  ASSERT_TRUE(broker_.start());

  EXPECT_TRUE(eventually([&] { return sink_.size() == 5'000; }));
  EXPECT_TRUE(eventually([&] { return broker_.depth(kQueue) == 0; }));
  EXPECT_EQ(run.stop().value(), Ending::drained);
  EXPECT_EQ(sink_.values().size(), 5'000U);
  EXPECT_EQ(letters_.size(), 0U);
}

// Their messages come again while the first copies are still in the pipeline, and end with them.
TEST_F(QueueSourceTest, ALostLeaseIsTakenUpAgain) {
  create(seconds{3}, 0);
  send(300);
  sink_.hanging = true;
  QueueSource source(options());
  EngineRun run(source, sink_, letters_);
  EXPECT_TRUE(eventually([&] { return run.counters().received == 300; }));
  // While it is away the leases run out; when it is back it says so before the source has
  // reconnected.
  broker_.kill();
  wait(milliseconds{3'700});
  ASSERT_TRUE(broker_.start());
  EXPECT_TRUE(eventually([&] {
    const auto stats = broker_.stats(kQueue);
    return stats.lease_expired_total >= 300 && stats.leased == 300;
  }));
  wait(seconds{1});  // For the last ones to arrive.
  sink_.hanging = false;

  EXPECT_TRUE(eventually([&] { return broker_.depth(kQueue) == 0; }));
  EXPECT_EQ(run.stop().value(), Ending::drained);
  EXPECT_EQ(sink_.values().size(), 300U);
  EXPECT_EQ(run.counters().received, 300U);
  EXPECT_EQ(sink_.replays(), 0U);
}

TEST_F(QueueSourceTest, StoppingInMidFlightGivesBackAtOnce) {
  create();
  send(1'000);
  sink_.set_out(true);
  QueueSource source(options(300));
  EngineRun run(source, sink_, letters_);
  EXPECT_TRUE(eventually([&] { return run.is_out() && broker_.stats(kQueue).leased > 0; }));
  const auto before = e2e::Clock::now();
  (void)run.stop();
  const auto other = e2e::open_stream(broker_, kQueue, {.in_flight_max = 1'000});
  const auto taken = e2e::take(*other, 1'000, seconds{10});

  EXPECT_LT(e2e::Clock::now() - before, seconds{10}) << "a third of a lease";
  EXPECT_EQ(taken.size(), 1'000U);
  for (const auto& message : taken) EXPECT_EQ(message.attempt, 1U);
}

TEST_F(QueueSourceTest, AStopUnderLoadAcknowledgesAllThatIsIn) {
  create();
  send(5'000);
  sink_.slowness = milliseconds{5};
  QueueSource source(options());
  EngineRun run(source, sink_, letters_);
  EXPECT_TRUE(eventually([&] { return sink_.size() > 500; }));
  EXPECT_EQ(run.stop().value(), Ending::drained);

  EXPECT_EQ(sink_.size() + broker_.depth(kQueue), 5'000U);
  EXPECT_EQ(broker_.stats(kQueue).leased, 0U);
  expect_attempts(0);
}

TEST_F(QueueSourceTest, TheLagIsTheDepth) {
  create();
  send(700);
  sink_.set_out(true);
  QueueSource source(options(100));
  EngineRun run(source, sink_, letters_);
  const auto lag = [&]() -> std::int64_t {
    const EngineStatus status = run.engine().status();
    if (status.partitions.empty() || !status.partitions[0].end.has_value()) return -1;
    return *status.partitions[0].end - status.partitions[0].progress.committable;
  };
  EXPECT_TRUE(eventually([&] { return lag() == 700; }));
  sink_.set_out(false);
  EXPECT_TRUE(eventually([&] { return lag() == 0; }));
}

TEST_F(QueueSourceTest, ChecksWhatItNeeds) {
  QueueSource source(options());
  EXPECT_EQ(source.name(), "baton-queue:orders");
  EXPECT_EQ(source.check().error().code, Errc::queue_not_found);
  EXPECT_EQ(EngineRun(source, sink_, letters_).stop().error().code, Errc::queue_not_found);
  create(seconds{30}, 3);
  const auto limited = source.check();
  ASSERT_TRUE(limited.has_value());
  ASSERT_EQ(limited->size(), 2U);
  EXPECT_EQ(limited->at(1).kind, Finding::Kind::warning) << limited->at(1).text;
  client::QueueSettings unlimited;
  unlimited.attempts_max = 0;
  ASSERT_TRUE(broker_.client().queue(kQueue).update(unlimited).has_value());
  const auto checked = source.check();
  ASSERT_TRUE(checked.has_value());
  EXPECT_EQ(checked->size(), 1U);
  broker_.kill();
  EXPECT_EQ(source.check().error().code, Errc::unavailable);
}

}  // namespace
}  // namespace baton::pipeline
