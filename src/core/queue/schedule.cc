#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/bytes.h"
#include "core/queue/machine.h"

/// Decides whose turn it is: consumers in a ring, fairness keys in deficit round robin, throttles,
/// deadlines, and which rows to bring into memory. None of this is truth, and no step iterates over
/// all keys, consumers or messages.
namespace baton {
namespace {

/// What a key of weight 1 may send in one turn.
constexpr std::int64_t kQuantumMessages = 1;
constexpr std::int64_t kQuantumBytes = std::int64_t{16} * 1024;

Instant horizon_instant(const std::string& row_key) {
  return {static_cast<std::int64_t>(Decoder(row_key).big_u64())};
}

}  // namespace

void QueueMachine::update_deliverable(Queue& queue) {
  if (queue.active.empty() || queue.with_capacity.empty()) {
    deliverable_.drop(queue);
  } else {
    deliverable_.ensure(queue);
  }
}

void QueueMachine::update_capacity(Holder& holder) {
  Queue& queue = *holder.queue;
  if (holder.capacity() > 0) {
    queue.with_capacity.ensure(holder);
  } else {
    queue.with_capacity.drop(holder);
  }
  update_deliverable(queue);
}

/// A key with a deliverable message joins the end of the ring: it waits for one turn of each other
/// key.
void QueueMachine::activate(Key& key) {
  const bool has_more = key.first() != nullptr || (key.spilled > 0 && !key.loading);
  if (!has_more || key.parked >= limits::kParkedPerKey) return;
  key.queue->active.ensure(key);
  update_deliverable(*key.queue);
}

std::int64_t QueueMachine::quantum_of(const Key& key) const {
  const QueueSettings& settings = *key.queue->settings;
  std::int64_t weight = 1;
  if (!settings.weights.empty()) {
    const auto entry = settings.weights.find(key.name);
    if (entry != settings.weights.end()) weight = entry->second;
  }
  return weight * (settings.fairness_cost == FairnessCost::byte ? kQuantumBytes : kQuantumMessages);
}

std::int64_t QueueMachine::cost_of(const Stored& stored) {
  return stored.queue->settings->fairness_cost == FairnessCost::byte ? stored.bytes : 1;
}

/// The next message to lease, or null if none can be leased now. Costs O(1) for each key that it
/// passes; a passed key without a message leaves the ring.
QueueMachine::Stored* QueueMachine::pick(Queue& queue, Instant now) {
  while (!queue.active.empty()) {
    Key& key = queue.active.front();
    Stored* const stored = key.first();
    if (stored == nullptr || key.parked >= limits::kParkedPerKey) {
      queue.active.remove(key);
      key.in_turn = false;
      key.deficit = 0;
      if (stored == nullptr) request_refill(key);
      continue;
    }
    if (set_aside(*stored, now) || !take_turn(key, cost_of(*stored))) continue;
    if (key.spilled > 0 && key.ready.size() < options_.refill_rows / 2) request_refill(key);
    return stored;
  }
  return nullptr;
}

Removed QueueMachine::removal_of(const Stored& stored, Removed::Why why) {
  const bool delayed = stored.place == Place::delayed;
  return {.place = {.queue = stored.queue->id,
                    .id = stored.id,
                    .key = std::string(stored.body->fairness_key()),
                    .sequence = stored.sequence,
                    .due = delayed ? std::optional(stored.due) : std::nullopt},
          .bytes = stored.bytes,
          .why = why};
}

/// Removes an expired message and parks a throttled one: true if the message was either.
bool QueueMachine::set_aside(Stored& stored, Instant now) {
  if (stored.body->expires_at() <= now) {
    commit(removal_of(stored, Removed::Why::expired), now);
    return true;
  }
  Bucket* const bucket = blocking_bucket(stored, now);
  if (bucket != nullptr) park(stored, *bucket);
  return bucket != nullptr;
}

/// Deficit round robin: whether the key at the front can pay `cost` in its turn. If not, the turn
/// passes to the next key.
bool QueueMachine::take_turn(Key& key, std::int64_t cost) {
  if (!key.in_turn) {
    key.in_turn = true;
    key.deficit += quantum_of(key);
  }
  if (key.deficit < cost) {
    key.in_turn = false;
    key.queue->active.rotate();
    return false;
  }
  key.deficit -= cost;
  return true;
}

/// One consumer's turn: leases a batch to it, of a size that leaves something for the other
/// consumers. This is the short cut of QueueMachine: the turn leases exactly what apply() of its
/// fact leases.
std::size_t QueueMachine::run_turn(Queue& queue, Instant now) {
  Holder& holder = queue.with_capacity.front();
  BATON_ASSERT(holder.number.has_value());  // Without a number it would have no capacity.
  const std::uint64_t share = std::max<std::uint64_t>(1, queue.ready / queue.with_capacity.size());
  std::uint64_t left = std::min({holder.capacity(), std::uint64_t{limits::kTurnMessages}, share});
  Leased fact{.queue = queue.id,
              .consumer_id = *holder.id,
              .deadline = now + queue.settings->visibility_timeout,
              .first = {.boot = boot_, .number = next_lease_},
              .items = {}};
  for (; left > 0 && holder.capacity() > 0; --left) {
    Stored* const stored = pick(queue, now);
    if (stored == nullptr) break;
    spend_tokens(*stored, now);
    const LeaseToken token{.boot = boot_, .number = next_lease_++};
    fact.items.push_back({.sequence = stored->sequence,
                          .id = stored->id,
                          .bytes = stored->bytes,
                          .key = stored->key->name});
    effects_.grants.push_back({*holder.number,
                               {.message = stored->body,
                                .token = token,
                                .attempt = stored->attempts + 1,
                                .deadline = fact.deadline}});
    lease_one(*stored, holder, token, fact.deadline);
    if (holder.credit.has_value()) --*holder.credit;
  }
  if (!fact.items.empty()) recorder_(fact);
  if (holder.listed()) queue.with_capacity.rotate();
  update_capacity(holder);
  return fact.items.size();
}

bool QueueMachine::deliver(Instant now, std::size_t count) {
  std::size_t granted = 0;
  while (!deliverable_.empty() && granted < count) {
    Queue& queue = deliverable_.front();
    granted += run_turn(queue, now);
    if (static_cast<ListHook<queue_state::DeliverableTag>&>(queue).listed()) {
      if (&deliverable_.front() == &queue) deliverable_.rotate();
    }
  }
  return !deliverable_.empty();
}

/// How many bytes one refill may bring in: fewer, the fuller the memory is, down to a single row,
/// without which a key could not be served at all. Except for that row of each key, the memory
/// budget holds for any number of keys.
std::size_t QueueMachine::refill_allowance() {
  const std::size_t used = payload_bytes_ + refill_bytes_under_way_;
  const std::size_t free =
      options_.payload_budget_bytes > used ? options_.payload_budget_bytes - used : 0;
  const std::size_t bytes = std::clamp<std::size_t>(free / 4, 1, options_.refill_bytes);
  refill_bytes_under_way_ += bytes;
  return bytes;
}

void QueueMachine::request_refill(Key& key) {
  if (key.spilled == 0 || key.loading) return;
  key.loading = true;
  key.grew = false;
  effects_.refills.push_back(
      {.queue = key.queue->id,
       .key = key.name,
       .delayed = false,
       .range = {.table = tables::kMessages,
                 .begin = message_key(key.queue->id, key.name, key.cursor),
                 .end = prefix_end(fairness_key_row(key.queue->id, key.name)),
                 .rows_max = options_.refill_rows,
                 .bytes_max = refill_allowance()}});
}

void QueueMachine::request_delayed(Instant now) {
  if (delayed_far_ == 0 || delayed_loading_) return;
  // At equality the deadline has passed, as next_deadline() counts it.
  if (horizon_instant(delayed_horizon_) > now + options_.delayed_horizon / 2) return;
  delayed_loading_ = true;
  delayed_loading_end_ = time_key(now + options_.delayed_horizon, QueueId{0}, Uuid{});
  effects_.refills.push_back({.queue = {},
                              .key = {},
                              .delayed = true,
                              .range = {.table = tables::kDelayed,
                                        .begin = delayed_horizon_,
                                        .end = delayed_loading_end_,
                                        .rows_max = options_.refill_rows,
                                        .bytes_max = refill_allowance()}});
}

QueueMachine::Bucket* QueueMachine::bucket_of(Queue& queue, std::string_view key, Instant now) {
  const auto rate = queue.settings->throttles.find(key);
  if (rate == queue.settings->throttles.end()) return nullptr;
  auto entry = queue.buckets.find(key);
  if (entry == queue.buckets.end()) {
    entry = queue.buckets.try_emplace(std::string(key)).first;
    Bucket& fresh = entry->second;
    fresh.queue = &queue;
    fresh.key = key;
    fresh.interval =
        Duration{std::max<std::int64_t>(1, static_cast<std::int64_t>(1e9 / rate->second.rate))};
    fresh.capacity = fresh.interval * static_cast<std::int64_t>(rate->second.burst);
    fresh.level = fresh.capacity;
    fresh.filled_at = now;
  }
  Bucket& bucket = entry->second;
  bucket.level = std::min(bucket.capacity, bucket.level + (now - bucket.filled_at));
  bucket.filled_at = now;
  return &bucket;
}

/// A bucket that has no token for this message; null if the message may go.
QueueMachine::Bucket* QueueMachine::blocking_bucket(Stored& stored, Instant now) {
  if (!stored.body->has_throttle_keys() || stored.queue->settings->throttles.empty())
    return nullptr;
  for (const std::string_view key : stored.body->throttle_keys()) {
    Bucket* const bucket = bucket_of(*stored.queue, key, now);
    if (bucket != nullptr && bucket->level < bucket->interval) return bucket;
  }
  return nullptr;
}

void QueueMachine::spend_tokens(Stored& stored, Instant now) {
  if (!stored.body->has_throttle_keys() || stored.queue->settings->throttles.empty()) return;
  for (const std::string_view key : stored.body->throttle_keys()) {
    Bucket* const bucket = bucket_of(*stored.queue, key, now);
    if (bucket != nullptr) bucket->level -= bucket->interval;
  }
}

/// Sets the message aside until the bucket has a token, so that it does not block the messages
/// behind it.
void QueueMachine::park(Stored& stored, Bucket& bucket) {
  Key& key = *stored.key;
  key.ready.erase(stored.sequence);
  ++key.parked;
  stored.parked_at = &bucket;
  bucket.waiting.emplace(std::pair(stored.body->enqueued_at(), stored.sequence), &stored);
  schedule_bucket(bucket);
}

/// Returns the message to the ready messages of its key.
void QueueMachine::unpark(Stored& stored) {
  Key& key = *stored.key;
  stored.parked_at->waiting.erase(std::pair(stored.body->enqueued_at(), stored.sequence));
  stored.parked_at = nullptr;
  --key.parked;
  key.ready.emplace(stored.sequence, &stored);
}

/// Each bucket with waiting messages has one deadline: its next token.
void QueueMachine::schedule_bucket(Bucket& bucket) {
  if (bucket.deadline.has_value() || bucket.waiting.empty()) return;
  bucket.deadline = bucket.filled_at + std::max(Duration{1}, bucket.interval - bucket.level);
  bucket_deadlines_.insert({*bucket.deadline, {bucket.queue->id, bucket.key}});
}

void QueueMachine::refill_bucket(QueueId id, const std::string& name, Instant now) {
  Queue& queue = queue_of(id);
  Bucket& bucket = *bucket_of(queue, name, now);
  bucket.deadline.reset();
  for (std::int64_t tokens = bucket.level / bucket.interval; tokens > 0 && !bucket.waiting.empty();
       --tokens) {
    Stored& stored = *bucket.waiting.begin()->second;
    unpark(stored);
    activate(*stored.key);
  }
  schedule_bucket(bucket);
}

/// After a change of settings: buckets whose rate changed or was removed start again.
void QueueMachine::forget_changed_buckets(Queue& queue, const QueueSettings& before) {
  const auto rate_in = [](const QueueSettings& settings, const std::string& key) {
    const auto entry = settings.throttles.find(key);
    return entry == settings.throttles.end() ? ThrottleRate{} : entry->second;
  };
  std::vector<std::string> changed;
  for (auto& [name, bucket] : queue.buckets) {
    if (rate_in(before, name) == rate_in(*queue.settings, name)) continue;
    changed.push_back(name);
    if (bucket.deadline.has_value()) bucket_deadlines_.erase({*bucket.deadline, {queue.id, name}});
    while (!bucket.waiting.empty()) {
      Stored& stored = *bucket.waiting.begin()->second;
      unpark(stored);
      activate(*stored.key);
    }
  }
  for (const std::string& name : changed) queue.buckets.erase(name);
}

void QueueMachine::watch_expiry(Stored& stored) {
  if (stored.body == nullptr || stored.body->expires_at() == Instant::never()) return;
  expiring_.emplace(std::pair(stored.body->expires_at(), std::pair(stored.queue->id, stored.id)),
                    &stored);
}

void QueueMachine::unwatch_expiry(Stored& stored) {
  if (stored.body == nullptr || stored.body->expires_at() == Instant::never()) return;
  expiring_.erase(std::pair(stored.body->expires_at(), std::pair(stored.queue->id, stored.id)));
}

/// A deadline that passes counts an attempt, unless the message is known not to have been begun: it
/// waited at a consumer that says what it begins, or at one that is gone.
void QueueMachine::expire_lease(Stored& stored, Instant now) {
  ++stored.queue->totals.lease_expired_total;
  ++totals_.lease_expired_total;
  const Holder& holder = *stored.holder;
  const bool unmarked = holder.number.has_value() && !holder.marks;
  if (stored.work == Work::begun || (stored.work == Work::unknown && unmarked)) {
    fail(stored, {.counted = true, .retry = {}, .reason = "the lease expired"}, now);
  } else {
    release(stored, now);
  }
}

/// Releases leases of earlier boots whose consumers did not return. A queue without
/// release_on_disconnect keeps its leases until their deadlines.
void QueueMachine::release_orphans(Instant now) {
  orphans_until_.reset();
  std::vector<Stored*> orphans;
  for (const auto& [name, queue] : queues_) {
    if (!queue->settings->release_on_disconnect) continue;
    for (auto& [id, holder] : queue->holders) {
      if (holder.number.has_value()) continue;
      holder.leases.for_each([&](Stored& stored) {
        if (stored.token.boot != boot_) orphans.push_back(&stored);
      });
    }
  }
  std::ranges::sort(orphans, {}, [](const Stored* stored) { return stored->token; });
  for (Stored* stored : orphans) release(*stored, now);
}

/// The delayed message that is due first, if it is in memory; beyond the horizon, rows may be due
/// before it.
const QueueMachine::Stored* QueueMachine::next_delayed() const {
  if (delayed_.empty()) return nullptr;
  const Stored* const first = delayed_.begin()->second;
  const bool beyond =
      delayed_far_ > 0 && time_key(first->due, first->queue->id, first->id) >= delayed_horizon_;
  return beyond ? nullptr : first;
}

bool QueueMachine::expire(Instant now, std::size_t count) {
  if (orphans_until_.has_value() && *orphans_until_ <= now) release_orphans(now);
  request_delayed(now);
  while (count > 0 && next_deadline() <= now && expire_one(now)) --count;
  return next_deadline() <= now;
}

/// Handles the first deadline that has passed, in the order of this function; false if none has.
bool QueueMachine::expire_one(Instant now) {
  if (Stored* expired = leases_.expired(now); expired != nullptr) {
    expire_lease(*expired, now);
  } else if (const Stored* next = next_delayed(); next != nullptr && next->due <= now) {
    const Stored& stored = *next;
    commit(BecameReady{.queue = stored.queue->id,
                       .id = stored.id,
                       .due = stored.due,
                       .sequence = stored.queue->next_sequence},
           now);
  } else if (!expiring_.empty() && expiring_.begin()->first.first <= now) {
    commit(removal_of(*expiring_.begin()->second, Removed::Why::expired), now);
  } else if (!bucket_deadlines_.empty() && bucket_deadlines_.begin()->first <= now) {
    const auto [queue, name] = bucket_deadlines_.begin()->second;
    bucket_deadlines_.erase(bucket_deadlines_.begin());
    refill_bucket(queue, name, now);
  } else {
    return false;
  }
  return true;
}

Instant QueueMachine::next_deadline() const {
  Instant next = leases_.next_deadline();
  if (const Stored* delayed = next_delayed(); delayed != nullptr)
    next = std::min(next, delayed->due);
  if (!expiring_.empty()) next = std::min(next, expiring_.begin()->first.first);
  if (!bucket_deadlines_.empty()) next = std::min(next, bucket_deadlines_.begin()->first);
  if (orphans_until_.has_value()) next = std::min(next, *orphans_until_);
  if (delayed_far_ > 0 && !delayed_loading_) {
    const Duration lead = options_.delayed_horizon / 2;
    next = std::min(next, Instant{horizon_instant(delayed_horizon_).ns - lead.count()});
  }
  return next;
}

void QueueMachine::refill(const Refill& refill, Instant now) {
  refill_bytes_under_way_ -= refill.request.range.bytes_max;
  if (refill.request.delayed) {
    refill_delayed(refill);
    request_delayed(now);
    return;
  }
  Queue* const queue = find_queue(refill.request.queue);
  if (queue == nullptr) return;
  const auto entry = queue->keys.find(refill.request.key);
  if (entry == queue->keys.end()) return;
  Key& key = entry->second;
  // A purge in the meantime made the rows and the request void.
  if (!key.loading || refill.request.range.begin != message_key(queue->id, key.name, key.cursor)) {
    return;
  }
  key.loading = false;
  for (const Row& row : refill.rows) refill_row(key, row);
  if (refill.exhausted && key.spilled > 0 && !key.grew) {
    effects_.rows_missing += key.spilled;
    queue->ready -= key.spilled;
    touch(key);
    key.spilled = 0;
    settle(key);
  }
  if (key.spilled == 0) key.taken.reset();
  activate(key);
  drop_key_if_idle(key);
}

void QueueMachine::refill_row(Key& key, const Row& row) {
  const Result<MessageKey> name = decode_message_key(row.key);
  Result<MessageRow> decoded = decode_message_row(row.value);
  if (!name.has_value() || !decoded.has_value()) return;  // Counted as missing by refill().
  key.cursor = Sequence{name->sequence.value + 1};
  if (key.taken != nullptr && key.taken->erase(name->sequence) != 0) return;
  const Uuid id = decoded->message->id();
  if (key.queue->messages.contains(id)) return;
  BATON_ASSERT(key.spilled > 0);
  Stored& stored = add_message(*key.queue, id, 0);
  set_body(stored, *decoded);
  stored.sequence = name->sequence;
  stored.place = Place::ready;
  enter_key(stored, key.name);
  --key.spilled;
  link_ready(stored);
}

void QueueMachine::refill_delayed(const Refill& refill) {
  delayed_loading_ = false;
  for (const Row& row : refill.rows) {
    delayed_horizon_ = row.key + '\0';
    if (delayed_taken_.erase(row.key) != 0) continue;
    const Result<TimeKey> name = decode_time_key(row.key);
    Result<MessageRow> decoded = decode_message_row(row.value);
    if (!name.has_value() || !decoded.has_value()) {
      ++effects_.rows_missing;
      continue;
    }
    Queue* const queue = find_queue(name->queue);
    if (queue == nullptr || decoded->sequence < queue->purged_before) {
      // The row is a leftover of a deleted or purged queue.
      delta_.other.erase(tables::kDelayed, row.key);
      if (queue != nullptr)
        delta_.other.erase(tables::kIds, queue_and_id(queue->id, name->id.raw()));
      continue;
    }
    if (queue->messages.contains(name->id)) continue;
    Stored& stored = materialize({.queue = queue->id,
                                  .id = name->id,
                                  .key = {},
                                  .sequence = decoded->sequence,
                                  .due = name->at},
                                 0);
    set_body(stored, *decoded);
    watch_expiry(stored);
  }
  if (refill.exhausted) delayed_horizon_ = std::max(delayed_horizon_, refill.request.range.end);
  delayed_taken_.erase(delayed_taken_.begin(), delayed_taken_.lower_bound(delayed_horizon_));
}

}  // namespace baton
