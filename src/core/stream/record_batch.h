#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "core/stream/compression.h"
#include "core/stream/limits.h"
#include "core/stream/types.h"

namespace baton {

// A record batch, in Kafka's format v2. All numbers are big-endian.
//
//    0  int64   base offset: that of the first record    set by the broker; outside the checksum
//    8  int32   bytes that follow this field
//   12  int32   leader epoch                             set by the broker; outside the checksum
//   16  int8    magic: 2
//   17  uint32  CRC-32C of everything from byte 21 on
//   21  int16   attributes: bits 0-2 compression, 3 timestamp type, 4 transactional, 5 control
//   23  int32   last offset delta: number of records - 1
//   27  int64   timestamp of the first record
//   35  int64   greatest timestamp
//   43  int64   producer id        -1: the producer is not idempotent
//   51  int16   producer epoch
//   53  int32   sequence of the first record
//   57  int32   number of records
//   61          records, one after the other; compressed all together

inline constexpr std::size_t kBatchHeaderBytes = 61;
/// Bytes up to and with the length field, which the length does not count.
inline constexpr std::size_t kBatchLengthEnd = 12;

/// The fixed fields of a batch.
struct BatchHeader {
  Offset base_offset;
  std::uint64_t bytes = 0;  // The whole batch, this header included.
  LeaderEpoch leader_epoch;
  std::uint32_t crc = 0;
  std::uint16_t attributes = 0;
  std::int32_t last_offset_delta = 0;
  TimestampMs first_timestamp;
  TimestampMs max_timestamp;
  ProducerStamp producer;
  std::int32_t count = 0;

  [[nodiscard]] Offset last_offset() const { return Offset{base_offset.value + last_offset_delta}; }
  /// The offset after the last record.
  [[nodiscard]] Offset next_offset() const { return Offset{last_offset().value + 1}; }
  [[nodiscard]] Compression compression() const { return Compression(attributes & 7U); }
  [[nodiscard]] bool idempotent() const { return producer.id.value >= 0; }
};

/// Reads a header from the first 61 bytes, with or without the records behind it. Fails with
/// malformed when there are fewer, or when length, magic or counts cannot be those of a batch: what
/// it returns can be computed with, but nothing has vouched for it yet.
Result<BatchHeader> decode_batch_header(std::string_view bytes);

/// One whole batch in somebody else's memory.
class BatchView {
 public:
  /// The batch that `bytes` begins with; what follows it is left alone. Checks the header and that
  /// the batch is all there, not the checksum.
  static Result<BatchView> parse(std::string_view bytes);

  [[nodiscard]] const BatchHeader& header() const { return header_; }
  [[nodiscard]] std::string_view bytes() const { return bytes_; }
  /// The records, as they are stored.
  [[nodiscard]] std::string_view records() const { return bytes_.substr(kBatchHeaderBytes); }
  [[nodiscard]] std::uint32_t computed_crc() const;
  /// Fails with malformed, naming both numbers.
  [[nodiscard]] Status check_crc() const;

 private:
  BatchView(const BatchHeader& header, std::string_view bytes) : header_(header), bytes_(bytes) {}

  BatchHeader header_;
  std::string_view bytes_;
};

/// What a batch must keep to.
struct BatchRules {
  std::size_t bytes_max = limits::kStreamBatchBytesDefault;
  Duration timestamp_ahead_max = limits::kTimestampAheadMax;
};

/// A batch that check_batch() found good. Only such batches are appended.
class CheckedBatch {
 public:
  [[nodiscard]] const BatchHeader& header() const { return view_.header(); }
  [[nodiscard]] std::string_view bytes() const { return view_.bytes(); }
  [[nodiscard]] const BatchView& view() const { return view_; }

 private:
  friend Result<CheckedBatch> check_batch(std::string_view, const BatchRules&, Instant);
  explicit CheckedBatch(const BatchView& view) : view_(view) {}

  BatchView view_;
};

/// Everything that the broker checks before it stores a batch: `bytes` is exactly one batch, no
/// larger than allowed, with a good checksum, a count that is the last offset delta + 1, no bits
/// but those of the compression, timestamps from 0 to not too far ahead of `now`; and, when it is
/// not compressed, records that are whole, numbered one after the other and of the times the header
/// says. Damaged bytes fail with malformed, a broken rule with invalid_argument; the text names
/// field, value and limit. The bytes must outlive the result.
Result<CheckedBatch> check_batch(std::string_view bytes, const BatchRules& rules, Instant now);

/// Writes the two fields that are the broker's into a batch, in place. They are outside the CRC.
void set_base_offset(std::span<char> batch, Offset base_offset, LeaderEpoch leader_epoch);

}  // namespace baton
