#include "sim/plan.h"

#include <chrono>

namespace baton {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::size_t kPage = 4096;

void draw_shard(Plan& plan, Random random) {
  plan.roomy = random.chance(1, 4);
  plan.shards = random.chance(1, 4) ? 2 : 1;
  plan.circles = plan.shards == 2 && random.chance(2, 3);
  QueueMachine::Options& machine = plan.shard.machine;
  machine.payload_budget_bytes = plan.roomy ? limits::kMiB : draw(random, 0, 4 * limits::kKiB);
  if (!plan.roomy && random.chance(1, 4)) machine.payload_budget_bytes = 0;
  machine.delayed_horizon = draw(random, milliseconds{20}, milliseconds{800});
  machine.refill_rows = draw(random, 1, 8);
  machine.refill_bytes = draw(random, 64, 4 * limits::kKiB);
  machine.return_after_restart = draw(random, milliseconds{50}, milliseconds{500});
  plan.journal.segment_bytes = draw(random, 8, 16) * kPage;
  plan.journal.spares_max = draw(random, 0, 3);
  plan.shard.round_bytes = draw(random, 200, 3000);
  plan.shard.round_deliveries = draw(random, 1, 24);
  plan.shard.small_round_bytes = 5 * kPage;
  plan.shard.checkpoint_journal_bytes = draw(random, 4, 64) * limits::kKiB;
  plan.shard.checkpoint_delta_bytes = draw(random, 1, 32) * limits::kKiB;
  plan.shard.checkpoint_interval = draw(random, milliseconds{30}, milliseconds{1500});
  plan.shard.journal_behind_bytes =
      plan.shard.checkpoint_journal_bytes + draw(random, 8, 64) * limits::kKiB;
  plan.shard.spill_behind_bytes = draw(random, 256, 16 * limits::kKiB);
  plan.rounds_waiting = draw(random, 1, 3);
}

void draw_world(Plan& plan, Random random) {
  plan.decide_max = draw(random, microseconds{10}, microseconds{2000});
  plan.sync_max = draw(random, microseconds{50}, milliseconds{15});
  plan.job_max = draw(random, microseconds{50}, milliseconds{20});
  plan.checkpoint_max = draw(random, microseconds{100}, milliseconds{60});
  plan.down_max = milliseconds{300};
  plan.fault_time = draw(random, milliseconds{1500}, milliseconds{4000});
  plan.crash_gap = draw(random, milliseconds{200}, milliseconds{3000});
  plan.crash_odds = draw(random, 100, 1500);
  plan.full_odds = draw(random, 5, 60);
  plan.news_max = random.chance(1, 2) ? Duration{0} : draw(random, milliseconds{1}, seconds{1});
  if (plan.circles) plan.news_max = draw(random, milliseconds{50}, seconds{1});
  plan.wall_jump_max =
      random.chance(1, 2) ? Duration{0} : draw(random, milliseconds{10}, seconds{3});
}

void draw_clients(Plan& plan, Random random) {
  plan.think_max = draw(random, milliseconds{2}, milliseconds{60});
  plan.producers = draw(random, 1, 3);
  plan.consumers = draw(random, 1, 5);
  plan.messages_max = draw(random, 30, 400);
  plan.payload_max = random.chance(1, 2) ? 20 : 300;
  plan.batch_max = draw(random, 1, 6);
  plan.in_flight_max = static_cast<std::uint32_t>(draw(random, 1, 16));
  std::vector<std::string> keys{"",
                                "k",
                                "kk",
                                std::string("\0", 1),
                                std::string("\xff\xff", 2),
                                std::string("k\0", 2),
                                std::string(40, 'z')};
  const std::size_t count = draw(random, 1, keys.size());
  for (std::size_t i = 0; i < count; ++i) {
    plan.keys.push_back(keys[(i + random.below(2)) % keys.size()]);
  }
}

QueueSettingsPatch draw_settings(Random& random) {
  QueueSettingsPatch patch;
  // Much longer than the time from the grant of a lease to its delivery.
  patch.visibility_timeout = draw(random, milliseconds{200}, milliseconds{1500});
  patch.attempts_max = static_cast<std::uint32_t>(random.chance(1, 2) ? 1 : draw(random, 0, 5));
  patch.retry_delay = draw(random, Duration{0}, milliseconds{100});
  patch.retry_delay_max = *patch.retry_delay + draw(random, Duration{0}, milliseconds{900});
  patch.release_on_disconnect = !random.chance(1, 5);
  patch.dedup_window = draw(random, milliseconds{100}, seconds{5});
  patch.dedup_ids_max = random.chance(1, 5) ? draw(random, 1, 8) : 1000;
  return patch;
}

void draw_queues(Plan& plan, Random random) {
  PlannedQueue solid{.name = "a", .settings = draw_settings(random), .destructible = false};
  if (random.chance(1, 3))
    solid.settings.throttles["t"] = {static_cast<double>(draw(random, 20, 200)), 1};
  if (random.chance(1, 3)) solid.settings.throttles["u"] = {50, draw(random, 1, 4)};
  PlannedQueue fair{.name = "fair", .settings = draw_settings(random), .destructible = false};
  for (const std::string& key : plan.keys) {
    fair.settings.weights[key] = static_cast<std::uint32_t>(draw(random, 1, 3));
  }
  if (random.chance(1, 5)) fair.settings.fairness_cost = FairnessCost::byte;
  PlannedQueue fragile{.name = "b", .settings = draw_settings(random), .destructible = true};
  // Perhaps in another shard.
  for (PlannedQueue* queue : {&solid, &fair, &fragile}) {
    if (plan.circles || random.chance(1, 3)) queue->settings.dead_letter_queue = "dead";
    if (plan.circles) queue->settings.attempts_max = 1;
  }
  if (random.chance(1, 3)) fragile.settings.retention = draw(random, milliseconds{50}, seconds{2});
  if (random.chance(1, 3)) fragile.settings.messages_max = draw(random, 3, 40);
  plan.queues = {std::move(solid), std::move(fair), std::move(fragile)};
}

}  // namespace

Plan draw_plan(std::uint64_t seed, Canary canary, bool print) {
  const Random random(seed);
  Plan plan;
  plan.seed = seed;
  plan.canary = canary;
  plan.print = print;
  draw_shard(plan, random.fork("shard"));
  draw_world(plan, random.fork("world"));
  draw_clients(plan, random.fork("clients"));
  draw_queues(plan, random.fork("queues"));
  return plan;
}

}  // namespace baton
