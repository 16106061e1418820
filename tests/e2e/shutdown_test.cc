// SIGTERM: the broker accepts no more, finishes its work, makes a checkpoint, and ends with 0
// within its deadline.
#include <atomic>
#include <csignal>
#include <filesystem>
#include <mutex>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "e2e/broker_process.h"

namespace baton::e2e {
namespace {

/// Sends as fast as possible until told to stop, and remembers what was confirmed.
class Load {
 public:
  Load(const BrokerProcess& broker, const std::string& queue) {
    client::ProducerOptions options;
    options.in_flight_messages_max = 1'000;
    options.resend_unconfirmed = false;
    producer_ =
        *client::Broker::open(broker.connection())->queue(queue).producer(std::move(options));
    sender_ = std::thread([this] { send(); });
  }
  Load(const Load&) = delete;
  Load& operator=(const Load&) = delete;
  ~Load() { stop(); }

  void stop() {
    stopping_ = true;
    if (!sender_.joinable()) return;
    (void)producer_->close(milliseconds{500});
    sender_.join();
  }
  std::set<std::string> confirmed() {
    const std::scoped_lock lock(mutex_);
    return confirmed_;
  }

 private:
  void send() {
    while (!stopping_) {
      client::NewMessage message{.payload = std::string(200, 'x')};
      const bool sent = producer_->try_send(message, [this](const client::EnqueueResult& result) {
        const std::scoped_lock lock(mutex_);
        if (result.ok()) confirmed_.insert(result.id);
      });
      if (!sent) std::this_thread::yield();
    }
  }

