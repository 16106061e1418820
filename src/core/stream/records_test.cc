#include "core/stream/records.h"

#include <gtest/gtest.h>

#include "base/random.h"
#include "core/stream/batch_samples.h"

namespace baton {
namespace {

using batch_samples::batch_of;
using batch_samples::kTime;
using batch_samples::texts_of;

TEST(Records, ComeBackAsTheyWere) {
  const std::vector<std::string> expected{
      R"(0 1700000000000 "key" "value" trace="abc" empty="" null=null)",
      R"(1 1700000070000 null "no key")", R"(2 1699999999995 "no value" null)",
      R"(3 1700000000001 "" "")",
      R"(4 1700000000002 "long" "0123456789012345678901234567890123456789012345678901234567890123456")"};
  for (int codec = 0; codec <= 4; ++codec) {
    EXPECT_EQ(texts_of(batch_of(batch_samples::records(), Compression(codec))), expected) << codec;
  }
}

TEST(Records, AreCompressedWhenThatHelps) {
  const std::vector<Record> same(
      100, Record{.key = {}, .value = "the same again", .headers = {}, .timestamp = kTime});
  for (int codec = 1; codec <= 4; ++codec) {
    const std::string batch = batch_of(same, Compression(codec));
    EXPECT_EQ(BatchView::parse(batch)->header().compression(), Compression(codec));
    EXPECT_LT(batch.size(), 800U);
    const std::string tiny = batch_of({same.front()}, Compression(codec));
    EXPECT_EQ(BatchView::parse(tiny)->header().compression(), Compression::none) << codec;
  }
}

TEST(Records, AnyNumberOfAnySizeComesBack) {
  Random random(11);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::string> values(1 + random.below(50));
    std::vector<Record> list;
    for (std::string& value : values) {
      value.assign(random.below(random.chance(1, 20) ? 70'000 : 300), char(random.next()));
      list.push_back({.key = value,
                      .value = value,
                      .headers = {},
                      .timestamp = TimestampMs{std::int64_t(random.below(1ULL << 62U))}});
    }
    const std::string batch = batch_of(list, Compression(random.below(5)));
    auto reader = RecordReader::open(BatchView::parse(batch).value()).value();
    RecordView record;
    for (std::size_t i = 0; i < list.size(); ++i) {
      ASSERT_TRUE(reader.next(record).value());
      EXPECT_EQ(record.offset.value, std::int64_t(i));
      EXPECT_EQ(record.timestamp, list[i].timestamp);
      EXPECT_EQ(record.key, list[i].key);
      EXPECT_EQ(record.value, list[i].value);
    }
    EXPECT_FALSE(reader.next(record).value());
  }
}

// A reader is returned from functions: its records must not point into what it left behind.
TEST(Records, AReaderThatDecompressedCanBeMoved) {
  const std::vector<Record> list(
      40, Record{.key = "k", .value = "v", .headers = {}, .timestamp = kTime});
  const std::string batch = batch_of(list, Compression::gzip);
  auto reader = RecordReader::open(BatchView::parse(batch).value()).value();
  RecordView record;
  ASSERT_TRUE(reader.next(record).value());
  RecordReader moved = std::move(reader);
  ASSERT_TRUE(moved.next(record).value());
  EXPECT_EQ(record.value, "v");
}

TEST(Records, TheBuilderKeepsItsLimits) {
  BatchBuilder builder(1000);
  const std::string half(450, 'x');
  const Record record{.key = {}, .value = half, .headers = {}, .timestamp = kTime};
  ASSERT_TRUE(builder.add(record).has_value());
  ASSERT_TRUE(builder.add(record).has_value());
  EXPECT_EQ(builder.add(record).error().code, Errc::resource_exhausted);
  const std::string whole(1000, 'x');
  const Status alone = builder.add({.key = {}, .value = whole, .headers = {}, .timestamp = kTime});
  EXPECT_EQ(alone.error().code, Errc::invalid_argument);
  EXPECT_EQ(builder.add({.key = {}, .value = {}, .headers = {}, .timestamp = TimestampMs{-1}})
                .error()
                .code,
            Errc::invalid_argument);
  EXPECT_EQ(builder.count(), 2U);
  const std::size_t bytes = builder.bytes();
  EXPECT_EQ(builder.finish().value().size(), bytes);
  EXPECT_TRUE(builder.empty());
  EXPECT_TRUE(builder.add(record).has_value());
}

TEST(Records, ABombIsNotUnpacked) {
  const std::string zeros(10 << 20U, '\0');
  const std::string batch =
      batch_of({{.key = {}, .value = zeros, .headers = {}, .timestamp = kTime}}, Compression::zstd);
  ASSERT_LT(batch.size(), 5000U);
  const auto reader = RecordReader::open(BatchView::parse(batch).value(), 1 << 20U);
  ASSERT_FALSE(reader.has_value());
  EXPECT_EQ(reader.error().code, Errc::resource_exhausted);
}

}  // namespace
}  // namespace baton
