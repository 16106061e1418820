#include "storage/log/partition_log.h"

#include "core/stream/big_endian.h"
#include "storage/log/partition_fixture.h"

namespace baton {
namespace {

using batch_samples::batch_of;
using batch_samples::kTime;
using batch_samples::plain_batch;

class PartitionLogTest : public PartitionTest {};

ProducerStamp stamp(std::int32_t sequence, std::int16_t epoch = 0) {
  return {ProducerId{7}, ProducerEpoch{epoch}, Sequence32{sequence}};
}
std::string from_producer(int count, std::int32_t sequence, std::int16_t epoch = 0) {
  return plain_batch(count, 20, kTime.value, stamp(sequence, epoch));
}

TEST_F(PartitionLogTest, BatchesAreStoredAsTheyCameBehindEachOther) {
  const Log log = open();
  const std::string first = batch_of(batch_samples::records());
  const std::string second = batch_of(batch_samples::records(), Compression::zstd);
  EXPECT_EQ(append(*log, first).base_offset, Offset{0});
  EXPECT_EQ(append(*log, second).base_offset, Offset{5});
  sync_and_publish(*log);

  PartitionReader reader = log->reader();
  const auto batches = reader.read(Offset{0}, 1 << 20U).value();

  std::string expected = first + second;
  set_base_offset(std::span(expected), Offset{0}, LeaderEpoch{3});
  set_base_offset(std::span(expected).subspan(first.size()), Offset{5}, LeaderEpoch{3});
  EXPECT_EQ(batches.bytes, expected);
  EXPECT_EQ(content("00000000000000000000.log"), expected);
  EXPECT_EQ(batches.first, Offset{0});
  EXPECT_EQ(batches.next, Offset{10});
  EXPECT_EQ(log->next(), Offset{10});
}

TEST_F(PartitionLogTest, NothingIsSeenBeforeItIsPublished) {
  const Log log = open();
  PartitionReader reader = log->reader();
  append(*log, plain_batch(2, 10));
  EXPECT_EQ(reader.next(), Offset{0});
  EXPECT_EQ(reader.read(Offset{0}, 1000)->bytes, "");
  EXPECT_EQ(reader.read(Offset{1}, 1000).error().code, Errc::offset_out_of_range);
  EXPECT_EQ(log->sync().value(), Offset{2});
  EXPECT_EQ(reader.next(), Offset{0});
  log->publish(Offset{2});
  append(*log, plain_batch(2, 10));
  EXPECT_EQ(reader.next(), Offset{2});
  EXPECT_EQ(reader.read(Offset{0}, 1 << 20U)->next, Offset{2});
  EXPECT_EQ(log->describe().next, Offset{4});
  log->publish(Offset{1});
  EXPECT_EQ(reader.next(), Offset{2});
}

TEST_F(PartitionLogTest, ManyBatchesAreOneWrite) {
  const Log log = open();
  const std::string batch = plain_batch(2, 10);
  const CheckedBatch checked = check_batch(batch, {}, kNow).value();
  disk_.fail_write_after(1);

  const auto outcomes =
      log->append(std::vector<CheckedBatch>(10, checked), LeaderEpoch{0}, kNow).value();

  ASSERT_EQ(outcomes.size(), 10U);
  EXPECT_EQ(outcomes.back().base_offset, Offset{18});
  EXPECT_FALSE(try_append(*log, batch).has_value());
}

TEST_F(PartitionLogTest, ARepeatedBatchGetsItsFirstResult) {
  const Log log = open();
  EXPECT_EQ(append(*log, plain_batch(4, 10)).base_offset, Offset{0});
  EXPECT_EQ(append(*log, from_producer(2, 0)).base_offset, Offset{4});
  const AppendOutcome again = append(*log, from_producer(2, 0));
  EXPECT_EQ(again.verdict, ProducerVerdict::duplicate);
  EXPECT_EQ(again.base_offset, Offset{4});
  EXPECT_TRUE(again.stored());
  EXPECT_EQ(log->next(), Offset{6});
  const AppendOutcome gap = append(*log, from_producer(2, 4));
  EXPECT_EQ(gap.verdict, ProducerVerdict::gap);
  EXPECT_FALSE(gap.stored());
  EXPECT_NE(gap.text.find("2 is expected"), std::string::npos);
  log->fence(ProducerId{7}, ProducerEpoch{1}, kNow);
  EXPECT_EQ(append(*log, from_producer(2, 2)).verdict, ProducerVerdict::stale_epoch);
  EXPECT_EQ(append(*log, from_producer(2, 0, 1)).base_offset, Offset{6});
}

TEST_F(PartitionLogTest, ARepeatWithinOneAppendIsNoticed) {
  const Log log = open();
  const std::string batch = from_producer(2, 0);
  const std::string next = from_producer(2, 2);
  const CheckedBatch one = check_batch(batch, {}, kNow).value();
  const CheckedBatch two = check_batch(next, {}, kNow).value();
  const auto outcomes =
      log->append(std::vector<CheckedBatch>{one, one, two}, LeaderEpoch{0}, kNow).value();
  EXPECT_EQ(outcomes[1].verdict, ProducerVerdict::duplicate);
  EXPECT_EQ(outcomes[1].base_offset, Offset{0});
  EXPECT_EQ(outcomes[2].base_offset, Offset{2});
}

TEST_F(PartitionLogTest, AFullSegmentIsClosedWithItsIndexes) {
  const Log log = open();
  fill(*log, 30);  // About 1.3 KB each: 12 fit.
  EXPECT_EQ(log->describe().segments, 3U);
  EXPECT_EQ(names(), (std::vector<std::string>{
                         "00000000000000000000.index", "00000000000000000000.log",
                         "00000000000000000000.timeindex", "00000000000000000036.index",
                         "00000000000000000036.log", "00000000000000000036.snapshot",
                         "00000000000000000036.timeindex", "00000000000000000072.log",
                         "00000000000000000072.snapshot"}));
  EXPECT_EQ(count_readable(*log), 90);
  // Every 4 KiB, which is after four batches: the fifth and the ninth, ending with 14 and 26.
  const std::string index = content("00000000000000000036.index");
  ASSERT_EQ(index.size(), 16U);
  const std::size_t batch_bytes = content("00000000000000000036.log").size() / 12;
  EXPECT_EQ(load_big<std::int32_t>(index.data()), 14);
  EXPECT_EQ(load_big<std::int32_t>(index.data() + 4), std::int32_t(4 * batch_bytes));
  EXPECT_EQ(load_big<std::int32_t>(index.data() + 8), 26);
  const std::string times = content("00000000000000000036.timeindex");
  ASSERT_EQ(times.size(), 36U);
  EXPECT_EQ(load_big<std::int64_t>(times.data()), kTime.value - 10'000'000 + (36 + 12) * 1000);
  EXPECT_EQ(load_big<std::int32_t>(times.data() + 8), 14);
  EXPECT_EQ(load_big<std::int32_t>(times.data() + 32), 35);
}

TEST_F(PartitionLogTest, AFullDiskRefusesAndNothingHasHappened) {
  const Log log = open();
  fill(*log, 3);
  append(*log, from_producer(2, 0));
  sync_and_publish(*log);
  const std::string before = content("00000000000000000000.log");
  disk_.set_capacity(disk_.bytes_used() + 100);

  const auto refused = try_append(*log, from_producer(20, 2));

  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::disk_full);
  EXPECT_EQ(content("00000000000000000000.log"), before);
  EXPECT_EQ(log->next(), Offset{11});
  disk_.set_capacity(~std::uint64_t{0});
  // The producer's sequence number was not used up either.
  EXPECT_EQ(append(*log, from_producer(20, 2)).base_offset, Offset{11});
  sync_and_publish(*log);
  EXPECT_EQ(count_readable(*log), 31);
}

TEST_F(PartitionLogTest, AFullDiskAtARollRefusesToo) {
  const Log log = open();
  fill(*log, 12);
  disk_.set_capacity(disk_.bytes_used() + 20);
  const auto refused = try_append(*log, plain_batch(3, 400));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::disk_full);
  EXPECT_EQ(count_readable(*log), 36);
  disk_.set_capacity(~std::uint64_t{0});
  EXPECT_EQ(append(*log, plain_batch(3, 400)).base_offset, Offset{36});
  sync_and_publish(*log);
  EXPECT_EQ(log->describe().segments, 2U);
  EXPECT_EQ(count_readable(*log), 39);
}

