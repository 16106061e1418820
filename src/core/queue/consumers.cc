#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/assert.h"
#include "core/queue/machine.h"

/// Registers consumers, counts their credit, and ends the leases of those that disconnect. A
/// message may have killed its consumer, so it must count an attempt, or it would kill consumers
/// for ever; a message that the consumer had not begun must not count one.
namespace baton {

Progress QueueMachine::on(AttachCommand& command, Instant) {
  Queue* const queue = find_queue(command.queue);
  if (queue == nullptr) {
    command.error = no_such_queue(command.queue);
    return {};
  }
  Holder& holder = holder_of(*queue, command.consumer_id);
  if (holder.number.has_value()) {
    effects_.closed.push_back(
        {*holder.number, Error{Errc::already_exists,
                               fmt::format("another consumer connected as '{}'", *holder.id)}});
    connected_.erase(*holder.number);
    judge(holder, false);
  } else {
    ++queue->consumers;
  }
  holder.number = command.consumer;
  holder.in_flight_max = command.in_flight_max;
  holder.in_flight_bytes_max = command.in_flight_bytes_max;
  holder.credit = command.credit;
  holder.concurrency = command.concurrency;
  holder.marks = false;
  connected_[command.consumer] = &holder;
  command.visibility_timeout = queue->settings->visibility_timeout;
  update_capacity(holder);
  return {};
}

Progress QueueMachine::on(CreditCommand& command, Instant) {
  const auto entry = connected_.find(command.consumer);
  if (entry == connected_.end()) return {};
  std::optional<std::uint64_t>& credit = entry->second->credit;
  if (!credit.has_value()) return {};
  *credit = std::min<std::uint64_t>(*credit + command.added, limits::kInFlightMax);
  update_capacity(*entry->second);
  return {};
}

Progress QueueMachine::on(QuiesceCommand& command, Instant) {
  const auto entry = connected_.find(command.consumer);
  if (entry == connected_.end()) return {};
  entry->second->in_flight_max = 0;
  update_capacity(*entry->second);
  return {};
}

Progress QueueMachine::on(BegunCommand& command, Instant) {
  const auto entry = connected_.find(command.consumer);
  if (entry == connected_.end()) return {};
  Holder* const holder = entry->second;
  holder->marks = true;
  for (const LeaseToken token : command.tokens) {
    Stored* const stored = leases_.find(token);
    if (stored != nullptr && stored->holder == holder) stored->work = Work::begun;
  }
  return {};
}

/// The message that `token` holds in `queue`, or null.
QueueMachine::Stored* QueueMachine::held(LeaseToken token, std::string_view queue) const {
  Stored* const stored = leases_.find(token);
  return stored != nullptr && stored->queue->name == queue ? stored : nullptr;
}

/// Returns the message to its place as if it had never been leased.
void QueueMachine::release(Stored& stored, Instant now) {
  fail(stored,
       {.counted = false, .retry = {.kind = Retry::Kind::release, .delay = {}}, .reason = {}}, now);
}

/// Releases the leases that were granted but never reached the network.
void QueueMachine::release_unwritten(const DetachCommand& command, Instant now) {
  for (const LeaseToken token : command.unwritten) {
    if (Stored* const stored = held(token, command.queue); stored != nullptr) {
      release(*stored, now);
    }
  }
}

/// Decides which leases of a consumer that is gone count an attempt when they end: those that it
/// had begun. If it is not known to have begun any, the oldest `concurrency` count, because
/// consumers work on messages in the order of delivery. None counts if its end was orderly.
void QueueMachine::judge(Holder& holder, bool orderly) {
  bool some_begun = false;
  holder.leases.for_each(
      [&](const Stored& stored) { some_begun = some_begun || stored.work == Work::begun; });
  std::uint32_t guessed = some_begun ? 0 : holder.concurrency;
  holder.leases.for_each([&](Stored& stored) {
    const bool begun = stored.work == Work::begun || guessed > 0;
    if (guessed > 0) --guessed;
    stored.work = begun && !orderly ? Work::begun : Work::idle;
  });
}

/// All leases of the holder, in the order in which they were granted.
std::vector<QueueMachine::Stored*> QueueMachine::leases_of(Holder& holder) {
  std::vector<Stored*> leases;
  holder.leases.for_each([&](Stored& stored) { leases.push_back(&stored); });
  return leases;
}

Progress QueueMachine::on(DetachCommand& command, Instant now) {
  release_unwritten(command, now);
  const auto entry = connected_.find(command.consumer);
  if (entry == connected_.end()) return {};
  Holder& holder = *entry->second;
  Queue& queue = *holder.queue;
  connected_.erase(entry);
  holder.number.reset();
  --queue.consumers;
  update_capacity(holder);
  judge(holder, command.orderly);
  std::vector<Stored*> ended;
  if (queue.settings->release_on_disconnect) ended = leases_of(holder);
  drop_holder_if_idle(holder);
  for (Stored* stored : ended) {
    if (stored->work == Work::idle) {
      release(*stored, now);
      continue;
    }
    fail(*stored,
         {.counted = true,
          .retry = {.kind = Retry::Kind::after, .delay = {}},
          .reason = "the consumer disconnected"},
         now);
  }
  return {};
}

Progress QueueMachine::on(LeaveCommand& command, Instant now) {
  Queue* const queue = find_queue(command.queue);
  if (queue == nullptr) {
    command.error = no_such_queue(command.queue);
    return {};
  }
  const auto entry = queue->holders.find(command.consumer_id);
  if (entry == queue->holders.end()) {
    command.error = Error{Errc::not_found, fmt::format("queue '{}' has no consumer '{}'",
                                                       command.queue, command.consumer_id)};
    return {};
  }
  Holder& holder = entry->second;
  holder.in_flight_max = 0;
  update_capacity(holder);
  for (Stored* stored : leases_of(holder)) {
    release(*stored, now);
    ++command.released;
  }
  return {};
}

}  // namespace baton
