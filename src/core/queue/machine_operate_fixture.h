#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/queue/machine_fixture.h"

/// For tests only: short forms for everything besides leasing that happens to messages.
namespace baton::machine_test {

using Payloads = std::vector<std::string>;
inline constexpr Retry kNow{.kind = Retry::Kind::after, .delay = {}};

inline NewMessage delayed(const std::string& payload, Duration delay) {
  NewMessage made = message(payload);
  made.delay = delay;
  return made;
}

inline NewMessage unique(const std::string& payload, const std::string& dedup_id) {
  NewMessage made = message(payload);
  made.dedup_id = dedup_id;
  return made;
}

inline void update(World& world, const std::string& queue, const QueueSettingsPatch& settings) {
  const auto done = world.run(
      UpdateQueueCommand{.queue = queue, .settings = settings, .error = {}, .description = {}});
  ASSERT_FALSE(done.error.has_value()) << done.error->text;
}

inline void remove(World& world, const std::string& queue) {
  ASSERT_FALSE(world.run(DeleteQueueCommand{.queue = queue, .error = {}}).error.has_value());
}

inline std::uint64_t purge(World& world, const std::string& queue) {
  return world.run(PurgeCommand{.queue = queue, .error = {}, .purged = 0}).purged;
}

inline RedriveCommand redrive(World& world, RedriveCommand command) {
  return world.run(std::move(command));
}

inline RedriveCommand redrive_from(const std::string& queue) {
  RedriveCommand command;
  command.queue = queue;
  return command;
}

inline QueueSettingsPatch one_attempt() {
  QueueSettingsPatch settings;
  settings.attempts_max = 1;
  return settings;
}

/// Sends each payload to `queue` and moves it, by one failed attempt, into the dead-letter queue.
inline void kill_all(World& world, const std::string& queue, const Payloads& payloads,
                     const std::string& reason) {
  for (const std::string& payload : payloads) world.send(queue, payload);
  const ConsumerNumber killer = world.attach(queue, "killer");
  for (const Delivery& got : world.take(killer)) world.nack(queue, got.token, kNow, reason);
  world.detach(queue, killer);
}

inline QueueMachine::Options no_memory() {
  QueueMachine::Options options;
  options.payload_budget_bytes = 0;
  options.refill_rows = 4;
  return options;
}

}  // namespace baton::machine_test
