// kill -9 of the broker, at random moments and many times over, with producers and consumers at
// work. Then everything is counted: what was confirmed is there, what was acked does not come back.
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <map>
#include <mutex>
#include <optional>
#include <random>
#include <set>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "e2e/broker_process.h"

namespace baton::e2e {
namespace {

/// BATON_SEED repeats the moments of a run, as far as a real machine repeats anything.
std::uint64_t seed() {
  const char* given = std::getenv("BATON_SEED");  // NOLINT(concurrency-mt-unsafe)
  const std::uint64_t value = given == nullptr ? 20'260'731 : std::strtoull(given, nullptr, 10);
  fmt::print("seed {}\n", value);
  return value;
}

/// What the clients have been told. Shared by all threads; locked.
class Ledger {
 public:
  void confirmed(const client::EnqueueResult& result, const std::string& payload) {
    const std::scoped_lock lock(mutex_);
    if (!result.ok()) {
      problem(fmt::format("{} was refused: {}", payload, to_string(*result.error)));
      return;
    }
    confirmed_.emplace(result.id, payload);
  }
  void delivered(const client::LeasedMessage& message) {
    const std::scoped_lock lock(mutex_);
    if (!tokens_.insert(message.token).second) problem("a lease token came twice: " + message.id);
    if (acked_.contains(message.id)) problem("came back after its confirmed ack: " + message.id);
    const auto [known, first] = payloads_.emplace(message.id, message.payload);
    if (!first && known->second != message.payload) problem("changed its payload: " + message.id);
    ++deliveries_;
  }
  void acked(const std::string& id, const client::ItemResults& results) {
    const std::scoped_lock lock(mutex_);
    if (results.ok()) {
      acked_.insert(id);
    } else if (results.failures[0].error.code == Errc::lease_lost) {
      ++lost_;
    } else {
      problem(fmt::format("ack of {}: {}", id, to_string(results.failures[0].error)));
    }
  }
  std::size_t confirmations() {
    const std::scoped_lock lock(mutex_);
    return confirmed_.size();
  }

  /// Called once the queue is empty.
  void check() {
    const std::scoped_lock lock(mutex_);
    fmt::print("{} confirmed, {} delivered, {} acked, {} acks too late\n", confirmed_.size(),
               deliveries_, acked_.size(), lost_);
    for (const std::string& each : problems_) ADD_FAILURE() << each;
    std::size_t missing = 0;
    for (const auto& [id, payload] : confirmed_) {
      const auto found = payloads_.find(id);
      if (found == payloads_.end()) {
        ++missing;
      } else {
        EXPECT_EQ(found->second, payload);
      }
    }
    EXPECT_EQ(missing, 0U) << "messages were confirmed and never delivered";
    EXPECT_GT(confirmed_.size(), 0U);
  }
  /// With a dedup id in every message, nothing may be stored twice.
  void check_exactly_once() {
    const std::scoped_lock lock(mutex_);
    std::set<std::string> seen;
    for (const auto& [id, payload] : payloads_) {
      EXPECT_TRUE(seen.insert(payload).second) << payload << " was stored twice";
    }
  }

 private:
  void problem(std::string what) {
    constexpr std::size_t kShown = 20;
    if (problems_.size() < kShown) problems_.push_back(std::move(what));
  }

  std::mutex mutex_;
  std::map<std::string, std::string> confirmed_;  // Id to payload.
  std::map<std::string, std::string> payloads_;   // Of what was delivered.
  std::set<std::string> acked_;
  std::set<client::LeaseToken> tokens_;
  std::vector<std::string> problems_;
  std::size_t deliveries_ = 0;
  std::size_t lost_ = 0;
};

/// Sends until told to stop, and then until all of it is confirmed.
class ProducerThread {
 public:
  struct Options {
    std::string queue;
    std::string name;
    bool dedup = false;
  };

  ProducerThread(const BrokerProcess& broker, Ledger& ledger, Options options)
      : ledger_(ledger), options_(std::move(options)) {
    producer_ = *client::Broker::open(broker.connection())
                     ->queue(options_.queue)
                     .producer({.in_flight_messages_max = 500});
    thread_ = std::thread([this] { run(); });
  }
  ProducerThread(const ProducerThread&) = delete;
  ProducerThread& operator=(const ProducerThread&) = delete;
  ~ProducerThread() { finish(); }

