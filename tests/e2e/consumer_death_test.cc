// What happens to a consumer's messages when it dies, or only seems to. The consumers are processes
// of their own: this program, started again as `consumer_death_test --consumer ADDRESS QUEUE
// GO_FILE`.
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "e2e/broker_process.h"

namespace baton::e2e {
namespace {

/// Leases messages and prints each; acks all of them once `go_file` exists, prints the result of
/// each ack, and ends.
int run_consumer(const std::string& address, const std::string& queue, const std::string& go_file) {
  const auto broker =
      client::Broker::open({.address = address, .reconnect_max = milliseconds{100}});
  auto stream = broker->queue(queue).lease();
  if (!stream) return 1;
  std::vector<client::LeaseToken> tokens;
  while (!std::filesystem::exists(go_file)) {
    auto message = stream->next(milliseconds{5});
    if (!message) return 2;
    if (!*message) continue;
    std::cout << "got " << (**message).payload << std::endl;
    tokens.push_back((**message).token);
  }
  for (const auto& token : tokens) {
    stream->ack(token, [](const client::ItemResults& results) {
      std::cout << (results.ok() ? "acked" : results.failures[0].error.name()) << std::endl;
    });
  }
  (void)stream->flush(seconds{30});
  return 0;
}

/// Handles messages with the SDK's Consumer, two at a time, and never finishes any.
int run_worker(const std::string& address, const std::string& queue) {
  const auto broker = client::Broker::open({.address = address});
  const auto consumer =
      broker->queue(queue).consumer({.concurrency = 2}, [](client::Delivery& delivery) {
        std::cout << "got " << delivery.message().payload << std::endl;
        std::this_thread::sleep_for(seconds{60});
      });
  if (!consumer) return 1;
  std::this_thread::sleep_for(seconds{60});
  return 0;
}

std::size_t count_of(std::string_view text, std::string_view word) {
  std::size_t count = 0;
  for (auto at = text.find(word); at != std::string_view::npos; at = text.find(word, at + 1)) {
    ++count;
  }
  return count;
}

/// A consumer in a process of its own.
class ConsumerProcess {
 public:
  ConsumerProcess(const BrokerProcess& broker, const std::string& queue,
                  const std::string& kind = "--consumer")
      : child_({.command = {std::filesystem::read_symlink("/proc/self/exe").string(), kind,
                            broker.address(), queue, folder_ / "go"},
                .out_file = folder_ / "out"}) {}

  /// Waits until it holds this many messages.
  bool holds(std::size_t messages) {
    return eventually([&] { return count_of(said(), "got ") >= messages; });
  }
  /// Lets it ack what it holds, and waits for its end.
  std::optional<int> ack_and_end() {
    write_file(folder_ / "go", "");
    return child_.wait(seconds{40});
  }
  [[nodiscard]] std::string said() const { return read_file(folder_ / "out"); }
  ChildProcess& child() { return child_; }

 private:
  TempFolder folder_;
  ChildProcess child_;
};

class ConsumerDeath : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(broker_.start()) << broker_.log(); }

  BrokerProcess broker_;
};

// The kernel closes a dead process's connection, and the broker waits for nothing else.
TEST_F(ConsumerDeath, KilledItsMessagesReachAnotherWithinMilliseconds) {
  broker_.create("jobs");
  broker_.send("jobs", numbered("job", 100));
  ConsumerProcess victim(broker_, "jobs");
  ASSERT_TRUE(victim.holds(100));
  const auto other = open_stream(broker_, "jobs");
  EXPECT_EQ(broker_.stats("jobs").leased, 100U);

  const auto killed = Clock::now();
  victim.child().signal(SIGKILL);
  const auto messages = take(*other, 100, seconds{30});
  const auto took = std::chrono::duration_cast<milliseconds>(Clock::now() - killed);

  fmt::print("100 messages of a killed consumer reached another in {} ms\n", took.count());
  EXPECT_LT(took, seconds{2});
  ASSERT_EQ(messages.size(), 100U);
  // In order, and with an attempt counted: the consumer may have died of one of them.
  EXPECT_EQ(payloads_of(messages), numbered("job", 100));
  EXPECT_EQ(messages[0].attempt, 2U);
}

