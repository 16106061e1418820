#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "core/stream/record_batch.h"

namespace baton {

// A record within a batch. A varint is zigzag-encoded, 7 bits a byte, lowest first.
//
//   varint  bytes that follow this field
//   int8    attributes: 0
//   varint  timestamp - the batch's first timestamp    (up to 64 bits)
//   varint  offset - the batch's base offset
//   varint  length of the key, -1: no key;      the key
//   varint  length of the value, -1: no value;  the value
//   varint  number of headers, each:
//             varint length of the name; the name
//             varint length of the value, -1: no value; the value

struct RecordHeader {
  std::string_view name;
  std::optional<std::string_view> value;

  bool operator==(const RecordHeader&) const = default;
};

/// A record to be written.
struct Record {
  std::optional<std::string_view> key;
  std::optional<std::string_view> value;
  std::span<const RecordHeader> headers;
  TimestampMs timestamp;
};

/// Makes a batch out of records. Keeps its memory from one batch to the next. Not thread-safe.
class BatchBuilder {
 public:
  /// Of a batch, before compression.
  explicit BatchBuilder(std::size_t bytes_max = limits::kStreamBatchBytesDefault)
      : bytes_max_(bytes_max) {}

  /// Fails with resource_exhausted when the batch would get larger than it may, and with
  /// invalid_argument when the record alone is at fault (a negative timestamp, too many headers,
  /// larger than any batch); nothing is added then.
  Status add(const Record& record);

  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] bool empty() const { return count_ == 0; }
  /// What finish() would return without compression.
  [[nodiscard]] std::size_t bytes() const { return kBatchHeaderBytes + records_.size(); }

  /// The batch, with base offset 0; the builder is empty afterwards. At least one record must have
  /// been added. Records that compression makes no smaller are stored as they are.
  Result<std::string> finish(Compression compression = Compression::none,
                             const std::optional<ProducerStamp>& producer = std::nullopt);

 private:
  std::size_t bytes_max_;
  std::string records_;
  std::int32_t count_ = 0;
  TimestampMs first_timestamp_;
  TimestampMs max_timestamp_;
};

/// The headers of one record. They were checked when the record was read, so this cannot fail.
class RecordHeaders {
 public:
  RecordHeaders() = default;
  RecordHeaders(std::uint32_t count, std::string_view bytes) : left_(count), rest_(bytes) {}

  [[nodiscard]] std::uint32_t size() const { return left_; }
  /// Takes the next one; none at the end.
  std::optional<RecordHeader> next();

 private:
  std::uint32_t left_ = 0;
  std::string_view rest_;
};

/// A record as it is read: views into the batch, or into its reader when that decompressed it.
struct RecordView {
  Offset offset;
  TimestampMs timestamp;
  std::optional<std::string_view> key;
  std::optional<std::string_view> value;
  RecordHeaders headers;
};

/// Walks the records of a batch. Decompresses once, at open(); allocates nothing per record. The
/// batch's bytes must outlive it.
class RecordReader {
 public:
  /// Fails as decompress() does. The checksum is not looked at: see BatchView::check_crc().
  static Result<RecordReader> open(
      const BatchView& batch, std::size_t decompressed_bytes_max = limits::kDecompressedBytesMax);

  /// Fills `record` and answers true; false after the last. Fails with malformed when a record is
  /// damaged, not numbered after the one before it, or when bytes are left over at the end.
  Result<bool> next(RecordView& record);

 private:
  RecordReader(const BatchHeader& header, std::string_view stored,
               std::unique_ptr<std::string> own);

  BatchHeader header_;
  // On the heap, since the views into it must survive a move of the reader.
  std::unique_ptr<std::string> decompressed_;
  std::string_view rest_;
  std::int32_t done_ = 0;
};

}  // namespace baton
