#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "sim/plan.h"

namespace baton {

/// How a run ended. The same seed gives the same run: the same hash, the same failure.
struct RunResult {
  std::uint64_t hash = 0;
  std::optional<std::string> failure;
  std::size_t sent = 0;
  std::size_t confirmed = 0;
  std::size_t acked = 0;
  std::uint64_t crashes = 0;
  std::uint64_t spilled = 0;
};

/// Runs one seed: faults first, then everything heals and all that is left must be drained. A
/// failed assertion of the code under test ends the process; use find_failure() to survive
/// that.
RunResult run_simulation(const Plan& plan);

/// One failing seed.
struct SeedFailure {
  std::uint64_t seed = 0;
  std::string text;
};
struct SeedRange {
  std::uint64_t first = 0;
  std::uint64_t count = 0;
};
/// Runs seeds until one fails, in a process of its own, so that assertions count as failures. One
/// seed in 20 runs twice, and both runs must be the same.
std::optional<SeedFailure> find_failure(SeedRange seeds, Canary canary, bool progress);

}  // namespace baton
