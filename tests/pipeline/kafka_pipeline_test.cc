// The order pipeline from a real Kafka into SQLite, dead letters into a topic, by the command line,
// killed in between. Only in `./dev test --long`: a JVM is slow to start.
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "e2e/broker_process.h"
#include "pipeline/kafka_server.h"
#include "pipeline/orders.h"
#include "pipeline/pipeline_process.h"

namespace baton::pipeline {
namespace {

using e2e::eventually;
using e2e::seconds;

class KafkaPipeline : public ::testing::TestWithParam<const char*> {};

TEST_P(KafkaPipeline, KilledAgainAndAgain) {
  const std::string why = e2e::is_long_run() ? KafkaServer::missing() : "only with BATON_LONG=1";
  if (!why.empty()) {
    fmt::print("SKIPPED: {}\n", why);
    GTEST_SKIP() << why;
  }
  KafkaServer kafka;
  ASSERT_TRUE(kafka.start());
  const e2e::BrokerProcess unused;
  const std::string url = "kafka://" + kafka.brokers() + "/orders";
  const auto generated = e2e::run_command({e2e::binary(), "pipeline", "generate", "orders",
                                           "--count", "20000", "--invalid", "2%", "--broken", "1%",
                                           "--duplicate", "2%", "--json", "--to", url});
  ASSERT_EQ(generated.exit_code, 0) << generated.err;
  const nlohmann::json made = nlohmann::json::parse(generated.out);
  const PipelineFolder folder(unused,
                              {{"source.url", url},
                               {"dead_letters.url", "kafka://" + kafka.brokers() + "/orders-dead"},
                               {"delivery", GetParam()},
                               {"batch.records", "20"},
                               {"window.records", "1000"}});
  const auto rows = [&] { return read_sqlite(folder.database()).rows.size(); };
  std::size_t before = 0;
  for (int life = 0; life < 3; ++life) {
    PipelineProcess pipeline(folder);
    ASSERT_TRUE(pipeline.start());
    EXPECT_TRUE(eventually([&] { return rows() > before + 500; }, seconds{90})) << pipeline.log();
    pipeline.kill();
    before = rows();
  }
  PipelineProcess last(folder);
  ASSERT_TRUE(last.start());
  EXPECT_TRUE(eventually([&] { return rows() == made["valid"].get<std::size_t>(); }, seconds{120}))
      << last.log();
  EXPECT_TRUE(eventually(
      [&] {
        const nlohmann::json status = last.status();
        return status["window"]["records"] == 0 && status["lag"] == 0;
      },
      seconds{60}))
      << last.status().dump();
  EXPECT_EQ(last.terminate(), 0) << last.log();
  const Outcome outcome = read_sqlite(folder.database());
  EXPECT_EQ(outcome.rows.size(), made["valid"].get<std::size_t>());
  EXPECT_EQ(outcome.deliveries, outcome.rows.size());
  EXPECT_EQ(outcome.orphans, 0U);

  const auto redrive = [&](std::vector<std::string> more) {
    more.insert(more.begin(), {e2e::binary(), "pipeline", "dlq", "redrive", "orders", "--json",
                               "--config", folder.config()});
    const auto result = e2e::run_command(more, {.environment = folder.environment()});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out, nullptr, false);
  };
  const nlohmann::json first = redrive({"--where", "stage=decode"});
  EXPECT_GE(first.value("redriven", 0U), made["broken"].get<std::uint64_t>()) << first.dump();
  EXPECT_EQ(redrive({"--dry-run"}).value("redriven", 0U), first.value("other", 0U));
  EXPECT_EQ(redrive({"--where", "stage=decode"}).value("redriven", 1U), 0U);
  EXPECT_EQ(redrive({}).value("redriven", 0U), first.value("other", 0U));
  EXPECT_EQ(redrive({}).value("redriven", 1U), 0U);
}
INSTANTIATE_TEST_SUITE_P(Delivery, KafkaPipeline,
                         ::testing::Values("at_least_once", "exactly_once_effect"),
                         [](const auto& kind) { return std::string(kind.param); });

}  // namespace
}  // namespace baton::pipeline