TEST_F(PartitionLogTest, AfterAFailedWriteOrSyncNothingIsConfirmedAnyMore) {
  Log log = open();
  disk_.fail_write_after(0);
  EXPECT_EQ(try_append(*log, plain_batch(1, 10)).error().code, Errc::io_error);
  EXPECT_EQ(try_append(*log, plain_batch(1, 10)).error().code, Errc::io_error);
  EXPECT_EQ(log->sync().error().code, Errc::io_error);

  log = open();
  append(*log, plain_batch(1, 10));
  disk_.fail_sync_after(0);
  EXPECT_EQ(log->sync().error().code, Errc::io_error);
  EXPECT_EQ(log->sync().error().code, Errc::io_error);
  EXPECT_EQ(try_append(*log, plain_batch(1, 10)).error().code, Errc::io_error);
}

TEST_F(PartitionLogTest, ASyncWithNothingNewCostsNothing) {
  const Log log = open();
  fill(*log, 1);
  const std::uint64_t before = disk_.syncs();
  EXPECT_EQ(log->sync().value(), Offset{3});
  EXPECT_EQ(disk_.syncs(), before);
}

TEST_F(PartitionLogTest, RetentionBySizeTakesWholeSegments) {
  const Log log = open();
  fill(*log, 40);
  const PartitionDescription before = log->describe();
  ASSERT_EQ(before.segments, 4U);
  log->set_retention({.age = {}, .bytes = 2 * kSegmentBytes});
  EXPECT_EQ(log->drop_old_segments(kNow)->size(), 1U);
  log->set_retention({.age = {}, .bytes = 1});

  const auto dropped = log->drop_old_segments(kNow).value();

  ASSERT_EQ(dropped.size(), 2U);
  EXPECT_EQ(dropped[0].first, Offset{36});
  EXPECT_EQ(dropped[1].next, Offset{108});
  EXPECT_EQ(log->reader().first(), Offset{108});
  EXPECT_EQ(count_readable(*log), 12);
  EXPECT_EQ(names(), (std::vector<std::string>{"00000000000000000108.log",
                                               "00000000000000000108.snapshot"}));
  const auto gone = log->reader().read(Offset{50}, 1000);
  ASSERT_FALSE(gone.has_value());
  EXPECT_EQ(gone.error().code, Errc::offset_out_of_range);
  EXPECT_EQ(gone.error().text, "offset 50; the first is 108, the next is 120");
}

