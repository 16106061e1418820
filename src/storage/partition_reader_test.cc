#include "storage/partition_reader.h"

#include <algorithm>

#include "storage/partition_fixture.h"

namespace baton {
namespace {

using batch_samples::batch_of;
using batch_samples::kTime;
using batch_samples::plain_batch;

class PartitionReaderTest : public PartitionTest {};

TEST_F(PartitionReaderTest, EveryOffsetIsFoundInItsBatch) {
  const Log log = open();
  fill(*log, 50);
  for (std::int64_t offset = 0; offset < 150; ++offset) {
    PartitionReader reader = log->reader();
    const auto batches = reader.read(Offset{offset}, 1).value();
    EXPECT_EQ(batches.first.value, offset / 3 * 3);
    EXPECT_EQ(batches.next.value, offset / 3 * 3 + 3);
    EXPECT_EQ(BatchView::parse(batches.bytes)->bytes().size(), batches.bytes.size());
  }
}

TEST_F(PartitionReaderTest, ReadingOnGivesEverythingOnce) {
  const Log log = open();
  fill(*log, 50);
  for (const std::size_t bytes_max : {0, 100, 1300, 5000, 1 << 20}) {
    EXPECT_EQ(count_readable(*log, bytes_max), 150) << bytes_max;
  }
}

TEST_F(PartitionReaderTest, AnAnswerIsAsLargeAsAllowed) {
  const Log log = open();
  fill(*log, 10);
  PartitionReader reader = log->reader();
  const std::size_t one = reader.read(Offset{0}, 1)->bytes.size();
  EXPECT_EQ(reader.read(Offset{0}, 4 * one)->bytes.size(), 4 * one);
  EXPECT_EQ(reader.read(Offset{0}, 4 * one - 1)->bytes.size(), 3 * one);
}

TEST_F(PartitionReaderTest, OutOfRangeNamesWhatThereIs) {
  const Log log = open();
  fill(*log, 2);
  PartitionReader reader = log->reader();
  for (const std::int64_t offset : {-1, 7, 1000}) {
    const auto read = reader.read(Offset{offset}, 1000);
    ASSERT_FALSE(read.has_value());
    EXPECT_EQ(read.error().code, Errc::offset_out_of_range);
    EXPECT_NE(read.error().text.find("the first is 0, the next is 6"), std::string::npos);
  }
  EXPECT_EQ(reader.read(Offset{6}, 1000)->bytes, "");
}

TEST_F(PartitionReaderTest, ATimeLeadsToItsFirstRecord) {
  const Log log = open();
  fill(*log, 50);  // Batch n, of three records, has the time start + 3000 n.
  const std::int64_t start = kTime.value - 10'000'000;
  const PartitionReader reader = log->reader();
  EXPECT_EQ(reader.offset_for_time(TimestampMs{0}).value(), Offset{0});
  for (std::int64_t batch = 0; batch < 50; ++batch) {
    const std::int64_t time = start + 3000 * batch;
    EXPECT_EQ(reader.offset_for_time(TimestampMs{time}).value(), Offset{3 * batch});
    EXPECT_EQ(reader.offset_for_time(TimestampMs{time + 1}).value(), Offset{3 * batch + 3});
  }
  EXPECT_EQ(reader.offset_for_time(kTime).value(), Offset{150});
}

// Producers' clocks differ: the answer is the first record that is young enough, whatever follows.
TEST_F(PartitionReaderTest, TimesThatGoBackAreFoundToo) {
  const Log log = open();
  std::vector<std::int64_t> times;
  for (std::int64_t i = 0; i < 120; ++i) {
    const std::int64_t time = kTime.value + (i * 7919) % 1000;
    times.push_back(time);
    append(*log, plain_batch(1, 500, time));
  }
  sync_and_publish(*log);
  ASSERT_GT(log->describe().segments, 3U);
  for (std::int64_t time = kTime.value - 1; time < kTime.value + 1001; time += 3) {
    const auto found = std::ranges::find_if(times, [&](auto each) { return each >= time; });
    EXPECT_EQ(log->reader().offset_for_time(TimestampMs{time})->value, found - times.begin());
  }
}

TEST_F(PartitionReaderTest, ATimeWithinACompressedBatchIsExact) {
  const Log log = open();
  std::vector<Record> list;
  for (int i = 0; i < 20; ++i) {
    list.push_back({.key = "key",
                    .value = "the same",
                    .headers = {},
                    .timestamp = TimestampMs{kTime.value + 10 * i}});
  }
  append(*log, batch_of(list, Compression::lz4));
  sync_and_publish(*log);
  EXPECT_EQ(log->reader().offset_for_time(TimestampMs{kTime.value + 95}).value(), Offset{10});
}

TEST_F(PartitionReaderTest, TimesOfUnpublishedRecordsAreNotFound) {
  const Log log = open();
  fill(*log, 2);
  for (int i = 0; i < 20; ++i) append(*log, plain_batch(1, 500));
  EXPECT_EQ(log->reader().offset_for_time(kTime).value(), Offset{6});
}

TEST_F(PartitionReaderTest, AReaderOutlivesTheWriter) {
  Log log = open();
  fill(*log, 30);
  PartitionReader reader = log->reader();
  PartitionReader copy = reader;
  log.reset();
  EXPECT_TRUE(reader.read(Offset{50}, 1000).has_value());
  EXPECT_TRUE(copy.read(Offset{50}, 1000).has_value());
}

// An index is a help, not the truth.
TEST_F(PartitionReaderTest, ADamagedIndexCostsTimeOnly) {
  const Log log = open();
  fill(*log, 30);
  std::string index = content("00000000000000000036.index");
  index[7] = static_cast<char>(index[7] + 1);
  overwrite("00000000000000000036.index", index);
  for (std::int64_t offset = 36; offset < 72; ++offset) {
    EXPECT_EQ(log->reader().read(Offset{offset}, 1)->first.value, offset / 3 * 3);
  }
}

}  // namespace
}  // namespace baton
