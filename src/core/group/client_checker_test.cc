// The search with clients as nodes of the lease rule, and the bugs that it must find.

#include "core/group/client_checker.h"

#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace baton::checker {
namespace {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint8_t kOneOrNone = 0;
const std::vector<int> kIndexes{-1};
#else
constexpr std::uint8_t kOneOrNone = 1;
const std::vector<int> kIndexes{-1, 1};
#endif

std::string told(const SearchResult& result) {
  std::string text = result.failure.value_or("");
  for (const std::string& line : result.trace) text += "\n  " + line;
  return text;
}

void expect_sound(std::string_view what, ClientSearchOptions options,
                  std::vector<int> indexes = {-1}) {
  std::uint64_t states = 0;
  for (const int index : indexes) {
    options.partition_index = PartitionIndex{index};
    const SearchResult result = search(options);
    EXPECT_FALSE(result.failure.has_value()) << "partition index " << index << ": " << told(result);
    states += result.states;
  }
  fmt::print("{}: {} states\n", what, states);
}

TEST(ClientSearch, TwoClientsAndASilentCut) {
  expect_sound("two clients, a cut", {.cuts = 1}, kIndexes);
}

TEST(ClientSearch, AVisibleBreakOfAGroupThatHandsOverAtOnce) {
  expect_sound("two clients, a break, an unsubscribe",
               {.cuts = 0, .breaks = 1, .unsubscribes = kOneOrNone});
}

TEST(ClientSearch, AStrictGroupWaitsForTheLeaseOfWhoeverBroke) {
  expect_sound("strict, a break", {.handover = Handover::strict, .cuts = 0, .breaks = 1}, kIndexes);
}

TEST(ClientSearch, AStrictGroupWaitsAfterARestart) {
  expect_sound("strict, a cut, a restart",
               {.handover = Handover::strict, .cuts = kOneOrNone, .restarts = 1});
}

TEST(ClientSearch, AnOperatorWhoIsRightHarmsNobody) {
  expect_sound("strict, a break, an operator's evaluation",
               {.handover = Handover::strict, .cuts = 0, .breaks = 1, .evaluations = 1});
}

/// The smallest budget in which the bug shows.
ClientSearchOptions enough_for(ClientBug bug) {
  ClientSearchOptions options{.cuts = 1, .bug = bug};
  switch (bug) {
    case ClientBug::answer_overtakes_words: options.partition_index = PartitionIndex{1}; break;
    case ClientBug::strict_moves_at_once:
      options.handover = Handover::strict;
      options.cuts = 0;
      options.breaks = 1;
      break;
    case ClientBug::restart_forgets_leases:
      options.handover = Handover::strict;
      options.restarts = 1;
      break;
    default: break;
  }
  return options;
}

TEST(ClientSearch, EveryPlantedBugIsFound) {
  for (const ClientBugName& planted : kClientBugs) {
    const SearchResult result = search(enough_for(planted.bug));
    EXPECT_EQ(result.failure, "two clients may hand out records") << planted.name;
    fmt::print("{}: after {} states, {} steps\n", planted.name, result.states, result.trace.size());
  }
}

}  // namespace
}  // namespace baton::checker
