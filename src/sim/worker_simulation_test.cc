#include <cstdlib>
#include <string>

#include <gtest/gtest.h>

#include "sim/worker_world.h"

namespace baton {
namespace {

using partition::Mutant;

std::uint64_t seeds_wanted() { return std::getenv("BATON_LONG") != nullptr ? 3000 : 200; }

std::string run(std::uint64_t seed, Mutant mutant) {
  WorkerWorld world({.seed = seed, .mutant = mutant});
  world.run();
  return world.violation();
}

TEST(WorkerSimulation, NobodyWorksOnWhatAnotherHoldsAndEverythingSettles) {
  std::uint64_t acquired = 0;
  for (std::uint64_t seed = 0; seed < seeds_wanted(); ++seed) {
    WorkerWorld world({.seed = seed});
    world.run();
    ASSERT_EQ(world.violation(), "")
        << "reproduce it with: ./dev sim --workers --first " << seed << " --trace";
    acquired += world.acquired();
  }
  EXPECT_GT(acquired, seeds_wanted());
}

TEST(WorkerSimulation, TheSameSeedDoesTheSame) {
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    WorkerWorld first({.seed = seed, .trace = true});
    WorkerWorld second({.seed = seed, .trace = true});
    first.run();
    second.run();
    EXPECT_FALSE(first.trace().empty());
    EXPECT_EQ(first.trace(), second.trace());
  }
}

class WorkerMutant : public ::testing::TestWithParam<Mutant> {};

TEST_P(WorkerMutant, IsCaught) {
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const std::string violation = run(seed, GetParam());
    if (!violation.empty()) {
      std::cout << "caught by " << violation << "\n";
      return;
    }
  }
  FAIL() << "no seed found it";
}

std::string name_of(const ::testing::TestParamInfo<Mutant>& info) {
  switch (info.param) {
    case Mutant::deadline_from_reply: return "DeadlineFromReply";
    case Mutant::evict_without_cas: return "EvictWithoutCas";
    case Mutant::wall_clock_expiry: return "WallClockExpiry";
    case Mutant::hand_over_before_stopping: return "HandOverBeforeStopping";
    case Mutant::no_self_fencing: return "NoSelfFencing";
    case Mutant::plan_on_partial_snapshot: return "PlanOnPartialSnapshot";
    case Mutant::release_before_draining: return "ReleaseBeforeDraining";
    case Mutant::none: break;
  }
  return "None";
}

INSTANTIATE_TEST_SUITE_P(All, WorkerMutant,
                         ::testing::Values(Mutant::deadline_from_reply, Mutant::evict_without_cas,
                                           Mutant::wall_clock_expiry,
                                           Mutant::hand_over_before_stopping,
                                           Mutant::no_self_fencing,
                                           Mutant::plan_on_partial_snapshot,
                                           Mutant::release_before_draining),
                         name_of);

}  // namespace
}  // namespace baton