  void finish() {
    stopping_ = true;
    if (!thread_.joinable()) return;
    thread_.join();
    EXPECT_TRUE(producer_->close(seconds{60}).has_value());
  }

 private:
  void run() {
    for (std::uint64_t i = 0; !stopping_; ++i) {
      std::string payload = fmt::format("{}-{}-{}", options_.name, i, std::string(i % 300, '.'));
      client::NewMessage message{.payload = payload, .fairness_key = fmt::format("key-{}", i % 7)};
      if (options_.dedup) message.dedup_id = fmt::format("{}-{}", options_.name, i);
      producer_->send(std::move(message),
                      [this, payload = std::move(payload)](const client::EnqueueResult& result) {
                        ledger_.confirmed(result, payload);
                      });
    }
  }

  Ledger& ledger_;
  Options options_;
  std::atomic<bool> stopping_ = false;
  std::optional<client::Producer> producer_;
  std::thread thread_;
};

/// Acks most messages, gives some back, and neglects some for a while.
class ConsumerThread {
 public:
  ConsumerThread(const BrokerProcess& broker, Ledger& ledger, const std::string& queue)
      : ledger_(ledger) {
    stream_ =
        *client::Broker::open(broker.connection())->queue(queue).lease({.in_flight_max = 200});
    thread_ = std::thread([this] { run(); });
  }
  ConsumerThread(const ConsumerThread&) = delete;
  ConsumerThread& operator=(const ConsumerThread&) = delete;
  ~ConsumerThread() { finish(); }

  void finish() {
    stopping_ = true;
    if (!thread_.joinable()) return;
    thread_.join();
    (void)stream_->close(seconds{30});
  }

 private:
  void run() {
    std::uint64_t count = 0;
    while (!stopping_) {
      const auto batch = stream_->next_batch(milliseconds{20});
      if (!batch) {
        ADD_FAILURE() << to_string(batch.error());
        return;
      }
      for (const auto& message : *batch) {
        ledger_.delivered(message);
        if (++count % 20 == 0) {
          stream_->nack(
              {.token = message.token, .retry = client::Retry::at_once(), .reason = "no"});
          continue;
        }
        stream_->ack(message.token, [this, id = message.id](const client::ItemResults& results) {
          ledger_.acked(id, results);
        });
      }
    }
  }

