#include "core/queue/machine.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/name_range.h"

namespace baton {
namespace {

// How many fairness keys a search for the oldest messages of all queues visits. At least one key of
// each queue is visited.
constexpr std::size_t kKeysLookedAt = 20'000;
constexpr std::size_t kKeysLookedAtPerQueue = 1000;
// For how many queues such a search reads messages from the store.
constexpr std::size_t kRefillsPerLook = 16;

}  // namespace

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

/// Moves a leased or ready message to a queue of another shard.
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

/// Called before a message enters a queue that it may have left for another shard, in a transfer
/// that is not yet known to be done: the message's return proves that the transfer is done.
void QueueMachine::finish_outgoing(const Queue& queue, Uuid id, Instant now) {
  const auto entry = queue.messages.find(id);
  if (entry == queue.messages.end() || entry->second.place != Place::outgoing) return;
  commit(OutgoingDone{.transfer = entry->second.transfer, .queue = queue.id, .id = id}, now);
}

/// Sends an outgoing message to the other shard; repeated after a restart until that shard has made
/// it durable.
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

/// The queue for messages that used up their attempts; empty if `queue` itself is a dead-letter
/// queue.
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

void QueueMachine::find_oldest(std::vector<QueueDescription>& descriptions) {
  std::size_t left = kKeysLookedAt;
  std::size_t refills = 0;
  for (QueueDescription& description : descriptions) {
    Queue& queue = *find_queue(description.name);
    const std::size_t keys =
        std::clamp(std::min(left, queue.active.size()), std::size_t{1}, kKeysLookedAtPerQueue);
    left -= std::min(left, keys);
    description.oldest = oldest_ready(queue, keys);
    // After a restart and without a consumer, nothing else would bring a message into memory.
    if (description.oldest.has_value() || queue.active.empty() || refills >= kRefillsPerLook) {
      continue;
    }
    request_refill(queue.active.front());
    ++refills;
  }
}

std::optional<Instant> QueueMachine::oldest_ready(const Queue& queue, std::size_t keys) {
  std::optional<Instant> oldest;
  // In each key only the next message to deliver can be the oldest.
  queue.active.for_first(keys, [&](const Key& key) {
    const Stored* const first = key.first();
    if (first == nullptr || first->body == nullptr) return;
    const Instant sent = first->body->enqueued_at();
    if (!oldest.has_value() || sent < *oldest) oldest = sent;
  });
  return oldest;
}

std::vector<QueueDescription> QueueMachine::list(std::string_view prefix) const {
  ListQueuesCommand all;
  all.queue = prefix;
  list(all);
  return std::move(all.descriptions);
}

void QueueMachine::list(ListQueuesCommand& command) const {
  command.more = take_names(queues_, {.prefix = command.queue, .after = command.after},
                            [&](const std::string& /*name*/, const std::unique_ptr<Queue>& queue) {
                              if (command.descriptions.size() == command.described_max)
                                return false;
                              command.descriptions.push_back(describe(*queue));
                              return true;
                            });
}

}  // namespace baton
