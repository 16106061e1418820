#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "base/parse.h"
#include "sim/simulation.h"
#include "sim/worker_world.h"

/// `baton_sim [--workers] --seeds N [--first S] [--trace] [--canary NAME]`: runs seeds until one
/// fails. With --workers, those of the partition leases.
namespace {

struct Arguments {
  baton::SeedRange seeds{.first = 0, .count = 1000};
  bool trace = false;
  bool workers = false;
  baton::Canary canary = baton::Canary::none;
  bool good = true;
};

std::uint64_t number_of(std::string_view text, bool& good) {
  std::uint64_t number = 0;
  good = good && baton::read_all(text, number);
  return number;
}

baton::Canary canary_of(std::string_view name, bool& good) {
  for (const baton::CanaryName& known : baton::kCanaries) {
    if (known.name == name) return known.canary;
  }
  good = false;
  return baton::Canary::none;
}

Arguments parse(std::span<char*> words) {
  Arguments arguments;
  for (std::size_t i = 1; i < words.size(); ++i) {
    const std::string_view word = words[i];
    const std::string_view value = i + 1 < words.size() ? words[i + 1] : "";
    if (word == "--trace") {
      arguments.trace = true;
      continue;
    }
    if (word == "--workers") {
      arguments.workers = true;
      continue;
    }
    ++i;
    if (word == "--seeds") {
      arguments.seeds.count = number_of(value, arguments.good);
    } else if (word == "--first") {
      arguments.seeds.first = number_of(value, arguments.good);
    } else if (word == "--canary") {
      arguments.canary = canary_of(value, arguments.good);
    } else {
      arguments.good = false;
    }
  }
  return arguments;
}

int trace(const Arguments& arguments) {
  const baton::RunResult result =
      baton::run_simulation(baton::draw_plan(arguments.seeds.first, arguments.canary, true));
  fmt::print("seed {} hash {:016x}: sent {} confirmed {} acked {} crashes {} spilled {}: {}\n",
             arguments.seeds.first, result.hash, result.sent, result.confirmed, result.acked,
             result.crashes, result.spilled, result.failure.value_or("passed"));
  return result.failure.has_value() ? 1 : 0;
}

int run_workers(const Arguments& arguments) {
  const std::uint64_t last = arguments.seeds.first + (arguments.trace ? 1 : arguments.seeds.count);
  for (std::uint64_t seed = arguments.seeds.first; seed < last; ++seed) {
    baton::WorkerWorld world({.seed = seed, .trace = arguments.trace});
    world.run();
    for (const std::string& line : world.trace()) fmt::print("{}\n", line);
    if (!world.violation().empty()) {
      fmt::print("{}\nreproduce it with: ./dev sim --workers --first {} --trace\n",
                 world.violation(), seed);
      return 1;
    }
  }
  fmt::print("{} seeds passed\n", last - arguments.seeds.first);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments arguments = parse(std::span(argv, static_cast<std::size_t>(argc)));
  if (!arguments.good) {
    fmt::print(stderr,
               "usage: baton_sim [--workers] [--seeds N] [--first S] [--trace] [--canary NAME]\n");
    return 2;
  }
  if (arguments.workers) return run_workers(arguments);
  if (arguments.trace) return trace(arguments);
  const auto begin = std::chrono::steady_clock::now();
  const auto failure = baton::find_failure(arguments.seeds, arguments.canary, true);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  if (failure.has_value()) {
    fmt::print("\nseed {} failed: {}\nreproduce it with: ./dev sim --first {} --trace\n",
               failure->seed, failure->text, failure->seed);
    return 1;
  }
  fmt::print("\n{} seeds passed in {:.1f} s\n", arguments.seeds.count, took.count());
  return 0;
}
