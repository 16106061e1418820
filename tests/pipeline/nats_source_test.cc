// A pipeline that reads a partitioned subject of a real NATS server.
#include "pipeline/nats/nats_source.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "pipeline/engine_run.h"
#include "pipeline/nats/nats_publisher.h"
#include "stores/server.h"
#include "worker/nats/nats_link.h"

namespace baton::pipeline {
namespace {

using e2e::eventually;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint32_t kPartitions = 4;
constexpr auto kStream = "ORDERS";
constexpr stores::ServerOptions kServer{.kind = stores::Kind::nats};

/// Ends as a killed process would, without stop().
class CrashingSource : public Source {
 public:
  explicit CrashingSource(NatsSourceOptions options)
      : inner_(std::make_unique<NatsSource>(std::move(options))) {}
  Status start(SourceListener& listener) override { return inner_->start(listener); }
  Status commit(std::uint32_t partition, std::uint64_t epoch, std::int64_t next) override {
    return inner_->commit(partition, epoch, next);
  }
  // Does not pause, and so has many unacknowledged messages.
  Result<Findings> check() override { return inner_->check(); }
  Status stop(milliseconds /*timeout*/) override {
    inner_.reset();
    return {};
  }
  [[nodiscard]] std::vector<PartitionLag> ends() const override { return {}; }
  [[nodiscard]] std::string name() const override { return "crashing"; }

 private:
  std::unique_ptr<NatsSource> inner_;
};

class NatsSourceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = stores::Server::missing(kServer); !why.empty()) {
      fmt::print("SKIPPED: {}\n", why);
      GTEST_SKIP() << "SKIPPED: " << why;
    }
    server_ = std::make_unique<stores::Server>(kServer);
    ASSERT_TRUE(server_->start());
    make_stream({{"name", kStream}, {"subjects", {"orders.>"}}, {"storage", "file"}});
  }

  nlohmann::json api(const std::string& subject, const nlohmann::json& body = {}) {
    const coord::Deadline deadline(seconds{5});
    const auto link = coord::NatsLink::connect({server_->member(0).address()}, deadline);
    if (!link.has_value()) return {};
    return (*link)->api(subject, body.is_null() ? "" : body.dump(), deadline).value();
  }
  void make_stream(const nlohmann::json& config) {
    const auto made =
        api(fmt::format("$JS.API.STREAM.CREATE.{}", config["name"].get<std::string>()), config);
    ASSERT_FALSE(made.contains("error")) << made.dump();
  }
  NatsSourceOptions options() {
    NatsSourceOptions options;
    options.servers = server_->member(0).address();
    options.stream = kStream;
    options.subject = "orders.{partition}";
    options.partitions = kPartitions;
    options.group = "billing";
    options.timing = client::worker_timing("fast", "nats://" + options.servers).value();
    options.log = [this](bool warning, const std::string& text) {
      const std::scoped_lock lock(log_mutex_);
      log_ += fmt::format("{}{}\n", warning ? "! " : "", text);
    };
    return options;
  }
  std::string log() {
    const std::scoped_lock lock(log_mutex_);
    return log_;
  }
  /// Publishes `count` messages to each partition.
  void publish(int count) {
    auto publisher = NatsPublisher::open(server_->member(0).address(), kStream);
    ASSERT_TRUE(publisher.has_value());
    for (int i = 0; i < count; ++i) {
      for (std::uint32_t p = 0; p < kPartitions; ++p) {
        const Status sent = (*publisher)
                                ->publish(fmt::format("orders.{}", p),
                                          {{"baton-key", fmt::format("customer-{}", i % 5)}},
                                          fmt::format("order-{}-{}", p, published_ + i));
        ASSERT_TRUE(sent.has_value()) << to_string(sent.error());
      }
    }
    published_ += count;
    ASSERT_TRUE((*publisher)->flush(seconds{10}).has_value());
  }
  [[nodiscard]] std::size_t published() const {
    return static_cast<std::size_t>(published_) * kPartitions;
  }
  static void wait(milliseconds time) {
    const auto until = e2e::Clock::now() + time;
    EXPECT_TRUE(eventually([&] { return e2e::Clock::now() > until; }));
  }
  /// By partition: up to where its one consumer has acknowledged.
  std::map<std::uint32_t, std::uint64_t> floors() {
    std::map<std::uint32_t, std::uint64_t> result;
    const auto stream = NatsStream::connect(server_->member(0).address(), kStream).value();
    const auto names = stream->consumers().value();
    for (const std::string& name : names) {
      for (std::uint32_t p = 0; p < kPartitions; ++p) {
        if (!parse_nats_consumer(name, "billing", p).has_value()) continue;
        EXPECT_TRUE(result.emplace(p, stream->consumer(name)->floor).second) << name;
      }
    }
    return result;
  }
  /// Every message of every partition is acknowledged.
  void expect_floors_at_the_end() {
    const auto stream = NatsStream::connect(server_->member(0).address(), kStream).value();
    const std::uint64_t last = stream->facts()->last;
    const auto found = floors();
    EXPECT_EQ(found.size(), kPartitions);
    // The last ones were published one after the other.
    for (const auto& [partition, floor] : found) {
      EXPECT_EQ(floor, last - kPartitions + 1 + partition) << partition;
    }
  }

  std::unique_ptr<stores::Server> server_;
  MemorySink sink_;
  MemoryLetters letters_;
  int published_ = 0;

 private:
  std::mutex log_mutex_;
  std::string log_;
};

