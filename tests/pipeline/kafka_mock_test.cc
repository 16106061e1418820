// KafkaSource with the real engine on librdkafka's mock of a cluster: groups, rebalances, breakers.

#include "pipeline/kafka_mock.h"

#include <algorithm>
#include <thread>

#include <gtest/gtest.h>

#include "e2e/process.h"
#include "pipeline/kafka/kafka_config.h"
#include "pipeline/kafka_testing.h"

namespace baton::pipeline::kafka_test {
namespace {

using e2e::eventually;
using flow::Breaker;

class KafkaMockTest : public ::testing::Test {
 protected:
  /// Each test has a topic and a group to itself.
  void SetUp() override {
    topic_ = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    mock().create(topic_, 4);
    view_ = std::make_unique<KafkaView>(mock().brokers(), topic_, "group-" + topic_);
  }
  static KafkaMock& mock() {
    static KafkaMock one;
    return one;
  }
  KafkaSourceOptions source() { return source_of(mock(), topic_); }
  /// Membership is lost by four seconds without a poll.
  KafkaSourceOptions impatient_source() {
    KafkaSourceOptions options = source();
    options.session_timeout = seconds(4);
    options.properties.emplace_back("max.poll.interval.ms", "4000");
    return options;
  }
  void produce(int count) { kafka_test::produce(mock().brokers(), topic_, count); }
  bool sink_has(std::size_t count) {
    return eventually([&] { return sink_.size() >= count; }, seconds(30));
  }
  /// Read in this order, every committed record was written before.
  void expect_nothing_skipped() {
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::int64_t committed = view_->committed(i);
      EXPECT_LE(committed, sink_.contiguous(i)) << "partition " << i;
    }
  }
  static bool is_open(KafkaRun& run) {
    return run.engine().status().gate.state != Breaker::State::closed;
  }

