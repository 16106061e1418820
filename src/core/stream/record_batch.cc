#include "core/stream/record_batch.h"

#include <fmt/format.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "core/stream/batch_layout.h"
#include "core/stream/big_endian.h"
#include "core/stream/records.h"

namespace baton {
namespace {

constexpr std::uint16_t kCompressionMask = 7;

Error malformed(std::string text) { return {Errc::malformed, "batch: " + std::move(text)}; }
Error refused(std::string text) { return {Errc::invalid_argument, "batch: " + std::move(text)}; }

Status check_header(const BatchHeader& header, std::int32_t length, std::int8_t magic) {
  if (magic != batch_layout::kMagicValue) {
    return malformed(
        fmt::format("magic {}; it must be {}", int{magic}, int{batch_layout::kMagicValue}));
  }
  if (length < 0 || header.bytes < kBatchHeaderBytes) {
    return malformed(fmt::format("length {}; it must be at least {}", length,
                                 kBatchHeaderBytes - kBatchLengthEnd));
  }
  if (header.base_offset.value < 0) {
    return malformed(
        fmt::format("base offset {}; it must not be negative", header.base_offset.value));
  }
  if (header.count <= 0) {
    return malformed(fmt::format("count of records {}; it must be at least 1", header.count));
  }
  if (header.last_offset_delta != header.count - 1) {
    return malformed(
        fmt::format("count of records {}, but the last offset delta is {}; it must be {}",
                    header.count, header.last_offset_delta, header.count - 1));
  }
  std::int64_t next = 0;
  if (__builtin_add_overflow(header.base_offset.value, std::int64_t{header.count}, &next)) {
    return malformed(fmt::format("base offset {} leaves no room for {} records",
                                 header.base_offset.value, header.count));
  }
  return {};
}

// A record takes at least 7 bytes, so a greater count is a lie, or a batch compressed beyond what
// anybody may decompress.
Status check_count(const BatchHeader& header) {
  constexpr std::uint64_t kRecordBytesMin = 7;
  const auto count = static_cast<std::uint64_t>(header.count);
  const std::uint64_t stored = header.bytes - kBatchHeaderBytes;
  if (count > limits::kStreamBatchRecordsMax) {
    return refused(
        fmt::format("count of records {}; the limit is {}", count, limits::kStreamBatchRecordsMax));
  }
  if (header.compression() == Compression::none && count > stored / kRecordBytesMin) {
    return malformed(
        fmt::format("count of records {}, but {} bytes cannot hold that many", count, stored));
  }
  return {};
}

Status check_attributes(const BatchHeader& header) {
  const auto others = static_cast<std::uint16_t>(header.attributes & ~kCompressionMask);
  if (others != 0) {
    return refused(fmt::format(
        "attributes {:#x}; transactions, control records and broker timestamps are not supported",
        header.attributes));
  }
  if (header.compression() > Compression::zstd) {
    return refused(fmt::format("compression {}; the greatest known is {} (zstd)",
                               header.attributes & kCompressionMask, int(Compression::zstd)));
  }
  return {};
}

Status check_times(const BatchHeader& header, const BatchRules& rules, Instant now) {
  const std::int64_t first = header.first_timestamp.value;
  const std::int64_t greatest = header.max_timestamp.value;
  if (first < 0 || greatest < first) {
    return refused(fmt::format(
        "first timestamp {} ms and greatest timestamp {} ms; they must not be negative, nor the "
        "second below the first",
        first, greatest));
  }
  const TimestampMs limit = to_timestamp(now + rules.timestamp_ahead_max);
  if (greatest > limit.value) {
    return refused(fmt::format(
        "greatest timestamp {} ms lies in the future; the limit is {} ms, {} ahead of the broker",
        greatest, limit.value, format_duration(rules.timestamp_ahead_max)));
  }
  return {};
}

Status check_producer(const BatchHeader& header) {
  const ProducerStamp& producer = header.producer;
  if (producer.id.value < -1) {
    return refused(fmt::format("producer id {}; it must be -1 or more", producer.id.value));
  }
  if (!header.idempotent()) return {};
  if (producer.epoch.value < 0 || producer.sequence.value < 0) {
    return refused(fmt::format("producer {}: epoch {} and sequence {}; they must not be negative",
                               producer.id.value, producer.epoch.value, producer.sequence.value));
  }
  return {};
}

// Compressed ones are the reader's to walk: the broker's cost is per batch, not per record.
Status check_records(const BatchView& batch) {
  if (batch.header().compression() != Compression::none) return {};
  BATON_TRY(RecordReader reader, RecordReader::open(batch));
  TimestampMs greatest{std::numeric_limits<std::int64_t>::min()};
  RecordView record;
  while (true) {
    BATON_TRY(const bool found, reader.next(record));
    if (!found) break;
    if (record.timestamp.value < 0) {
      return malformed(fmt::format("record {}: timestamp {} ms; it must not be negative",
                                   record.offset.value - batch.header().base_offset.value,
                                   record.timestamp.value));
    }
    greatest = std::max(greatest, record.timestamp);
  }
  if (greatest != batch.header().max_timestamp) {
    return malformed(fmt::format("greatest timestamp {} ms, but that of the records is {} ms",
                                 batch.header().max_timestamp.value, greatest.value));
  }
  return {};
}

}  // namespace

Result<BatchHeader> decode_batch_header(std::string_view bytes) {
  namespace at = batch_layout;
  if (bytes.size() < kBatchHeaderBytes) {
    return malformed(
        fmt::format("cut short: {} bytes; a header has {}", bytes.size(), kBatchHeaderBytes));
  }
  const char* const data = bytes.data();
  const auto length = load_big<std::int32_t>(data + at::kLength);
  const BatchHeader header{
      .base_offset = Offset{load_big<std::int64_t>(data + at::kBaseOffset)},
      .bytes = kBatchLengthEnd + static_cast<std::uint64_t>(std::max(length, 0)),
      .leader_epoch = LeaderEpoch{load_big<std::int32_t>(data + at::kLeaderEpoch)},
      .crc = load_big<std::uint32_t>(data + at::kCrc),
      .attributes = load_big<std::uint16_t>(data + at::kAttributes),
      .last_offset_delta = load_big<std::int32_t>(data + at::kLastOffsetDelta),
      .first_timestamp = TimestampMs{load_big<std::int64_t>(data + at::kFirstTimestamp)},
      .max_timestamp = TimestampMs{load_big<std::int64_t>(data + at::kMaxTimestamp)},
      .producer = {.id = ProducerId{load_big<std::int64_t>(data + at::kProducerId)},
                   .epoch = ProducerEpoch{load_big<std::int16_t>(data + at::kProducerEpoch)},
                   .sequence = Sequence32{load_big<std::int32_t>(data + at::kSequence)}},
      .count = load_big<std::int32_t>(data + at::kCount)};
  BATON_TRY_STATUS(check_header(header, length, static_cast<std::int8_t>(data[at::kMagic])));
  return header;
}

Result<BatchView> BatchView::parse(std::string_view bytes) {
  BATON_TRY(const BatchHeader header, decode_batch_header(bytes));
  if (header.bytes > bytes.size()) {
    return malformed(
        fmt::format("cut short: {} bytes; its length says {}", bytes.size(), header.bytes));
  }
  return BatchView(header, bytes.substr(0, header.bytes));
}

std::uint32_t BatchView::computed_crc() const {
  return crc32c(bytes_.substr(batch_layout::kAttributes));
}

Status BatchView::check_crc() const {
  const std::uint32_t computed = computed_crc();
  if (computed == header_.crc) return {};
  return malformed(
      fmt::format("CRC {:#010x}, but that of its bytes is {:#010x}", header_.crc, computed));
}

Result<CheckedBatch> check_batch(std::string_view bytes, const BatchRules& rules, Instant now) {
  if (bytes.size() > rules.bytes_max) {
    return refused(fmt::format("{} bytes; the limit is {}", bytes.size(), rules.bytes_max));
  }
  BATON_TRY(const BatchView batch, BatchView::parse(bytes));
  if (batch.bytes().size() != bytes.size()) {
    return malformed(fmt::format("{} bytes too many: its length says {}",
                                 bytes.size() - batch.bytes().size(), batch.bytes().size()));
  }
  // The checksum first: what it does not vouch for is damage, not a producer's wish.
  BATON_TRY_STATUS(batch.check_crc());
  BATON_TRY_STATUS(check_attributes(batch.header()));
  BATON_TRY_STATUS(check_count(batch.header()));
  BATON_TRY_STATUS(check_times(batch.header(), rules, now));
  BATON_TRY_STATUS(check_producer(batch.header()));
  BATON_TRY_STATUS(check_records(batch));
  return CheckedBatch(batch);
}

void set_base_offset(std::span<char> batch, Offset base_offset, LeaderEpoch leader_epoch) {
  BATON_ASSERT(batch.size() >= kBatchHeaderBytes);
  store_big(batch.data() + batch_layout::kBaseOffset, base_offset.value);
  store_big(batch.data() + batch_layout::kLeaderEpoch, leader_epoch.value);
}

}  // namespace baton
