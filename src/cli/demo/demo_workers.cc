#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cli/demo/demo_stage.h"
#include "cli/demo/worker_fleet.h"
#include "cli/worker/worker_flags.h"

/// The demo's act on partition leases: two workers, four partitions, no coordinating server.
namespace baton::cli {
namespace {

using std::chrono::milliseconds;
using Partitions = std::vector<std::uint32_t>;

constexpr milliseconds kWorkersPatience{20'000};
const WorkerFleet::Shares kShared{{"w1", 2}, {"w2", 2}};

struct Change {
  std::string_view what;
  std::string_view name;  // Of the number.
  double reference_s = 0;
};

/// Reports how long a change took, beside the time of the reference.
void report(Stage& stage, const Change& change, Instant began, Instant settled) {
  const double ms = std::chrono::duration<double, std::milli>(settled - began).count();
  stage.narrator.say(fmt::format("{}: settled after {:.0f} ms (reference: {:.0f} s)", change.what,
                                 ms, change.reference_s));
  stage.narrator.number(change.name, ms);
  stage.narrator.check(ms < change.reference_s * 1'000, "sooner than the reference");
}

Status play(Stage& stage, WorkerFleet& workers) {
  BATON_TRY(Instant began, workers.start("w1"));
  BATON_TRY(Instant settled, workers.settle({{"w1", 4}}, kWorkersPatience));
  stage.narrator.say(
      fmt::format("process {} holds all four partitions, on a lease of 1.5 s", workers.pid("w1")));

  BATON_TRY(began, workers.start("w2"));
  BATON_TRY(settled, workers.settle(kShared, kWorkersPatience));
  report(stage, {"a second worker joins", "worker_join_ms", 3},
         workers.joined_at("w2").value_or(began), settled);
  const bool kept = workers.held_by("w1") == Partitions{0, 1};
  stage.narrator.check(kept && workers.held_by("w2") == Partitions{2, 3},
                       "the first keeps 0 and 1, the second has 2 and 3");

  began = workers.terminate("w2");
  BATON_TRY(settled, workers.settle({{"w1", 4}}, kWorkersPatience));
  report(stage, {"SIGTERM", "worker_leave_ms", 4}, began, settled);
  stage.narrator.check(workers.wait_for_end("w2") == 0, "it stopped, handed over, and left");

  BATON_TRY(began, workers.start("w2"));
  BATON_TRY(settled, workers.settle(kShared, kWorkersPatience));
  began = workers.kill("w2");
  BATON_TRY(settled, workers.settle({{"w1", 4}}, kWorkersPatience));
  report(stage, {"kill -9, and the lease runs out", "worker_kill_ms", 11}, began, settled);
  workers.terminate("w1");
  stage.narrator.check(workers.wait_for_end("w1") == 0, "the last one leaves as cleanly");
  return {};
}

}  // namespace

Status act_partition_leases(Stage& stage) {
  WorkerFleet workers({.store = "baton://" + stage.broker.address(),
                       .group = "orders",
                       .flags = {"--profile", "fast"},
                       .log_file = stage.folder.path() + "/workers.log"});
  const Status played = play(stage, workers);
  if (!played) return played.error();
  return {};
}

}  // namespace baton::cli
