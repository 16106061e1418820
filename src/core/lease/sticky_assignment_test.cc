#include "core/lease/sticky_assignment.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace baton {
namespace {

using Holders = std::vector<HolderIndex>;

Holders balanced(std::size_t things, std::size_t holders) {
  return assign_sticky(Holders(things), std::vector<std::uint32_t>(holders, 1));
}

/// Items that move from one holder to another, or from a holder that is gone.
std::size_t moves(const Holders& before, const Holders& after) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < before.size(); ++i) count += before[i] != after[i] ? 1 : 0;
  return count;
}

std::vector<std::size_t> counts(const Holders& holders, std::size_t number) {
  std::vector<std::size_t> result(number);
  for (std::size_t i = 0; i < number; ++i) {
    result[i] = static_cast<std::size_t>(std::ranges::count(holders, HolderIndex{i}));
  }
  return result;
}

std::size_t moves_of_join(std::size_t from) {
  const Holders before = balanced(64, from);
  return moves(before, assign_sticky(before, std::vector<std::uint32_t>(from + 1, 1)));
}

std::size_t moves_of_leave(std::size_t from) {
  Holders before = balanced(64, from);
  std::ranges::replace(before, HolderIndex{0}, HolderIndex{});  // The holder with the most items.
  for (std::size_t i = 1; i < from; ++i) {
    std::ranges::replace(before, HolderIndex{i}, HolderIndex{i - 1});
  }
  return moves(before, assign_sticky(before, std::vector<std::uint32_t>(from - 1, 1)));
}

TEST(StickyAssignment, AJoinMovesTheMinimum) {
  EXPECT_EQ(moves_of_join(3), 16U);
  EXPECT_EQ(moves_of_join(4), 12U);
  EXPECT_EQ(moves_of_join(8), 7U);
  EXPECT_EQ(moves_of_join(16), 3U);
}

TEST(StickyAssignment, ALeaveMovesWhatTheLeaverHad) {
  EXPECT_EQ(moves_of_leave(3), 22U);
  EXPECT_EQ(moves_of_leave(4), 16U);
  EXPECT_EQ(moves_of_leave(8), 8U);
  EXPECT_EQ(moves_of_leave(16), 4U);
}

TEST(StickyAssignment, ALoserGivesUpItsHighest) {
  const Holders all_of_one(4, HolderIndex{0});
  const Holders expected = {0, 0, 1, 1};
  EXPECT_EQ(assign_sticky(all_of_one, std::vector<std::uint32_t>{1, 1}), expected);
}

TEST(StickyAssignment, MoreHoldersThanThings) {
  EXPECT_EQ(counts(balanced(2, 5), 5), (std::vector<std::size_t>{1, 1, 0, 0, 0}));
}

TEST(StickyAssignment, NobodyToTakeIt) {
  EXPECT_EQ(assign_sticky(Holders{0, std::nullopt}, {}), Holders(2));
}

TEST(StickyAssignment, WeightsCount) {
  const Holders result = assign_sticky(Holders(12), std::vector<std::uint32_t>{1, 3});
  EXPECT_EQ(counts(result, 2), (std::vector<std::size_t>{3, 9}));
}

RC_GTEST_PROP(StickyAssignment, EverybodyIsWithinOneOfItsQuotaAndNothingMovesInVain, ()) {
  const auto weights = *rc::gen::nonEmpty(
      rc::gen::container<std::vector<std::uint32_t>>(rc::gen::inRange<std::uint32_t>(1, 20)));
  const auto raw = *rc::gen::container<std::vector<std::size_t>>(
      rc::gen::inRange<std::size_t>(0, weights.size() + 1));
  Holders before;
  for (const std::size_t holder : raw) {
    before.push_back(holder == weights.size() ? HolderIndex{} : HolderIndex{holder});
  }
  const Holders after = assign_sticky(before, weights);
  const auto total = std::accumulate(weights.begin(), weights.end(), std::uint64_t{0});
  const auto had = [&](std::size_t holder) {
    return std::ranges::count(before, HolderIndex{holder});
  };
  const auto has = counts(after, weights.size());
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::uint64_t scaled = before.size() * std::uint64_t{weights[i]};
    RC_ASSERT(has[i] >= scaled / total);
    RC_ASSERT(has[i] <= (scaled + total - 1) / total);
    // A holder that lost an item got none: a swap would be two moves for nothing.
    bool lost = false;
    bool won = false;
    for (std::size_t thing = 0; thing < before.size(); ++thing) {
      lost |= before[thing] == HolderIndex{i} && after[thing] != HolderIndex{i};
      won |= before[thing] != HolderIndex{i} && after[thing] == HolderIndex{i};
    }
    RC_ASSERT(!(lost && won));
    // A holder that lost an item keeps at least its quota rounded down, and has less than before.
    if (lost) RC_ASSERT(has[i] < static_cast<std::size_t>(had(i)));
  }
  RC_ASSERT(moves(after, assign_sticky(after, weights)) == 0U);
}

}  // namespace
}  // namespace baton
