#include <cstdlib>
#include <iostream>
#include <string>

#include <gtest/gtest.h>

#include "sim/seat_world.h"

namespace baton {
namespace {

std::uint64_t seeds_wanted() { return std::getenv("BATON_LONG") != nullptr ? 5'000 : 300; }

TEST(SeatSimulation, NobodyWritesUnderASeatThatAnotherHas) {
  std::uint64_t handovers = 0;
  std::uint64_t writes = 0;
  for (std::uint64_t seed = 0; seed < seeds_wanted(); ++seed) {
    SeatWorld world({.seed = seed});
    world.run();
    ASSERT_EQ(world.violation(), "") << "seed " << seed;
    handovers += world.handovers();
    writes += world.writes();
  }
  std::cout << handovers << " seats given, " << writes << " writes\n";
  EXPECT_GT(handovers, 3 * seeds_wanted());
  EXPECT_GT(writes, 500 * seeds_wanted());
}

class SeatCanary : public testing::TestWithParam<SeatBug> {};

TEST_P(SeatCanary, IsCaught) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    SeatWorld world({.seed = seed, .bug = GetParam()});
    world.run();
    if (world.violation().empty()) continue;
    std::cout << world.violation() << "\n";
    return;
  }
  FAIL() << "no seed found it";
}

INSTANTIATE_TEST_SUITE_P(
    Planted, SeatCanary,
    testing::Values(SeatBug::client_counts_from_the_answer, SeatBug::client_looks_at_no_clock,
                    SeatBug::broker_is_impatient, SeatBug::break_hands_over_at_once,
                    SeatBug::restart_forgets_leases, SeatBug::clocks_far_apart));

}  // namespace
}  // namespace baton
