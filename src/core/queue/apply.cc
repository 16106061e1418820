#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "core/queue/machine.h"

/// Applies facts. This is the only code that changes the truth, live and in recovery alike, except
/// for the short cut of a turn (schedule.cc), which uses lease_one() of this file.
namespace baton {

void QueueMachine::apply(const QueueFact& fact, Instant now) {
  std::visit([&](const auto& happened) { on(happened, now); }, fact);
}

void QueueMachine::on(const QueueCreated& fact, Instant) {
  auto queue = std::make_unique<Queue>();
  queue->id = fact.queue;
  queue->name = fact.name;
  queue->settings = std::make_shared<const QueueSettings>(fact.settings);
  next_queue_ = QueueId{std::max(next_queue_.value, fact.queue.value + 1)};
  queues_by_id_[fact.queue] = queue.get();
  const auto [entry, added] = queues_.try_emplace(fact.name, std::move(queue));
  BATON_ASSERT(added);
  settle(*entry->second);
}

void QueueMachine::on(const QueueUpdated& fact, Instant) {
  Queue& queue = queue_of(fact.queue);
  const std::shared_ptr<const QueueSettings> before = queue.settings;
  queue.settings = std::make_shared<const QueueSettings>(fact.settings);
  forget_changed_buckets(queue, *before);
  settle(queue);
}

void QueueMachine::on(const QueueDeleted& fact, Instant) {
  Queue& queue = queue_of(fact.queue);
  for (auto& [id, stored] : queue.messages) {
    if (stored.place == Place::leased) {
      leases_.end(stored.token);
      delta_.other.erase(tables::kLeaseExpiry, time_key(stored.deadline, queue.id, id));
    }
    if (stored.place == Place::delayed) {
      delayed_.erase(std::pair(stored.due, std::pair(queue.id, id)));
      delta_.other.erase(tables::kDelayed, time_key(stored.due, queue.id, id));
    }
    unwatch_expiry(stored);
    if (stored.body != nullptr) payload_bytes_ -= stored.bytes;
  }
  for (auto& [name, holder] : queue.holders) {
    if (!holder.number.has_value()) continue;
    effects_.closed.push_back({*holder.number, no_such_queue(queue.name)});
    connected_.erase(*holder.number);
  }
  for (auto& [name, bucket] : queue.buckets) {
    if (bucket.deadline.has_value()) bucket_deadlines_.erase({*bucket.deadline, {queue.id, name}});
  }
  delayed_far_ -= queue.delayed_far;
  const std::string begin = queue_prefix(queue.id);
  const std::string end = prefix_end(begin);
  for (const Table table : {tables::kMessages, tables::kKeys, tables::kIds, tables::kLeases,
                            tables::kDedup, tables::kOutgoing}) {
    delta_.other.erase_range(table, begin, end);
  }
  delta_.other.erase(tables::kQueues, queue.name);
  delta_.deleted.insert(queue.id);
  deliverable_.drop(queue);
  queues_by_id_.erase(queue.id);
  queues_.erase(queues_.find(queue.name));
}

void QueueMachine::on(const Enqueued& fact, Instant now) {
  Queue& queue = queue_of(fact.queue);
  ++queue.totals.enqueued_total;
  ++totals_.enqueued_total;
  if (fact.dedup.has_value()) {
    forget_old_dedup_ids(queue, now);
    queue.dedup.remember(*fact.dedup, fact.message->id(), now);
    const std::string_view hash(reinterpret_cast<const char*>(fact.dedup->data()),
                                fact.dedup->size());
    delta_.other.put(tables::kDedup, queue_and_id(queue.id, hash),
                     encode_row(DedupRow{fact.message->id(), now}));
  }
  if (fact.due.has_value()) {
    add_delayed(queue, fact.message, fact.sequence, *fact.due, now);
  } else {
    add_ready(queue, fact.message, fact.sequence);
  }
}

/// Forgets two ids for each one that is added: the table shrinks, and no single call pays for all
/// of it.
void QueueMachine::forget_old_dedup_ids(Queue& queue, Instant now) {
  for (const DedupHash& hash : queue.dedup.forget_before(now, queue.settings->dedup_window, 2)) {
    const std::string_view bytes(reinterpret_cast<const char*>(hash.data()), hash.size());
    delta_.other.erase(tables::kDedup, queue_and_id(queue.id, bytes));
  }
}

void QueueMachine::on(const Leased& fact, Instant) {
  Queue& queue = queue_of(fact.queue);
  LeaseToken token = fact.first;
  for (const Leased::Item& item : fact.items) {
    const auto known = queue.messages.find(item.id);
    Stored& stored = known != queue.messages.end() ? known->second
                                                   : materialize({.queue = queue.id,
                                                                  .id = item.id,
                                                                  .key = item.key,
                                                                  .sequence = item.sequence,
                                                                  .due = {}},
                                                                 item.bytes);
    lease_one(stored, holder_of(queue, fact.consumer_id), token, fact.deadline);
    ++token.number;
  }
}

void QueueMachine::lease_one(Stored& stored, Holder& holder, LeaseToken token, Instant deadline) {
  BATON_ASSERT(stored.place == Place::ready);
  Queue& queue = *stored.queue;
  touch(stored);
  leave_ready(stored);
  stored.place = Place::leased;
  stored.token = token;
  stored.deadline = deadline;
  stored.holder = &holder;
  stored.work = Work::unknown;
  leases_.grant(token, deadline, &stored);
  holder.leases.push_back(stored);
  holder.in_flight_bytes += stored.bytes;
  ++queue.leased;
  ++queue.totals.delivered_total;
  ++totals_.delivered_total;
  settle(stored);
}

void QueueMachine::on(const Acked& fact, Instant) {
  Stored* stored = leases_.find(fact.token);
  BATON_ASSERT(stored != nullptr);
  ++stored->queue->totals.acked_total;
  ++totals_.acked_total;
  remove(*stored);
}

void QueueMachine::on(const Extended& fact, Instant) {
  Stored* stored = leases_.find(fact.token);
  BATON_ASSERT(stored != nullptr);
  touch(*stored);
  leases_.extend(fact.token, fact.deadline);
  stored->deadline = fact.deadline;
  settle(*stored);
}

void QueueMachine::note_failure(Stored& stored, const std::string& reason, Instant now) {
  ++stored.attempts;
  const Instant first = stored.failure ? stored.failure->first : now;
  stored.failure = std::make_shared<const FailureNote>(
      FailureNote{.first = first, .last = now, .reason = reason});
}

void QueueMachine::on(const Ended& fact, Instant now) {
  Stored* const stored = leases_.find(fact.token);
  BATON_ASSERT(stored != nullptr && stored->body != nullptr);
  Queue& queue = *stored->queue;
  touch(*stored);
  leave_lease(*stored);
  if (fact.counted) note_failure(*stored, fact.reason, now);
  if (!fact.due.has_value()) {
    enter_ready(*stored);
    settle(*stored);
    settle(queue);
    return;
  }
  leave_key(*stored);
  // A purge during the lease did not remove this message: a new sequence puts it after that purge.
  stored->sequence = queue.next_sequence;
  queue.next_sequence = Sequence{queue.next_sequence.value + 1};
  advance_horizon(now);
  enter_delayed(*stored, *fact.due);
  settle(*stored);
  if (recovering()) stored->change->stray_due = fact.due;
  if (is_far_off(time_key(*fact.due, queue.id, stored->id))) {
    // Due far in the future: a row is enough. The delta has the message too, but the horizon may
    // reach it before a checkpoint does.
    leave_delayed(*stored);
    delayed_taken_.erase(time_key(*fact.due, queue.id, stored->id));
    spill(queue,
          MessageRow{.sequence = stored->sequence,
                     .attempts = stored->attempts,
                     .failure = stored->failure,
                     .to = {},
                     .message = stored->body},
          Place::delayed, *fact.due);
    forget(*stored);
  }
  settle(queue);
}

/// The message as it goes into a dead-letter queue, of this shard (`to`) or of another (`to` null).
MessageRef QueueMachine::dead_letter_body(const Stored& stored, const Queue* to, Instant now) {
  BATON_ASSERT(stored.failure != nullptr);
  const Instant expires = to != nullptr && to->settings->retention > Duration{0}
                              ? now + to->settings->retention
                              : Instant::never();
  return Message::with_headers(
      *stored.body,
      {{"baton-source-queue", stored.queue->name},
       {"baton-attempts", std::to_string(stored.attempts)},
       {"baton-first-failure-ns", std::to_string(stored.failure->first.ns)},
       {"baton-last-failure-ns", std::to_string(stored.failure->last.ns)},
       {"baton-last-error", stored.failure->reason}},
      expires);
}

void QueueMachine::on(const DeadLettered& fact, Instant now) {
  Stored* const stored = leases_.find(fact.token);
  BATON_ASSERT(stored != nullptr && stored->body != nullptr);
  ++stored->queue->totals.dead_lettered_total;
  ++totals_.dead_lettered_total;
  touch(*stored);
  note_failure(*stored, fact.reason, now);
  Queue& to = queue_of(fact.to);
  const MessageRef body = dead_letter_body(*stored, &to, now);
  remove(*stored);
  add_ready(to, body, fact.sequence);
}

void QueueMachine::on(const BecameReady& fact, Instant) {
  Queue& queue = queue_of(fact.queue);
  const auto entry = queue.messages.find(fact.id);
  BATON_ASSERT(entry != queue.messages.end() && entry->second.place == Place::delayed);
  Stored& stored = entry->second;
  touch(stored);
  leave_delayed(stored);
  stored.sequence = fact.sequence;
  queue.next_sequence = Sequence{std::max(queue.next_sequence.value, fact.sequence.value + 1)};
  enter_key(stored, stored.body->fairness_key());
  enter_ready(stored);
  settle(stored);
  settle(queue);
}

void QueueMachine::on(const Removed& fact, Instant) {
  Queue& queue = queue_of(fact.place.queue);
  const auto known = queue.messages.find(fact.place.id);
  Stored& stored =
      known != queue.messages.end() ? known->second : materialize(fact.place, fact.bytes);
  if (fact.why == Removed::Why::expired) {
    ++queue.totals.dropped_total;
    ++totals_.dropped_total;
  }
  remove(stored);
}

void QueueMachine::on(const Purged& fact, Instant now) {
  Queue& queue = queue_of(fact.queue);
  std::vector<Stored*> waiting;
  for (auto& [id, stored] : queue.messages) {
    if (stored.place == Place::ready || stored.place == Place::delayed) waiting.push_back(&stored);
  }
  for (Stored* stored : waiting) remove(*stored);
  // Rows beyond the horizon that the delta would still write go, too.
  for (MessageChange& change : delta_.messages) {
    const bool waits = change.queue == queue.id && change.after.place == Place::delayed;
    if (!waits || queue.messages.contains(change.id)) continue;
    change.stray_due = change.after.due;
    change.after = {};
    change.key = change.body->fairness_key();
    change.body.reset();
  }
  // Only rows are left, and one range erases them; leased and outgoing messages are written again
  // after that.
  std::vector<Key*> keys;
  for (auto& [name, key] : queue.keys) keys.push_back(&key);
  for (Key* key : keys) {
    touch(*key);
    // The range ends at the current sequence: rows spilled from now on reach the store before this
    // erasure does.
    if (key->spilled > 0) {
      delta_.other.erase_range(tables::kMessages, message_key(queue.id, key->name, Sequence{0}),
                               message_key(queue.id, key->name, queue.next_sequence));
    }
    queue.ready -= key->spilled;
    key->spilled = 0;
    key->taken.reset();
    key->loading = false;
    settle(*key);
    drop_key_if_idle(*key);
  }
  const std::string begin = queue_prefix(queue.id);
  delta_.other.erase_range(tables::kKeys, begin, prefix_end(begin));
  // Message ids begin with the time they were made, in milliseconds. A row that this range misses
  // is rare, and names no message.
  std::string made_now = begin;
  Encoder(made_now).big_u64(static_cast<std::uint64_t>(now.ns / 1'000'000) << 16U);
  delta_.other.erase_range(tables::kIds, begin, std::move(made_now));
  queue.bytes = 0;
  for (auto& [id, stored] : queue.messages) {
    queue.bytes += stored.bytes;
    touch(stored);
    stored.change->rewrite = true;
    settle(stored);
  }
  delayed_far_ -= queue.delayed_far;
  queue.delayed_far = 0;
  queue.delayed = 0;
  queue.purged_before = queue.next_sequence;
  settle(queue);
}

void QueueMachine::on(const Redriven& fact, Instant) {
  Queue& queue = queue_of(fact.place.queue);
  const auto entry = queue.messages.find(fact.place.id);
  BATON_ASSERT(entry != queue.messages.end() && entry->second.body != nullptr);
  const MessageRef body = entry->second.body;
  remove(entry->second);
  add_ready(queue_of(fact.to), body, fact.sequence);
}

void QueueMachine::on(const Outgoing& fact, Instant now) {
  Queue& queue = queue_of(fact.place.queue);
  const auto entry = queue.messages.find(fact.place.id);
  BATON_ASSERT(entry != queue.messages.end() && entry->second.body != nullptr);
  Stored& stored = entry->second;
  touch(stored);
  const bool died = stored.place == Place::leased;
  leave_place(stored);
  if (stored.key != nullptr) leave_key(stored);
  stored.place = Place::outgoing;
  stored.to = fact.to;
  stored.transfer = fact.transfer;
  ++queue.outgoing;
  if (died) {
    note_failure(stored, fact.reason, now);
    ++queue.totals.dead_lettered_total;
    ++totals_.dead_lettered_total;
  }
  settle(stored);
  settle(queue);
}

void QueueMachine::on(const OutgoingDone& fact, Instant) {
  Queue& queue = queue_of(fact.queue);
  const auto entry = queue.messages.find(fact.id);
  BATON_ASSERT(entry != queue.messages.end() && entry->second.place == Place::outgoing);
  BATON_ASSERT(entry->second.transfer == fact.transfer);
  remove(entry->second);
}

void QueueMachine::on(const Received& fact, Instant) {
  received_.emplace(fact.from_shard, fact.transfer);
  delta_.other.put(tables::kReceived, received_key(fact.from_shard, fact.transfer), "");
  add_ready(queue_of(fact.queue), fact.message, fact.sequence);
}

void QueueMachine::on(const ReceivedForgotten& fact, Instant) {
  received_.erase({fact.from_shard, fact.transfer});
  delta_.other.erase(tables::kReceived, received_key(fact.from_shard, fact.transfer));
}

}  // namespace baton
