#include "base/siphash.h"

#include <string>

#include <gtest/gtest.h>

namespace baton {
namespace {

SipKey counting_key() {
  SipKey key{};
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::uint8_t>(i);
  return key;
}

std::string counting(std::size_t size) {
  std::string bytes;
  for (std::size_t i = 0; i < size; ++i) bytes.push_back(static_cast<char>(i));
  return bytes;
}

// The example of the paper's appendix, and values of its authors' own test.
TEST(SipHash, IsTheOneThatWasPublished) {
  EXPECT_EQ(siphash(counting_key(), counting(15)), 0xa129ca6149be45e5ULL);
  EXPECT_EQ(siphash(counting_key(), ""), 0x726fdb47dd0e0e31ULL);
  EXPECT_EQ(siphash(counting_key(), counting(1)), 0x74f839c593dc67fdULL);
  EXPECT_EQ(siphash(counting_key(), counting(8)), 0x93f5f5799a932462ULL);
}

TEST(SipHash, EveryBitOfKeyAndBytesMatters) {
  const std::uint64_t known = siphash(counting_key(), counting(20));
  for (std::size_t i = 0; i < 20 * 8; ++i) {
    std::string bytes = counting(20);
    bytes[i / 8] = static_cast<char>(bytes[i / 8] ^ (1 << (i % 8)));
    EXPECT_NE(siphash(counting_key(), bytes), known) << i;
  }
  for (std::size_t i = 0; i < 128; ++i) {
    SipKey key = counting_key();
    key[i / 8] ^= static_cast<std::uint8_t>(1U << (i % 8));
    EXPECT_NE(siphash(key, counting(20)), known) << i;
  }
}

}  // namespace
}  // namespace baton
