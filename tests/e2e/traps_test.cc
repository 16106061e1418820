// Traps that other brokers fell into, tested where it needs the whole broker.
#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <thread>

#include <baton/v1/queues.grpc.pb.h>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "e2e/broker_process.h"

namespace baton::e2e {
namespace {

/// A producer and a consumer of one queue, as fast as they can, until the end of the test.
class FullLoad {
 public:
  FullLoad(const BrokerProcess& broker, const std::string& queue) {
    producer_ = *broker.client().queue(queue).producer({.in_flight_messages_max = 2'000});
    stream_ = open_stream(broker, queue, {.in_flight_max = 2'000});
    sender_ = std::thread([this] {
      while (!stopping_) producer_->send_batch(std::vector<client::NewMessage>(64), {});
    });
    receiver_ = std::thread([this] { receive(); });
  }
  FullLoad(const FullLoad&) = delete;
  FullLoad& operator=(const FullLoad&) = delete;
  ~FullLoad() {
    stopping_ = true;
    sender_.join();
    (void)producer_->close(seconds{20});
    receiver_.join();
  }

  [[nodiscard]] std::uint64_t acked() const { return acked_; }

 private:
  void receive() {
    while (!stopping_) {
      const auto batch = stream_->next_batch(milliseconds{20});
      if (!batch) return;
      std::vector<client::LeaseToken> tokens;
      for (const auto& message : *batch) {
        // Messages with a payload are the test's own: given back at once, without counting an
        // attempt.
        if (message.payload.empty()) {
          tokens.push_back(message.token);
        } else {
          stream_->nack({.token = message.token, .retry = client::Retry::release()});
        }
      }
      acked_ += tokens.size();
      stream_->ack(std::move(tokens));
    }
  }

  std::atomic<bool> stopping_ = false;
  std::atomic<std::uint64_t> acked_ = 0;
  std::optional<client::Producer> producer_;
  std::unique_ptr<client::LeaseStream> stream_;
  std::thread sender_;
  std::thread receiver_;
};

class Traps : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(broker_.start()) << broker_.log(); }

  /// Leases 50 messages of `queue`, lets them expire, and returns when all of them had come again.
  std::optional<milliseconds> time_of_expiry(const std::string& queue) {
    const auto sleeper = open_stream(broker_, queue, {.in_flight_max = 50});
    broker_.send(queue, numbered("held", 50));
    const auto began = Clock::now();
    std::map<std::string, std::uint32_t> attempts;
    const bool done = eventually([&] {
      for (const auto& message : take(*sleeper, 50, milliseconds{1})) {
        attempts[message.payload] = std::max(attempts[message.payload], message.attempt);
      }
      return attempts.size() == 50 &&
             std::ranges::all_of(attempts, [](const auto& each) { return each.second >= 2; });
    });
    if (!done) return std::nullopt;
    return std::chrono::duration_cast<milliseconds>(Clock::now() - began);
  }

  BrokerProcess broker_{{"--shards", "1"}};
};

const client::QueueSettings kQuick{
    .visibility_timeout = milliseconds{400}, .attempts_max = 0, .retry_delay = milliseconds{0}};

// Trap: leases reclaimed only when idle. The load goes through the same shard.
TEST_F(Traps, LeasesExpireUnderFullLoadAsWellAsIdle) {
  broker_.create("quick", kQuick);
  const auto idle = time_of_expiry("quick");
  ASSERT_TRUE(idle.has_value());

  broker_.create("busy");
  const FullLoad load(broker_, "busy");
  ASSERT_TRUE(eventually([&] { return load.acked() > 1'000; }));
  broker_.create("quick2", kQuick);
  const std::uint64_t before = load.acked();
  const auto busy = time_of_expiry("quick2");
  ASSERT_TRUE(busy.has_value());

  fmt::print("50 leases of 400 ms came again after {} ms idle, {} ms under load ({} messages)\n",
             idle->count(), busy->count(), load.acked() - before);
  EXPECT_GT(load.acked() - before, 500U);
  EXPECT_LT(*busy, seconds{5});
}

// Trap: expiry that skips the failure policy, so that a message that hangs its consumer is
// redelivered for ever.
TEST_F(Traps, AMessageThatAlwaysTimesOutIsDeadLettered) {
  client::QueueSettings settings = kQuick;
  settings.visibility_timeout = milliseconds{100};
  settings.attempts_max = 3;
  broker_.create("hangs", settings);
  const auto stream = open_stream(broker_, "hangs");
  broker_.send("hangs", {"endless"});

  const auto messages = take(*stream, 3);

  ASSERT_EQ(messages.size(), 3U);
  EXPECT_EQ(take(*stream, 1, milliseconds{500}).size(), 0U);
  for (std::uint32_t i = 0; i < 3; ++i) EXPECT_EQ(messages[i].attempt, i + 1);
  ASSERT_TRUE(eventually([&] { return broker_.depth("hangs") == 0; }));
  EXPECT_EQ(broker_.depth("hangs.dlq"), 1U);
}

// Trap: first deliveries lost because the channel was registered late.
TEST_F(Traps, NoDeliveryIsLostWhenAConsumerAttachesWhileMessagesArrive) {
  broker_.create("jobs");
  const int rounds = is_long_run() ? 3'000 : 150;
  const client::Queue queue = broker_.client().queue("jobs");
  auto producer = queue.producer();
  ASSERT_TRUE(producer.has_value());
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < 20; ++i) producer->send({.payload = "job"}, {});
    auto stream = queue.lease();
    ASSERT_TRUE(stream.has_value());
    for (int i = 0; i < 20; ++i) producer->send({.payload = "job"}, {});
    const auto messages = take(*stream, 40, seconds{10});
    ASSERT_EQ(messages.size(), 40U) << "round " << round;
    for (const auto& message : messages) {
      // If it was lost once, it would come again with its second attempt.
      ASSERT_EQ(message.attempt, 1U) << "round " << round;
      stream->ack(message.token);
    }
    ASSERT_TRUE(stream->close(seconds{10}).has_value()) << "round " << round;
  }
  EXPECT_EQ(broker_.depth("jobs"), 0U);
}

// Back-pressure: unread messages are bounded by in_flight_max, and do not affect other consumers.
TEST_F(Traps, AConsumerThatStopsReadingDoesNotSlowAnother) {
  broker_.create("jobs");
  const auto stub = v1::QueueService::NewStub(broker_.channel());
  grpc::ClientContext context;
  v1::LeaseRequest request;
  request.set_queue("jobs");
  request.set_in_flight_max(100);
  const auto silent = stub->Lease(&context, request);
  ASSERT_TRUE(eventually([&] { return broker_.stats("jobs").consumers == 1; }));
  const auto other = open_stream(broker_, "jobs");

  for (int i = 0; i < 10; ++i) {
    broker_.send("jobs", std::vector<std::string>(500, std::string(2'000, 'x')));
  }
  std::set<std::string> ids;
  ASSERT_TRUE(eventually([&] {
    const auto batch = other->next_batch(milliseconds{10});
    if (!batch) return true;
    for (const auto& message : *batch) {
      ids.insert(message.id);
      other->ack(message.token);
    }
    return ids.size() >= 4'900;
  }));

  EXPECT_EQ(ids.size(), 4'900U);
  EXPECT_TRUE(eventually([&] { return broker_.stats("jobs").leased == 100; }));
  context.TryCancel();
  silent->Finish();
  const auto rest = take(*other, 100);
  EXPECT_EQ(rest.size(), 100U);
}

// Trap: a deleted queue's messages coming back, at once or after a restart.
TEST_F(Traps, ADeletedQueuesMessagesDoNotComeBack) {
  broker_.create("gone");
  broker_.send("gone", numbered("old", 500));
  (void)broker_.rows_after_checkpoint();
  broker_.send("gone", numbered("older", 500));
  const auto later = broker_.cli({"queue", "send", "gone", "later", "--delay", "1h"});
  ASSERT_EQ(later.exit_code, 0) << later.err;
  const auto holder = open_stream(broker_, "gone", {.in_flight_max = 5});
  const auto held = take(*holder, 5);
  ASSERT_EQ(held.size(), 5U);

  ASSERT_TRUE(broker_.client().queue("gone").drop().has_value());
  EXPECT_EQ(broker_.cli({"queue", "send", "gone", "x"}).exit_code, 3);
  broker_.create("gone");
  EXPECT_EQ(broker_.depth("gone"), 0U);
  // The leases ended with their queue: they must not touch the new queue of that name.
  const auto late = broker_.client().queue("gone").ack(std::vector{held[0].token});
  ASSERT_TRUE(late.has_value());
  EXPECT_FALSE(late->at(0).has_value());

  broker_.kill();
  ASSERT_TRUE(broker_.start()) << broker_.log();
  EXPECT_EQ(broker_.depth("gone"), 0U);
  ASSERT_EQ(broker_.terminate(), 0);
  ASSERT_TRUE(broker_.start()) << broker_.log();
  EXPECT_EQ(broker_.depth("gone"), 0U);
  const auto rows = broker_.rows_after_checkpoint();
  // Rows of `delayed` are in the order of time, and are removed when their time has come.
  for (const auto& table : {"messages", "ids", "leases", "lease_expiry", "dedup"}) {
    EXPECT_EQ(rows.at(table), 0U) << table;
  }
}

// Trap: no TCP_NODELAY. With Nagle's algorithm and a delayed ack, each step of a small message
// waits 40 ms.
TEST_F(Traps, ASmallMessageDoesNotWaitForCompany) {
  broker_.create("ping");
  const auto stream = open_stream(broker_, "ping");
  auto producer = broker_.client().queue("ping").producer();
  ASSERT_TRUE(producer.has_value());
  std::vector<double> took;
  for (int i = 0; i < 200; ++i) {
    const auto began = Clock::now();
    producer->send({.payload = "ping"}, {});
    const auto message = stream->next(seconds{10});
    ASSERT_TRUE(message.has_value() && message->has_value());
    stream->ack((*message)->token);
    ASSERT_TRUE(stream->flush(seconds{10}).has_value());
    took.push_back(std::chrono::duration<double, std::milli>(Clock::now() - began).count());
  }
  std::ranges::sort(took);
  fmt::print("send, lease, ack: median {:.2f} ms, worst {:.2f} ms\n", took[100], took.back());
  EXPECT_LT(took[100], 30.0);
}

// Trap: a token issued twice after a crash.
TEST_F(Traps, NoLeaseTokenIsIssuedTwice) {
  broker_.create("jobs", {.attempts_max = 0});
  broker_.send("jobs", numbered("job", 20));
  std::set<client::LeaseToken> tokens;
  for (int life = 0; life < 4; ++life) {
    {
      const auto stream = open_stream(broker_, "jobs", {.reconnect = false});
      for (const auto& message : take(*stream, 20)) {
        EXPECT_TRUE(tokens.insert(message.token).second) << "life " << life;
      }
      ASSERT_EQ(tokens.size(), 20U * (static_cast<std::size_t>(life) + 1));
    }
    if (life == 3) break;
    ASSERT_TRUE(eventually([&] { return broker_.stats("jobs").leased == 0; }));
    broker_.kill();
    ASSERT_TRUE(broker_.start()) << broker_.log();
  }
}

// Trap: payloads printed by a debug log line. Nor headers, which are as private.
TEST(TrapsLog, NoPayloadIsEverLogged) {
  const std::string secret = "SECRET-4711";
  BrokerProcess broker({"--log-level", "debug"});
  ASSERT_TRUE(broker.start()) << broker.log();
  broker.create("jobs", {.visibility_timeout = milliseconds{200},
                         .attempts_max = 2,
                         .retry_delay = milliseconds{0},
                         .payload_bytes_max = 1'000});
  client::NewMessage message{.payload = secret, .headers = {{secret, secret}}};
  message.fairness_key = secret;
  message.dedup_id = secret;
  client::NewMessage too_big{.payload = secret + std::string(2'000, 'x')};
  const auto sent = broker.client().queue("jobs").enqueue(std::vector{message, too_big, message});
  ASSERT_TRUE(sent.has_value());
  EXPECT_FALSE(sent->at(1).ok());
  EXPECT_TRUE(sent->at(2).duplicate);
  {
    const auto stream = open_stream(broker, "jobs");
    const auto first = take(*stream, 1);
    ASSERT_EQ(first.size(), 1U);
    stream->nack({.token = first[0].token, .retry = client::Retry::at_once(), .reason = secret});
    ASSERT_EQ(take(*stream, 1).size(), 1U);
    // Times out into the dead-letter queue.
    ASSERT_TRUE(eventually([&] { return broker.depth("jobs") == 0; }));
  }
  EXPECT_EQ(broker.depth("jobs.dlq"), 1U);
  broker.kill();
  ASSERT_TRUE(broker.start()) << broker.log();
  ASSERT_EQ(broker.terminate(), 0);

  EXPECT_FALSE(broker.log().empty());
  EXPECT_EQ(broker.log().find(secret), std::string::npos) << broker.log();
}

}  // namespace
}  // namespace baton::e2e
