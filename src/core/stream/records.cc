#include "core/stream/records.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/crc32c.h"
#include "core/stream/batch_layout.h"
#include "core/stream/big_endian.h"

namespace baton {
namespace {

constexpr std::size_t kVarintBytesMax = 10;

constexpr std::uint64_t zigzag(std::int64_t value) {
  return (static_cast<std::uint64_t>(value) << 1U) ^ static_cast<std::uint64_t>(value >> 63);
}
constexpr std::int64_t unzigzag(std::uint64_t value) {
  return static_cast<std::int64_t>((value >> 1U) ^ (~(value & 1U) + 1));
}

char* put_varint(char* to, std::int64_t number) {
  std::uint64_t value = zigzag(number);
  while (value >= 0x80U) {
    *to++ = static_cast<char>(value | 0x80U);
    value >>= 7U;
  }
  *to++ = static_cast<char>(value);
  return to;
}

std::size_t varint_bytes(std::int64_t number) {
  const auto bits = static_cast<std::size_t>(std::bit_width(zigzag(number) | 1U));
  return (bits + 6) / 7;
}

/// Reads the parts of a record; after the first that is not there, everything answers zero.
class RecordDecoder {
 public:
  explicit RecordDecoder(std::string_view bytes)
      : at_(bytes.data()), end_(bytes.data() + bytes.size()) {}

  std::int64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && at_ != end_; shift += 7) {
      const auto byte = static_cast<std::uint8_t>(*at_++);
      // One bit is left for the tenth byte: more would be lost silently.
      if (shift == 63 && byte > 1) break;
      value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
      if ((byte & 0x80U) == 0) return unzigzag(value);
    }
    fail();
    return 0;
  }
  std::string_view raw(std::int64_t count) {
    if (count < 0 || count > end_ - at_) {
      fail();
      return {};
    }
    const std::string_view bytes(at_, static_cast<std::size_t>(count));
    at_ += count;
    return bytes;
  }
  std::optional<std::string_view> optional_blob() {
    const std::int64_t count = varint();
    if (count == -1) return std::nullopt;
    return raw(count);
  }
  std::string_view blob() { return raw(varint()); }
  std::string_view rest() const { return {at_, static_cast<std::size_t>(end_ - at_)}; }
  [[nodiscard]] bool ok() const { return !failed_; }
  [[nodiscard]] bool finish() const { return !failed_ && at_ == end_; }
  void fail() {
    failed_ = true;
    at_ = end_;
  }

 private:
  const char* at_;
  const char* end_;
  bool failed_ = false;
};

RecordHeader read_header(RecordDecoder& in) {
  RecordHeader header;
  header.name = in.blob();
  header.value = in.optional_blob();
  return header;
}

// Walks them once, so that reading them later cannot fail.
RecordHeaders read_headers(RecordDecoder& in) {
  const std::int64_t count = in.varint();
  if (count < 0 || count > static_cast<std::int64_t>(limits::kRecordHeadersMax)) in.fail();
  const std::string_view bytes = in.rest();
  for (std::int64_t i = 0; i < count && in.ok(); ++i) read_header(in);
  if (!in.ok()) return {};
  return {static_cast<std::uint32_t>(count), bytes};
}

std::size_t blob_bytes(const std::optional<std::string_view>& blob) {
  if (!blob) return 1;
  return varint_bytes(static_cast<std::int64_t>(blob->size())) + blob->size();
}

char* put_raw(char* to, std::string_view bytes) { return to + bytes.copy(to, bytes.size()); }

char* put_blob(char* to, const std::optional<std::string_view>& blob) {
  if (!blob) return put_varint(to, -1);
  return put_raw(put_varint(to, static_cast<std::int64_t>(blob->size())), *blob);
}

std::size_t body_bytes(const Record& record, std::int64_t time_delta, std::int64_t offset_delta) {
  std::size_t bytes = 1 + varint_bytes(time_delta) + varint_bytes(offset_delta) +
                      blob_bytes(record.key) + blob_bytes(record.value) +
                      varint_bytes(static_cast<std::int64_t>(record.headers.size()));
  for (const RecordHeader& header : record.headers) {
    bytes += blob_bytes(header.name) + blob_bytes(header.value);
  }
  return bytes;
}

char* put_body(char* to, const Record& record, std::int64_t time_delta, std::int64_t offset_delta) {
  *to++ = 0;
  to = put_varint(to, time_delta);
  to = put_varint(to, offset_delta);
  to = put_blob(to, record.key);
  to = put_blob(to, record.value);
  to = put_varint(to, static_cast<std::int64_t>(record.headers.size()));
  for (const RecordHeader& header : record.headers) {
    to = put_blob(to, header.name);
    to = put_blob(to, header.value);
  }
  return to;
}

void put_header(char* to, const BatchHeader& header) {
  namespace at = batch_layout;
  store_big(to + at::kBaseOffset, header.base_offset.value);
  store_big(to + at::kLength, static_cast<std::int32_t>(header.bytes - kBatchLengthEnd));
  store_big(to + at::kLeaderEpoch, header.leader_epoch.value);
  to[at::kMagic] = static_cast<char>(at::kMagicValue);
  store_big(to + at::kAttributes, header.attributes);
  store_big(to + at::kLastOffsetDelta, header.last_offset_delta);
  store_big(to + at::kFirstTimestamp, header.first_timestamp.value);
  store_big(to + at::kMaxTimestamp, header.max_timestamp.value);
  store_big(to + at::kProducerId, header.producer.id.value);
  store_big(to + at::kProducerEpoch, header.producer.epoch.value);
  store_big(to + at::kSequence, header.producer.sequence.value);
  store_big(to + at::kCount, header.count);
}

}  // namespace

