#include "core/stream/record_batch.h"

#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "core/stream/batch_layout.h"
#include "core/stream/batch_samples.h"
#include "core/stream/big_endian.h"

namespace baton {
namespace {

using batch_samples::batch_of;
using batch_samples::kNow;
using batch_samples::kTime;
using batch_samples::plain_batch;

constexpr BatchRules kRules{};

/// Changes a field of the header and makes the checksum good again.
template <class T>
std::string with_field(std::string batch, std::size_t at, T value) {
  store_big(batch.data() + at, value);
  store_big(batch.data() + batch_layout::kCrc,
            crc32c(std::string_view(batch).substr(batch_layout::kAttributes)));
  return batch;
}

Error refusal(std::string_view batch, const BatchRules& rules = kRules) {
  const auto checked = check_batch(batch, rules, kNow);
  EXPECT_FALSE(checked.has_value());
  return checked ? Error{Errc::internal, "it was accepted"} : checked.error();
}

#define EXPECT_REFUSED(batch, errc, words)                              \
  do {                                                                  \
    const Error error = refusal(batch);                                 \
    EXPECT_EQ(error.code, errc) << error.text;                          \
    EXPECT_NE(error.text.find(words), std::string::npos) << error.text; \
  } while (false)

TEST(RecordBatch, WhatTheBuilderMakesIsAccepted) {
  const ProducerStamp producer{ProducerId{7}, ProducerEpoch{2}, Sequence32{40}};
  for (const Compression compression : {Compression::none, Compression::gzip, Compression::snappy,
                                        Compression::lz4, Compression::zstd}) {
    const std::string batch = batch_of(batch_samples::records(), compression, producer);
    const auto checked = check_batch(batch, kRules, kNow);
    ASSERT_TRUE(checked.has_value()) << to_string(checked.error());
    EXPECT_EQ(checked->header().count, 5);
    EXPECT_EQ(checked->header().bytes, batch.size());
    EXPECT_EQ(checked->header().first_timestamp, kTime);
    EXPECT_EQ(checked->header().max_timestamp.value, kTime.value + 70'000);
    EXPECT_EQ(checked->header().producer, producer);
    EXPECT_TRUE(checked->header().idempotent());
  }
}

// The broker's own fields are outside the checksum, so that it need not be computed again.
TEST(RecordBatch, SettingTheBaseOffsetKeepsTheBatchGood) {
  std::string batch = plain_batch(3, 10);
  set_base_offset(batch, Offset{1'000'000'000'000}, LeaderEpoch{9});

  const auto checked = check_batch(batch, kRules, kNow);

  ASSERT_TRUE(checked.has_value()) << to_string(checked.error());
  EXPECT_EQ(checked->header().base_offset, Offset{1'000'000'000'000});
  EXPECT_EQ(checked->header().last_offset(), Offset{1'000'000'000'002});
  EXPECT_EQ(checked->header().leader_epoch, LeaderEpoch{9});
}

TEST(RecordBatch, ABatchCutShortAnywhereIsRefused) {
  const std::string batch = batch_of(batch_samples::records());
  for (std::size_t size = 0; size < batch.size(); ++size) {
    EXPECT_EQ(refusal(std::string_view(batch).substr(0, size)).code, Errc::malformed) << size;
  }
  EXPECT_REFUSED(batch.substr(0, batch.size() - 1), Errc::malformed, "cut short");
  EXPECT_REFUSED(batch + "x", Errc::malformed, "1 bytes too many");
}

TEST(RecordBatch, EveryFlippedBitIsNoticed) {
  const std::string batch = batch_of(batch_samples::records(), Compression::zstd);
  for (std::size_t bit = 0; bit < 8 * batch.size(); ++bit) {
    const std::size_t byte = bit / 8;
    const bool ours = byte < batch_layout::kLength ||
                      (byte >= batch_layout::kLeaderEpoch && byte < batch_layout::kMagic);
    if (ours) continue;
    std::string damaged = batch;
    damaged[byte] = static_cast<char>(damaged[byte] ^ (1 << (bit % 8)));
    EXPECT_FALSE(check_batch(damaged, kRules, kNow).has_value()) << bit;
  }
}

TEST(RecordBatch, AWrongChecksumIsNamed) {
  std::string batch = plain_batch(1, 10);
  batch.back() = 'x';
  EXPECT_REFUSED(batch, Errc::malformed, "CRC 0x");
}

TEST(RecordBatch, ACountThatLiesIsRefused) {
  const std::string batch = plain_batch(3, 10);
  EXPECT_REFUSED(with_field(batch, batch_layout::kCount, std::int32_t{4}), Errc::malformed,
                 "count of records 4, but the last offset delta is 2");
  EXPECT_REFUSED(with_field(batch, batch_layout::kCount, std::int32_t{0}), Errc::malformed,
                 "count of records 0; it must be at least 1");
  EXPECT_REFUSED(with_field(batch, batch_layout::kCount, std::int32_t{-1}), Errc::malformed, "-1");
  // Both fields lie alike: only walking the records shows it.
  const auto lie = [&](std::int32_t count) {
    return with_field(with_field(batch, batch_layout::kCount, count),
                      batch_layout::kLastOffsetDelta, count - 1);
  };
  EXPECT_REFUSED(lie(4), Errc::malformed, "record 3 of 4 is damaged");
  EXPECT_REFUSED(lie(2), Errc::malformed, "after the last of 2 records");
  EXPECT_REFUSED(lie(1000), Errc::malformed, "cannot hold that many");
}

TEST(RecordBatch, ACompressedCountHasALimitToo) {
  const std::string batch = batch_of(batch_samples::records(), Compression::zstd);
  constexpr std::int32_t kCount = 1'000'001;
  EXPECT_REFUSED(with_field(with_field(batch, batch_layout::kCount, kCount),
                            batch_layout::kLastOffsetDelta, kCount - 1),
                 Errc::invalid_argument, "the limit is 1000000");
}

TEST(RecordBatch, TooLargeIsRefusedBeforeAnythingIsComputed) {
  const std::string batch = plain_batch(1, 2000);
  const Error error = refusal(batch, {.bytes_max = 2000});
  EXPECT_EQ(error.code, Errc::invalid_argument);
  EXPECT_NE(error.text.find("the limit is 2000"), std::string::npos) << error.text;
}

TEST(RecordBatch, OtherFormatsAndFeaturesAreRefused) {
  const std::string batch = plain_batch(1, 10);
  EXPECT_REFUSED(with_field(batch, batch_layout::kMagic, std::uint16_t{0x0100}), Errc::malformed,
                 "magic 1; it must be 2");
  for (const std::uint16_t bits : std::initializer_list<std::uint16_t>{8, 16, 32, 64, 0x8000}) {
    EXPECT_REFUSED(with_field(batch, batch_layout::kAttributes, bits), Errc::invalid_argument,
                   "attributes");
  }
  EXPECT_REFUSED(with_field(batch, batch_layout::kAttributes, std::uint16_t{5}),
                 Errc::invalid_argument, "compression 5");
}

TEST(RecordBatch, ATimestampMayBeAnHourAheadAndNoMore) {
  const std::int64_t hour = kTime.value + 3'600'000;
  EXPECT_TRUE(check_batch(plain_batch(1, 10, hour), kRules, kNow).has_value());
  EXPECT_REFUSED(plain_batch(1, 10, hour + 1), Errc::invalid_argument, "1h ahead of the broker");
  const std::string batch = plain_batch(1, 10);
  EXPECT_REFUSED(with_field(batch, batch_layout::kFirstTimestamp, std::int64_t{-1}),
                 Errc::invalid_argument, "first timestamp -1");
  EXPECT_REFUSED(with_field(batch, batch_layout::kMaxTimestamp, kTime.value + 1), Errc::malformed,
                 "but that of the records is");
}

TEST(RecordBatch, ProducersHaveSensibleNumbers) {
  const std::string batch = plain_batch(
      1, 10, kTime.value, ProducerStamp{ProducerId{3}, ProducerEpoch{0}, Sequence32{0}});
  EXPECT_REFUSED(with_field(batch, batch_layout::kProducerId, std::int64_t{-2}),
                 Errc::invalid_argument, "producer id -2");
  EXPECT_REFUSED(with_field(batch, batch_layout::kProducerEpoch, std::int16_t{-1}),
                 Errc::invalid_argument, "epoch -1");
  EXPECT_REFUSED(with_field(batch, batch_layout::kSequence, std::int32_t{-1}),
                 Errc::invalid_argument, "sequence -1");
}

TEST(RecordBatch, OffsetsThatOverflowAreRefused) {
  std::string batch = plain_batch(2, 10);
  set_base_offset(batch, Offset{std::numeric_limits<std::int64_t>::max()}, LeaderEpoch{0});
  EXPECT_REFUSED(batch, Errc::malformed, "leaves no room");
  set_base_offset(batch, Offset{-1}, LeaderEpoch{0});
  EXPECT_REFUSED(batch, Errc::malformed, "base offset -1");
}

}  // namespace
}  // namespace baton
