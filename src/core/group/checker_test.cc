// The search is a test of the machines, and the planted bugs are a test of the search. The sizes
// here keep the suite short; docs/single-active-consumer.md says what was searched beyond them.

#include "core/group/checker.h"

#include <array>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace baton::checker {
namespace {

// Under a sanitizer, which makes the search ten times slower, there are fewer partition indexes and
// smaller budgets.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::array kPartitionIndexes{-1, 1};
constexpr std::uint8_t kOneOrNone = 0;
#else
constexpr std::array kPartitionIndexes{-1, 0, 1, 2, 3};
constexpr std::uint8_t kOneOrNone = 1;
#endif

std::string told(const SearchResult& result) {
  std::string text = result.failure.value_or("");
  for (const std::string& line : result.trace) text += "\n  " + line;
  return text;
}

void expect_sound(std::string_view what, SearchOptions options) {
  std::uint64_t states = 0;
  for (const int index : kPartitionIndexes) {
    options.partition_index = PartitionIndex{index};
    const SearchResult result = search(options);
    EXPECT_FALSE(result.failure.has_value()) << "partition index " << index << ": " << told(result);
    states += result.states;
  }
  fmt::print("{}: {} states\n", what, states);
}

TEST(SacSearch, ThreeConsumersACutAnUnsubscribeAndACrash) {
  expect_sound("three consumers, a cut, an unsubscribe, a crash",
               {.cuts = 1, .unsubscribes = 1, .crashes = kOneOrNone});
}

TEST(SacSearch, ThreeConsumersAndTwoCuts) {
  expect_sound("three consumers, two cuts", {.cuts = 2, .unsubscribes = 0, .crashes = 0});
}

TEST(SacSearch, TwoConsumersWithACutEach) {
  expect_sound("two consumers, two cuts, an unsubscribe, a crash",
               {.consumers = 2, .cuts = 2, .unsubscribes = 1, .crashes = kOneOrNone});
}

TEST(SacSearch, TwoConsumersOnOneConnection) {
  expect_sound("a shared connection, a cut, a crash", {.topology = Topology::shared_connection,
                                                       .cuts = kOneOrNone,
                                                       .unsubscribes = 0,
                                                       .crashes = 1});
}

TEST(SacSearch, TwoConnectionsOnOneNode) {
  expect_sound(
      "a shared node, a cut, an unsubscribe",
      {.topology = Topology::shared_node, .cuts = 1, .unsubscribes = kOneOrNone, .crashes = 0});
}

TEST(SacSearch, ASubscriptionIdIsUsedAgain) {
  expect_sound("a rejoin", {.cuts = 1, .unsubscribes = 1, .crashes = 0, .rejoins = 1});
}

TEST(SacSearch, TheCoordinatorStartsAgain) {
  expect_sound("a new leader or a restart",
               {.cuts = 1, .unsubscribes = kOneOrNone, .crashes = 0, .restarts = 1});
}

TEST(SacSearch, ClientsSayWhereToBegin) {
  expect_sound("with ask_offset", {.ask_offset = true, .cuts = 1, .unsubscribes = 1, .crashes = 0});
}

TEST(SacSearch, AnOperatorDropsWhoIsNotConnected) {
  expect_sound("an operator's evaluation",
               {.cuts = 1, .unsubscribes = kOneOrNone, .crashes = 0, .evaluations = 1});
  expect_sound("an operator's evaluation, with ask_offset",
               {.ask_offset = true, .cuts = 1, .unsubscribes = 0, .crashes = 0, .evaluations = 1});
}

TEST(SacSearch, ANodeThatIsAwayIsPurged) {
  expect_sound("a purge", {.cuts = 1, .unsubscribes = kOneOrNone, .crashes = 0, .purges = 1});
  expect_sound(
      "a purge of two connections",
      {.topology = Topology::shared_node, .cuts = 1, .unsubscribes = 0, .crashes = 0, .purges = 1});
}

/// The smallest budget in which the bug shows.
SearchOptions enough_for(Bug bug) {
  SearchOptions options{.partition_index = PartitionIndex{1}, .bug = bug};
  if (bug == Bug::dead_sibling_elected) options.topology = Topology::shared_connection;
  if (bug == Bug::stale_timer_forgets) {
    options.cuts = 2;
    options.unsubscribes = options.crashes = 0;
  }
  if (bug == Bug::tickets_ignored) options.rejoins = 1;
  if (bug == Bug::dropped_not_told) options.evaluations = 1;
  return options;
}

TEST(SacSearch, EveryPlantedBugIsFound) {
  for (const BugName& planted : kBugs) {
    const SearchResult result = search(enough_for(planted.bug));
    EXPECT_TRUE(result.failure.has_value()) << planted.name;
    EXPECT_FALSE(result.trace.empty()) << planted.name;
    fmt::print("{}: after {} states, {} steps: {}\n", planted.name, result.states,
               result.trace.size(), result.failure.value_or("NOT FOUND"));
  }
}

// An unreadable trace would be of no help.
TEST(SacSearch, ATraceTellsWhatHappened) {
  const SearchResult result = search(enough_for(Bug::lost_words_not_repeated));
  ASSERT_TRUE(result.failure.has_value());
  EXPECT_EQ(*result.failure, "settled with 1 connected, 0 delivering");
  ASSERT_GE(result.trace.size(), 2U);
  EXPECT_TRUE(result.trace[0].starts_with("x.0 registers"));
  EXPECT_TRUE(result.trace[1].starts_with("node 0 is cut off"));
}

TEST(SacSearch, TheSameSearchGivesTheSameNumbers) {
  const SearchOptions options{.cuts = 1, .unsubscribes = 0, .crashes = 0};
  EXPECT_EQ(search(options).states, search(options).states);
}

}  // namespace
}  // namespace baton::checker