  Ledger& ledger_;
  std::atomic<bool> stopping_ = false;
  std::optional<client::LeaseStream> stream_;
  std::thread thread_;
};

class Crash : public testing::Test {
 protected:
  /// Kills and starts the broker again, again and again.
  void kill_often(Ledger& ledger, std::mt19937_64& random, int kills) {
    for (int i = 0; i < kills; ++i) {
      const std::size_t before = ledger.confirmations();
      // The clients are at work again; then it is killed at any moment.
      ASSERT_TRUE(eventually([&] { return ledger.confirmations() > before + 50; }, seconds{60}))
          << "after kill " << i << "\n"
          << broker_.log();
      std::this_thread::sleep_for(std::chrono::microseconds{random() % 500'000});
      broker_.kill();
      ASSERT_TRUE(broker_.start()) << "after kill " << i << "\n" << broker_.log();
    }
    const std::size_t before = ledger.confirmations();
    ASSERT_TRUE(eventually([&] { return ledger.confirmations() > before; }, seconds{60}));
  }

  BrokerProcess broker_{{"--fsync", "always", "--checkpoint-interval", "300ms"}};
};

TEST_F(Crash, UnderLoadNothingConfirmedIsLostAndNothingAckedComesBack) {
  std::mt19937_64 random(seed());
  ASSERT_TRUE(broker_.start()) << broker_.log();
  broker_.create("jobs", {.visibility_timeout = seconds{5}, .attempts_max = 0});
  Ledger ledger;
  {
    ProducerThread first(broker_, ledger, {.queue = "jobs", .name = "first"});
    ProducerThread second(broker_, ledger, {.queue = "jobs", .name = "second"});
    ConsumerThread one(broker_, ledger, "jobs");
    ConsumerThread two(broker_, ledger, "jobs");
    kill_often(ledger, random, is_long_run() ? 100 : 6);
    first.finish();
    second.finish();
    EXPECT_TRUE(eventually([&] { return broker_.depth("jobs") == 0; }, seconds{60}));
  }
  ledger.check();
  EXPECT_EQ(broker_.depth("jobs"), 0U);
}

// After each crash the SDK sends messages again; the dedup ids, which survive it, hold back the
// copies.
TEST_F(Crash, WithDedupIdsEveryMessageIsStoredExactlyOnce) {
  std::mt19937_64 random(seed() + 1);
  ASSERT_TRUE(broker_.start()) << broker_.log();
  broker_.create("jobs", {.visibility_timeout = seconds{5}, .attempts_max = 0});
  Ledger ledger;
  {
    ProducerThread producer(broker_, ledger, {.queue = "jobs", .name = "once", .dedup = true});
    ConsumerThread consumer(broker_, ledger, "jobs");
    kill_often(ledger, random, is_long_run() ? 30 : 3);
    producer.finish();
    EXPECT_TRUE(eventually([&] { return broker_.depth("jobs") == 0; }, seconds{60}));
  }
  ledger.check();
  ledger.check_exactly_once();
}

/// A payload of `bytes` that shows at both of its ends which message it belongs to.
std::string big_payload(std::size_t number, std::size_t bytes) {
  const std::string name = fmt::format("big-{:06}", number);
  return name + std::string(bytes - 2 * name.size(), static_cast<char>('a' + number % 26)) + name;
}

// Deeper than the memory budget of a shard: most of it is in the checkpoint, some of it only in the
// journal, and the broker dies while it is sending it out.
TEST_F(Crash, ADeepQueueThatHasSpilledComesBackWholeAndInOrder) {
  constexpr std::size_t kMessages = 640;
  constexpr std::size_t kBytes = 256UL * 1024;
  broker_.flags().insert(broker_.flags().end(), {"--shards", "1"});
  ASSERT_TRUE(broker_.start()) << broker_.log();
  broker_.create("deep");
  for (std::size_t i = 0; i < kMessages; i += 32) {
    std::vector<std::string> payloads;
    for (std::size_t j = i; j < i + 32; ++j) payloads.push_back(big_payload(j, kBytes));
    broker_.send("deep", std::move(payloads));
  }
  broker_.kill();
  ASSERT_TRUE(broker_.start()) << broker_.log();
  EXPECT_EQ(broker_.depth("deep"), kMessages);

  std::size_t next = 0;
  const auto take_and_ack = [&](client::LeaseStream& stream, std::size_t count) {
    for (; count > 0; --count, ++next) {
      const auto message = stream.next(seconds{20});
      ASSERT_TRUE(message.has_value() && message->has_value()) << "waiting for message " << next;
      ASSERT_TRUE((*message)->payload == big_payload(next, kBytes)) << "message " << next;
      stream.ack((*message)->token);
    }
    ASSERT_TRUE(stream.flush(seconds{20}).has_value());
  };
  {
    const auto stream = open_stream(broker_, "deep", {.in_flight_max = 1});
    take_and_ack(*stream, 200);
    ASSERT_TRUE(stream->close(seconds{20}).has_value());
  }
  broker_.kill();
  ASSERT_TRUE(broker_.start()) << broker_.log();
  EXPECT_EQ(broker_.depth("deep"), kMessages - 200);
  const auto stream = open_stream(broker_, "deep", {.in_flight_max = 1});
  take_and_ack(*stream, kMessages - 200);
  EXPECT_EQ(broker_.depth("deep"), 0U);
}

TEST_F(Crash, DelaysAndDedupIdsSurvive) {
  ASSERT_TRUE(broker_.start()) << broker_.log();
  broker_.create("later");
  const auto sent_at = Clock::now();
  std::vector<client::NewMessage> messages;
  for (int i = 0; i < 20; ++i) {
    messages.push_back({.payload = fmt::format("soon-{}", i), .delay = seconds{4}});
  }
  messages.push_back({.payload = "next year", .delay = std::chrono::hours{24 * 364}});
  messages.push_back({.payload = "once", .dedup_id = "only-once"});
  const auto sent = broker_.client().queue("later").enqueue(messages);
  ASSERT_TRUE(sent.has_value());
  for (const auto& result : *sent) ASSERT_TRUE(result.ok());

  // Once from the journal, once from a checkpoint.
  broker_.kill();
  ASSERT_TRUE(broker_.start()) << broker_.log();
  EXPECT_GT(broker_.rows_after_checkpoint()["delayed"], 0U);
  broker_.kill();
  ASSERT_TRUE(broker_.start()) << broker_.log();

  const auto again = broker_.client().queue("later").enqueue(
      std::vector{client::NewMessage{.payload = "twice", .dedup_id = "only-once"}});
  ASSERT_TRUE(again.has_value());
  EXPECT_TRUE(again->at(0).duplicate);
  EXPECT_EQ(again->at(0).id, sent->back().id);

  const auto stream = open_stream(broker_, "later");
  auto first = take(*stream, 1);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].payload, "once");
  const auto delayed = take(*stream, 20);
  EXPECT_GE(Clock::now() - sent_at, seconds{4});
  EXPECT_LT(Clock::now() - sent_at, seconds{20});
  // Due at the same moment, they may come in any order.
  const auto payloads = payloads_of(delayed);
  const auto expected = numbered("soon", 20);
  EXPECT_EQ(std::set(payloads.begin(), payloads.end()), std::set(expected.begin(), expected.end()));
  EXPECT_EQ(broker_.stats("later").delayed, 1U);
}

// A lease is durable before its message is delivered: after the crash that consumer, and no other,
// still has it until its time is over.
TEST_F(Crash, ALeaseOutlivesTheBrokerAndItsAckCounts) {
  ASSERT_TRUE(broker_.start()) << broker_.log();
  broker_.create("jobs");
  broker_.send("jobs", numbered("job", 10));
  const auto holder = open_stream(broker_, "jobs");
  const auto held = take(*holder, 10);
  ASSERT_EQ(held.size(), 10U);

  broker_.kill();
  ASSERT_TRUE(broker_.start()) << broker_.log();
  std::atomic<int> acked = 0;
  for (const auto& message : held) {
    holder->ack(message.token, [&](const client::ItemResults& results) { acked += results.ok(); });
  }
  EXPECT_TRUE(holder->flush(seconds{20}).has_value());

  EXPECT_EQ(acked, 10);
  EXPECT_EQ(broker_.depth("jobs"), 0U);
}

// Consumers that do not return after a crash are treated like dead ones.
TEST_F(Crash, LeasesOfConsumersThatDoNotReturnGoToOthers) {
  ASSERT_TRUE(broker_.start()) << broker_.log();
  broker_.create("jobs", {.visibility_timeout = std::chrono::minutes{10}});
  broker_.send("jobs", numbered("job", 10));
  {
    const auto holder = open_stream(broker_, "jobs", {.reconnect = false});
    ASSERT_EQ(take(*holder, 10).size(), 10U);
    broker_.kill();
  }
  ASSERT_TRUE(broker_.start()) << broker_.log();

  const auto began = Clock::now();
  const auto other = open_stream(broker_, "jobs");
  EXPECT_EQ(take(*other, 10, seconds{30}).size(), 10U);
  fmt::print("leases of a consumer that did not return reached another after {} ms\n",
             std::chrono::duration_cast<milliseconds>(Clock::now() - began).count());
}

// Killed in the middle of a start, it must start again as if nothing had happened.
TEST_F(Crash, KilledWhileStartingItStartsAgain) {
  std::mt19937_64 random(seed() + 2);
  ASSERT_TRUE(broker_.start()) << broker_.log();
  broker_.create("jobs");
  broker_.send("jobs", numbered("job", 1'000));
  broker_.kill();
  for (int i = 0; i < (is_long_run() ? 200 : 10); ++i) {
    broker_.launch();
    std::this_thread::sleep_for(std::chrono::microseconds{random() % 120'000});
    broker_.kill();
  }
  ASSERT_TRUE(broker_.start()) << broker_.log();
  EXPECT_EQ(broker_.depth("jobs"), 1'000U);
}

}  // namespace
}  // namespace baton::e2e