TEST_F(PartitionLogTest, RetentionByAgeEmptiesAPartitionThatNobodyWritesTo) {
  const Log log = open();
  fill(*log, 20);
  log->set_retention({.age = std::chrono::hours{24}, .bytes = {}});
  EXPECT_TRUE(log->drop_old_segments(kNow)->empty());

  const auto dropped = log->drop_old_segments(kNow + std::chrono::hours{25}).value();

  EXPECT_EQ(dropped.size(), 2U);
  const PartitionDescription after = log->describe();
  EXPECT_EQ(after.first, Offset{60});
  EXPECT_EQ(after.next, Offset{60});
  EXPECT_EQ(after.bytes, 0U);
  EXPECT_EQ(append(*log, plain_batch(1, 10)).base_offset, Offset{60});
}

TEST_F(PartitionLogTest, WhatIsBeingReadStays) {
  const Log log = open();
  fill(*log, 40);
  log->set_retention({.age = {}, .bytes = 1});
  PartitionReader slow = log->reader();
  const Offset at = slow.read(Offset{40}, 2000)->next;  // In the second segment.

  EXPECT_EQ(log->drop_old_segments(kNow)->size(), 1U);

  EXPECT_TRUE(slow.read(at, 2000).has_value());
  EXPECT_TRUE(log->drop_old_segments(kNow)->empty());
  slow.release();
  EXPECT_EQ(log->drop_old_segments(kNow)->size(), 2U);
  EXPECT_FALSE(slow.read(at, 2000).has_value());
}

TEST_F(PartitionLogTest, WhatNobodyCouldReadYetStays) {
  const Log log = open();
  for (int i = 0; i < 40; ++i) append(*log, plain_batch(3, 400));
  log->set_retention({.age = {}, .bytes = 1});
  EXPECT_TRUE(log->drop_old_segments(kNow)->empty());
  sync_and_publish(*log);
  EXPECT_EQ(log->drop_old_segments(kNow)->size(), 3U);
}

TEST_F(PartitionLogTest, OldProducersAreForgotten) {
  const Log log = open();
  append(*log, from_producer(1, 0));
  EXPECT_EQ(log->describe().producers, 1U);
  ASSERT_TRUE(log->drop_old_segments(kNow + std::chrono::hours{24 * 8}).has_value());
  EXPECT_EQ(log->describe().producers, 0U);
}

TEST_F(PartitionLogTest, ARemovedPartitionLeavesNoFiles) {
  Log log = open();
  fill(*log, 20);
  PartitionReader reader = log->reader();
  log.reset();
  ASSERT_TRUE(remove_partition(disk_, kFolder).has_value());
  disk_.crash();
  EXPECT_TRUE(names().empty());
  EXPECT_TRUE(remove_partition(disk_, "absent").has_value());
  EXPECT_EQ(open()->next(), Offset{0});
}

TEST_F(PartitionLogTest, SettingsAndSizesHaveLimits) {
  options_.segment_bytes = 100;
  EXPECT_EQ(try_open().error().code, Errc::invalid_argument);
  options_ = {};
  options_.index_interval_bytes = 0;
  EXPECT_EQ(try_open().error().code, Errc::invalid_argument);
}

}  // namespace
}  // namespace baton
