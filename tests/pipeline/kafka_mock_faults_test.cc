// KafkaSource, its producer and its dead letters when a mocked cluster misbehaves.

#include <array>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "e2e/process.h"
#include "pipeline/kafka/kafka_dead_letters.h"
#include "pipeline/kafka_mock.h"
#include "pipeline/kafka_testing.h"

namespace baton::pipeline::kafka_test {
namespace {

using e2e::Clock;
using e2e::eventually;

class KafkaFaultsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    topic_ = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    mock_.create(topic_, 2);
    view_ = std::make_unique<KafkaView>(mock_.brokers(), topic_, "group-" + topic_);
  }
  KafkaSourceOptions source() { return source_of(mock_, topic_); }
  void produce(int count, std::size_t bytes = 20) {
    kafka_test::produce(mock_.brokers(), topic_, count, bytes);
  }
  bool sink_has(std::size_t count) {
    return eventually([&] { return sink_.size() >= count; }, seconds(30));
  }
  bool commits_everything() {
    return eventually([&] { return view_->all_committed(); });
  }

  KafkaMock mock_;
  std::string topic_;
  std::unique_ptr<KafkaView> view_;
  MemorySink sink_;
};

// Records in flight belong to other members by then.
TEST_F(KafkaFaultsTest, ALostAssignmentCommitsNothing) {
  produce(200);
  KafkaRun run(source(), quick_engine(), sink_);
  ASSERT_TRUE(sink_has(200));
  ASSERT_TRUE(commits_everything());
  const std::array before = {view_->committed(0), view_->committed(1)};
  const auto epochs = run.epochs();
  sink_.hanging = true;
  produce(400);
  ASSERT_TRUE(eventually([&] { return run.engine().status().window_records >= 100; }));
  mock_.fail(KafkaMock::kHeartbeat, {RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID});
  ASSERT_TRUE(eventually([&] { return run.count_in_log("taken our partitions away") > 0; }));
  // The source does not wait for lost partitions, although they have records in flight.
  ASSERT_TRUE(eventually([&] { return run.epochs().empty(); }, seconds(2)));
  sink_.hanging = false;  // They end late, under an assignment that is over.
  EXPECT_EQ(view_->committed(0), before[0]);
  EXPECT_EQ(view_->committed(1), before[1]);
  // The same partitions are assigned again, with all their records.
  ASSERT_TRUE(run.has_partitions(2));
  for (const auto& [partition, epoch] : run.epochs()) EXPECT_GT(epoch, epochs.at(partition));
  EXPECT_TRUE(sink_has(600));
  EXPECT_TRUE(commits_everything());
  ASSERT_TRUE(run.stop().has_value());
  EXPECT_EQ(sink_.size(), 600U);
}

TEST_F(KafkaFaultsTest, BrokersThatAreDownAreWaitedFor) {
  produce(200);
  KafkaRun run(source(), quick_engine(), sink_);
  ASSERT_TRUE(sink_has(200));
  mock_.set_down(true);
  ASSERT_TRUE(eventually([&] { return run.count_in_log("source OUT") > 0; }));
  std::this_thread::sleep_for(seconds(2));
  EXPECT_FALSE(run.ended());
  EXPECT_EQ(run.count_in_log("source OUT"), 1U);
  mock_.set_down(false);
  produce(200);
  EXPECT_TRUE(sink_has(400));
  EXPECT_TRUE(commits_everything());
  const auto ending = run.stop();
  ASSERT_TRUE(ending.has_value());
  EXPECT_EQ(*ending, Ending::drained);
  EXPECT_EQ(sink_.size(), 400U);
}

TEST_F(KafkaFaultsTest, FailingFetchesAndCommitsAreTriedAgain) {
  produce(300);
  KafkaRun run(source(), quick_engine(), sink_);
  ASSERT_TRUE(sink_has(300));
  mock_.fail(KafkaMock::kFetch,
             {RD_KAFKA_RESP_ERR_NOT_LEADER_FOR_PARTITION, RD_KAFKA_RESP_ERR__TRANSPORT,
              RD_KAFKA_RESP_ERR_LEADER_NOT_AVAILABLE, RD_KAFKA_RESP_ERR__TRANSPORT});
  mock_.fail(KafkaMock::kOffsetCommit,
             {RD_KAFKA_RESP_ERR_COORDINATOR_NOT_AVAILABLE, RD_KAFKA_RESP_ERR__TRANSPORT,
              RD_KAFKA_RESP_ERR_COORDINATOR_LOAD_IN_PROGRESS});
  produce(300);
  EXPECT_TRUE(sink_has(600));
  EXPECT_TRUE(commits_everything());
  ASSERT_TRUE(run.stop().has_value());
  EXPECT_EQ(sink_.size(), 600U);
}