TEST_F(NatsSourceTest, EveryMessageEndsOnceAndIsAcknowledged) {
  publish(2'000);
  NatsSource source(options());
  EngineRun run(source, sink_, letters_);

  EXPECT_TRUE(eventually([&] { return sink_.size() == published(); })) << log();
  EXPECT_EQ(run.stop().value(), Ending::drained);

  EXPECT_EQ(sink_.values().size(), published());
  EXPECT_EQ(run.counters().received, published());
  EXPECT_EQ(sink_.replays(), 0U);
  EXPECT_EQ(sink_.out_of_order(), 0U);
  EXPECT_EQ(log().find("! "), std::string::npos) << log();
  expect_floors_at_the_end();

  // The next consumer continues there.
  publish(10);
  NatsSource next(options());
  EngineRun again(next, sink_, letters_);
  EXPECT_TRUE(eventually([&] { return sink_.size() == published(); })) << log();
  EXPECT_EQ(again.stop().value(), Ending::drained);
  EXPECT_EQ(again.counters().received, 40U);
  expect_floors_at_the_end();
}

TEST_F(NatsSourceTest, ARecordIsTheMessageByteForByte) {
  auto publisher = NatsPublisher::open(server_->member(0).address(), kStream).value();
  const std::string bytes("\0a\r\n\xff", 5);
  ASSERT_TRUE(publisher
                  ->publish("orders.0.customer.7",
                            {{"Status", "paid"}, {"trace", "a"}, {"trace", "b"}}, bytes)
                  .has_value());
  ASSERT_TRUE(publisher->publish("orders.0.x", {{"baton-key", "customer-8"}}, "").has_value());
  ASSERT_TRUE(publisher->flush(seconds{5}).has_value());
  NatsSourceOptions changed = options();
  changed.subject = "orders.{partition}.>";
  NatsSource source(changed);
  EngineRun run(source, sink_, letters_);
  EXPECT_TRUE(eventually([&] { return sink_.size() == 2; })) << log();
  (void)run.stop();

  const auto rows = sink_.rows();
  const Record& first = rows.at({0, 1});
  EXPECT_EQ(first.value, bytes);
  EXPECT_EQ(first.key, "customer.7");
  EXPECT_EQ(first.headers, (std::vector<std::pair<std::string, std::string>>{
                               {"Status", "paid"}, {"trace", "a"}, {"trace", "b"}}));
  EXPECT_GT(first.timestamp, std::chrono::hours{24 * 365 * 50});
  EXPECT_EQ(rows.at({0, 2}).key, "customer-8");
  EXPECT_EQ(rows.at({0, 2}).value, "");
}

TEST_F(NatsSourceTest, AnotherMemberComesAndGoesUnderLoad) {
  publish(1'000);
  sink_.slowness = milliseconds{10};
  EngineOptions small = EngineRun::quick();
  small.window_records = 200;
  small.lane.batch_records = 50;
  NatsSource source(options());
  EngineRun run(source, sink_, letters_, small);
  EXPECT_TRUE(eventually([&] { return sink_.size() > 200; })) << log();
  {
    NatsSource other(options());
    EngineRun joined(other, sink_, letters_, small);
    EXPECT_TRUE(eventually([&] { return joined.engine().status().partitions.size() == 2; }))
        << log();
    publish(500);
    EXPECT_TRUE(eventually([&] { return joined.counters().applied > 100; })) << log();
    EXPECT_EQ(joined.stop().value(), Ending::drained);
  }
  EXPECT_TRUE(eventually([&] { return sink_.size() == published(); })) << log();
  EXPECT_EQ(run.stop().value(), Ending::drained);
  EXPECT_EQ(sink_.values().size(), published());
  EXPECT_EQ(sink_.replays(), 0U) << log();
  expect_floors_at_the_end();
}

// The acknowledgement timeout is longer than the test: only the new owner brings the messages back.
TEST_F(NatsSourceTest, WhatAKilledMemberHeldComesAtOnce) {
  publish(500);
  MemorySink stuck;
  stuck.set_out(true);
  const client::WorkerTiming timing = *options().timing;
  e2e::Clock::time_point killed;
  NatsSource survivor(options());
  std::unique_ptr<EngineRun> run;
  {
    CrashingSource source(options());
    EngineRun crashing(source, stuck, letters_);
    EXPECT_TRUE(eventually([&] { return crashing.counters().received == published(); })) << log();
    run = std::make_unique<EngineRun>(survivor, sink_, letters_);
    // It has its share, and the other one still has its own.
    EXPECT_TRUE(eventually([&] { return sink_.size() == 1'000; })) << log();
    (void)crashing.stop();
    killed = e2e::Clock::now();
  }
  EXPECT_TRUE(eventually([&] { return sink_.size() == published(); })) << log();
  const auto took = std::chrono::duration_cast<milliseconds>(e2e::Clock::now() - killed);
  fmt::print("a killed member's messages came after {} ms; its lease is {} ms\n", took.count(),
             std::chrono::duration_cast<milliseconds>(timing.lease).count());
  EXPECT_LT(took, timing.lease + seconds{10}) << log();
  EXPECT_EQ(run->stop().value(), Ending::drained);
  EXPECT_EQ(sink_.replays(), 0U);
  expect_floors_at_the_end();
}

TEST_F(NatsSourceTest, AnOutageKeepsMembershipAndMemory) {
  publish(1'000);
  sink_.set_out(true);
  EngineOptions small = EngineRun::quick();
  small.window_records = 300;
  NatsSourceOptions patient = options();
  patient.timing->lease = seconds{4};
  NatsSource source(patient);
  EngineRun run(source, sink_, letters_, small);
  EXPECT_TRUE(eventually([&] { return run.is_out(); })) << log();
  wait(seconds{6});
  const EngineStatus status = run.engine().status();
  EXPECT_LE(status.window_records, 300U);
  EXPECT_EQ(status.partitions.size(), kPartitions);
  std::int64_t lag = 0;
  for (const PartitionStatus& one : status.partitions) {
    if (one.end.has_value()) lag += *one.end - one.progress.committable;
  }
  EXPECT_GE(lag, 4'000) << log();
  sink_.set_out(false);

  EXPECT_TRUE(eventually([&] { return sink_.size() == published(); })) << log();
  EXPECT_EQ(run.stop().value(), Ending::drained);
  EXPECT_EQ(run.counters().received, published()) << "something was delivered twice";
  EXPECT_EQ(log().find("lost"), std::string::npos) << log();
  EXPECT_EQ(letters_.size(), 0U);
  expect_floors_at_the_end();
}

TEST_F(NatsSourceTest, AServerThatIsKilledLosesNothing) {
  publish(1'000);
  sink_.slowness = milliseconds{5};
  EngineOptions small = EngineRun::quick();
  small.window_records = 400;
  small.lane.batch_records = 50;
  NatsSource source(options());
  EngineRun run(source, sink_, letters_, small);
  EXPECT_TRUE(eventually([&] { return sink_.size() > 500; })) << log();
  server_->kill();
  wait(milliseconds{500});
  ASSERT_TRUE(server_->start());
  publish(100);

  EXPECT_TRUE(eventually([&] { return sink_.size() == published(); }, seconds{30})) << log();
  EXPECT_EQ(run.stop().value(), Ending::drained) << log();
  EXPECT_EQ(sink_.values().size(), published());
  // Unless the leases were lost as well, no message had to come again.
  if (log().find("lost") == std::string::npos) {
    EXPECT_EQ(run.counters().received, published()) << log();
  }
  expect_floors_at_the_end();
}

// As if they had been lost in transit. Acknowledging a later one would cover them.
TEST_F(NatsSourceTest, AMissingDeliveryIsFetchedAgain) {
  NatsSource source(options());
  EngineRun run(source, sink_, letters_);
  publish(10);
  EXPECT_TRUE(eventually([&] { return sink_.size() == published(); })) << log();
  const auto stream = NatsStream::connect(server_->member(0).address(), kStream).value();
  const auto names = stream->consumers().value();
  source.pause();
  EXPECT_TRUE(eventually([&] {
    return std::ranges::all_of(names, [&](const std::string& name) {
      return api(fmt::format("$JS.API.CONSUMER.INFO.{}.{}", kStream, name))["num_waiting"] == 0;
    });
  }));
  publish(5);
  for (const std::string& name : names) {
    const auto link =
        coord::NatsLink::connect({server_->member(0).address()}, coord::Deadline(seconds{5}))
            .value();
    natsMsg* raw = nullptr;
    const std::string subject = fmt::format("$JS.API.CONSUMER.MSG.NEXT.{}.{}", kStream, name);
    EXPECT_EQ(natsConnection_Request(&raw, link->connection(), subject.c_str(), "1", 1, 2'000),
              NATS_OK);
    const coord::NatsMessage stolen(raw);
  }
  publish(5);
  source.resume();

  EXPECT_TRUE(eventually([&] { return sink_.size() == published(); })) << log();
  EXPECT_EQ(run.stop().value(), Ending::drained);
  EXPECT_EQ(run.counters().received, published());
  expect_floors_at_the_end();
}

/// Answers as a sink with its own marks might.
class MarkedListener : public SourceListener {
 public:
  std::optional<std::int64_t> assigned(std::uint32_t /*partition*/, std::uint64_t /*epoch*/,
                                       std::int64_t next) override {
    const std::scoped_lock lock(mutex_);
    offered = next;
    return ++asked < 3 ? std::nullopt : std::optional<std::int64_t>(7);
  }
  bool deliver(std::uint32_t /*partition*/, std::vector<Record> records) override {
    const std::scoped_lock lock(mutex_);
    for (const Record& record : records) offsets.push_back(record.offset);
    return true;
  }
  [[nodiscard]] bool has_room() const override { return true; }
  void revoking(std::uint32_t /*partition*/) override {}
  std::optional<std::int64_t> revoked(std::uint32_t /*partition*/, bool /*lost*/) override {
    return 9;
  }
  void failed(Error error) override { ADD_FAILURE() << to_string(error); }
  std::size_t delivered() {
    const std::scoped_lock lock(mutex_);
    return offsets.size();
  }

  std::int64_t offered = 0;
  int asked = 0;
  std::vector<std::int64_t> offsets;

 private:
  std::mutex mutex_;
};

TEST_F(NatsSourceTest, TheListenerSaysWhereToBegin) {
  auto publisher = NatsPublisher::open(server_->member(0).address(), kStream).value();
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(publisher->publish("orders.0", {}, "x").has_value());
  }
  ASSERT_TRUE(publisher->flush(seconds{5}).has_value());
  NatsSourceOptions one = options();
  one.partitions = 1;
  NatsSource source(one);
  MarkedListener listener;
  ASSERT_TRUE(source.start(listener).has_value());
  EXPECT_TRUE(eventually([&] { return listener.delivered() == 4; })) << log();
  ASSERT_TRUE(source.stop(seconds{10}).has_value());
  EXPECT_EQ(listener.offsets, (std::vector<std::int64_t>{7, 8, 9, 10}));
  EXPECT_EQ(listener.offered, 1);
  EXPECT_EQ(listener.asked, 3);
  EXPECT_EQ(floors().at(0), 8U);
}

TEST_F(NatsSourceTest, ChecksWhatItNeeds) {
  NatsSourceOptions changed = options();
  const auto fine = NatsSource(changed).check();
  ASSERT_TRUE(fine.has_value()) << to_string(fine.error());
  EXPECT_EQ(fine->size(), 2U);
  EXPECT_EQ(NatsSource(changed).name(), "nats:ORDERS");

  changed.stream = "NONE";
  EXPECT_EQ(NatsSource(changed).check().error().code, Errc::stream_not_found);
  changed.stream = kStream;
  changed.subject = "other.{partition}";
  EXPECT_EQ(NatsSource(changed).check().error().text,
            "stream ORDERS does not keep other.0, only orders.>");
  changed.subject = "orders.x";
  EXPECT_EQ(NatsSource(changed).check().error().code, Errc::invalid_argument);
  changed = options();
  changed.group = "a.b";
  EXPECT_EQ(NatsSource(changed).check().error().code, Errc::invalid_argument);
  changed = options();
  make_stream({{"name", "WORK"}, {"subjects", {"work.>"}}, {"retention", "workqueue"}});
  changed.stream = "WORK";
  changed.subject = "work.{partition}";
  EXPECT_EQ(NatsSource(changed).check().error().code, Errc::failed_precondition);
  server_->kill();
  EXPECT_EQ(NatsSource(options()).check().error().code, Errc::unavailable);
}

TEST_F(NatsSourceTest, APublisherTellsWhatFailed) {
  auto publisher = NatsPublisher::open(server_->member(0).address(), kStream, {}, 10).value();
  ASSERT_TRUE(publisher->publish("nowhere", {}, "x").has_value());
  EXPECT_FALSE(publisher->flush(seconds{5}).has_value());
  for (int i = 0; i < 100; ++i) {
    ASSERT_TRUE(publisher->publish("orders.0", {}, "x").has_value());
  }
  EXPECT_TRUE(publisher->flush(seconds{5}).has_value());
  EXPECT_EQ(NatsPublisher::open(server_->member(0).address(), "NONE").error().code,
            Errc::stream_not_found);
}

}  // namespace
}  // namespace baton::pipeline
