#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "core/stream/record_batch.h"
#include "storage/disk/disk.h"

namespace baton {

/// Walks through the batches of a file, in order, from a place where one begins. Trusts nothing: it
/// goes on as long as each header is sound and continues the offsets.
class BatchWalk {
 public:
  /// Headers alone, with few and small reads; or whole batches, with few and large ones.
  enum class Depth : std::uint8_t { headers, whole };
  struct Start {
    std::uint64_t position = 0;
    // Of the batch at `position`; absent: any offset is accepted.
    std::optional<Offset> offset = {};
    // Where the file ends, or where the walk is to end.
    std::uint64_t size = 0;
    // If the batches are to be indexed: the segment's first offset. No batch may be too far off.
    std::optional<Offset> base = {};
  };

  BatchWalk(const File& file, const Start& start, Depth depth);

  /// The next batch; nullopt at the end, and where the bytes make no sense (see broken()). Fails
  /// only when the disk does.
  Result<std::optional<BatchHeader>> next();

  /// Where the batch that next() returned last began.
  [[nodiscard]] std::uint64_t batch_position() const { return batch_position_; }
  /// Whether the checksum of that batch fits. Only with Depth::whole.
  [[nodiscard]] bool crc_good() const { return crc_good_; }
  /// Where the walk stands: the end of that batch.
  [[nodiscard]] std::uint64_t position() const { return position_; }
  /// The offset that the next batch must have; -1 when any is accepted.
  [[nodiscard]] Offset offset() const { return offset_.value_or(Offset{-1}); }
  /// Why the walk cannot go on; empty when it can, and at the end.
  [[nodiscard]] const std::string& broken() const { return broken_; }

 private:
  /// `count` bytes at position_, fewer at the end of the file; valid until the next call.
  Result<std::string_view> bytes(std::uint64_t count);
  std::optional<BatchHeader> stop(std::string why);
  /// Why a batch with this header cannot be the next one; empty when it can.
  [[nodiscard]] std::string objection(const BatchHeader& header) const;

  const File& file_;
  Depth depth_;
  std::uint64_t size_;
  std::uint64_t position_;
  std::optional<Offset> offset_;
  std::optional<Offset> base_;
  std::uint64_t batch_position_ = 0;
  bool crc_good_ = false;
  std::string broken_;
  std::string chunk_;
  std::uint64_t chunk_position_ = 0;
};

}  // namespace baton
