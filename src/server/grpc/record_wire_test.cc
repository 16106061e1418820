#include "server/grpc/record_wire.h"

#include <string>

#include <baton/v1/streams.pb.h>
#include <gtest/gtest.h>

#include "server/session/chunk.h"

namespace baton {
namespace {

constexpr Instant kNow{1'700'000'000'000'000'000};

/// Writes each record of a batch with `encode`.
std::string encode_with(RecordEncoder encode) {
  const RecordHeader absent{.name = "h", .value = std::nullopt};
  const RecordHeader present{.name = "g", .value = ""};
  BatchBuilder builder(limits::kStreamBatchBytesMax);
  EXPECT_TRUE(builder
                  .add({.key = std::nullopt,
                        .value = "v",
                        .headers = {&absent, 1},
                        .timestamp = to_timestamp(kNow)})
                  .has_value());
  EXPECT_TRUE(builder
                  .add({.key = "",
                        .value = std::nullopt,
                        .headers = {&present, 1},
                        .timestamp = to_timestamp(kNow)})
                  .has_value());
  const std::string batch = *builder.finish(Compression::none);
  RecordReader records = *RecordReader::open(*BatchView::parse(batch));
  std::string out;
  RecordView record;
  while (*records.next(record)) encode(out, record);
  return out;
}

void check(const google::protobuf::RepeatedPtrField<v1::Record>& records) {
  ASSERT_EQ(records.size(), 2);
  EXPECT_EQ(records[0].offset(), 0);
  EXPECT_EQ(records[1].offset(), 1);
  EXPECT_EQ(records[0].timestamp_ms(), to_timestamp(kNow).value);
  EXPECT_FALSE(records[0].has_key());
  EXPECT_EQ(records[0].value(), "v");
  ASSERT_EQ(records[0].headers_size(), 1);
  EXPECT_EQ(records[0].headers(0).name(), "h");
  EXPECT_FALSE(records[0].headers(0).has_value());
  EXPECT_TRUE(records[1].has_key());
  EXPECT_FALSE(records[1].has_value());
  EXPECT_TRUE(records[1].headers(0).has_value());
}

// Absent and empty stay distinct, in both responses that have records as fields.
TEST(RecordWire, RecordsReadBackAsTheyWere) {
  v1::ReadResponse read;
  ASSERT_TRUE(read.ParseFromString(encode_with(append_read_record)));
  check(read.records());
  v1::SubscribeResponse::Batches batch;
  ASSERT_TRUE(batch.ParseFromString(encode_with(append_batch_record)));
  check(batch.records());
}

}  // namespace
}  // namespace baton
