#include "queue/machine.h"

#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/hash.h"

namespace baton {

QueueMachine::QueueMachine(Options options, std::uint64_t seed)
    : options_(options), random_(seed) {}

QueueMachine::~QueueMachine() = default;

void QueueMachine::start(std::uint64_t boot, Recorder recorder, Instant now) {
  BATON_ASSERT(boot > boot_);
  boot_ = boot;
  next_lease_ = 1;
  next_transfer_ = 1;
  recorder_ = std::move(recorder);
  totals_ = {};
  for (auto& [name, queue] : queues_) queue->totals = {};
  if (leases_.size() != 0) orphans_until_ = now + options_.return_after_restart;
  advance_horizon(now);
  for (const auto& [name, queue] : queues_) {
    if (queue->outgoing == 0) continue;
    for (auto& [id, stored] : queue->messages) {
      if (stored.place == Place::outgoing) send_outgoing(stored, now);
    }
  }
}

void QueueMachine::begin_serving(Instant now) {
  if (orphans_until_.has_value()) orphans_until_ = now + options_.return_after_restart;
}

void QueueMachine::commit(const QueueFact& fact, Instant now) {
  recorder_(fact);
  apply(fact, now);
}

Progress QueueMachine::execute(QueueCommand& command, Instant now) {
  return std::visit([&](auto& wanted) { return on(wanted, now); }, command);
}

/// The message leaves its lease, or its place among the ready ones, for a queue of another shard.
void QueueMachine::send_away(const Stored& stored, const std::string& to, std::string reason,
                             Instant now) {
  const Queue& queue = *stored.queue;
  const Uuid id = stored.id;
  commit(Outgoing{.transfer = {.boot = boot_, .number = next_transfer_++},
                  .place = {.queue = queue.id,
                            .id = id,
                            .key = stored.key->name,
                            .sequence = stored.sequence,
                            .due = {}},
                  .token = stored.token,
                  .to = to,
                  .reason = std::move(reason)},
         now);
  send_outgoing(queue.messages.at(id), now);
}

/// Before a message enters a queue that it may have left for another shard a while ago, and whose
/// transfer is not yet known to be done: that the message comes back is the proof.
void QueueMachine::finish_outgoing(const Queue& queue, Uuid id, Instant now) {
  const auto entry = queue.messages.find(id);
  if (entry == queue.messages.end() || entry->second.place != Place::outgoing) return;
  commit(OutgoingDone{.transfer = entry->second.transfer, .queue = queue.id, .id = id}, now);
}

/// Hands an outgoing message to the shard it goes to; again after a restart, until that shard has
/// it.
void QueueMachine::send_outgoing(const Stored& stored, Instant now) {
  BATON_ASSERT(stored.place == Place::outgoing && stored.body != nullptr);
  MessageRef body = stored.body;
  if (stored.failure != nullptr) body = dead_letter_body(stored, nullptr, now);
  effects_.transfers.push_back({stored.transfer, stored.to, stored.queue->id, std::move(body)});
}

QueueMachine::Queue* QueueMachine::find_queue(std::string_view name) const {
  const auto entry = queues_.find(name);
  return entry == queues_.end() ? nullptr : entry->second.get();
}

QueueMachine::Queue* QueueMachine::find_queue(QueueId id) const {
  const auto entry = queues_by_id_.find(id);
  return entry == queues_by_id_.end() ? nullptr : entry->second;
}

QueueMachine::Queue& QueueMachine::queue_of(QueueId id) {
  Queue* const queue = find_queue(id);
  BATON_ASSERT(queue != nullptr);
  return *queue;
}

std::uint64_t QueueMachine::shard_of(std::string_view queue) const {
  return shard_of_queue(queue, options_.shards);
}

std::uint64_t shard_of_queue(std::string_view name, std::uint64_t shards) {
  if (name.ends_with(".dlq")) name.remove_suffix(4);
  return hash64(name) % shards;
}

Error QueueMachine::no_such_queue(std::string_view name) {
  return {Errc::queue_not_found, fmt::format("there is no queue '{}'", name)};
}

/// Where messages go that used up their attempts; nowhere when the queue is itself such a place.
std::string QueueMachine::dead_letter_queue_of(const Queue& queue) {
  if (queue.name.ends_with(".dlq")) return {};
  const std::string& chosen = queue.settings->dead_letter_queue;
  return chosen.empty() ? queue.name + ".dlq" : chosen;
}

QueueDescription QueueMachine::describe(const Queue& queue) const {
  QueueStats stats = queue.totals;
  stats.ready = queue.ready;
  stats.leased = queue.leased;
  stats.delayed = queue.delayed;
  stats.bytes = queue.bytes;
  stats.active_keys = queue.keys.size();
  stats.consumers = queue.consumers;
  stats.outgoing = queue.outgoing;
  stats.dedup_ids = queue.dedup.size();
  QueueSettings settings = *queue.settings;
  settings.dead_letter_queue = dead_letter_queue_of(queue);
  return {.name = queue.name, .id = queue.id, .settings = std::move(settings), .stats = stats};
}

std::vector<QueueDescription> QueueMachine::list(std::string_view prefix) const {
  std::vector<QueueDescription> descriptions;
  for (auto entry = queues_.lower_bound(prefix);
       entry != queues_.end() && entry->first.starts_with(prefix); ++entry) {
    descriptions.push_back(describe(*entry->second));
  }
  return descriptions;
}

}  // namespace baton