  std::string topic_;
  std::unique_ptr<KafkaView> view_;
  MemorySink sink_;
};

void produce_odd_records(const std::string& brokers, const std::string& topic) {
  const KafkaHandle producer =
      make_handle(RD_KAFKA_PRODUCER, make_conf({.fixed = {brokers_property(brokers)}}).value())
          .value();
  rd_kafka_headers_t* headers = rd_kafka_headers_new(2);
  rd_kafka_header_add(headers, "bytes", -1, "\0\xff\n", 3);
  rd_kafka_header_add(headers, "bytes", -1, nullptr, 0);
  char nothing = 0;
  ASSERT_EQ(
      rd_kafka_producev(producer.get(), RD_KAFKA_V_TOPIC(topic.c_str()), RD_KAFKA_V_PARTITION(0),
                        RD_KAFKA_V_VALUE(&nothing, 0), RD_KAFKA_V_HEADERS(headers),
                        RD_KAFKA_V_TIMESTAMP(1234567), RD_KAFKA_V_END),
      RD_KAFKA_RESP_ERR_NO_ERROR);
  ASSERT_EQ(rd_kafka_producev(producer.get(), RD_KAFKA_V_TOPIC(topic.c_str()),
                              RD_KAFKA_V_PARTITION(0), RD_KAFKA_V_END),
            RD_KAFKA_RESP_ERR_NO_ERROR);
  ASSERT_EQ(rd_kafka_flush(producer.get(), 10'000), RD_KAFKA_RESP_ERR_NO_ERROR);
}

TEST_F(KafkaMockTest, EverythingIsDeliveredOnceAndCommitted) {
  produce_odd_records(mock().brokers(), topic_);
  produce(3000);
  KafkaRun run(source(), quick_engine(), sink_);
  ASSERT_TRUE(sink_has(3001));
  // While running, not only at the end.
  EXPECT_TRUE(eventually([&] { return view_->all_committed(); }));
  for (const PartitionLag& lag : run.source().ends()) {
    EXPECT_EQ(lag.end, view_->range(lag.partition).next);
  }
  EXPECT_EQ(run.source().ends().size(), 4U);
  const auto ending = run.stop();
  ASSERT_TRUE(ending.has_value()) << to_string(ending.error());
  EXPECT_EQ(*ending, Ending::drained);
  EXPECT_TRUE(view_->all_committed());
  EXPECT_EQ(sink_.size(), 3001U);
  EXPECT_EQ(sink_.replays(), 0U);
  EXPECT_FALSE(sink_.contains({0, 1})) << "it has no value: a deletion, to a compactor";
  EXPECT_EQ(run.source().name(), "kafka:" + topic_);

  const Record odd = sink_.rows().at({0, 0});
  EXPECT_EQ(odd.key, "");
  EXPECT_EQ(odd.value, "");
  EXPECT_EQ(odd.timestamp, milliseconds(1234567));
  EXPECT_EQ(odd.headers, (std::vector<std::pair<std::string, std::string>>{
                             {"bytes", std::string("\0\xff\n", 3)}, {"bytes", ""}}));
}

// A second life continues where the first one ended, even if that was before its first record.
TEST_F(KafkaMockTest, ARestartGoesOnWhereItWas) {
  KafkaSourceOptions from_next = source();
  from_next.from = "next";
  produce(100);
  {
    KafkaRun run(from_next, quick_engine(), sink_);
    ASSERT_TRUE(run.has_partitions(4));
    ASSERT_TRUE(eventually([&] { return view_->all_committed(); }));
    ASSERT_TRUE(run.stop().has_value());
  }
  EXPECT_EQ(sink_.size(), 0U);
  produce(100);
  KafkaRun run(from_next, quick_engine(), sink_);
  ASSERT_TRUE(sink_has(100));
  ASSERT_TRUE(run.stop().has_value());
  EXPECT_EQ(sink_.size(), 100U);
  EXPECT_TRUE(view_->all_committed());
}

// A member that waits for room does not poll, and one that does not poll is removed from the group.
TEST_F(KafkaMockTest, BackPressureCostsNeitherMembershipNorMemory) {
  produce(3000);
  sink_.hanging = true;
  EngineOptions engine = quick_engine();
  engine.window_records = 100;
  KafkaRun run(impatient_source(), engine, sink_);
  ASSERT_TRUE(run.has_partitions(4));
  const auto epochs = run.epochs();
  ASSERT_TRUE(eventually([&] { return run.engine().status().window_records == 100; }));
  std::this_thread::sleep_for(seconds(6));
  EXPECT_EQ(run.engine().status().window_records, 100U);
  EXPECT_EQ(run.epochs(), epochs);
  sink_.hanging = false;
  EXPECT_TRUE(sink_has(3000));
  EXPECT_EQ(run.epochs(), epochs);
  ASSERT_TRUE(run.stop().has_value());
  EXPECT_EQ(sink_.replays(), 0U);
  EXPECT_TRUE(view_->all_committed());
}

TEST_F(KafkaMockTest, AnOpenBreakerPausesAndKeepsTheMembership) {
  produce(1000);
  KafkaRun run(impatient_source(), quick_engine(), sink_);
  ASSERT_TRUE(sink_has(1000));
  const auto epochs = run.epochs();
  sink_.set_out(true);
  produce(2000);
  ASSERT_TRUE(eventually([&] { return is_open(run); }));
  std::this_thread::sleep_for(seconds(6));
  EXPECT_EQ(run.epochs(), epochs);
  EXPECT_LE(run.engine().status().window_records, quick_engine().window_records);
  EXPECT_EQ(sink_.size(), 1000U);
  expect_nothing_skipped();
  // The lag is asked for even while nothing is fetched.
  EXPECT_TRUE(eventually([&] {
    std::int64_t sum = 0;
    for (const PartitionLag& lag : run.source().ends()) sum += lag.end;
    return sum == 3000;
  }));
  sink_.set_out(false);
  EXPECT_TRUE(sink_has(3000));
  EXPECT_TRUE(eventually([&] { return view_->all_committed(); }));
  EXPECT_EQ(run.epochs(), epochs);
  EXPECT_EQ(run.letters(), 0U);
  ASSERT_TRUE(run.stop().has_value());
  EXPECT_EQ(sink_.replays(), 0U);
}

// Unlike brokers, the mock refuses commits during a rebalance: here, records may be written again.
TEST_F(KafkaMockTest, ARebalanceWhileHealthyLosesNothing) {
  sink_.slowness = milliseconds(2);
  KafkaRun first(source(), quick_engine(), sink_);
  ASSERT_TRUE(first.has_partitions(4));
  const auto epochs = first.epochs();
  std::jthread producing([&] {
    for (int i = 0; i < 20; ++i) {
      produce(200);
      std::this_thread::sleep_for(milliseconds(200));
    }
  });
  {
    KafkaRun second(source(), quick_engine(), sink_);
    ASSERT_TRUE(second.has_partitions(2));
    ASSERT_TRUE(first.has_partitions(2));
    expect_nothing_skipped();
    const std::size_t had = sink_.size();
    ASSERT_TRUE(sink_has(std::min<std::size_t>(had + 300, 4000)));
    ASSERT_TRUE(second.stop().has_value());
  }
  producing.join();
  ASSERT_TRUE(first.has_partitions(4));
  for (const auto& [partition, epoch] : first.epochs()) {
    EXPECT_GT(epoch, epochs.at(partition));
    // Commits of the former life change nothing.
    const Status late = first.source().commit(partition, epochs.at(partition), 1);
    ASSERT_FALSE(late.has_value());
    EXPECT_EQ(late.error().code, Errc::stale_epoch);
  }
  EXPECT_TRUE(sink_has(4000));
  EXPECT_TRUE(eventually([&] { return view_->all_committed(); }));
  const auto ending = first.stop();
  ASSERT_TRUE(ending.has_value());
  EXPECT_EQ(*ending, Ending::drained);
  EXPECT_EQ(sink_.size(), 4000U);
  EXPECT_TRUE(view_->all_committed());
}

// The member whose sink is unavailable lets go at once, and commits only what is in the sink.
TEST_F(KafkaMockTest, ARebalanceWhileOpenLosesNothing) {
  produce(1000);
  MemorySink own(sink_);
  KafkaRun first(source(), quick_engine(), own);
  ASSERT_TRUE(sink_has(1000));
  own.set_out(true);
  produce(2000);
  ASSERT_TRUE(eventually([&] { return is_open(first); }));
  {
    KafkaRun second(source(), quick_engine(), sink_);
    ASSERT_TRUE(second.has_partitions(2));
    expect_nothing_skipped();
    ASSERT_TRUE(eventually([&] {
      return std::ranges::all_of(second.epochs(), [&](const auto& one) {
        return sink_.contiguous(one.first) == view_->range(one.first).next;
      });
    }));
    ASSERT_TRUE(second.stop().has_value());
  }
  ASSERT_TRUE(first.has_partitions(4));
  EXPECT_TRUE(is_open(first));
  const std::size_t had = sink_.size();
  EXPECT_LT(had, 3000U);
  expect_nothing_skipped();
  own.set_out(false);
  EXPECT_TRUE(sink_has(3000));
  EXPECT_TRUE(eventually([&] { return view_->all_committed(); }));
  ASSERT_TRUE(first.stop().has_value());
  EXPECT_EQ(sink_.size(), 3000U);
  EXPECT_EQ(first.letters(), 0U);
}

// The sink must say where to begin, and is unavailable: the partitions are kept, and it is asked
// again.
TEST_F(KafkaMockTest, ASinkThatIsOutAtTheAssignmentIsAskedAgain) {
  produce(2000);
  sink_.claimable = 0;
  sink_.begin = 50;
  EngineOptions engine = quick_engine();
  engine.exactly_once = true;
  KafkaRun run(source(), engine, sink_);
  ASSERT_TRUE(eventually([&] { return sink_.claims >= 5; }));
  EXPECT_EQ(sink_.size(), 0U);
  // Some come first; the others do not take from them what they had.
  sink_.claimable = 2;
  ASSERT_TRUE(run.has_partitions(2));
  ASSERT_TRUE(sink_has(100));
  sink_.claimable = 4;
  ASSERT_TRUE(run.has_partitions(4));
  ASSERT_TRUE(sink_has(2000 - (4 * 50)));
  EXPECT_TRUE(eventually([&] { return view_->all_committed(); }));
  ASSERT_TRUE(run.stop().has_value());
  EXPECT_EQ(sink_.size(), 2000U - (4U * 50U));
  EXPECT_EQ(sink_.replays(), 0U);
  for (const auto& [id, record] : sink_.rows()) EXPECT_GE(id.second, 50);
}

}  // namespace
}  // namespace baton::pipeline::kafka_test
