// What an operator sees of a broker without asking a queue: metrics, and the log.
#include <filesystem>
#include <string>

#include <gtest/gtest.h>

#include "e2e/broker_process.h"
#include "paths.h"

namespace baton::e2e {
namespace {

class Metrics : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(broker_.start()) << broker_.log(); }

  [[nodiscard]] std::string metrics() const { return broker_.http_get("/metrics").value_or(""); }
  void expect_line(const std::string& line) const {
    EXPECT_TRUE(eventually([&] { return metrics().find("\n" + line) != std::string::npos; }))
        << line << "\n"
        << metrics();
  }
  BrokerProcess broker_;
};

TEST_F(Metrics, TellTheBuildTheProcessAndTheDisk) {
  for (const char* name :
       {"baton_build_info{version=\"", "baton_disk_free_bytes ", "process_open_fds ",
        "process_resident_memory_bytes ", "process_cpu_seconds_total ",
        "process_start_time_seconds 1", "baton_connections_open ", "baton_connections_max "}) {
    expect_line(name);
  }
}

TEST_F(Metrics, AreAsPrometheusWantsThem) {
  const std::string promtool = std::string(paths::kTools) + "/promtool";
  if (!std::filesystem::exists(promtool)) GTEST_SKIP() << "SKIPPED: no promtool (./dev setup)";
  broker_.create("orders");
  broker_.send("orders", numbered("m", 1));
  ASSERT_EQ(broker_.cli({"stream", "create", "events"}).exit_code, 0);
  ASSERT_EQ(broker_.cli({"kv", "bucket", "create", "settings"}).exit_code, 0);
  const auto checked = run_command({promtool, "check", "metrics"}, {.in = metrics()});
  EXPECT_EQ(checked.exit_code, 0) << checked.out << checked.err;
}

// The first of a queue is news; the others are numbers.
TEST_F(Metrics, TheLogTellsOfAQueuesFirstDeadLetter) {
  broker_.create("orders", {.max_attempts = 1});
  broker_.send("orders", numbered("m", 1));
  const auto stream = open_stream(broker_, "orders", {.max_in_flight = 1});
  const auto held = take(*stream, 1);
  ASSERT_EQ(held.size(), 1U);
  stream->nack({.token = held[0].token});
  EXPECT_TRUE(eventually([&] {
    return broker_.log().find("event=first_dead_letter queue=orders") != std::string::npos;
  })) << broker_.log();
}

}  // namespace
}  // namespace baton::e2e
