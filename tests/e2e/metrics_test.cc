// What an operator sees of a broker without asking a queue: metrics, and the log.
#include <chrono>
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
  /// The value of a metric, as soon as it exists.
  [[nodiscard]] double value(const std::string& name) const {
    double out = -1;
    EXPECT_TRUE(eventually([&] {
      const std::string text = metrics();
      const auto at = text.find("\n" + name + " ");
      if (at == std::string::npos) return false;
      out = std::stod(text.substr(at + name.size() + 2));
      return true;
    })) << name;
    return out;
  }

  BrokerProcess broker_;
};

TEST_F(Metrics, TellEachQueuesDepthAndAge) {
  broker_.create("orders", {.attempts_max = 1});
  broker_.send("orders", numbered("m", 5));
  const auto sent = std::chrono::steady_clock::now();
  {
    const auto stream = open_stream(broker_, "orders", {.in_flight_max = 2});
    const auto held = take(*stream, 2);
    ASSERT_EQ(held.size(), 2U);
    expect_line("baton_queue_ready{queue=\"orders\"} 3\n");
    expect_line("baton_queue_leased{queue=\"orders\"} 2\n");
    expect_line("baton_queue_delayed{queue=\"orders\"} 0\n");
    expect_line("baton_queue_consumers{queue=\"orders\"} 1\n");
    expect_line("baton_queue_dead_letters_total{queue=\"orders\"} 0\n");
    expect_line("baton_queues_not_shown 0\n");
    stream->nack({.token = held[0].token});
    expect_line("baton_queue_dead_letters_total{queue=\"orders\"} 1\n");
    expect_line("baton_queue_oldest_age_seconds{queue=\"orders.dlq\"} ");
  }
  // A restart leaves the messages on the disk, and no consumer reads them. An age that began anew
  // with the restart would be less than the time before it.
  const std::chrono::duration<double> before = std::chrono::steady_clock::now() - sent;
  ASSERT_EQ(broker_.terminate(), 0) << broker_.log();
  ASSERT_TRUE(broker_.start()) << broker_.log();
  EXPECT_GT(value("baton_queue_oldest_age_seconds{queue=\"orders\"}"), before.count());
}

TEST_F(Metrics, TellHowLongCallsAndFsyncsTake) {
  broker_.create("orders");
  ASSERT_EQ(broker_.cli({"stream", "create", "events"}).exit_code, 0);
  ASSERT_EQ(broker_.cli({"stream", "append", "events", "one"}).exit_code, 0);
  expect_line("baton_api_call_seconds_count{method=\"CreateQueue\"} 1\n");
  EXPECT_GT(value("baton_api_call_seconds_sum{method=\"CreateQueue\"}"), 0);
  for (const char* file : {"journal", "partition"}) {
    EXPECT_GE(value(std::string("baton_fsync_seconds_count{shard=\"0\",file=\"") + file + "\"}"),
              1);
    expect_line(std::string("baton_fsync_seconds_bucket{shard=\"0\",file=\"") + file +
                "\",le=\"+Inf\"} ");
  }
}

// Who deleted this queue?
TEST_F(Metrics, TheLogTellsWhatClientsCreateAndDelete) {
  ASSERT_EQ(broker_.cli({"queue", "create", "orders"}).exit_code, 0);
  ASSERT_EQ(broker_.cli({"stream", "create", "events"}).exit_code, 0);
  ASSERT_EQ(broker_.cli({"kv", "bucket", "create", "settings"}).exit_code, 0);
  ASSERT_TRUE(broker_.client().queue("orders").drop().has_value());
  ASSERT_FALSE(broker_.client().queue("orders").drop().has_value());
  for (const char* line : {"event=create_queue queue=orders peer=ipv4:127.0.0.1:",
                           "event=create_stream stream=events peer=", "event=create_bucket bucket=",
                           "event=delete_queue queue=orders peer="}) {
    EXPECT_TRUE(eventually([&] { return broker_.log().find(line) != std::string::npos; }))
        << line << "\n"
        << broker_.log();
  }
  const std::string log = broker_.log();
  EXPECT_EQ(log.find("event=delete_queue"), log.rfind("event=delete_queue")) << log;
}

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

// A queue's first dead letter is logged; the others are only counted.
TEST_F(Metrics, TheLogTellsOfAQueuesFirstDeadLetter) {
  broker_.create("orders", {.attempts_max = 1});
  broker_.send("orders", numbered("m", 1));
  const auto stream = open_stream(broker_, "orders", {.in_flight_max = 1});
  const auto held = take(*stream, 1);
  ASSERT_EQ(held.size(), 1U);
  stream->nack({.token = held[0].token});
  EXPECT_TRUE(eventually([&] {
    return broker_.log().find("event=first_dead_letter queue=orders") != std::string::npos;
  })) << broker_.log();
}

}  // namespace
}  // namespace baton::e2e
