#include "base/random.h"

#include <array>
#include <cstdint>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace baton {
namespace {

// The seeds in tests/seeds/ stand for these numbers: with another generator they would stand for
// other runs.
TEST(Random, TheNumbersOfASeedNeverChange) {
  Random random(0);
  EXPECT_EQ(random.next(), 0x99ec5f36cb75f2b4U);
  EXPECT_EQ(random.next(), 0xbf6e1f784956452aU);
  EXPECT_EQ(random.next(), 0x1a5f849d4933e6e0U);
}

RC_GTEST_PROP(Random, BelowStaysBelow, (std::uint64_t seed)) {
  const auto bound = *rc::gen::positive<std::uint64_t>();
  Random random(seed);
  for (int i = 0; i < 20; ++i) RC_ASSERT(random.below(bound) < bound);
}

TEST(Random, BelowZeroOrOneIsZero) {
  Random random(1);
  EXPECT_EQ(random.below(0), 0U);
  EXPECT_EQ(random.below(1), 0U);
}

TEST(Random, BelowIsEven) {
  Random random(42);
  std::array<int, 10> seen{};
  for (int i = 0; i < 100'000; ++i) ++seen.at(random.below(seen.size()));
  for (const int count : seen) EXPECT_NEAR(count, 10'000, 500);
}

TEST(Random, ChanceKeepsItsOdds) {
  Random random(42);
  int hits = 0;
  for (int i = 0; i < 100'000; ++i) hits += random.chance(1, 4) ? 1 : 0;
  EXPECT_NEAR(hits, 25'000, 1'000);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(random.chance(0, 4));
    EXPECT_TRUE(random.chance(4, 4));
  }
}

TEST(Random, ForksAreApart) {
  const Random parent(1);
  Random disk = parent.fork("disk");
  Random network = parent.fork("network");
  EXPECT_NE(disk.next(), network.next());
}

// A new draw in the disk must not change what the network does.
TEST(Random, DrawsFromOneForkDoNotShiftAnother) {
  const Random parent(1);
  Random expected = parent.fork("network");
  Random disk = parent.fork("disk");
  for (int i = 0; i < 10; ++i) disk.next();
  Random network = parent.fork("network");
  for (int i = 0; i < 10; ++i) EXPECT_EQ(network.next(), expected.next());
}

}  // namespace
}  // namespace baton
