// KafkaSource with the real engine on a real Kafka: transactions leave holes, members join and
// leave, the broker restarts.

#include <array>
#include <set>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "e2e/process.h"
#include "pipeline/kafka/kafka_config.h"
#include "pipeline/kafka_server.h"
#include "pipeline/kafka_testing.h"

namespace baton::pipeline::kafka_test {
namespace {

using e2e::eventually;

/// Records in transactions; some are aborted, and must not be seen.
class TransactionalProducer {
 public:
  TransactionalProducer(const std::string& brokers, std::string topic) : topic_(std::move(topic)) {
    handle_ =
        make_handle(
            RD_KAFKA_PRODUCER,
            make_conf({.fixed = {brokers_property(brokers), {"transactional.id", "test"}}}).value())
            .value();
    expect_good(rd_kafka_init_transactions(handle_.get(), 30'000));
  }
  void run(const std::string& prefix, int count, bool commit) {
    expect_good(rd_kafka_begin_transaction(handle_.get()));
    for (int i = 0; i < count; ++i) {
      const std::string key = fmt::format("{}-{}", prefix, i);
      std::string value = "value";  // Without one it would be a tombstone, and filtered.
      ASSERT_EQ(rd_kafka_producev(handle_.get(), RD_KAFKA_V_TOPIC(topic_.c_str()),
                                  RD_KAFKA_V_MSGFLAGS(RD_KAFKA_MSG_F_COPY),
                                  RD_KAFKA_V_KEY(key.c_str(), key.size()),
                                  RD_KAFKA_V_VALUE(value.data(), value.size()), RD_KAFKA_V_END),
                RD_KAFKA_RESP_ERR_NO_ERROR);
    }
    // Otherwise they would be discarded before a broker has seen them.
    ASSERT_EQ(rd_kafka_flush(handle_.get(), 30'000), RD_KAFKA_RESP_ERR_NO_ERROR);
    expect_good(commit ? rd_kafka_commit_transaction(handle_.get(), 30'000)
                       : rd_kafka_abort_transaction(handle_.get(), 30'000));
  }

 private:
  static void expect_good(rd_kafka_error_t* error) {
    const KafkaErrorObject owner(error);
    EXPECT_EQ(error, nullptr) << rd_kafka_error_string(error);
  }

  std::string topic_;
  KafkaHandle handle_;
};

class KafkaRealTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why = e2e::is_long_run() ? KafkaServer::missing() : "only with BATON_LONG=1";
    if (!why.empty()) {
      fmt::print("SKIPPED: {}\n", why);
      GTEST_SKIP() << why;
    }
    ASSERT_TRUE(server_.start());
  }
  [[nodiscard]] KafkaSourceOptions source() const {
    KafkaSourceOptions options;
    options.brokers = server_.brokers();
    options.topic = kTopic;
    options.group = "group";
    options.session_timeout = seconds(6);
    options.properties = {{"heartbeat.interval.ms", "500"}};
    return options;
  }
  bool sink_has(std::size_t count) {
    return eventually([&] { return sink_.size() >= count; }, seconds(60));
  }
  void produce(int count) { kafka_test::produce(server_.brokers(), kTopic, count); }

  static constexpr const char* kTopic = "orders";
  KafkaServer server_;
  MemorySink sink_;
};

TEST_F(KafkaRealTest, EveryOffsetIsAccountedForThroughRebalancesAndARestart) {
  produce(10'000);
  const KafkaView view(server_.brokers(), kTopic, "group");
  ASSERT_EQ(view.partitions(), 4U);
  sink_.slowness = milliseconds(10);
  KafkaRun first(source(), quick_engine(), sink_);
  ASSERT_TRUE(first.has_partitions(4));
  {
    KafkaRun second(source(), quick_engine(), sink_);
    ASSERT_TRUE(second.has_partitions(2));
    ASSERT_TRUE(first.has_partitions(2));
    EXPECT_LT(sink_.size(), 10'000U);  // While it is in progress.
    TransactionalProducer transactions(server_.brokers(), kTopic);
    for (int i = 0; i < 10; ++i) {
      transactions.run(fmt::format("good{}", i), 1000, true);
      transactions.run(fmt::format("bad{}", i), 100, false);
    }
    const auto left = second.stop();
    ASSERT_TRUE(left.has_value()) << to_string(left.error());
    EXPECT_EQ(*left, Ending::drained);
  }
  ASSERT_TRUE(first.has_partitions(4));
  ASSERT_TRUE(sink_has(20'000)) << sink_.size() << " records";
  // A member that gave a partition up had processed its records to the end, and committed.
  EXPECT_EQ(sink_.replays(), 0U);

  const auto epochs = first.epochs();
  produce(2000);
  ASSERT_TRUE(sink_has(20'500));
  server_.stop();
  ASSERT_TRUE(eventually([&] { return first.count_in_log("source OUT") > 0; }));
  ASSERT_TRUE(server_.start());
  produce(1000);
  EXPECT_TRUE(sink_has(23'000));
  // The last ones of each partition are neither markers nor aborted: the mark reaches the end.
  EXPECT_TRUE(eventually([&] { return view.all_committed(); }, seconds(30)));
  const auto ending = first.stop();
  ASSERT_TRUE(ending.has_value()) << to_string(ending.error());
  EXPECT_EQ(*ending, Ending::drained);
  EXPECT_EQ(sink_.size(), 23'000U);
  EXPECT_GT(view.records(), 24'000);  // With those that were aborted, and markers.
  EXPECT_TRUE(view.all_committed());
  EXPECT_EQ(first.letters(), 0U);
  for (const auto& [id, record] : sink_.rows()) {
    ASSERT_NE(record.key.substr(0, 3), "bad") << id.first << "/" << id.second;
  }
}

// Brokers accept commits during a rebalance: they must not cover what was only read.
TEST_F(KafkaRealTest, ARebalanceWhileOpenCommitsOnlyWhatIsIn) {
  produce(1000);
  const KafkaView view(server_.brokers(), kTopic, "group");
  MemorySink own(sink_);
  KafkaRun first(source(), quick_engine(), own);
  ASSERT_TRUE(sink_has(1000));
  own.set_out(true);
  produce(2000);
  ASSERT_TRUE(eventually([&] { return first.count_in_log("sink OUT") > 0; }));
  ASSERT_TRUE(eventually([&] { return first.engine().status().window_records > 100; }));
  {
    KafkaRun second(source(), quick_engine(), sink_);
    ASSERT_TRUE(second.has_partitions(2));
    ASSERT_TRUE(first.has_partitions(2));
    for (std::uint32_t i = 0; i < 4; ++i) EXPECT_LE(view.committed(i), sink_.contiguous(i)) << i;
    ASSERT_TRUE(sink_has(1500));
    ASSERT_TRUE(second.stop().has_value());
  }
  ASSERT_TRUE(first.has_partitions(4));
  own.set_out(false);
  EXPECT_TRUE(sink_has(3000));
  EXPECT_TRUE(eventually([&] { return view.all_committed(); }, seconds(30)));
  ASSERT_TRUE(first.stop().has_value());
  EXPECT_EQ(sink_.size(), 3000U);
  EXPECT_EQ(sink_.replays(), 0U);
  EXPECT_EQ(first.letters(), 0U);
}

}  // namespace
}  // namespace baton::pipeline::kafka_test
