#include <chrono>
#include <utility>

#include "sim/clients.h"

namespace baton {
namespace {

using std::chrono::milliseconds;

}  // namespace

std::vector<std::string> all_queues() {
  return {"a", "fair", "b", "a.dlq", "fair.dlq", "b.dlq", "dead", "dead.dlq"};
}

Operator::Operator(ClientWorld world)
    : world_(world), random_(Random(world.plan.seed).fork("operator")) {}

void Operator::begin() {
  for (const PlannedQueue& queue : world_.plan.queues) create(queue);
  world_.timeline.after(milliseconds{50}, [this] { act(); });
}

/// Repeats the request until the queue exists.
void Operator::create(const PlannedQueue& queue) {
  if (world_.trace.failed()) return;
  const auto again = [this, &queue] {
    world_.timeline.after(milliseconds{20}, [this, &queue] { create(queue); });
  };
  world_.ledger.set_dedup_window(queue.name, queue.settings.dedup_window.value_or(Duration{0}));
  if (!queue.settings.release_on_disconnect.value_or(true)) {
    world_.ledger.set_keeps_leases(queue.name);
  }
  const bool sent = world_.broker.submit(
      CreateQueueCommand{
          .queue = queue.name, .settings = queue.settings, .error = {}, .description = {}},
      [again](QueueCommand& done) {
        const auto& error = std::get<CreateQueueCommand>(done).error;
        if (error.has_value() && error->code == Errc::disk_full) again();
      },
      again);
  if (!sent) again();
}

void Operator::act() {
  if (stopped_ || world_.trace.failed()) return;
  if (world_.broker.up()) act_once();
  world_.timeline.after(draw(random_, milliseconds{1}, 2 * world_.plan.think_max),
                        [this] { act(); });
}

void Operator::act_once() {
  if (world_.plan.circles && random_.chance(2, 3)) return redrive();
  const std::uint64_t what = random_.below(100);
  if (what < 30) {
    cancel();
  } else if (what < 45) {
    look();
  } else if (what < 60) {
    peek_one();
  } else if (what < 75) {
    redrive();
  } else if (what < 85) {
    update();
  } else if (what < 90) {
    destroy();
  }
}

std::string Operator::any_queue() {
  return random_.chance(3, 4) ? pick_one(random_, world_.plan.queues).name
                              : pick_one(random_, all_queues());
}

void Operator::update() {
  const PlannedQueue& queue = pick_one(random_, world_.plan.queues);
  QueueSettingsPatch patch;
  const std::uint64_t what = random_.below(5);
  if (what == 0) patch.visibility_timeout = draw(random_, milliseconds{200}, milliseconds{1500});
  if (what == 1) patch.attempts_max = static_cast<std::uint32_t>(draw(random_, 0, 4));
  if (what == 2)
    patch.weights[pick_one(random_, world_.plan.keys)] =
        static_cast<std::uint32_t>(random_.below(4));
  if (what == 3) {
    patch.throttles["t"] = {
        random_.chance(1, 3) ? 0.0 : static_cast<double>(draw(random_, 20, 300)),
        draw(random_, 1, 5)};
  }
  if (what == 4) {
    patch.dedup_window = draw(random_, milliseconds{50}, milliseconds{3000});
    world_.ledger.set_dedup_window(queue.name, *patch.dedup_window);
  }
  if (what == 3 && queue.name != "a") return;
  world_.trace.note("operator updates '{}'", queue.name);
  world_.broker.submit(
      UpdateQueueCommand{.queue = queue.name, .settings = patch, .error = {}, .description = {}},
      nullptr, nullptr);
}

void Operator::look() {
  const std::string queue = any_queue();
  world_.broker.submit(DescribeQueueCommand{.queue = queue, .error = {}, .description = {}},
                       nullptr, nullptr);
  PeekCommand peek;
  peek.queue = queue;
  peek.messages_max = static_cast<std::uint32_t>(draw(random_, 1, 30));
  world_.broker.submit(
      std::move(peek),
      [this, acked = world_.ledger.acked()](QueueCommand& done) {
        world_.ledger.peeked(std::get<PeekCommand>(done), acked);
      },
      nullptr);
}

void Operator::peek_one() {
  const auto known = world_.ledger.find_confirmed(random_.below(world_.ledger.sent() + 1));
  if (!known.has_value()) return;
  PeekCommand peek;
  peek.queue = known->first;
  peek.id = known->second;
  world_.broker.submit(
      std::move(peek),
      [this, acked = world_.ledger.acked()](QueueCommand& done) {
        world_.ledger.peeked(std::get<PeekCommand>(done), acked);
      },
      nullptr);
}

void Operator::cancel() {
  CancelCommand command;
  for (std::size_t left = draw(random_, 1, 3); left > 0; --left) {
    const auto known = world_.ledger.find_confirmed(random_.below(world_.ledger.sent() + 1));
    if (!known.has_value()) continue;
    if (!command.ids.empty() && command.queue != known->first) continue;
    command.queue = known->first;
    command.ids.push_back(known->second);
    world_.ledger.cancel_sent(known->second);
  }
  if (command.ids.empty()) return;
  world_.broker.submit(
      std::move(command),
      [this](QueueCommand& done) {
        const auto& cancel = std::get<CancelCommand>(done);
        for (std::size_t i = 0; i < cancel.ids.size(); ++i) {
          world_.trace.note("cancel {}: {}", cancel.ids[i].to_string(),
                            cancel.outcomes.at(i).has_value() ? "not found" : "ok");
          world_.ledger.cancelled(cancel.ids[i], cancel.queue, cancel.outcomes.at(i));
        }
      },
      nullptr);
}

/// Purges, or deletes and creates again, a queue meant for it.
void Operator::destroy() {
  for (const PlannedQueue& queue : world_.plan.queues) {
    if (!queue.destructible) continue;
    world_.ledger.destroy_sent(queue.name);
    if (random_.chance(1, 2)) {
      world_.trace.note("operator purges '{}'", queue.name);
      world_.broker.submit(
          PurgeCommand{.queue = queue.name, .error = {}, .purged = 0},
          [this, &queue](QueueCommand&) { world_.ledger.destroy_ended(queue.name); }, nullptr);
      continue;
    }
    world_.trace.note("operator deletes '{}'", queue.name);
    world_.broker.submit(
        DeleteQueueCommand{.queue = queue.name, .error = {}},
        [this, &queue](QueueCommand&) {
          world_.ledger.destroy_ended(queue.name);
          create(queue);
        },
        [this, &queue] { create(queue); });
  }
}

void Operator::redrive() {
  static const std::vector<std::string> kFrom{"a.dlq", "fair.dlq", "b.dlq", "dead"};
  RedriveCommand command;
  command.queue = world_.plan.circles ? "dead" : pick_one(random_, kFrom);
  if (random_.chance(1, 6)) command.to = "fair";
  if (random_.chance(1, 3)) command.messages_max = draw(random_, 1, 5);
  if (random_.chance(1, 4)) command.reason_contains = "expired";
  if (random_.chance(1, 5)) command.source_queue = "a";
  if (random_.chance(1, 3)) command.rate = static_cast<double>(draw(random_, 5, 100));
  command.dry_run = random_.chance(1, 5);
  world_.broker.submit(
      std::move(command),
      [this](QueueCommand& done) {
        const auto& redrive = std::get<RedriveCommand>(done);
        world_.trace.note("redrive of '{}': matched {} moved {}", redrive.queue, redrive.matched,
                          redrive.moved);
        if (redrive.moved + redrive.skipped > redrive.matched ||
            (redrive.dry_run && redrive.moved != 0)) {
          world_.trace.fail("a redrive moved {} and skipped {} of {}", redrive.moved,
                            redrive.skipped, redrive.matched);
        }
      },
      nullptr);
}

}  // namespace baton
