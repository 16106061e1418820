#include "storage/journal/segment_scan.h"

#include <algorithm>
#include <cstring>

#include "base/assert.h"

namespace baton {
namespace {

constexpr std::size_t kPositionOffset = 16;

// Read before the CRC is checked, so that a search over 64 MiB takes milliseconds.
Position unchecked_position(std::string_view header) {
  std::uint64_t position = 0;
  std::memcpy(&position, header.data() + kPositionOffset, sizeof position);
  return Position{position};
}

}  // namespace

SegmentReader::SegmentReader(std::string_view bytes, const SegmentHeader& header)
    : bytes_(bytes), id_(header.id), position_(header.first) {}

std::optional<SegmentReader::Found> SegmentReader::next() {
  if (offset_ >= bytes_.size()) return std::nullopt;
  const std::string_view rest = bytes_.substr(offset_);
  const auto header = decode_round_header(id_, rest);
  if (!header || header->position != position_) return std::nullopt;
  if (round_bytes(header->facts_bytes) > rest.size()) return std::nullopt;
  const std::string_view facts = rest.substr(kRoundHeaderBytes, header->facts_bytes);
  if (round_facts_crc(id_, position_, facts) != header->facts_crc) return std::nullopt;

  const Found found{.round = {.position = position_, .now = header->now, .facts = facts},
                    .durable = header->durable,
                    .offset = offset_};
  offset_ += round_bytes(facts.size());
  ++position_.value;
  BATON_ASSERT(offset_ <= bytes_.size() && offset_ % kRoundAlignment == 0);
  return found;
}

LaterRounds search_later_rounds(std::string_view bytes, SegmentId segment, SearchFrom from) {
  BATON_ASSERT(from.offset % kRoundAlignment == 0);
  LaterRounds later;
  // A segment has fewer rounds than bytes, so a position further on cannot be one.
  const std::uint64_t ahead_max = bytes.size() / kRoundHeaderBytes;
  for (std::uint64_t at = from.offset; at + kRoundHeaderBytes <= bytes.size();
       at += kRoundAlignment) {
    const std::string_view rest = bytes.substr(at);
    const Position position = unchecked_position(rest);
    if (position < from.position || position.value - from.position.value > ahead_max) continue;
    const auto header = decode_round_header(segment, rest);
    if (!header) continue;
    later.durable = std::max(later.durable, header->durable);
    later.end = std::max(
        later.end, std::min<std::uint64_t>(at + round_bytes(header->facts_bytes), bytes.size()));
  }
  return later;
}

}  // namespace baton
