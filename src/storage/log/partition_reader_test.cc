#include "storage/log/partition_reader.h"

#include <algorithm>

#include <fmt/format.h>

#include "storage/log/partition_fixture.h"

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

// An index speeds up reads; the log is the truth.
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

/// A closed segment is not read when the log is opened: damage in it is met by readers.
class DamagedRecords : public PartitionReaderTest {
 protected:
  static inline const std::string kFirst = "00000000000000000000.log";

  /// Batches of three records, in several segments; batch `batch` of the first one is damaged.
  Log open_damaged(std::size_t batch, std::size_t byte) {
    {
      const Log log = open();
      fill(*log, 60);
    }
    const std::string bytes = content(kFirst);
    position_ = batch * BatchView::parse(bytes)->bytes().size();
    disk_.flip_bit(kFolder + "/" + kFirst, 8 * (position_ + byte));
    auto log = PartitionLog::open(
        disk_, kFolder,
        {.options = options_,
         .synced_end = Offset{180},
         .now = kNow,
         .damage_found = [this](const std::string& text) { told_.push_back(text); }});
    EXPECT_TRUE(log.has_value());
    EXPECT_GT((*log)->describe().segments, 2U);
    EXPECT_FALSE((*log)->describe().read_only.has_value());
    return *std::move(log);
  }
  void expect_damage(const Result<ReadBatches>& read) const {
    ASSERT_FALSE(read.has_value());
    EXPECT_EQ(read.error().code, Errc::malformed);
    EXPECT_NE(read.error().text.find(kFirst), std::string::npos) << read.error().text;
    EXPECT_NE(read.error().text.find(fmt::format("position {}", position_)), std::string::npos)
        << read.error().text;
  }

  std::size_t position_ = 0;
  std::vector<std::string> told_;
};

TEST_F(DamagedRecords, AChangedRecordIsAnErrorThatNamesFileAndPosition) {
  const Log log = open_damaged(2, 200);
  PartitionReader reader = log->reader();
  const auto before = reader.read(Offset{0}, 1 << 20);
  ASSERT_TRUE(before.has_value()) << to_string(before.error());
  EXPECT_EQ(before->next, Offset{6});  // Sound records before the damage can be read.
  expect_damage(reader.read(Offset{6}, 1 << 20));
  expect_damage(log->reader().read(Offset{7}, 1));
  EXPECT_EQ(log->reader().read(Offset{9}, 1)->first, Offset{9});  // And those behind it.
}

TEST_F(DamagedRecords, TheDamageIsToldOnceAndDescribed) {
  const Log log = open_damaged(2, 200);
  EXPECT_EQ(log->describe().damaged, "");
  for (int i = 0; i < 3; ++i) EXPECT_FALSE(log->reader().read(Offset{6}, 1).has_value());
  ASSERT_EQ(told_.size(), 1U);
  EXPECT_EQ(log->describe().damaged, told_[0]);
  EXPECT_FALSE(log->describe().read_only.has_value());
  append(*log, plain_batch(1, 10));  // One bad batch does not stop appends.
}

// The offset is outside the checksum.
TEST_F(DamagedRecords, AChangedOffsetIsNoticedFromWhereverOneReads) {
  for (const std::size_t byte : {7, 6, 5, 0}) {
    for (std::int64_t from = 0; from < 12; ++from) {
      disk_.crash();
      for (const std::string& name : names()) {
        ASSERT_TRUE(disk_.remove(kFolder + "/" + name).has_value());
      }
      const Log log = open_damaged(2, byte);
      PartitionReader reader = log->reader();
      for (Offset at{from}; at < Offset{12};) {
        const auto read = reader.read(at, 1);
        if (!read) {
          EXPECT_GE(at.value / 3, 2) << byte;  // Behind it, too: offsets follow from each other.
          break;
        }
        EXPECT_EQ(read->first.value, at.value / 3 * 3) << byte;
        at = read->next;
      }
    }
  }
}

TEST_F(DamagedRecords, AChangedTimeDoesNotLeadPastRecords) {
  const Log log = open_damaged(2, 35);  // The batch's greatest timestamp, far from what it was.
  const std::int64_t start = kTime.value - 10'000'000;
  const auto found = log->reader().offset_for_time(TimestampMs{start + 6000});
  ASSERT_FALSE(found.has_value());
  EXPECT_EQ(found.error().code, Errc::malformed);
  EXPECT_EQ(told_.size(), 1U);
}

TEST_F(PartitionReaderTest, ADamagedTimeIndexDoesNotLeadPastRecords) {
  {
    const Log log = open();
    fill(*log, 60);
  }
  const std::string name = "00000000000000000000.timeindex";
  const std::string good = content(name);
  const std::int64_t start = kTime.value - 10'000'000;
  for (std::uint64_t bit = 0; bit < 8 * good.size(); ++bit) {
    overwrite(name, good);
    disk_.flip_bit(kFolder + "/" + name, bit);
    const Log log = open(180);
    for (std::int64_t batch = 0; batch < 60; ++batch) {
      const auto found = log->reader().offset_for_time(TimestampMs{start + 3000 * batch});
      ASSERT_EQ(found.value(), Offset{3 * batch}) << bit;
    }
  }
}

}  // namespace
}  // namespace baton
