#include "base/hash.h"

#include <array>
#include <cstdint>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace baton {
namespace {

std::string hex(const std::array<std::uint8_t, 16>& bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

// Which shard a name belongs to is decided by these values: another hash would lose every queue.
TEST(Hash, ValuesNeverChange) {
  EXPECT_EQ(hash64(""), 0x2d06800538d394c2U);
  EXPECT_EQ(hash64("orders"), 0xa88ccdc9fa4974fbU);
  EXPECT_EQ(hex(hash128("")), "99aa06d3014798d86001c324468d497f");
  EXPECT_EQ(hex(hash128("orders")), "b47e5f278b024151d3047ab9cc789b9d");
}

TEST(Hash, EveryByteCounts) {
  EXPECT_NE(hash64("orders"), hash64("orders2"));
  EXPECT_NE(hash64(std::string("a\0b", 3)), hash64(std::string("a\0c", 3)));
  EXPECT_NE(hash128("orders"), hash128("Orders"));
}

}  // namespace
}  // namespace baton
