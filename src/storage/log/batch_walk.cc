#include "storage/log/batch_walk.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

namespace baton {
namespace {

// Index entries are 4 KiB apart: twice that covers most gaps between two of them.
constexpr std::uint64_t kHeaderChunkBytes = std::uint64_t{8} << 10U;
constexpr std::uint64_t kWholeChunkBytes = std::uint64_t{1} << 20U;

}  // namespace

BatchWalk::BatchWalk(const File& file, const Start& start, Depth depth)
    : file_(file),
      depth_(depth),
      size_(start.size),
      position_(start.position),
      offset_(start.offset),
      base_(start.base) {}

Result<std::string_view> BatchWalk::bytes(std::uint64_t count) {
  count = std::min(count, size_ - position_);
  const std::uint64_t skip = position_ - chunk_position_;
  if (skip > chunk_.size() || chunk_.size() - skip < count) {
    const std::uint64_t chunk = depth_ == Depth::whole ? kWholeChunkBytes : kHeaderChunkBytes;
    BATON_TRY(chunk_,
              file_.read_at(position_, std::min(std::max(count, chunk), size_ - position_)));
    chunk_position_ = position_;
  }
  return std::string_view(chunk_).substr(position_ - chunk_position_, count);
}

std::optional<BatchHeader> BatchWalk::stop(std::string why) {
  broken_ = std::move(why);
  return std::nullopt;
}

std::string BatchWalk::objection(const BatchHeader& header) const {
  if (offset_ && header.base_offset != *offset_) {
    return fmt::format("base offset {}, but {} comes next", header.base_offset.value,
                       offset_->value);
  }
  if (header.bytes > size_ - position_) {
    return fmt::format("a batch of {} bytes, but the file ends after {}", header.bytes,
                       size_ - position_);
  }
  constexpr std::int64_t kFar = std::numeric_limits<std::int32_t>::max();
  const bool far = position_ > static_cast<std::uint64_t>(kFar) ||
                   (base_ && header.last_offset().value - base_->value > kFar);
  if (base_ && far) return "more than a segment can hold";
  return {};
}

Result<std::optional<BatchHeader>> BatchWalk::next() {
  if (!broken_.empty() || position_ >= size_) return std::optional<BatchHeader>{};
  BATON_TRY(const std::string_view head, bytes(kBatchHeaderBytes));
  const auto header = decode_batch_header(head);
  if (!header) return stop(header.error().text);
  if (std::string why = objection(*header); !why.empty()) return stop(std::move(why));
  if (depth_ == Depth::whole) {
    BATON_TRY(const std::string_view all, bytes(header->bytes));
    const auto batch = BatchView::parse(all);
    if (!batch) return stop(batch.error().text);
    crc_good_ = batch->check_crc().has_value();
  }
  batch_position_ = position_;
  position_ += header->bytes;
  offset_ = header->next_offset();
  return std::optional<BatchHeader>(*header);
}

}  // namespace baton