// The mock keeps 5 MB of each partition: older records are gone.
TEST_F(KafkaFaultsTest, AnOffsetThatIsGoneHaltsOrIsSkippedAsTold) {
  produce(15'000, 1000);
  const KafkaRange range = view_->range(0);
  ASSERT_GT(range.first, 10);
  view_->commit(0, 10);
  view_->commit(1, view_->range(1).first);
  {
    KafkaRun run(source(), quick_engine(), sink_);
    ASSERT_TRUE(eventually([&] { return run.ended(); }));
    const auto ending = run.wait();
    ASSERT_FALSE(ending.has_value());
    EXPECT_EQ(ending.error().code, Errc::offset_out_of_range);
    EXPECT_EQ(ending.error().text,
              fmt::format("topic '{}', partition 0: offset 10 is due, but there are only those "
                          "from {} to before {}",
                          topic_, range.first, range.next));
  }
  EXPECT_EQ(view_->committed(0), 10);
  EXPECT_EQ(sink_.contiguous(0, range.first), range.first);
  KafkaSourceOptions forgiving = source();
  forgiving.from = "first";
  KafkaRun run(forgiving, quick_engine(), sink_);
  ASSERT_TRUE(eventually([&] { return sink_.contiguous(0, range.first) == range.next; }));
  EXPECT_EQ(run.count_in_log(fmt::format("going on with {}", range.first)), 1U);
  EXPECT_TRUE(commits_everything());
  ASSERT_TRUE(run.stop().has_value());
}

TEST_F(KafkaFaultsTest, ATopicThatGoesAwayIsAnError) {
  produce(10);
  KafkaSourceOptions options = source();
  options.missing_topic_patience = seconds(1);
  options.properties.emplace_back("topic.metadata.refresh.interval.ms", "500");
  KafkaRun run(options, quick_engine(), sink_);
  ASSERT_TRUE(sink_has(10));
  mock_.set_topic_error(topic_, RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
  ASSERT_TRUE(eventually([&] { return run.ended(); }));
  const auto ending = run.wait();
  ASSERT_FALSE(ending.has_value());
  EXPECT_EQ(ending.error().code, Errc::not_found);
  EXPECT_NE(ending.error().text.find(topic_), std::string::npos);
}

TEST_F(KafkaFaultsTest, ACheckSaysWhatIsThereAndWhatIsNot) {
  const auto good = KafkaSource(source()).check();
  ASSERT_TRUE(good.has_value()) << to_string(good.error());
  EXPECT_EQ((*good)[0].text,
            fmt::format("reads kafka:{} with 2 partitions, as group group-{}", topic_, topic_));
  EXPECT_EQ(good->size(), 2U);  // And that it has never committed.

  mock_.set_topic_error("other", RD_KAFKA_RESP_ERR_UNKNOWN_TOPIC_OR_PART);
  KafkaSourceOptions other = source();
  other.topic = "other";
  const auto missing = KafkaSource(other).check();
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, Errc::not_found);

  KafkaSourceOptions nowhere = source();
  nowhere.brokers = "127.0.0.1:1";
  const auto begin = Clock::now();
  const auto unreachable = KafkaSource(nowhere).check();
  ASSERT_FALSE(unreachable.has_value());
  EXPECT_EQ(unreachable.error().code, Errc::unavailable);
  EXPECT_NE(unreachable.error().text.find("127.0.0.1:1"), std::string::npos);
  EXPECT_LT(Clock::now() - begin, seconds(12));
}

TEST_F(KafkaFaultsTest, PropertiesThatPromisesHangOnAreRefused) {
  for (const char* name : {"group.id", "enable.auto.offset.store", "partition.assignment.strategy",
                           "auto.offset.reset", "bootstrap.servers", "metadata.broker.list",
                           "enable.auto.commit", "session.timeout.ms"}) {
    KafkaSourceOptions options = source();
    options.properties = {{name, "1"}};
    const auto refused = KafkaSource(options).check();
    ASSERT_FALSE(refused.has_value()) << name;
    EXPECT_EQ(refused.error().code, Errc::invalid_argument);
    EXPECT_NE(refused.error().text.find(fmt::format("property {} cannot be set", name)),
              std::string::npos)
        << refused.error().text;
  }
  KafkaSourceOptions options = source();
  options.properties = {{"no.such", "1"}};
  EXPECT_EQ(KafkaSource(options).check().error().code, Errc::invalid_argument);
  options = source();
  options.from = "last";
  EXPECT_EQ(KafkaSource(options).check().error().code, Errc::invalid_argument);
}

Record letter_record() {
  Record record;
  record.partition = 3;
  record.offset = 77;
  record.key = std::string("k\0y", 3);
  record.value = std::string("v\0\xff", 3);
  record.headers = {{"trace", std::string("\x01\0", 2)}, {"baton-redrives", "1"}};
  return record;
}

TEST_F(KafkaFaultsTest, ADeadLetterIsWrittenOnlyWhenItIsConfirmed) {
  auto letters =
      KafkaDeadLetters::open({.brokers = mock_.brokers(), .topic = topic_, .patience = seconds(2)});
  ASSERT_TRUE(letters.has_value()) << to_string(letters.error());
  EXPECT_EQ((*letters)->name(), "kafka:" + topic_);
  const Record record = letter_record();
  const std::vector<DeadLetter> two(
      2, DeadLetter{
             .record = &record, .code = "22001", .source = "s", .pipeline = "p", .redrives = 1});
  ASSERT_TRUE((*letters)->write(two).has_value());
  const auto kept = view_->read(2);
  ASSERT_EQ(kept.size(), 2U);
  EXPECT_EQ(kept[0].key, record.key);
  EXPECT_EQ(kept[0].value, record.value);
  auto headers = two[0].headers();
  headers.insert(headers.begin(), record.headers[0]);
  EXPECT_EQ(kept[0].headers, headers);

  mock_.set_down(true);
  const auto begin = Clock::now();
  const Status down = (*letters)->write(two);
  EXPECT_FALSE(down.has_value());
  EXPECT_LT(Clock::now() - begin, seconds(5));
  mock_.set_down(false);
  EXPECT_TRUE(eventually([&] { return (*letters)->write(two).has_value(); }));
  EXPECT_GE(view_->records(), 4);

  // One of them is refused: none of them counts.
  mock_.fail(KafkaMock::kProduce, {RD_KAFKA_RESP_ERR_MSG_SIZE_TOO_LARGE});
  EXPECT_FALSE((*letters)->write(std::span(two).first(1)).has_value());
  EXPECT_TRUE(eventually([&] { return (*letters)->write(two).has_value(); }));
}

TEST_F(KafkaFaultsTest, AFlushSaysWhatWasNotDelivered) {
  auto producer = KafkaProducer::open({.brokers = mock_.brokers(),
                                       .topic = topic_,
                                       .delivery_timeout = seconds(1),
                                       .queued_records_max = 10});
  ASSERT_TRUE(producer.has_value());
  for (int i = 0; i < 100; ++i) {  // Ten times what fits.
    ASSERT_TRUE((*producer)->send("key", "value").has_value());
  }
  EXPECT_TRUE((*producer)->flush(seconds(5)).has_value());
  EXPECT_EQ(view_->records(), 100);
  mock_.set_down(true);
  ASSERT_TRUE((*producer)->send("key", "value").has_value());
  const Status late = (*producer)->flush(milliseconds(1));
  ASSERT_FALSE(late.has_value());
  EXPECT_EQ(late.error().code, Errc::deadline_exceeded);
  const Status failed = (*producer)->flush(seconds(5));
  ASSERT_FALSE(failed.has_value());
  EXPECT_EQ(failed.error().code, Errc::unavailable);
  EXPECT_NE(failed.error().text.find("1 records were not delivered"), std::string::npos);
  mock_.set_down(false);
}

}  // namespace
}  // namespace baton::pipeline::kafka_test
