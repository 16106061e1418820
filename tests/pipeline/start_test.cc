// A source, a database or dead letters that are unavailable when a pipeline starts are waited for,
// as in any later outage; and every outage is reported in the log, in the status and at /readyz.
#include <csignal>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pipeline/postgres_pipeline.h"
#include "stores/server.h"

namespace baton::pipeline {
namespace {

using e2e::eventually;
using e2e::seconds;

class StartTest : public PostgresPipeline {
 protected:
  /// It runs, and reports everywhere what it waits for.
  static void expect_waiting(PipelineProcess& pipeline, const std::string& part) {
    const std::string name = part == "dead_letters" ? "dead letters" : part;
    ASSERT_TRUE(eventually(
        [&] { return pipeline.log().find(name + " OUT: ") != std::string::npos; }, seconds{30}))
        << pipeline.log();
    const auto [code, why] = pipeline.get("/readyz");
    EXPECT_EQ(code, 503);
    EXPECT_TRUE(why.starts_with(name + " OUT for ")) << why;
    EXPECT_EQ(pipeline.get("/healthz").first, 200);
    const nlohmann::json status = pipeline.status();
    EXPECT_EQ(status["state"], "starting") << status.dump();
    EXPECT_EQ(status["ready"], false);
    EXPECT_EQ(status[part]["state"], "out") << status.dump();
    EXPECT_NE(pipeline.get("/metrics").second.find("baton_pipeline_ready{pipeline=\"orders\"} 0"),
              std::string::npos);
    EXPECT_FALSE(pipeline.wait(seconds{0}).has_value()) << pipeline.log();
  }
  void expect_everything(PipelineProcess& pipeline) {
    expect_end(pipeline);
    EXPECT_NE(pipeline.log().find("everything is there, after "), std::string::npos)
        << pipeline.log();
  }
};

TEST_F(StartTest, ADatabaseThatIsDownIsWaitedFor) {
  send(300);
  server_->stop_fast();
  const PipelineFolder folder(broker_, settings());
  PipelineProcess pipeline(folder);
  pipeline.launch();
  ASSERT_NO_FATAL_FAILURE(expect_waiting(pipeline, "sink"));
  EXPECT_TRUE(stored_offsets(broker_, "orders", "orders").empty());
  ASSERT_TRUE(server_->start());
  EXPECT_TRUE(eventually([&] { return pipeline.get("/readyz").first == 200; }, seconds{30}))
      << pipeline.log();
  expect_everything(pipeline);
}

TEST_F(StartTest, AnInterruptEndsTheWait) {
  server_->stop_fast();
  const PipelineFolder folder(broker_, settings());
  PipelineProcess pipeline(folder);
  pipeline.launch();
  ASSERT_NO_FATAL_FAILURE(expect_waiting(pipeline, "sink"));
  pipeline.signal(SIGHUP);  // Read again; it keeps waiting.
  EXPECT_TRUE(eventually([&] { return pipeline.log().find("reloaded") != std::string::npos; }));
  EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
}

TEST_F(StartTest, ASourceThatIsDownIsWaitedFor) {
  send(300);
  ASSERT_TRUE(broker_.terminate().has_value());
  const PipelineFolder folder(broker_, settings({{"dead_letters.url", "file:letters"}}));
  PipelineProcess pipeline(folder);
  pipeline.launch();
  ASSERT_NO_FATAL_FAILURE(expect_waiting(pipeline, "source"));
  ASSERT_TRUE(broker_.start());
  EXPECT_TRUE(all_end(pipeline)) << pipeline.log();
  EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
}

TEST_F(StartTest, DeadLettersWithoutABrokerAreWaitedFor) {
  send(300);
  e2e::BrokerProcess other;
  ASSERT_TRUE(other.start());
  ASSERT_TRUE(other.terminate().has_value());
  const PipelineFolder folder(
      broker_, settings({{"dead_letters.url",
                          fmt::format("baton-queue://{}/orders.dlq", other.address())}}));
  PipelineProcess pipeline(folder);
  pipeline.launch();
  ASSERT_NO_FATAL_FAILURE(expect_waiting(pipeline, "dead_letters"));
  ASSERT_TRUE(other.start());
  EXPECT_TRUE(all_end(pipeline)) << pipeline.log();
  EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
  EXPECT_GT(other.depth("orders.dlq"), 0U);
}

// Later, too: an unavailable source is reported like a sink, and so is its return.
TEST_F(StartTest, ASourceThatGoesAwayIsTold) {
  send(300);
  const PipelineFolder folder(broker_, settings({{"dead_letters.url", "file:letters"}}));
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  EXPECT_TRUE(all_end(pipeline)) << pipeline.log();
  broker_.kill();
  EXPECT_TRUE(eventually([&] { return pipeline.log().find("source OUT: ") != std::string::npos; },
                         seconds{30}))
      << pipeline.log();
  EXPECT_EQ(pipeline.get("/readyz").first, 503);
  EXPECT_EQ(pipeline.status()["source"]["state"], "out");
  EXPECT_EQ(pipeline.breaker(), "closed");
  ASSERT_TRUE(broker_.start());
  EXPECT_TRUE(eventually([&] { return pipeline.get("/readyz").first == 200; }, seconds{30}))
      << pipeline.log();
  EXPECT_NE(pipeline.log().find("source ok again, after "), std::string::npos) << pipeline.log();
  send(300, 2, kNoTrouble);
  EXPECT_TRUE(all_end(pipeline)) << pipeline.log();
  EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
}

// One line, however many lanes there are, and it says what to do.
TEST_F(StartTest, AHaltIsToldOnceWithTheWayOut) {
  const PipelineFolder folder(broker_, settings());
  PipelineProcess pipeline(folder);
  ASSERT_TRUE(pipeline.start());
  server_->query("ALTER TABLE items RENAME TO hidden");
  send(300, 1, kNoTrouble);
  EXPECT_TRUE(eventually([&] { return pipeline.breaker() == "halted"; })) << pipeline.log();
  EXPECT_TRUE(pipeline.get("/readyz").second.starts_with("HALTED: ")) << pipeline.log();
  server_->query("ALTER TABLE hidden RENAME TO items");
  const auto pid = pipeline.status()["pid"].get<int>();
  EXPECT_TRUE(eventually([&] { return pipeline.log().find("HALTED") != std::string::npos; }));
  const std::string text = pipeline.log();
  const std::size_t at = text.find("HALTED: ");
  EXPECT_EQ(text.find("HALTED: ", at + 1), std::string::npos) << text;
  EXPECT_NE(text.find(fmt::format("kill -HUP {}", pid), at), std::string::npos) << text;
  pipeline.signal(SIGHUP);
  expect_end(pipeline);
}

TEST_F(StartTest, ANatsServerThatIsDownIsWaitedFor) {
  const stores::ServerOptions kind{.kind = stores::Kind::nats};
  if (const std::string why = stores::Server::missing(kind); !why.empty()) {
    fmt::print("SKIPPED: {}\n", why);
    GTEST_SKIP() << why;
  }
  stores::Server nats(kind);
  ASSERT_TRUE(nats.start());
  const std::string address = nats.member(0).address();
  make_nats_stream(address);
  const std::string url = "nats://" + address + "/ORDERS/orders.{partition}";
  const auto made = e2e::run_command({e2e::binary(), "pipeline", "generate", "orders", "--count",
                                      "200", "--partitions", "2", "--to", url});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  nats.stop();
  const PipelineFolder folder(broker_, settings({{"source.url", url}, {"source.partitions", "2"}}));
  PipelineProcess pipeline(folder);
  pipeline.launch();
  ASSERT_NO_FATAL_FAILURE(expect_waiting(pipeline, "source"));
  ASSERT_TRUE(nats.start());
  EXPECT_TRUE(eventually([&] { return pipeline.ended() == 200; }, seconds{60})) << pipeline.log();
  EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
}

}  // namespace
}  // namespace baton::pipeline
