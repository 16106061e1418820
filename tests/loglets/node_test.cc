// A node whose shards' logs are on a real NATS server: what it confirmed survives the loss of its
// process, its data folder, and outages of NATS.

#include <atomic>
#include <filesystem>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "e2e/broker_process.h"
#include "loglets/nats_bench.h"
#include "stores/programs.h"

namespace baton::loglets {
namespace {

using e2e::BrokerProcess;

/// One NATS server for all tests of this program; each has a cluster of its own.
class ClusterNode : public testing::Test {
 protected:
  void SetUp() override {
    if (const auto program = stores::nats_program(kNatsMin); !program.missing.empty()) {
      GTEST_SKIP() << "SKIPPED: " << program.missing;
    }
    static std::unique_ptr<stores::Server> server;
    if (server == nullptr) server = start_nats(1);
    ASSERT_NE(server, nullptr);
    const bool runs = server->member(0).is_running() || server->start();
    ASSERT_TRUE(runs);
    server_ = server.get();
    static int clusters = 0;
    name_ = fmt::format("c{}", ++clusters);
  }
  [[nodiscard]] std::string url() const {
    return fmt::format("nats://{}", server_->member(0).address());
  }
  [[nodiscard]] e2e::CommandResult init(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> command{e2e::binary(), "cluster", "init",       "--cluster", url(),
                                     "--join",      name_,     "--replicas", "1"};
    if (more.empty()) command.insert(command.end(), {"--shards", "2"});
    command.insert(command.end(), more.begin(), more.end());
    return e2e::run_command(command);
  }
  [[nodiscard]] std::vector<std::string> flags() const {
    return {"--cluster", url(), "--join", name_, "--node", "n1"};
  }
  /// What a broker with these flags says instead of starting.
  static std::string refusal(const std::vector<std::string>& flags) {
    BrokerProcess broker(flags);
    broker.launch();
    const auto code = broker.wait(seconds{60});
    EXPECT_TRUE(code.has_value() && *code != 0);
    return broker.log();
  }

