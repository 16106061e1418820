#include "sim/simulation.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace baton {
namespace {

std::uint64_t seeds_wanted() { return std::getenv("BATON_LONG") != nullptr ? 3000 : 200; }

std::string text_of(const SeedFailure& failure) {
  const std::string seed = std::to_string(failure.seed);
  return "seed " + seed + ": " + failure.text + "\nreproduce it with: ./dev sim --first " + seed +
         " --trace";
}

/// The first word of each line that is not a comment.
std::vector<std::uint64_t> read_seeds(const std::filesystem::path& file) {
  std::vector<std::uint64_t> seeds;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::uint64_t seed = 0;
    const auto [end, failure] = std::from_chars(line.data(), line.data() + line.size(), seed);
    if (failure == std::errc{}) seeds.push_back(seed);
  }
  return seeds;
}

std::vector<std::uint64_t> old_failures() {
  std::vector<std::filesystem::path> files;
  const std::filesystem::path folder = BATON_SEEDS;
  for (const auto& file : std::filesystem::directory_iterator(folder)) {
    if (file.path().extension() == ".txt") files.push_back(file.path());
  }
  std::ranges::sort(files);
  std::vector<std::uint64_t> seeds;
  for (const auto& file : files) std::ranges::copy(read_seeds(file), std::back_inserter(seeds));
  return seeds;
}

// Crashes, torn writes, full disks and jumping clocks at random moments must break no promise; one
// seed in 20 runs twice, and both runs must be the same.
TEST(Simulation, NoSeedBreaksAPromise) {
  const auto failure = find_failure({.first = 0, .count = seeds_wanted()}, Canary::none, false);
  if (failure.has_value()) FAIL() << text_of(*failure);
}

// A seed that failed once is run for ever, though the code around it changes what the seed does.
TEST(Simulation, SeedsThatOnceFailedPass) {
  const std::vector<std::uint64_t> seeds = old_failures();
  EXPECT_FALSE(seeds.empty());
  for (const std::uint64_t seed : seeds) {
    const auto failure = find_failure({.first = seed, .count = 1}, Canary::none, false);
    if (failure.has_value()) ADD_FAILURE() << text_of(*failure);
  }
}

// A simulation in which nothing goes wrong proves nothing.
TEST(Simulation, TheRareIsCommon) {
  RunResult sum;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    const RunResult result = run_simulation(draw_plan(seed, Canary::none, false));
    EXPECT_FALSE(result.failure.has_value()) << seed;
    sum.crashes += result.crashes;
    sum.spilled += result.spilled;
    sum.acked += result.acked;
  }
  EXPECT_GT(sum.crashes, 40U);
  EXPECT_GT(sum.spilled, 400U);
  EXPECT_GT(sum.acked, 800U);
}

class CanaryTest : public ::testing::TestWithParam<CanaryName> {};

// A simulator that misses a planted bug would miss a real one too.
TEST_P(CanaryTest, IsFound) {
  const auto failure = find_failure({.first = 0, .count = 200}, GetParam().canary, false);
  EXPECT_TRUE(failure.has_value());
}

INSTANTIATE_TEST_SUITE_P(All, CanaryTest, ::testing::ValuesIn(kCanaries),
                         [](const auto& canary) { return std::string(canary.param.name); });

}  // namespace
}  // namespace baton
