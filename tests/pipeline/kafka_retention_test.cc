// Records in flight that the topic no longer has: they exist nowhere but in the pipeline, so no
// event of the group may drop them. On a mocked cluster, which keeps 5 MB of each partition.

#include <algorithm>
#include <atomic>
#include <map>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "e2e/process.h"
#include "pipeline/kafka_mock.h"
#include "pipeline/kafka_testing.h"

namespace baton::pipeline::kafka_test {
namespace {

using e2e::eventually;

constexpr int kInHand = 2000;

class KafkaRetentionTest : public ::testing::Test {
 protected:
  void SetUp() override {
    topic_ = ::testing::UnitTest::GetInstance()->current_test_info()->name();
    mock_.create(topic_, 2);
    view_ = std::make_unique<KafkaView>(mock_.brokers(), topic_, "group-" + topic_);
  }
  KafkaSourceOptions source(const std::string& from) {
    KafkaSourceOptions options = source_of(mock_, topic_);
    options.from = from;
    return options;
  }
  static EngineOptions impatient() {
    EngineOptions options = quick_engine();
    options.revoke_wait = milliseconds(1);
    options.window_records = kInHand;
    return options;
  }
  void produce(int count, std::size_t bytes = 20) {
    kafka_test::produce(mock_.brokers(), topic_, count, bytes);
  }
  bool commits_everything() {
    return eventually([&] { return view_->all_committed(); });
  }
  /// Leaves `run` with records in flight that the topic no longer has, and with an unavailable
  /// sink.
  void outlive_the_retention(KafkaRun& run) {
    sink_.hanging = true;
    produce(kInHand);
    ASSERT_TRUE(eventually([&] { return run.engine().status().window_records == kInHand; }));
    sink_.set_out(true);
    sink_.hanging = false;
    ASSERT_TRUE(eventually([&] { return !run.engine().status().gate.why.empty(); }, seconds(30)));
    produce(15'000, 1000);
    for (const auto& one : run.engine().status().partitions) {
      in_hand_[one.partition] =
          one.progress.committable + static_cast<std::int64_t>(one.progress.in_flight);
      left_[one.partition] = view_->range(one.partition);
      ASSERT_GT(left_[one.partition].first, in_hand_[one.partition]);
    }
    ASSERT_EQ(left_.size(), 2U);
    ASSERT_EQ(in_hand_[0] + in_hand_[1], kInHand);
  }
  /// The offset in the text "partition 0: offset 123 is due".
  static std::int64_t offset_due(const std::string& text, std::uint32_t partition) {
    const std::string before = fmt::format("partition {}: offset ", partition);
    const std::size_t place = text.find(before);
    return place == std::string::npos ? -1 : std::stoll(text.substr(place + before.size()));
  }

  KafkaMock mock_;
  std::string topic_;
  std::unique_ptr<KafkaView> view_;
  MemorySink sink_;
  std::map<std::uint32_t, std::int64_t> in_hand_;  // By partition: every record below this.
  std::map<std::uint32_t, KafkaRange> left_;
};

TEST_F(KafkaRetentionTest, WhatIsInHandIsWrittenBeforeAGapIsSkipped) {
  KafkaRun run(source("first"), impatient(), sink_);
  ASSERT_TRUE(run.has_partitions(2));
  ASSERT_NO_FATAL_FAILURE(outlive_the_retention(run));
  sink_.slowness = milliseconds(300);  // So that they are in flight when the gap is found.
  sink_.set_out(false);
  ASSERT_TRUE(eventually([&] { return run.count_in_log(" is due") > 0 || run.ended(); }));
  sink_.slowness = milliseconds(1);
  std::int64_t in_hand = 0;
  for (const auto& [partition, left] : left_) {
    EXPECT_TRUE(eventually([&] { return sink_.contiguous(partition, left.first) == left.next; },
                           seconds(60)));
    const auto lines = run.log();
    const auto skipped = std::ranges::find_if(lines, [&](const std::string& line) {
      return offset_due(line, partition) >= 0 &&
             line.ends_with(fmt::format("going on with {}", left.first));
    });
    ASSERT_NE(skipped, lines.end());
    EXPECT_EQ(sink_.contiguous(partition), offset_due(*skipped, partition));
    in_hand += offset_due(*skipped, partition);
  }
  EXPECT_GE(in_hand, 500);
  EXPECT_GT(run.count_in_log("what was read before it comes to its end first"), 0U);
  EXPECT_TRUE(commits_everything());
  ASSERT_TRUE(run.stop().has_value());
  EXPECT_EQ(sink_.out_of_order(), 0U);
}

// A second member asks for its share while the first one's database is unavailable.
TEST_F(KafkaRetentionTest, ARebalanceWaitsForWhatIsNowhereElse) {
  KafkaRun first(source("first"), impatient(), sink_);
  ASSERT_TRUE(first.has_partitions(2));
  ASSERT_NO_FATAL_FAILURE(outlive_the_retention(first));
  MemorySink healthy(sink_);
  KafkaRun second(source("first"), impatient(), healthy);
  // The rebalance has begun: without its wait the first member would drop its records here.
  EXPECT_TRUE(eventually([&] { return first.count_in_log("is kept until they are written") > 0; },
                         seconds(15)));
  sink_.set_out(false);
  for (const auto& [partition, end] : in_hand_) {
    EXPECT_TRUE(eventually([&] { return sink_.contiguous(partition) >= end; }, seconds(20)))
        << partition << ": " << sink_.contiguous(partition) << " of " << end;
  }
  ASSERT_TRUE(second.has_partitions(1));
  ASSERT_TRUE(first.has_partitions(1));
  EXPECT_TRUE(commits_everything());
  ASSERT_TRUE(second.stop().has_value());
  ASSERT_TRUE(first.stop().has_value());
}

// The same when the group has removed the member: the partition's new owner cannot read them
// either.
TEST_F(KafkaRetentionTest, ALostAssignmentKeepsWhatIsNowhereElse) {
  KafkaRun run(source("first"), impatient(), sink_);
  ASSERT_TRUE(run.has_partitions(2));
  ASSERT_NO_FATAL_FAILURE(outlive_the_retention(run));
  mock_.fail(KafkaMock::kHeartbeat, {RD_KAFKA_RESP_ERR_UNKNOWN_MEMBER_ID});
  ASSERT_TRUE(eventually([&] { return run.count_in_log("taken our partitions away") > 0; }));
  sink_.set_out(false);
  for (const auto& [partition, end] : in_hand_) {
    EXPECT_TRUE(eventually([&] { return sink_.contiguous(partition) >= end; }, seconds(20)))
        << partition << ": " << sink_.contiguous(partition) << " of " << end;
  }
  ASSERT_TRUE(run.stop().has_value());
}

// Partition 0 ends the pipeline, and partition 1 has not yet written what it holds.
TEST_F(KafkaRetentionTest, AGapThatEndsThePipelineDropsNothingOfOtherPartitions) {
  std::atomic<bool> holding{false};
  std::atomic<int> batches{0};
  sink_.before_write = [&](std::span<const Item> items) -> MemorySink::MaybeError {
    // The first batch succeeds, because the breaker would never close otherwise.
    for (int i = 0; items.front().record.partition == 1 && holding && batches > 0 && i < 20'000;
         ++i) {
      std::this_thread::sleep_for(milliseconds(1));
    }
    if (holding && items.front().record.partition == 1) ++batches;
    return std::nullopt;
  };
  EngineOptions options = impatient();
  options.order = Order::partition;
  options.drain = milliseconds(1);
  KafkaRun run(source("error"), options, sink_);
  ASSERT_TRUE(run.has_partitions(2));
  ASSERT_NO_FATAL_FAILURE(outlive_the_retention(run));
  holding = true;
  sink_.set_out(false);
  ASSERT_TRUE(eventually(
      [&] { return sink_.contiguous(0) >= in_hand_[0] && run.count_in_log(" is due") > 0; },
      seconds(20)));
  std::this_thread::sleep_for(seconds(1));
  EXPECT_FALSE(run.ended());
  EXPECT_LT(sink_.contiguous(1), in_hand_[1]);
  holding = false;
  ASSERT_TRUE(eventually([&] { return run.ended(); }, seconds(20)));
  const auto ending = run.wait();
  ASSERT_FALSE(ending.has_value());
  EXPECT_EQ(ending.error().code, Errc::offset_out_of_range);
  for (const auto& [partition, end] : in_hand_) {
    EXPECT_GE(sink_.contiguous(partition), end) << partition;
    EXPECT_GE(view_->committed(partition), end) << partition;
  }
}

}  // namespace
}  // namespace baton::pipeline::kafka_test