// Only its silence tells the broker that a stopped process will not answer. By the time it does,
// another consumer holds its messages, and its late acks must not take them away.
TEST_F(ConsumerDeath, StoppedItsMessagesReachAnotherAfterItsLeaseAndItsLateAcksAreRefused) {
  broker_.create("jobs", {.visibility_timeout = seconds{120}});
  broker_.send("jobs", numbered("job", 10));
  ConsumerProcess sleeper(broker_, "jobs");
  ASSERT_TRUE(sleeper.holds(10));
  const auto other = open_stream(broker_, "jobs");

  const auto stopped = Clock::now();
  sleeper.child().pause();
  const auto messages = take(*other, 10, seconds{30});
  const auto took = std::chrono::duration_cast<milliseconds>(Clock::now() - stopped);

  fmt::print("10 messages of a stopped consumer reached another in {} ms\n", took.count());
  ASSERT_EQ(messages.size(), 10U);
  EXPECT_GT(took, milliseconds{3'500});
  EXPECT_LT(took, seconds{12});
  sleeper.child().signal(SIGCONT);
  EXPECT_EQ(sleeper.ack_and_end(), 0);
  EXPECT_EQ(count_of(sleeper.said(), "lease_lost"), 10U) << sleeper.said();
  EXPECT_EQ(count_of(sleeper.said(), "acked"), 0U);
  EXPECT_EQ(broker_.stats("jobs").leased, 10U);
  for (const auto& message : messages) other->ack(message.token);
  EXPECT_TRUE(other->flush(seconds{20}).has_value());
  EXPECT_EQ(broker_.depth("jobs"), 0U);
}

// The visibility timeout is the promise that does not depend on any connection.
TEST_F(ConsumerDeath, StoppedItsMessagesReachAnotherAfterTheVisibilityTimeoutIfThatIsSooner) {
  broker_.create("jobs", {.visibility_timeout = milliseconds{800}, .retry_delay = milliseconds{0}});
  broker_.send("jobs", numbered("job", 10));
  ConsumerProcess sleeper(broker_, "jobs");
  ASSERT_TRUE(sleeper.holds(10));

  const auto stopped = Clock::now();
  sleeper.child().pause();
  const auto other = open_stream(broker_, "jobs");
  std::vector<client::LeasedMessage> messages;
  // The sleeper still has credit, so some of these may go to it first, and time out again.
  ASSERT_TRUE(eventually([&] {
    for (auto& message : take(*other, 10, milliseconds{1})) {
      other->ack(message.token);
      messages.push_back(std::move(message));
    }
    return broker_.stats("jobs").acked_total == 10;
  }));
  const auto took = std::chrono::duration_cast<milliseconds>(Clock::now() - stopped);

  fmt::print("10 messages of a stopped consumer expired and reached another in {} ms\n",
             took.count());
  EXPECT_LT(took, seconds{10});
  EXPECT_GE(broker_.stats("jobs").lease_expired_total, 10U);
  sleeper.child().signal(SIGCONT);
  EXPECT_EQ(sleeper.ack_and_end(), 0);
  EXPECT_EQ(count_of(sleeper.said(), "acked"), 0U) << sleeper.said();
  EXPECT_GE(count_of(sleeper.said(), "lease_lost"), 10U) << sleeper.said();
  EXPECT_EQ(broker_.depth("jobs"), 0U);
}

// Otherwise one message takes down consumer after consumer, for ever.
TEST_F(ConsumerDeath, AMessageThatKillsItsConsumersIsDeadLetteredWithTheReason) {
  broker_.create("jobs", {.attempts_max = 3, .retry_delay = milliseconds{0}});
  const auto ids = broker_.send("jobs", {"poison"});
  for (int i = 0; i < 3; ++i) {
    ConsumerProcess victim(broker_, "jobs");
    ASSERT_TRUE(victim.holds(1)) << "attempt " << i;
    victim.child().kill();
  }

  ASSERT_TRUE(eventually([&] { return broker_.depth("jobs") == 0; }));
  const auto letter = broker_.client().queue("jobs.dlq").peek();
  ASSERT_TRUE(letter.has_value());
  ASSERT_EQ(letter->size(), 1U);
  EXPECT_EQ(letter->at(0).payload, "poison");
  EXPECT_EQ(letter->at(0).id, ids[0]);
  const client::Headers& headers = letter->at(0).headers;
  EXPECT_EQ(headers.at("baton-source-queue"), "jobs");
  EXPECT_EQ(headers.at("baton-attempts"), "3");
  EXPECT_NE(headers.at("baton-last-error").find("disconnected"), std::string::npos);
}

// Messages that merely waited at the dead consumer are innocent: only those it worked on, one
// message here and two there, may end in the dead-letter queue.
TEST_F(ConsumerDeath, ACrashLoopDeadLettersNoMessageThatNobodyWorkedOn) {
  for (const auto& [kind, at_once] : {std::pair("--consumer", 1U), std::pair("--worker", 2U)}) {
    const std::string queue = std::string("loop") + kind;
    broker_.create(queue, {.attempts_max = 3, .retry_delay = milliseconds{0}});
    broker_.send(queue, numbered("job", 200));
    for (int i = 0; i < 3; ++i) {
      ConsumerProcess victim(broker_, queue, kind);
      ASSERT_TRUE(eventually([&] { return broker_.stats(queue).leased == 200; })) << i;
      ASSERT_TRUE(victim.holds(kind == std::string_view("--worker") ? 2 : 200)) << i;
      victim.child().kill();
      ASSERT_TRUE(eventually([&] { return broker_.stats(queue).leased == 0; })) << i;
    }
    EXPECT_EQ(broker_.depth(queue + ".dlq"), at_once) << kind;
    const auto next = open_stream(broker_, queue);
    const auto rest = take(*next, 200 - at_once);
    ASSERT_EQ(rest.size(), 200 - at_once) << kind;
    for (const auto& message : rest) EXPECT_EQ(message.attempt, 1U) << kind << message.payload;
  }
}

// The command line holds its leases and reports what became of them: scripts rely on the exit code.
TEST_F(ConsumerDeath, AHeldLeaseThatWasLostShowsInTheExitCode) {
  broker_.create("jobs", {.visibility_timeout = milliseconds{500}});
  broker_.send("jobs", {"job"});
  const TempFolder folder;
  ChildProcess holder({.command = {binary(), "queue", "lease", "jobs", "--hold", "--hold-for", "1s",
                                   "--json", "--address", broker_.address()},
                       .out_file = folder / "out",
                       .err_file = folder / "err"});
  ASSERT_TRUE(eventually([&] { return !read_file(folder / "out").empty(); }));

  holder.pause();
  ASSERT_TRUE(eventually([&] { return broker_.stats("jobs").lease_expired_total > 0; }));
  holder.signal(SIGCONT);

  EXPECT_EQ(holder.wait(seconds{20}), 7) << read_file(folder / "err");
  EXPECT_NE(read_file(folder / "err").find("lease_lost"), std::string::npos)
      << read_file(folder / "err");
}

}  // namespace
}  // namespace baton::e2e

int main(int argc, char** argv) {
  if (argc == 5 && std::string_view(argv[1]) == "--consumer") {
    return baton::e2e::run_consumer(argv[2], argv[3], argv[4]);
  }
  if (argc == 5 && std::string_view(argv[1]) == "--worker") {
    return baton::e2e::run_worker(argv[2], argv[3]);
  }
  testing::InitGoogleTest(&argc, argv);
  return RUN_ALL_TESTS();
}
