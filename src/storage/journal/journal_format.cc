// The bytes of a journal segment, format version 1. Numbers are little-endian.
// docs/storage-format.md describes the same, and the rules of recovery.
//
// A segment file: one header block, then rounds, each beginning at a multiple of 8, then whatever
// the file held before (zeros, or rounds of a former life, which do not validate under this life's
// id).
//
//   Segment header, 4096 bytes                    Round, 40 bytes and the facts
//    0  magic "BATONJNL"          8 bytes          0  header CRC                4 bytes
//    8  format version            4                4  bytes of facts            4
//   12  zero                      4                8  facts CRC                 4
//   16  segment id                8               12  zero                      4
//   24  position of round one     8               16  position                  8
//   32  size of the file          8               24  now, ns since 1970        8
//   40  CRC of bytes 0 to 39      4               32  durable position          8
//   44  zeros                  4052               40  facts, then zeros up to a multiple of 8
//
// The header CRC of a round covers the segment id and bytes 4 to 39; its facts CRC covers the
// segment id, the position and the facts. Two CRCs and not one: a search for headers in damaged
// bytes must not trust a length that no checksum covers.
//
// Every future version keeps bytes 0 to 11 of the segment header.

#include "storage/journal/journal_format.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc32c.h"

namespace baton {
namespace {

constexpr std::string_view kMagic = "BATONJNL";
constexpr std::string_view kSegmentSuffix = ".journal";
constexpr std::size_t kSegmentCrcOffset = 40;
constexpr std::size_t kPositionDigits = 20;

std::string_view bytes_of(const std::uint64_t& number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};  // NOLINT
}

std::uint32_t round_header_crc(SegmentId segment, std::string_view header) {
  const auto covered =
      header.substr(sizeof(std::uint32_t), kRoundHeaderBytes - sizeof(std::uint32_t));
  return crc32c(covered, crc32c(bytes_of(segment.value)));
}

}  // namespace

void encode_segment_header(const SegmentHeader& header, std::string& out) {
  const std::size_t begin = out.size();
  Encoder encoder(out);
  encoder.raw(kMagic);
  encoder.fixed(kJournalFormatVersion);
  encoder.fixed(std::uint32_t{0});
  encoder.fixed(header.id.value);
  encoder.fixed(header.first.value);
  encoder.fixed(header.bytes);
  encoder.fixed(crc32c(std::string_view(out).substr(begin, kSegmentCrcOffset)));
  out.resize(begin + kSegmentHeaderBytes, '\0');
}

Result<SegmentHeader> decode_segment_header(std::string_view block) {
  Decoder decoder(block);
  if (decoder.raw(kMagic.size()) != kMagic) {
    return Error{Errc::malformed, "no journal segment begins like this"};
  }
  const auto version = decoder.fixed<std::uint32_t>();
  // Checked before the CRC, whose place a newer format may have moved.
  if (decoder.ok() && version > kJournalFormatVersion) {
    return Error{Errc::store_too_new,
                 fmt::format("journal format {}, but this version reads up to {}", version,
                             kJournalFormatVersion)};
  }
  const auto zero = decoder.fixed<std::uint32_t>();
  SegmentHeader header{};
  header.id = SegmentId{decoder.fixed<std::uint64_t>()};
  header.first = Position{decoder.fixed<std::uint64_t>()};
  header.bytes = decoder.fixed<std::uint64_t>();
  const auto crc = decoder.fixed<std::uint32_t>();
  if (!decoder.ok() || crc != crc32c(block.substr(0, kSegmentCrcOffset))) {
    return Error{Errc::malformed, "the segment header's checksum does not match"};
  }
  const bool size_is_possible =
      header.bytes >= kSegmentHeaderBytes && header.bytes % kRoundAlignment == 0;
  if (version == 0 || zero != 0 || header.first.value == 0 || !size_is_possible) {
    return Error{Errc::malformed, "the segment header makes no sense"};
  }
  return header;
}

bool is_unused_segment_header(std::string_view block) {
  return std::ranges::all_of(block.substr(0, kSegmentHeaderBytes),
                             [](char c) { return c == '\0'; });
}

std::uint64_t round_bytes(std::uint64_t facts_bytes) {
  return kRoundHeaderBytes +
         (facts_bytes + kRoundAlignment - 1) / kRoundAlignment * kRoundAlignment;
}

void encode_round(SegmentId segment, const Round& round, Position durable, std::string& out) {
  BATON_ASSERT(round.facts.size() <= std::numeric_limits<std::uint32_t>::max());
  BATON_ASSERT(round.position.value > 0 && durable <= round.position);
  const std::size_t begin = out.size();
  Encoder encoder(out);
  encoder.fixed(std::uint32_t{0});
  encoder.fixed(static_cast<std::uint32_t>(round.facts.size()));
  encoder.fixed(round_facts_crc(segment, round.position, round.facts));
  encoder.fixed(std::uint32_t{0});
  encoder.fixed(round.position.value);
  encoder.fixed(round.now.ns);
  encoder.fixed(durable.value);
  const std::uint32_t crc = round_header_crc(segment, std::string_view(out).substr(begin));
  std::memcpy(out.data() + begin, &crc, sizeof crc);
  encoder.raw(round.facts);
  out.resize(begin + round_bytes(round.facts.size()), '\0');
}

std::optional<RoundHeader> decode_round_header(SegmentId segment, std::string_view bytes) {
  Decoder decoder(bytes);
  RoundHeader header{};
  const auto crc = decoder.fixed<std::uint32_t>();
  header.facts_bytes = decoder.fixed<std::uint32_t>();
  header.facts_crc = decoder.fixed<std::uint32_t>();
  const auto zero = decoder.fixed<std::uint32_t>();
  header.position = Position{decoder.fixed<std::uint64_t>()};
  header.now = Instant{decoder.fixed<std::int64_t>()};
  header.durable = Position{decoder.fixed<std::uint64_t>()};
  if (!decoder.ok() || zero != 0 || header.position.value == 0) return std::nullopt;
  if (header.durable > header.position) return std::nullopt;
  if (crc != round_header_crc(segment, bytes)) return std::nullopt;
  return header;
}

std::uint32_t round_facts_crc(SegmentId segment, Position position, std::string_view facts) {
  return crc32c(facts, crc32c(bytes_of(position.value), crc32c(bytes_of(segment.value))));
}

std::string segment_name(Position first) {
  return fmt::format("{:020}{}", first.value, kSegmentSuffix);
}

std::optional<Position> parse_segment_name(std::string_view name) {
  if (name.size() != kPositionDigits + kSegmentSuffix.size()) return std::nullopt;
  if (!name.ends_with(kSegmentSuffix)) return std::nullopt;
  const std::string digits(name.substr(0, kPositionDigits));
  const char* const end = digits.data() + digits.size();
  std::uint64_t number = 0;
  const auto parsed = std::from_chars(digits.data(), end, number);
  if (parsed.ec != std::errc{} || parsed.ptr != end || number == 0) return std::nullopt;
  return Position{number};
}

}  // namespace baton
