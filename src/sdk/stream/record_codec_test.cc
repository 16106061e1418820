#include "sdk/stream/record_codec.h"

#include <gtest/gtest.h>

#include "sdk/stream/test_records.h"

namespace baton::client {
namespace {

std::vector<std::string> values(const std::vector<Record>& records) {
  std::vector<std::string> list;
  for (const Record& record : records) list.push_back(record.value.value_or("-"));
  return list;
}

TEST(DecodeBatches, GivesBackWhatWasWritten) {
  BatchBuilder builder;
  const std::vector<baton::RecordHeader> headers{{"a", "1"}, {"a", std::nullopt}};
  ASSERT_TRUE(
      builder
          .add({.key = "k", .value = std::nullopt, .headers = headers, .timestamp = TimestampMs{7}})
          .has_value());
  std::string batch = *builder.finish();
  set_base_offset(batch, Offset{41}, LeaderEpoch{0});
  ReadFloor floor;

  const auto records = decode_batches(batch, PartitionNumber{3}, floor);

  ASSERT_TRUE(records.has_value());
  ASSERT_EQ(records->size(), 1U);
  const Record expected{.partition = PartitionNumber{3},
                        .offset = Offset{41},
                        .timestamp = RecordTime(std::chrono::milliseconds{7}),
                        .key = "k",
                        .value = std::nullopt,
                        .headers = {{"a", "1"}, {"a", std::nullopt}}};
  EXPECT_EQ(records->front(), expected);
}

// A batch is stored and sent whole: the first one may begin before the offset asked for.
TEST(DecodeBatches, LeavesOutWhatLiesBelowTheOffset) {
  const std::string bytes = batch_of({"a", "b"}, 10) + batch_of({"c", "d"}, 12);
  ReadFloor floor{.offset = Offset{13}};

  EXPECT_EQ(values(*decode_batches(bytes, PartitionNumber{}, floor)),
            std::vector<std::string>{"d"});
}

// Timestamps are the producers': a later record may be older, and must not be lost for that.
TEST(DecodeBatches, LeavesOutWhatIsOlderOnlyUntilSomethingIsNot) {
  BatchBuilder builder;
  for (const std::int64_t time : {1, 9, 2}) {
    const std::string value = std::to_string(time);
    ASSERT_TRUE(builder
                    .add({.key = std::nullopt,
                          .value = value,
                          .headers = {},
                          .timestamp = TimestampMs{time}})
                    .has_value());
  }
  const std::string bytes = *builder.finish();
  ReadFloor floor{.offset = kNoOffset, .time = RecordTime(std::chrono::milliseconds{5})};

  EXPECT_EQ(values(*decode_batches(bytes, PartitionNumber{}, floor)),
            (std::vector<std::string>{"9", "2"}));
  EXPECT_FALSE(floor.time.has_value());
}

TEST(DecodeBatches, RefusesDamage) {
  std::string bytes = batch_of({"a", "b"}, 0);
  ReadFloor floor;
  bytes.back() = static_cast<char>(bytes.back() ^ 1);
  EXPECT_EQ(decode_batches(bytes, PartitionNumber{}, floor).error().code, Errc::malformed);
  EXPECT_EQ(decode_batches("garbage", PartitionNumber{}, floor).error().code, Errc::malformed);
  bytes = batch_of({"a", "b"}, 0);
  bytes.pop_back();
  EXPECT_EQ(decode_batches(bytes, PartitionNumber{}, floor).error().code, Errc::malformed);
}

TEST(StampBatch, IsCoveredByTheChecksum) {
  std::string bytes = batch_of({"a", "b"}, 0);
  const ProducerStamp stamp{ProducerId{77}, ProducerEpoch{3}, Sequence32{12}};

  stamp_batch(bytes, stamp);

  const auto batch = BatchView::parse(bytes);
  ASSERT_TRUE(batch.has_value());
  EXPECT_TRUE(batch->check_crc().has_value());
  EXPECT_EQ(batch->header().producer, stamp);
}

}  // namespace
}  // namespace baton::client
