#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <baton/strong.h>

#include "base/result.h"
#include "base/time.h"
#include "storage/journal/journal.h"

namespace baton {

/// Drawn for every life of a segment file: rounds are valid only under the id they were written
/// with.
using SegmentId = Strong<struct SegmentIdTag>;

inline constexpr std::uint32_t kJournalFormatVersion = 1;
inline constexpr std::uint64_t kSegmentHeaderBytes = 4096;
inline constexpr std::uint64_t kRoundHeaderBytes = 40;
inline constexpr std::uint64_t kRoundAlignment = 8;

/// What the first block of a segment file says.
struct SegmentHeader {
  SegmentId id;
  Position first;       // The position of the segment's first round.
  std::uint64_t bytes;  // The size of the file, which never changes during a life.
};

/// What precedes the facts of a round.
struct RoundHeader {
  Position position;
  Instant now;
  Position durable;  // The first position not known to be durable when the round was written.
  std::uint32_t facts_bytes;
  std::uint32_t facts_crc;
};

/// Appends the whole header block, kSegmentHeaderBytes long.
void encode_segment_header(const SegmentHeader& header, std::string& out);
/// Reads a header block. Fails with store_too_new for a newer format, with malformed for damage.
Result<SegmentHeader> decode_segment_header(std::string_view block);
/// The block of a segment that was prepared, but whose header never reached the disk.
bool is_unused_segment_header(std::string_view block);

/// The bytes that a round with this many bytes of facts takes in its segment.
std::uint64_t round_bytes(std::uint64_t facts_bytes);
/// Appends the whole round, round_bytes() long.
void encode_round(SegmentId segment, const Round& round, Position durable, std::string& out);
/// The header at the beginning of `bytes`; nullopt if it is not of this segment's life.
std::optional<RoundHeader> decode_round_header(SegmentId segment, std::string_view bytes);
/// The CRC that `facts` must have as the facts of the round at `position`.
std::uint32_t round_facts_crc(SegmentId segment, Position position, std::string_view facts);

/// "00000000000000000042.journal".
std::string segment_name(Position first);
/// The position in a segment's name; nullopt if `name` is not the name of a segment.
std::optional<Position> parse_segment_name(std::string_view name);

}  // namespace baton