  stores::Server* server_ = nullptr;
  std::string name_;
};

TEST_F(ClusterNode, ConfirmedMessagesSurviveTheLossOfTheMachine) {
  ASSERT_EQ(init().exit_code, 0);
  BrokerProcess broker(flags());
  ASSERT_TRUE(broker.start()) << broker.log();
  std::set<std::string> confirmed;
  for (const std::string queue : {"a", "b", "c"}) broker.create(queue);
  for (int life = 0; life < 3; ++life) {
    // Killed while messages are sent: only what was confirmed counts.
    std::atomic<int> sent = 0;
    std::atomic<bool> killed = false;
    std::thread killer([&] {
      e2e::eventually([&] { return sent >= 60; });
      broker.kill();
      killed = true;
    });
    const client::Broker sender = broker.client();
    for (int i = 0; !killed; ++i) {
      const std::string queue(1, static_cast<char>('a' + i % 3));
      const std::string payload = fmt::format("{}-{}-{}", queue, life, i);
      const auto results = sender.queue(queue).enqueue({{.payload = payload}});
      if (!results.has_value() || !results->front().ok()) continue;
      confirmed.insert(payload);
      ++sent;
    }
    killer.join();
    std::filesystem::remove_all(broker.data());
    ASSERT_TRUE(broker.start()) << broker.log();
  }
  std::set<std::string> found;
  for (const std::string queue : {"a", "b", "c"}) {
    const std::uint64_t depth = broker.depth(queue);
    auto stream = e2e::open_stream(broker, queue);
    for (const auto& message : e2e::take(*stream, depth)) found.insert(message.payload);
  }
  EXPECT_GE(confirmed.size(), 180U);
  for (const std::string& payload : confirmed) EXPECT_TRUE(found.contains(payload)) << payload;
}

TEST_F(ClusterNode, WaitsForNatsAndConfirmsNothingMeanwhile) {
  ASSERT_EQ(init().exit_code, 0);
  BrokerProcess broker(flags());
  ASSERT_TRUE(broker.start()) << broker.log();
  broker.create("q");
  broker.send("q", e2e::numbered("before", 10));
  server_->kill();
  // The first call is taken, and waits; once the log is known to be away, calls are refused.
  EXPECT_NE(broker.cli({"queue", "send", "q", "during", "--timeout", "4s"}).exit_code, 0);
  EXPECT_TRUE(broker.is_running());
  ASSERT_TRUE(server_->start());
  EXPECT_TRUE(
      e2e::eventually([&] { return broker.cli({"queue", "send", "q", "after"}).exit_code == 0; }));
  // A checkpoint, an orderly end, and a start that reads from the checkpoint on.
  EXPECT_EQ(broker.terminate(), 0) << broker.log();
  ASSERT_TRUE(broker.start()) << broker.log();
  const std::uint64_t depth = broker.depth("q");
  EXPECT_GE(depth, 11U);
  EXPECT_LE(depth, 12U);  // "during" was not confirmed, and may have been stored.
}

TEST_F(ClusterNode, ASecondNodeTakesOverAndTheFirstOneEnds) {
  ASSERT_EQ(init().exit_code, 0);
  BrokerProcess first(flags());
  ASSERT_TRUE(first.start()) << first.log();
  first.create("q");
  first.send("q", e2e::numbered("m", 10));
  BrokerProcess second(flags());
  ASSERT_TRUE(second.start()) << second.log();
  EXPECT_EQ(second.depth("q"), 10U);
  // The first one notices with its next round, and confirms nothing.
  EXPECT_NE(first.cli({"queue", "send", "q", "void", "--timeout", "5s"}).exit_code, 0);
  EXPECT_EQ(first.wait(seconds{20}), 1) << first.log();
  EXPECT_NE(first.log().find("event=deposed"), std::string::npos);
  second.send("q", {"mine"});
  EXPECT_EQ(second.depth("q"), 11U);
}

TEST_F(ClusterNode, BadInputIsRefusedWithItsReason) {
  const auto contains = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos ? std::string() : "missing '" + part + "': " + text;
  };
  EXPECT_EQ(contains(refusal(flags()), "there is no cluster '" + name_ + "'"), "");
  ASSERT_EQ(init().exit_code, 0);
  const auto again = init();
  EXPECT_EQ(again.exit_code, 4);
  EXPECT_EQ(contains(again.err, "exists, with 2 shards"), "");
  EXPECT_EQ(contains(init({"--shards", "0"}).err, "--shards"), "");
  EXPECT_EQ(contains(refusal({"--cluster", "kafka://a:1", "--node", "n1"}), "nats://"), "");
  EXPECT_EQ(contains(refusal({"--cluster", url()}), "--cluster needs --node"), "");
  EXPECT_EQ(contains(refusal({"--node", "n1"}), "give --cluster too"), "");
  auto more = flags();
  more.insert(more.end(), {"--shards", "2"});
  EXPECT_EQ(contains(refusal(more), "--shards is for a broker without"), "");
  more = flags();
  more.insert(more.end(), {"--fsync", "never"});
  EXPECT_EQ(contains(refusal(more), "--fsync is for a broker without"), "");
  BrokerProcess broker(flags());
  ASSERT_TRUE(broker.start()) << broker.log();
  const auto stream = broker.cli({"stream", "create", "s"});
  EXPECT_NE(stream.exit_code, 0);
  EXPECT_EQ(contains(stream.err, "takes no streams yet"), "");
  // A folder stays what it is.
  EXPECT_EQ(broker.terminate(), 0);
  broker.flags().clear();
  broker.launch();
  EXPECT_TRUE(broker.wait(seconds{30}).value_or(0) != 0);
  EXPECT_EQ(contains(broker.log(), "belongs to a node of a cluster"), "");
}

}  // namespace
}  // namespace baton::loglets
