#include "base/bytes.h"

#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace baton {
namespace {

using std::string_literals::operator""s;
using std::string_view_literals::operator""sv;

constexpr std::uint64_t kU64Max = std::numeric_limits<std::uint64_t>::max();

std::string varint(std::uint64_t value) {
  std::string bytes;
  Encoder(bytes).varint(value);
  return bytes;
}

// These layouts are on disks: they never change.
TEST(Encoder, LayoutIsFixed) {
  std::string bytes;
  Encoder out(bytes);
  out.u8(0xab);
  out.fixed(std::uint32_t{0x01020304});
  out.fixed(std::int16_t{-2});
  out.big_u16(0x0102);
  out.big_u64(0x0102030405060708);
  out.varint(300);
  out.blob("hi");
  out.raw("!");
  EXPECT_EQ(bytes,
            "\xab\x04\x03\x02\x01\xfe\xff\x01\x02\x01\x02\x03\x04\x05\x06\x07\x08\xac\x02\x02hi!"s);
}

TEST(Encoder, VarintUsesSevenBitsAByte) {
  EXPECT_EQ(varint(0), "\0"s);
  EXPECT_EQ(varint(127), "\x7f");
  EXPECT_EQ(varint(128), "\x80\x01");
  EXPECT_EQ(varint(kU64Max), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
}

RC_GTEST_PROP(Decoder, ReadsBackWhatEncoderWrote,
              (std::uint8_t a, std::uint32_t b, std::int64_t c, std::uint16_t d, std::uint64_t e,
               std::string f)) {
  // rapidcheck draws small numbers; shifted, they reach every length of varint.
  const std::uint64_t wide = e << *rc::gen::inRange(0, 64);
  std::string bytes;
  Encoder out(bytes);
  out.u8(a);
  out.fixed(b);
  out.fixed(c);
  out.big_u16(d);
  out.big_u64(e);
  out.varint(wide);
  out.blob(f);

  Decoder in(bytes);
  RC_ASSERT(in.u8() == a);
  RC_ASSERT(in.fixed<std::uint32_t>() == b);
  RC_ASSERT(in.fixed<std::int64_t>() == c);
  RC_ASSERT(in.big_u16() == d);
  RC_ASSERT(in.big_u64() == e);
  RC_ASSERT(in.varint() == wide);
  RC_ASSERT(in.blob() == f);
  RC_ASSERT(in.finish());
}

RC_GTEST_PROP(Decoder, EveryCutIsNoticed, (std::uint64_t number, std::string blob)) {
  std::string bytes;
  Encoder out(bytes);
  out.varint(number);
  out.blob(blob);
  out.fixed(number);
  const auto cut = *rc::gen::inRange<std::size_t>(0, bytes.size());

  Decoder in(std::string_view(bytes).substr(0, cut));
  in.varint();
  in.blob();
  in.fixed<std::uint64_t>();
  RC_ASSERT(!in.ok());
  RC_ASSERT(!in.finish());
}

// Keys are compared as bytes, so their order must be the order of the numbers.
RC_GTEST_PROP(Encoder, BigEndianKeepsTheOrder, (std::uint64_t a, std::uint64_t b)) {
  std::string left;
  std::string right;
  Encoder(left).big_u64(a);
  Encoder(right).big_u64(b);
  RC_ASSERT((left < right) == (a < b));
}

TEST(Decoder, AnswersZeroAfterTheFirstBadRead) {
  Decoder in("\x01\x02\x03");
  EXPECT_EQ(in.fixed<std::uint32_t>(), 0U);
  EXPECT_FALSE(in.ok());
  EXPECT_EQ(in.u8(), 0U) << "bytes are left, but the decoder has failed";
  EXPECT_EQ(in.varint(), 0U);
  EXPECT_EQ(in.blob(), "");
  EXPECT_EQ(in.count(1), 0U);
  EXPECT_TRUE(in.empty());
  EXPECT_FALSE(in.finish());
}

// A truncated varint would still read as a number, and a wrong one.
TEST(Decoder, TruncatedVarintIsZero) {
  Decoder in("\x85");
  EXPECT_EQ(in.varint(), 0U);
  EXPECT_FALSE(in.ok());
}

TEST(Decoder, VarintPast64BitsFails) {
  Decoder fits("\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01");
  EXPECT_EQ(fits.varint(), kU64Max);
  EXPECT_TRUE(fits.finish());
  for (const std::string_view bytes : {"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"sv,
                                       "\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x00"sv}) {
    Decoder in(bytes);
    EXPECT_EQ(in.varint(), 0U);
    EXPECT_FALSE(in.ok());
  }
}

TEST(Decoder, BlobLongerThanTheRestFails) {
  for (const std::uint64_t length : {std::uint64_t{3}, kU64Max}) {
    const std::string bytes = varint(length) + "hi";
    Decoder in(bytes);
    EXPECT_EQ(in.blob(), "");
    EXPECT_FALSE(in.ok());
  }
}

// A count must be checked before a caller reserves memory for it.
TEST(Decoder, CountThatCannotFitFails) {
  const std::string three = varint(3) + "abcdef";
  EXPECT_EQ(Decoder(three).count(2), 3U);
  EXPECT_EQ(Decoder(three).count(3), 0U);
  EXPECT_EQ(Decoder(varint(kU64Max)).count(1), 0U);
  EXPECT_EQ(Decoder(varint(kU64Max)).count(0), kU64Max) << "things of no size fit anywhere";
}

TEST(Decoder, FinishWantsEverythingRead) {
  Decoder in("ab");
  in.u8();
  EXPECT_TRUE(in.ok());
  EXPECT_FALSE(in.finish());
  EXPECT_EQ(in.rest(), "b");
  in.fail();
  EXPECT_FALSE(in.ok());
}

}  // namespace
}  // namespace baton
