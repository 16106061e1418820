#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/time.h"
#include "core/queue/settings.h"
#include "server/shard/shard.h"
#include "storage/journal/journal.h"

namespace baton {

/// Bugs that can be planted into the harness around the production code, to prove that the checkers
/// see what they are there to see.
enum class Canary : std::uint8_t {
  none,
  release_before_sync,     // Answers go out before the journal is synced.
  lose_row,                // The store forgets a committed row.
  reuse_boot,              // A restart ignores the boot numbers given before.
  checkpoint_before_sync,  // A checkpoint does not wait for the journal.
  drop_unwritten,          // A detach does not name what was never written.
  jobs_out_of_order,       // The store's jobs overtake each other.
  trim_early,              // The journal is trimmed when a checkpoint begins.
  transfer_by_message,     // A transfer between shards is identified by the message's id.
  count_prefetched,        // A consumer's death counts an attempt for all that it holds.
};
struct CanaryName {
  Canary canary;
  std::string_view name;
};
inline constexpr std::array<CanaryName, 9> kCanaries{{
    {Canary::release_before_sync, "release_before_sync"},
    {Canary::lose_row, "lose_row"},
    {Canary::reuse_boot, "reuse_boot"},
    {Canary::checkpoint_before_sync, "checkpoint_before_sync"},
    {Canary::drop_unwritten, "drop_unwritten"},
    {Canary::jobs_out_of_order, "jobs_out_of_order"},
    {Canary::trim_early, "trim_early"},
    {Canary::transfer_by_message, "transfer_by_message"},
    {Canary::count_prefetched, "count_prefetched"},
}};

/// A queue of the simulation, and what operators may do to it.
struct PlannedQueue {
  std::string name;
  QueueSettingsPatch settings;
  bool destructible = false;  // May be purged, deleted and created again.
};

/// Everything about a run that is fixed when it begins, drawn from its seed. Limits are tiny, so
/// that what is rare in production happens all the time.
struct Plan {
  std::uint64_t seed = 0;
  Canary canary = Canary::none;
  bool print = false;

  std::size_t shards = 1;
  Shard::Options shard;
  JournalOptions journal;
  bool roomy = false;  // Nothing spills while it lives: fairness can be checked against its bound.
  std::size_t rounds_waiting = 1;

  // The longest time of each step.
  Duration decide_max{};
  Duration sync_max{};
  Duration job_max{};
  Duration checkpoint_max{};
  Duration down_max{};

  // Faults.
  Duration fault_time{};         // They end here.
  Duration crash_gap{};          // Mean time between two crashes at random times.
  std::uint64_t crash_odds = 0;  // One step in this many crashes.
  std::uint64_t full_odds = 0;   // One in this many checks of the saboteur fills a disk.
  Duration wall_jump_max{};

  // Clients.
  Duration think_max{};
  std::size_t producers = 1;
  std::size_t consumers = 1;
  std::size_t messages_max = 0;
  std::size_t payload_max = 0;
  std::size_t batch_max = 1;
  std::uint32_t in_flight_max = 1;
  bool circles = false;  // Dead letters go to another shard, and are redriven all the time.
  Duration news_max{};   // How late a shard is told that a transfer is done, or may be forgotten.
  std::vector<std::string> keys;
  std::vector<PlannedQueue> queues;
};

Plan draw_plan(std::uint64_t seed, Canary canary, bool print);

/// Uniform in [low, high].
inline std::uint64_t draw(Random& random, std::uint64_t low, std::uint64_t high) {
  return low + random.below(high - low + 1);
}
inline Duration draw(Random& random, Duration low, Duration high) {
  return low + Duration{static_cast<std::int64_t>(
                   random.below(static_cast<std::uint64_t>((high - low).count()) + 1))};
}
template <class T>
const T& pick_one(Random& random, const std::vector<T>& from) {
  return from[random.below(from.size())];
}

}  // namespace baton
