// Members of a group on a real Kafka: how long a killed one is missed, what the brokers refuse, and
// where dead letters go if their topic does not exist.
#include <memory>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "e2e/broker_process.h"
#include "pipeline/kafka_server.h"
#include "pipeline/kafka_testing.h"
#include "pipeline/orders.h"
#include "pipeline/pipeline_process.h"

namespace baton::pipeline {
namespace {

using e2e::Clock;
using e2e::eventually;
using e2e::seconds;

class KafkaMembers : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    if (!e2e::is_long_run() || !KafkaServer::missing().empty()) return;
    g_kafka = std::make_unique<KafkaServer>();
    ASSERT_TRUE(g_kafka->start());
  }
  static void TearDownTestSuite() { g_kafka.reset(); }
  void SetUp() override {
    const std::string why = e2e::is_long_run() ? KafkaServer::missing() : "only with BATON_LONG=1";
    if (!why.empty()) {
      fmt::print("SKIPPED: {}\n", why);
      GTEST_SKIP() << why;
    }
    topic_ = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    generate(500);
  }
  std::string url(const std::string& topic) const {
    return fmt::format("kafka://{}/{}", g_kafka->brokers(), topic);
  }
  void generate(int count) {
    const auto made = e2e::run_command({e2e::binary(), "pipeline", "generate", "orders", "--count",
                                        std::to_string(count), "--seed", std::to_string(++seed_),
                                        "--to", url(topic_)});
    ASSERT_EQ(made.exit_code, 0) << made.err;
    generated_ += static_cast<std::size_t>(count);
  }
  PipelineFolder folder(PipelineFolder::Settings more = {}) {
    PipelineFolder::Settings settings{{"source.url", url(topic_)},
                                      {"source.group", topic_},
                                      {"dead_letters.url", url(topic_ + "-dead")}};
    for (const auto& [path, value] : more) settings[path] = value;
    return PipelineFolder(unused_, std::move(settings));
  }
  /// How long it takes until a pipeline that is killed and started again continues.
  Clock::duration gap(const PipelineFolder& folder) {
    const auto all_in = [&] { return read_sqlite(folder.database()).rows.size() == generated_; };
    PipelineProcess pipeline(folder);
    EXPECT_TRUE(pipeline.start());
    EXPECT_TRUE(eventually(all_in, seconds{60})) << pipeline.log();
    pipeline.kill();
    generate(500);
    const auto begin = Clock::now();
    EXPECT_TRUE(pipeline.start());
    EXPECT_TRUE(eventually(all_in, seconds{60})) << pipeline.log();
    const auto gap = Clock::now() - begin;
    EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
    fmt::print("the gap was {:.1f} s\n", std::chrono::duration<double>(gap).count());
    return gap;
  }

  static inline std::unique_ptr<KafkaServer> g_kafka;
  const e2e::BrokerProcess unused_;
  std::string topic_;
  std::size_t generated_ = 0;
  int seed_ = 0;
};

TEST_F(KafkaMembers, AKafkaThatIsDownAtTheStartIsWaitedFor) {
  const PipelineFolder one = folder();
  g_kafka->stop();
  PipelineProcess pipeline(one);
  pipeline.launch();
  EXPECT_TRUE(eventually([&] { return pipeline.log().find("source OUT: ") != std::string::npos; },
                         seconds{30}))
      << pipeline.log();
  EXPECT_EQ(pipeline.get("/readyz").first, 503);
  ASSERT_TRUE(g_kafka->start());
  EXPECT_TRUE(eventually([&] { return pipeline.counter("applied") == generated_; }, seconds{60}))
      << pipeline.log();
  EXPECT_EQ(pipeline.terminate(), 0) << pipeline.log();
}

// The default session time-out is 10 s; librdkafka's own would be 45 s.
TEST_F(KafkaMembers, AKilledPipelineIsMissedForItsSessionTimeout) {
  EXPECT_LT(gap(folder()), seconds{20});
}

// A static member: the group knows it by its id, and does not wait for a timeout.
TEST_F(KafkaMembers, AKilledPipelineWithAnIdGoesOnAtOnce) {
  EXPECT_LT(gap(folder({{"id", "one"}, {"source.session_timeout", "30s"}})), seconds{15});
}

TEST_F(KafkaMembers, TwoPipelinesOfOneIdAreToldApart) {
  const PipelineFolder both = folder({{"id", "one"}});
  PipelineProcess first(both);
  ASSERT_TRUE(first.start());
  ASSERT_TRUE(eventually([&] { return first.counter("applied") > 0; }, seconds{30})) << first.log();
  PipelineProcess second(both);
  ASSERT_TRUE(second.start());
  EXPECT_NE(first.wait(seconds{30}).value_or(0), 0) << first.log();
  EXPECT_NE(first.log().find("has joined with the id 'one'"), std::string::npos) << first.log();
  EXPECT_EQ(second.terminate(), 0) << second.log();
}

TEST_F(KafkaMembers, ASessionTimeoutThatTheBrokersRefuseIsNamedAtOnce) {
  const PipelineFolder short_session = folder({{"source.session_timeout", "2s"}});
  const auto checked = short_session.check();
  EXPECT_EQ(checked.exit_code, 2) << checked.err;
  EXPECT_NE(checked.err.find("source.session_timeout: 2s is refused by the brokers of Kafka "
                             "(group.min.session.timeout.ms is 6s, "
                             "group.max.session.timeout.ms is 30m)"),
            std::string::npos)
      << checked.err;
  PipelineProcess pipeline(short_session);
  pipeline.launch();
  EXPECT_EQ(pipeline.wait(seconds{30}), 2) << pipeline.log();
}

// The member itself is told too, where the brokers allow nobody to read their settings.
TEST_F(KafkaMembers, ARefusedMemberEndsWithTheReason) {
  MemorySink sink;
  KafkaSourceOptions options;
  options.brokers = g_kafka->brokers();
  options.topic = options.group = topic_;
  options.session_timeout = seconds(2);
  kafka_test::KafkaRun run(options, kafka_test::quick_engine(), sink);
  ASSERT_TRUE(eventually([&] { return run.ended(); }, seconds{30}));
  const auto ending = run.wait();
  ASSERT_FALSE(ending.has_value());
  EXPECT_EQ(ending.error().code, Errc::invalid_argument);
  EXPECT_NE(ending.error().text.find("session_timeout: 2s is refused"), std::string::npos)
      << ending.error().text;
}

TEST_F(KafkaMembers, AMissingTopicOfDeadLettersIsToldByCheckAndCreatedByRun) {
  const PipelineFolder one = folder();
  const std::string missing = fmt::format("would create the topic {}-dead", topic_);
  for (int i = 0; i < 2; ++i) {  // Asking does not create it.
    const auto checked = one.check();
    EXPECT_EQ(checked.exit_code, 0) << checked.err;
    EXPECT_NE(checked.out.find(missing), std::string::npos) << checked.out;
  }
  const auto applied = one.check({"--apply"});
  EXPECT_EQ(applied.exit_code, 0) << applied.err;
  EXPECT_NE(applied.out.find(fmt::format("created the topic {}-dead", topic_)), std::string::npos);
  const auto again = one.check();
  EXPECT_EQ(again.out.find("the topic"), std::string::npos) << again.out;
}

}  // namespace
}  // namespace baton::pipeline
