#include "storage/journal/journal_format.h"

#include <gtest/gtest.h>

#include "storage/journal/segment_scan.h"

namespace baton {
namespace {

constexpr SegmentId kSegment{0x1122334455667788};
constexpr SegmentHeader kHeader{.id = kSegment, .first = Position{42}, .bytes = 65536};
constexpr Round kRound{
    .position = Position{42}, .now = Instant{0x0102030405060708}, .facts = "enqueued"};
constexpr Position kDurable{41};

std::string hex(std::string_view bytes) {
  static constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const char c : bytes) {
    const auto byte = static_cast<std::uint8_t>(c);
    text.push_back(kDigits[byte >> 4U]);
    text.push_back(kDigits[byte & 0xfU]);
  }
  return text;
}

std::string golden_header() {
  std::string bytes;
  encode_segment_header(kHeader, bytes);
  return bytes;
}

std::string golden_round(SegmentId segment = kSegment) {
  std::string bytes;
  encode_round(segment, kRound, kDurable, bytes);
  return bytes;
}

// Folders of old brokers must open in new ones: these bytes are a promise.
TEST(JournalFormat, SegmentHeaderBytesNeverChange) {
  const std::string bytes = golden_header();

  ASSERT_EQ(bytes.size(), kSegmentHeaderBytes);
  EXPECT_EQ(hex(bytes.substr(0, 48)),
            "4241544f4e4a4e4c"
            "01000000"
            "00000000"
            "8877665544332211"
            "2a00000000000000"
            "0000010000000000"
            "67a3247d"
            "00000000");
  EXPECT_TRUE(is_unused_segment_header(bytes.substr(44)));
}

TEST(JournalFormat, RoundBytesNeverChange) {
  EXPECT_EQ(hex(golden_round()),
            "117371fc"
            "08000000"
            "76d4065c"
            "00000000"
            "2a00000000000000"
            "0807060504030201"
            "2900000000000000"
            "656e717565756564");
}

TEST(JournalFormat, SegmentHeaderIsReadBack) {
  const auto header = decode_segment_header(golden_header());

  ASSERT_TRUE(header.has_value());
  EXPECT_EQ(header->id, kHeader.id);
  EXPECT_EQ(header->first, kHeader.first);
  EXPECT_EQ(header->bytes, kHeader.bytes);
}

TEST(JournalFormat, NewerFormatIsRefusedWhateverElseItSays) {
  std::string bytes = golden_header();
  bytes[8] = 2;
  const auto header = decode_segment_header(bytes);

  ASSERT_FALSE(header.has_value());
  EXPECT_EQ(header.error().code, Errc::store_too_new);
}

TEST(JournalFormat, EveryFlippedBitOfASegmentHeaderIsNoticed) {
  for (std::size_t bit = 0; bit < 44U * 8; ++bit) {
    std::string bytes = golden_header();
    bytes[bit / 8] = static_cast<char>(bytes[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(decode_segment_header(bytes).has_value()) << bit;
    EXPECT_FALSE(is_unused_segment_header(bytes)) << bit;
  }
}

TEST(JournalFormat, EveryFlippedBitOfARoundIsNoticed) {
  const std::string good = golden_header() + golden_round();
  ASSERT_TRUE(SegmentReader(good, kHeader).next().has_value());
  for (std::size_t bit = 0; bit < golden_round().size() * 8; ++bit) {
    std::string bytes = good;
    char& damaged = bytes[kSegmentHeaderBytes + bit / 8];
    damaged = static_cast<char>(damaged ^ (1 << (bit % 8)));
    EXPECT_FALSE(SegmentReader(bytes, kHeader).next().has_value()) << bit;
  }
}

// A recycled file still holds the rounds of its former life, whole and with good checksums.
TEST(JournalFormat, RoundOfAnotherSegmentIsNotValid) {
  const SegmentId former{7};
  const std::string bytes = golden_header() + golden_round(former);

  EXPECT_FALSE(SegmentReader(bytes, kHeader).next().has_value());
  EXPECT_NE(round_facts_crc(former, kRound.position, kRound.facts),
            round_facts_crc(kSegment, kRound.position, kRound.facts));
  EXPECT_EQ(search_later_rounds(bytes, kSegment, {kSegmentHeaderBytes, Position{1}}).end, 0U);
}

TEST(JournalFormat, RoundOfAnotherPositionIsNotValid) {
  const std::string bytes = golden_header() + golden_round();
  const SegmentHeader other{.id = kSegment, .first = Position{41}, .bytes = kHeader.bytes};

  EXPECT_FALSE(SegmentReader(bytes, other).next().has_value());
}

TEST(JournalFormat, RoundCutShortIsNotValid) {
  const std::string good = golden_header() + golden_round();
  for (std::size_t size = kSegmentHeaderBytes; size < good.size(); ++size) {
    EXPECT_FALSE(SegmentReader(std::string_view(good).substr(0, size), kHeader).next()) << size;
  }
}

TEST(JournalFormat, SearchFindsTheClaimOfALaterRound) {
  std::string bytes = golden_header() + std::string(128, 'x');
  const std::uint64_t offset = bytes.size();
  encode_round(kSegment, {.position = Position{50}, .now = {}, .facts = "later"}, Position{49},
               bytes);

  const LaterRounds later =
      search_later_rounds(bytes, kSegment, {kSegmentHeaderBytes, Position{42}});

  EXPECT_EQ(later.durable, Position{49});
  EXPECT_EQ(later.end, offset + round_bytes(5));
}

TEST(JournalFormat, NamesAreReadBackAndNothingElseIs) {
  EXPECT_EQ(segment_name(Position{42}), "00000000000000000042.journal");
  EXPECT_EQ(parse_segment_name("00000000000000000042.journal"), Position{42});
  EXPECT_EQ(parse_segment_name("18446744073709551615.journal"), Position{~std::uint64_t{0}});
  for (const char* name :
       {"42.journal", "00000000000000000000.journal", "18446744073709551616.journal",
        "0000000000000000004x.journal", "-0000000000000000042.journal",
        "00000000000000000042.journaL", "00000000000000000042.spare00", ""}) {
    EXPECT_FALSE(parse_segment_name(name).has_value()) << name;
  }
}

}  // namespace
}  // namespace baton
