#include "sdk/stream/batch_accumulator.h"

#include <gtest/gtest.h>

#include "core/stream/murmur2.h"
#include "sdk/stream/stream_convert.h"
#include "sdk/stream/test_records.h"

namespace baton::client {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using Time = BatchAccumulator::Time;

constexpr Time kStart{std::chrono::seconds{100}};

bool always(PartitionNumber) { return true; }
bool never(PartitionNumber) { return false; }

class Accumulator : public testing::Test {
 protected:
  Status add(NewRecord record, Time now = kStart) {
    record.timestamp = RecordTime(milliseconds{1});
    StreamProducer::Callback callback;
    return accumulator_.add(record, record_bytes(record), callback, now, full_);
  }
  void reset(const BatchAccumulator::Options& options) { accumulator_ = BatchAccumulator(options); }

  BatchAccumulator accumulator_{{.partitions = 3, .batch_bytes = 4096, .linger = milliseconds{5}}};
  std::vector<PendingBatchPointer> full_;
};

TEST_F(Accumulator, ABatchWaitsForCompanyAndNoLonger) {
  ASSERT_TRUE(add({.value = "a"}).has_value());
  ASSERT_TRUE(add({.value = "b"}, kStart + milliseconds{3}).has_value());

  EXPECT_EQ(accumulator_.next_due(always), kStart + milliseconds{5});
  EXPECT_TRUE(accumulator_.take_due(kStart + microseconds{4'999}, false, always).empty());
  const auto due = accumulator_.take_due(kStart + milliseconds{5}, false, always);

  ASSERT_EQ(due.size(), 1U);
  EXPECT_EQ(values_of(due[0]->bytes), (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(due[0]->count, 2);
  EXPECT_EQ(due[0]->first_record, 0U);
  EXPECT_EQ(accumulator_.next_due(always), std::nullopt);
}

// While its partition may not send, a batch keeps growing.
TEST_F(Accumulator, ABatchThatCannotGoFillsUp) {
  ASSERT_TRUE(add({.value = "a"}).has_value());
  EXPECT_TRUE(accumulator_.take_due(kStart + milliseconds{9}, false, never).empty());
  EXPECT_EQ(accumulator_.next_due(never), std::nullopt);
  ASSERT_TRUE(add({.value = "b"}, kStart + milliseconds{9}).has_value());

  const auto due = accumulator_.take_due(kStart + milliseconds{9}, false, always);
  ASSERT_EQ(due.size(), 1U);
  EXPECT_EQ(due[0]->count, 2);
}

TEST_F(Accumulator, AFullBatchDoesNotWait) {
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(add({.value = std::string(900, 'x')}).has_value());

  ASSERT_EQ(full_.size(), 1U);
  EXPECT_EQ(full_[0]->count, 4);
  EXPECT_LE(full_[0]->bytes.size(), 4096U);
  EXPECT_EQ(accumulator_.oldest_record(), 4U);
}

TEST_F(Accumulator, FlushingTakesAll) {
  ASSERT_TRUE(add({.value = "a", .partition = PartitionNumber{0}}).has_value());
  ASSERT_TRUE(add({.value = "b", .partition = PartitionNumber{2}}).has_value());
  EXPECT_EQ(accumulator_.take_due(kStart, true, always).size(), 2U);
  EXPECT_EQ(accumulator_.oldest_record(), std::nullopt);
}

TEST_F(Accumulator, KeysGoWhereKafkaPutsThem) {
  for (const char* key : {"a", "b", "c", "d", "e"}) {
    ASSERT_TRUE(add({.key = key, .value = key}).has_value());
  }
  for (const auto& batch : accumulator_.take_due(kStart, true, always)) {
    for (const std::string& value : values_of(batch->bytes)) {
      EXPECT_EQ(batch->partition.value, baton::partition_of(value, 3));
    }
  }
}

// Few big batches instead of many small ones, and all partitions in the long run.
TEST_F(Accumulator, RecordsWithoutAKeyStickToAPartitionForABatch) {
  std::vector<std::uint32_t> partitions;
  for (int i = 0; i < 6; ++i) {
    ASSERT_TRUE(add({.value = "x"}).has_value());
    ASSERT_TRUE(add({.value = "y"}).has_value());
    const auto due = accumulator_.take_due(kStart, true, always);
    ASSERT_EQ(due.size(), 1U);
    EXPECT_EQ(due[0]->count, 2);
    partitions.push_back(due[0]->partition.value);
  }
  EXPECT_EQ(partitions, (std::vector<std::uint32_t>{0, 1, 2, 0, 1, 2}));
}

TEST_F(Accumulator, RefusesAPartitionThatIsNotThere) {
  const Status status = add({.value = "x", .partition = PartitionNumber{3}});
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Errc::partition_not_found);
  EXPECT_EQ(status.error().text, "partition 3; the stream has 0 to 2");
  EXPECT_EQ(accumulator_.records(), 0U);
}

TEST_F(Accumulator, ALargeRecordGoesAloneATooLargeOneNotAtAll) {
  ASSERT_TRUE(add({.value = "small", .partition = PartitionNumber{0}}).has_value());
  ASSERT_TRUE(
      add({.value = std::string(10'000, 'x'), .partition = PartitionNumber{0}}).has_value());
  ASSERT_EQ(full_.size(), 2U);
  EXPECT_EQ(full_[0]->count, 1);
  EXPECT_EQ(full_[1]->count, 1);

  EXPECT_EQ(add({.value = std::string(2'000'000, 'x')}).error().code, Errc::invalid_argument);
  EXPECT_EQ(accumulator_.records(), 2U);
}

TEST_F(Accumulator, Compresses) {
  for (const Compression compression :
       {Compression::gzip, Compression::snappy, Compression::lz4, Compression::zstd}) {
    reset({.compression = compression});
    ASSERT_TRUE(add({.value = std::string(5'000, 'x')}).has_value());
    const auto due = accumulator_.take_due(kStart, true, always);
    ASSERT_EQ(due.size(), 1U);
    EXPECT_LT(due[0]->bytes.size(), 1'000U);
    EXPECT_EQ(values_of(due[0]->bytes), std::vector<std::string>{std::string(5'000, 'x')});
  }
}

}  // namespace
}  // namespace baton::client
