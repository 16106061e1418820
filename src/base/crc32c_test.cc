#include "base/crc32c.h"

#include <cstdint>
#include <string>
#include <string_view>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace baton {
namespace {

// Bit by bit, as the definition reads: a second opinion on the instruction and on the table.
std::uint32_t reference(std::string_view bytes) {
  std::uint32_t crc = ~0U;
  for (const char c : bytes) {
    crc ^= static_cast<std::uint8_t>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1U) ^ ((crc & 1U) != 0 ? 0x82f63b78U : 0U);
  }
  return ~crc;
}

// The check value of the CRC catalogue, and the vectors of RFC 3720 (iSCSI).
TEST(Crc32c, PublishedValues) {
  EXPECT_EQ(crc32c(""), 0U);
  EXPECT_EQ(crc32c("123456789"), 0xe3069283U);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8a9136aaU);
  EXPECT_EQ(crc32c(std::string(32, '\xff')), 0x62a8ab43U);
}

TEST(Crc32c, EveryLengthAndAlignment) {
  std::string bytes;
  for (int i = 0; i < 80; ++i) bytes.push_back(static_cast<char>(i * 37 + 11));
  for (std::size_t from = 0; from < 16; ++from) {
    for (std::size_t count = 0; count + from <= bytes.size(); ++count) {
      const std::string_view part = std::string_view(bytes).substr(from, count);
      EXPECT_EQ(crc32c(part), reference(part)) << from << " " << count;
    }
  }
}

RC_GTEST_PROP(Crc32c, CanBeTakenInParts, (std::string first, std::string second)) {
  RC_ASSERT(crc32c(second, crc32c(first)) == crc32c(first + second));
}

RC_GTEST_PROP(Crc32c, OneFlippedBitShows, (std::string bytes)) {
  RC_PRE(!bytes.empty());
  std::string damaged = bytes;
  const auto at = *rc::gen::inRange<std::size_t>(0, bytes.size() * 8);
  damaged[at / 8] = static_cast<char>(damaged[at / 8] ^ (1 << (at % 8)));
  RC_ASSERT(crc32c(damaged) != crc32c(bytes));
}

}  // namespace
}  // namespace baton