Status BatchBuilder::add(const Record& record) {
  if (record.timestamp.value < 0) {
    return Error{
        Errc::invalid_argument,
        fmt::format("record: timestamp {} ms; it must not be negative", record.timestamp.value)};
  }
  if (record.headers.size() > limits::kRecordHeadersMax) {
    return Error{Errc::invalid_argument,
                 fmt::format("record: {} headers; the limit is {}", record.headers.size(),
                             limits::kRecordHeadersMax)};
  }
  const TimestampMs first = empty() ? record.timestamp : first_timestamp_;
  const std::int64_t time_delta = record.timestamp.value - first.value;
  const std::size_t body = body_bytes(record, time_delta, count_);
  const std::size_t whole = varint_bytes(static_cast<std::int64_t>(body)) + body;
  if (kBatchHeaderBytes + whole > bytes_max_) {
    return Error{Errc::invalid_argument,
                 fmt::format("record: {} bytes; a batch of at most {} bytes cannot hold it", whole,
                             bytes_max_)};
  }
  if (bytes() + whole > bytes_max_ || count() >= limits::kStreamBatchRecordsMax) {
    return Error{Errc::resource_exhausted,
                 fmt::format("batch: {} records and {} bytes; the limits are {} and {}", count_ + 1,
                             bytes() + whole, limits::kStreamBatchRecordsMax, bytes_max_)};
  }
  const std::size_t at = records_.size();
  records_.resize(at + whole);
  char* to = put_varint(records_.data() + at, static_cast<std::int64_t>(body));
  to = put_body(to, record, time_delta, count_);
  BATON_ASSERT(to == records_.data() + records_.size());
  first_timestamp_ = first;
  max_timestamp_ = empty() ? record.timestamp : std::max(max_timestamp_, record.timestamp);
  ++count_;
  return {};
}

Result<std::string> BatchBuilder::finish(Compression compression,
                                         const std::optional<ProducerStamp>& producer) {
  BATON_ASSERT(!empty());
  std::string batch(kBatchHeaderBytes, '\0');
  if (compression != Compression::none) BATON_TRY_STATUS(compress(compression, records_, batch));
  const bool smaller = batch.size() < bytes();
  if (compression == Compression::none || !smaller) {
    compression = Compression::none;
    batch.resize(kBatchHeaderBytes);
    batch.append(records_);
  }
  constexpr ProducerStamp kNobody{ProducerId{-1}, ProducerEpoch{-1}, Sequence32{-1}};
  put_header(batch.data(), {.base_offset = Offset{0},
                            .bytes = batch.size(),
                            .leader_epoch = LeaderEpoch{-1},
                            .crc = 0,
                            .attributes = static_cast<std::uint16_t>(compression),
                            .last_offset_delta = count_ - 1,
                            .first_timestamp = first_timestamp_,
                            .max_timestamp = max_timestamp_,
                            .producer = producer.value_or(kNobody),
                            .count = count_});
  store_big(batch.data() + batch_layout::kCrc,
            crc32c(std::string_view(batch).substr(batch_layout::kAttributes)));
  records_.clear();
  count_ = 0;
  return batch;
}

std::optional<RecordHeader> RecordHeaders::next() {
  if (left_ == 0) return std::nullopt;
  RecordDecoder in(rest_);
  const RecordHeader header = read_header(in);
  BATON_ASSERT(in.ok());
  rest_ = in.rest();
  --left_;
  return header;
}

RecordReader::RecordReader(const BatchHeader& header, std::string_view stored,
                           std::unique_ptr<std::string> own)
    : header_(header), decompressed_(std::move(own)), rest_(stored) {
  if (decompressed_ != nullptr) rest_ = *decompressed_;
}

Result<RecordReader> RecordReader::open(const BatchView& batch,
                                        std::size_t decompressed_bytes_max) {
  const BatchHeader& header = batch.header();
  if (header.compression() == Compression::none) {
    return RecordReader(header, batch.records(), nullptr);
  }
  BATON_TRY(std::string records,
            decompress(header.compression(), batch.records(), decompressed_bytes_max));
  return RecordReader(header, {}, std::make_unique<std::string>(std::move(records)));
}

Result<bool> RecordReader::next(RecordView& record) {
  if (done_ == header_.count) {
    if (rest_.empty()) return false;
    return Error{Errc::malformed,
                 fmt::format("batch: {} bytes after the last of {} records", rest_.size(), done_)};
  }
  RecordDecoder in(rest_);
  const std::string_view body = in.blob();
  const std::string_view rest = in.rest();
  RecordDecoder fields(body);
  fields.raw(1);
  const std::int64_t time_delta = fields.varint();
  const std::int64_t offset_delta = fields.varint();
  record.key = fields.optional_blob();
  record.value = fields.optional_blob();
  record.headers = read_headers(fields);
  const bool whole = in.ok() && fields.finish();
  const bool timely =
      !__builtin_add_overflow(header_.first_timestamp.value, time_delta, &record.timestamp.value);
  if (!whole || !timely) {
    return Error{Errc::malformed,
                 fmt::format("batch: record {} of {} is damaged", done_, header_.count)};
  }
  if (offset_delta != done_) {
    return Error{Errc::malformed, fmt::format("batch: record {} of {} has offset delta {}", done_,
                                              header_.count, offset_delta)};
  }
  record.offset = Offset{header_.base_offset.value + offset_delta};
  rest_ = rest;
  ++done_;
  return true;
}

}  // namespace baton