  std::mutex mutex_;
  std::set<std::string> confirmed_;
  std::atomic<bool> stopping_ = false;
  std::optional<client::Producer> producer_;
  std::thread sender_;
};

/// The ids of every message in the queue.
std::set<std::string> drain(const BrokerProcess& broker, const std::string& queue) {
  const auto stream = open_stream(broker, queue);
  std::set<std::string> ids;
  const std::uint64_t depth = broker.depth(queue);
  while (ids.size() < depth) {
    const auto batch = stream->next_batch(seconds{20});
    if (!batch || batch->empty()) break;
    for (const auto& message : *batch) {
      ids.insert(message.id);
      stream->ack(message.token);
    }
  }
  EXPECT_TRUE(stream->flush(seconds{20}).has_value());
  return ids;
}

TEST(Shutdown, UnderLoadItEndsInOrderAndLosesNothingThatWasConfirmed) {
  BrokerProcess broker;
  ASSERT_TRUE(broker.start()) << broker.log();
  broker.create("jobs");
  Load load(broker, "jobs");
  auto idle_consumer = open_stream(broker, "jobs", {.in_flight_max = 10});
  ASSERT_TRUE(eventually([&] { return load.confirmed().size() > 5'000; }));

  const auto began = Clock::now();
  EXPECT_EQ(broker.terminate(seconds{15}), 0) << broker.log();
  fmt::print("stopped under load in {} ms\n",
             std::chrono::duration_cast<milliseconds>(Clock::now() - began).count());
  EXPECT_NE(broker.log().find("stopped"), std::string::npos);
  load.stop();
  idle_consumer.reset();

  ASSERT_TRUE(broker.start()) << broker.log();
  const std::set<std::string> there = drain(broker, "jobs");
  for (const std::string& id : load.confirmed()) ASSERT_TRUE(there.contains(id)) << id;
  EXPECT_EQ(broker.depth("jobs"), 0U);
}

// Settings, leases, delays: what a clean stop writes is what the next start reads.
TEST(Shutdown, ACleanRestartKeepsEverything) {
  BrokerProcess broker;
  ASSERT_TRUE(broker.start()) << broker.log();
  broker.create("jobs", {.visibility_timeout = seconds{77}, .weights = {{"vip", 9}}});
  broker.send("jobs", numbered("job", 3));
  const auto later = broker.cli({"queue", "send", "jobs", "later", "--delay", "1h"});
  ASSERT_EQ(later.exit_code, 0) << later.err;

  ASSERT_EQ(broker.terminate(), 0);
  EXPECT_FALSE(std::filesystem::exists(broker.folder() / "ready"));
  ASSERT_TRUE(broker.start()) << broker.log();

  const auto queue = broker.client().queue("jobs").describe();
  ASSERT_TRUE(queue.has_value());
  EXPECT_EQ(queue->settings.visibility_timeout, seconds{77});
  EXPECT_EQ(queue->settings.weights.at("vip"), 9U);
  EXPECT_EQ(queue->stats.ready, 3U);
  EXPECT_EQ(queue->stats.delayed, 1U);
}

TEST(Shutdown, ASecondBrokerOnTheSameFolderIsRefusedAndTheFirstGoesOn) {
  BrokerProcess broker;
  ASSERT_TRUE(broker.start()) << broker.log();
  broker.create("jobs");

  const CommandResult second = run_command(
      {binary(), "server", "--data", broker.data(), "--listen", "127.0.0.1:0", "--http", "off"});

  EXPECT_EQ(second.exit_code, 9);
  EXPECT_NE(second.err.find(broker.data()), std::string::npos) << second.err;
  EXPECT_NE(second.err.find("in use"), std::string::npos) << second.err;
  broker.send("jobs", {"still here"});
  EXPECT_EQ(broker.depth("jobs"), 1U);
}

TEST(Shutdown, APortInUseIsRefusedAndNamed) {
  BrokerProcess broker;
  ASSERT_TRUE(broker.start()) << broker.log();
  const TempFolder folder;

  const CommandResult second = run_command({binary(), "server", "--data", folder / "data",
                                            "--listen", broker.address(), "--http", "off"});

  EXPECT_NE(second.exit_code, 0);
  EXPECT_NE(second.exit_code, -1);
  EXPECT_NE(second.err.find(broker.address()), std::string::npos) << second.err;
  EXPECT_TRUE(broker.is_running());
}

// For an impatient operator. The journal has everything anyway.
TEST(Shutdown, ASecondSignalEndsAtOnceAndLosesNothing) {
  BrokerProcess broker({"--checkpoint-interval", "1h", "--stop-timeout", "5m"});
  bool at_once = false;
  std::size_t sent = 0;
  // The first stop may be over before the second signal arrives: then again, with more to write.
  for (int i = 0; i < 5 && !at_once; ++i) {
    ASSERT_TRUE(broker.start()) << broker.log();
    if (i == 0) broker.create("jobs");
    for (int j = 0; j < 7; ++j) {
      broker.send("jobs", std::vector<std::string>(8, std::string(1'000'000, 'x')));
      sent += 8;
    }
    const std::size_t logged = broker.log().size();
    broker.signal(SIGTERM);
    ASSERT_TRUE(
        eventually([&] { return broker.log().find("stopping", logged) != std::string::npos; }));
    broker.signal(SIGTERM);
    const auto code = broker.wait(seconds{10});
    ASSERT_TRUE(code.has_value());
    at_once = *code == 1;
    EXPECT_TRUE(at_once || *code == 0) << *code;
  }
  EXPECT_TRUE(at_once);
  EXPECT_NE(broker.log().find("second signal"), std::string::npos) << broker.log();

  ASSERT_TRUE(broker.start()) << broker.log();
  EXPECT_EQ(broker.depth("jobs"), sent);
}

TEST(Shutdown, SigintIsTheSame) {
  BrokerProcess broker;
  ASSERT_TRUE(broker.start()) << broker.log();
  broker.signal(SIGINT);
  EXPECT_EQ(broker.wait(seconds{15}), 0) << broker.log();
}

// With one attempt each, an attempt counted by mistake makes a dead letter.
TEST(ConsumerShutdown, LeavingUnderLoadCountsNoAttempt) {
  constexpr std::size_t kLives = 30;
  constexpr std::size_t kMessages = 500;  // For each consumer, whatever the others leave.
  BrokerProcess broker;
  ASSERT_TRUE(broker.start());
  broker.create("jobs", {.attempts_max = 1});
  std::atomic<std::size_t> handled = 0;
  for (std::size_t life = 0; life < kLives; ++life) {
    broker.send("jobs", numbered("job", kMessages));
    const std::size_t before = handled;
    auto consumer =
        broker.client().queue("jobs").consumer({.concurrency = 2}, [&](client::Delivery&) {
          ++handled;
          return client::Outcome::ack();
        });
    ASSERT_TRUE(consumer.has_value());
    EXPECT_TRUE(eventually([&] { return handled > before + 100; }));
    EXPECT_TRUE(consumer->close(seconds{10}).has_value());
  }
  EXPECT_EQ(broker.stats("jobs").dead_lettered_total, 0U);
  EXPECT_EQ(broker.depth("jobs") + handled, kLives * kMessages);
}

}  // namespace
}  // namespace baton::e2e
