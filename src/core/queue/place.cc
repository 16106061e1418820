#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/bytes.h"
#include "core/queue/machine.h"

/// Moves messages between places (ready, leased, delayed, outgoing, gone), and keeps the counts,
/// indexes and delta entries of each move.
namespace baton {
namespace {

MessageRows rows_of(const queue_state::Stored& stored) {
  MessageRows rows;
  rows.place = stored.place;
  rows.sequence = stored.sequence;
  rows.attempts = stored.attempts;
  rows.failure = stored.failure;
  if (stored.place == Place::delayed) rows.due = stored.due;
  if (stored.place == Place::outgoing) {
    rows.to = stored.to;
    rows.transfer = stored.transfer;
  }
  if (stored.place == Place::leased) {
    rows.token = stored.token;
    rows.deadline = stored.deadline;
    rows.consumer_id = stored.holder->id;
  }
  return rows;
}

/// The memory of a delta entry besides the message's bytes.
constexpr std::uint64_t kChangeBytes = 256;

/// The time that a row key of `delayed` begins with.
Instant decode_big_time(const std::string& row_key) {
  return {static_cast<std::int64_t>(Decoder(row_key).big_u64())};
}

}  // namespace

QueueMachine::Stored& QueueMachine::add_message(Queue& queue, Uuid id, std::uint32_t bytes) {
  const auto [entry, added] = queue.messages.try_emplace(id);
  BATON_ASSERT(added);
  Stored& stored = entry->second;
  stored.id = id;
  stored.queue = &queue;
  stored.bytes = bytes;
  return stored;
}

/// Makes a message that is only a row known to the machine, without its body.
QueueMachine::Stored& QueueMachine::materialize(const MessagePlace& place, std::uint32_t bytes) {
  Queue& queue = queue_of(place.queue);
  Stored& stored = add_message(queue, place.id, bytes);
  stored.sequence = place.sequence;
  if (place.due.has_value()) {
    BATON_ASSERT(delayed_far_ > 0 && queue.delayed_far > 0);
    --delayed_far_;
    --queue.delayed_far;
    stored.place = Place::delayed;
    stored.due = *place.due;
    delayed_.emplace(std::pair(stored.due, std::pair(queue.id, stored.id)), &stored);
    return stored;
  }
  enter_key(stored, place.key);
  BATON_ASSERT(stored.key->spilled > 0);
  --stored.key->spilled;
  // A refill under way would bring rows that are no longer wanted.
  if (stored.key->spilled == 0) stored.key->loading = false;
  stored.place = Place::ready;
  link_ready(stored);
  return stored;
}

namespace {

MessageRow new_row(const MessageRef& body, Sequence sequence) {
  return {.sequence = sequence, .attempts = 0, .failure = {}, .to = {}, .message = body};
}

}  // namespace

void QueueMachine::count_new(Queue& queue, const MessageRef& body, Sequence sequence) {
  queue.next_sequence = Sequence{std::max(queue.next_sequence.value, sequence.value + 1)};
  queue.bytes += body->bytes().size();
}

QueueMachine::Stored& QueueMachine::keep_new(Queue& queue, const MessageRef& body,
                                             Sequence sequence) {
  const auto bytes = static_cast<std::uint32_t>(body->bytes().size());
  Stored& stored = add_message(queue, body->id(), bytes);
  stored.body = body;
  payload_bytes_ += bytes;
  touch(stored);
  stored.sequence = sequence;
  return stored;
}

void QueueMachine::add_ready(Queue& queue, const MessageRef& body, Sequence sequence) {
  count_new(queue, body, sequence);
  const auto entry = queue.keys.find(body->fairness_key());
  const bool behind_rows = entry != queue.keys.end() && entry->second.spilled > 0;
  if (behind_rows || payload_bytes_ >= options_.payload_budget_bytes) {
    spill(queue, new_row(body, sequence), Place::ready, {});
  } else {
    Stored& stored = keep_new(queue, body, sequence);
    enter_key(stored, body->fairness_key());
    enter_ready(stored);
    settle(stored);
    suspect_row(stored);
  }
  settle(queue);
}

/// In recovery: the earlier process may have spilled a message that now fits into memory. The store
/// then has its row, which must be erased or rewritten together with the message.
void QueueMachine::suspect_row(Stored& stored) {
  if (!recovering()) return;
  stored.change->before = stored.change->after;
  stored.change->rewrite = true;
}

void QueueMachine::add_delayed(Queue& queue, const MessageRef& body, Sequence sequence, Instant due,
                               Instant now) {
  count_new(queue, body, sequence);
  advance_horizon(now);
  if (is_far_off(time_key(due, queue.id, body->id()))) {
    spill(queue, new_row(body, sequence), Place::delayed, due);
  } else {
    Stored& stored = keep_new(queue, body, sequence);
    enter_delayed(stored, due);
    settle(stored);
    suspect_row(stored);
  }
  settle(queue);
}

/// Makes the message a row only. The row reaches the store ahead of the checkpoint. It needs no
/// entry in the delta, because the checkpoint is written after it.
void QueueMachine::spill(Queue& queue, const MessageRow& row, Place place, Instant due) {
  append_spilled(effects_.spill, queue.id, row, place, due);
  ++effects_.spilled_messages;
  if (place == Place::delayed) {
    ++queue.delayed;
    ++queue.delayed_far;
    ++delayed_far_;
    return;
  }
  const auto [entry, added] = queue.keys.try_emplace(std::string(row.message->fairness_key()));
  Key& key = entry->second;
  if (added) {
    key.name = entry->first;
    key.queue = &queue;
  }
  touch(key);
  if (key.spilled == 0) {
    key.cursor = row.sequence;
    key.taken.reset();
  }
  key.grew = true;
  ++key.spilled;
  ++queue.ready;
  settle(key);
  activate(key);
}

void QueueMachine::enter_key(Stored& stored, std::string_view name) {
  auto entry = stored.queue->keys.find(name);
  if (entry == stored.queue->keys.end()) {
    entry = stored.queue->keys.try_emplace(std::string(name)).first;
    entry->second.name = entry->first;
    entry->second.queue = stored.queue;
  }
  stored.key = &entry->second;
  ++stored.key->references;
}

void QueueMachine::leave_key(Stored& stored) {
  Key& key = *stored.key;
  // The store has this row until the next checkpoint; a scan that passes it must not take it for
  // ready.
  if (key.spilled > 0 && stored.sequence >= key.cursor) {
    if (key.taken == nullptr) key.taken = std::make_unique<std::set<Sequence>>();
    key.taken->insert(stored.sequence);
  }
  --key.references;
  stored.key = nullptr;
  drop_key_if_idle(key);
}

void QueueMachine::drop_key_if_idle(Key& key) {
  if (key.references != 0 || key.spilled != 0) return;
  Queue& queue = *key.queue;
  if (key.delta_number == delta_number_ && !key.change->stored_before)
    delta_.keys.erase(key.change);
  queue.active.drop(key);
  queue.keys.erase(queue.keys.find(key.name));
  update_deliverable(queue);
}

void QueueMachine::enter_ready(Stored& stored) {
  touch(*stored.key);
  stored.place = Place::ready;
  ++stored.queue->ready;
  link_ready(stored);
  settle(*stored.key);
}

void QueueMachine::link_ready(Stored& stored) {
  Key& key = *stored.key;
  key.ready.emplace_hint(key.ready.end(), stored.sequence, &stored);
  watch_expiry(stored);
  activate(key);
}

void QueueMachine::leave_ready(Stored& stored) {
  Key& key = *stored.key;
  touch(key);
  const bool was_parked = stored.parked_at != nullptr;
  if (was_parked) unpark(stored);
  const auto erased = key.ready.erase(stored.sequence);
  BATON_ASSERT(erased == 1);
  unwatch_expiry(stored);
  --stored.queue->ready;
  settle(key);
  // The key may have waited because it had the most parked messages allowed.
  if (was_parked) activate(key);
}

void QueueMachine::enter_delayed(Stored& stored, Instant due) {
  Queue& queue = *stored.queue;
  stored.place = Place::delayed;
  stored.due = due;
  ++queue.delayed;
  delayed_.emplace(std::pair(due, std::pair(queue.id, stored.id)), &stored);
  watch_expiry(stored);
}

void QueueMachine::leave_delayed(Stored& stored) {
  Queue& queue = *stored.queue;
  delayed_.erase(std::pair(stored.due, std::pair(queue.id, stored.id)));
  unwatch_expiry(stored);
  --queue.delayed;
  std::string row = time_key(stored.due, queue.id, stored.id);
  if (row >= delayed_horizon_) delayed_taken_.insert(std::move(row));
}

/// Without rows beyond it, the horizon may follow the clock.
void QueueMachine::advance_horizon(Instant now) {
  if (delayed_far_ != 0 || delayed_loading_) return;
  std::string horizon = time_key(now + options_.delayed_horizon, QueueId{0}, Uuid{});
  if (horizon <= delayed_horizon_) return;
  sweep_delayed(horizon);
  delayed_horizon_ = std::move(horizon);
  delayed_taken_.erase(delayed_taken_.begin(), delayed_taken_.lower_bound(delayed_horizon_));
}

/// Rows between the horizon and `end` can only be leftovers of deleted and purged queues. The next
/// checkpoint erases them; ranges that touch each other become one.
void QueueMachine::sweep_delayed(const std::string& end) {
  const Instant from = delayed_horizon_.empty() ? Instant{} : decode_big_time(delayed_horizon_);
  const auto next = delayed_.lower_bound({from, {QueueId{0}, Uuid{}}});
  // This message was kept in memory beyond the horizon while a refill was under way; it may have a
  // row.
  if (next != delayed_.end() && next->first.first < decode_big_time(end)) return;
  if (swept_end_ != delayed_horizon_) {
    flush_sweep();
    swept_begin_ = delayed_horizon_;
  }
  swept_end_ = end;
}

void QueueMachine::flush_sweep() {
  if (!swept_end_.empty()) {
    delta_.other.erase_range(tables::kDelayed, std::move(swept_begin_), std::move(swept_end_));
  }
  swept_begin_.clear();
  swept_end_.clear();
}

/// Whether a message that is delayed from now on becomes a row only. A message due before the end
/// of a refill under way does not: that refill may have been read already, and would miss the row.
bool QueueMachine::is_far_off(const std::string& delayed_row) const {
  return delayed_row >= (delayed_loading_ ? delayed_loading_end_ : delayed_horizon_);
}

void QueueMachine::leave_lease(Stored& stored) {
  Holder& holder = *stored.holder;
  leases_.end(stored.token);
  holder.leases.remove(stored);
  holder.in_flight_bytes -= stored.bytes;
  --stored.queue->leased;
  stored.holder = nullptr;
  stored.token = {};
  update_capacity(holder);
  drop_holder_if_idle(holder);
}

void QueueMachine::leave_place(Stored& stored) {
  switch (stored.place) {
    case Place::gone: return;
    case Place::ready: leave_ready(stored); return;
    case Place::leased: leave_lease(stored); return;
    case Place::delayed: leave_delayed(stored); return;
    case Place::outgoing: --stored.queue->outgoing; return;
  }
}

/// Removes the message from its queue for good. Destroys `stored`.
void QueueMachine::remove(Stored& stored) {
  Queue& queue = *stored.queue;
  touch(stored);
  leave_place(stored);
  stored.place = Place::gone;
  settle(stored);
  queue.bytes -= stored.bytes;
  forget(stored);
  settle(queue);
}

/// Removes the message from memory. The truth about the message stays the same.
void QueueMachine::forget(Stored& stored) {
  if (stored.key != nullptr) leave_key(stored);
  if (stored.body != nullptr) payload_bytes_ -= stored.bytes;
  stored.queue->messages.erase(stored.id);
}

void QueueMachine::set_body(Stored& stored, const MessageRow& row) {
  BATON_ASSERT(stored.body == nullptr);
  stored.body = row.message;
  stored.bytes = static_cast<std::uint32_t>(row.message->bytes().size());
  stored.attempts = row.attempts;
  stored.failure = row.failure;
  payload_bytes_ += stored.bytes;
  if (stored.delta_number == delta_number_) {
    stored.change->body = row.message;
    settle(stored);
  }
}

QueueMachine::Holder& QueueMachine::holder_of(Queue& queue, std::string_view consumer_id) {
  const auto found = queue.holders.find(consumer_id);
  if (found != queue.holders.end()) return found->second;
  Holder& holder = queue.holders.try_emplace(std::string(consumer_id)).first->second;
  holder.id = std::make_shared<const std::string>(consumer_id);
  holder.queue = &queue;
  return holder;
}

void QueueMachine::drop_holder_if_idle(Holder& holder) {
  if (holder.number.has_value() || !holder.leases.empty()) return;
  Queue& queue = *holder.queue;
  queue.with_capacity.drop(holder);
  queue.holders.erase(queue.holders.find(*holder.id));
  update_deliverable(queue);
}

/// Called before a message changes: records what the store has of it, once per delta.
void QueueMachine::touch(Stored& stored) {
  if (stored.delta_number == delta_number_) return;
  stored.change = delta_.messages.emplace(delta_.messages.end());
  stored.delta_number = delta_number_;
  MessageChange& change = *stored.change;
  change.queue = stored.queue->id;
  change.id = stored.id;
  change.bytes = stored.bytes;
  change.body = stored.body;
  if (stored.body == nullptr && stored.key != nullptr) change.key = stored.key->name;
  change.before = rows_of(stored);
  delta_.bytes += stored.bytes + kChangeBytes;
}

/// Called after a message has changed.
void QueueMachine::settle(Stored& stored) {
  BATON_ASSERT(stored.delta_number == delta_number_);
  MessageChange& change = *stored.change;
  change.after = rows_of(stored);
  if (stored.place != Place::gone) return;
  delta_.bytes -= stored.bytes;
  if (change.before.place == Place::gone) {
    // The message came and went between two checkpoints: the store never sees it.
    delta_.bytes -= kChangeBytes;
    delta_.messages.erase(stored.change);
    stored.delta_number = 0;
    return;
  }
  if (change.body != nullptr) change.key = change.body->fairness_key();
  change.body.reset();
}

void QueueMachine::touch(Key& key) {
  if (key.delta_number == delta_number_) return;
  key.change = delta_.keys.emplace(delta_.keys.end());
  key.delta_number = delta_number_;
  key.change->queue = key.queue->id;
  key.change->key = key.name;
  key.change->stored_before = key.count() != 0;
  delta_.bytes += kChangeBytes;
}

void QueueMachine::settle(Key& key) {
  Sequence low{~std::uint64_t{0}};
  if (!key.ready.empty()) low = key.ready.begin()->first;
  if (key.spilled > 0) low = std::min(low, key.cursor);
  // Parked messages are not ordered by sequence: while there are any, the bound can only fall.
  key.low = key.parked > 0 ? std::min(key.low, low) : low;
  key.change->after = {.head = key.low, .count = key.count()};
}

void QueueMachine::settle(Queue& queue) {
  if (queue.delta_number != delta_number_) {
    queue.change = delta_.queues.emplace(delta_.queues.end());
    queue.delta_number = delta_number_;
    queue.change->id = queue.id;
    queue.change->name = queue.name;
  }
  QueueChange& change = *queue.change;
  change.next_sequence = queue.next_sequence;
  change.purged_before = queue.purged_before;
  change.bytes = queue.bytes;
  change.delayed = queue.delayed;
  if (change.settings != queue.settings) change.settings = queue.settings;
}

QueueDelta QueueMachine::seal() {
  flush_sweep();
  QueueDelta sealed = std::move(delta_);
  delta_ = {};
  ++delta_number_;
  sealed.next_queue = next_queue_;
  return sealed;
}

}  // namespace baton
