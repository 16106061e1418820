#include <algorithm>
#include <utility>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/growing.h"
#include "core/queue/machine.h"

/// Loads a checkpoint: queues, keys and leases are loaded, messages stay in the store. If a fact of
/// the journal needs a message that is only a row, that row is fetched when the fact is applied.
namespace baton {
namespace {

Error unknown_queue(std::string_view table) {
  return {Errc::store_corrupt, "a row of the table '" + std::string(table) + "' names no queue"};
}

}  // namespace

Status QueueMachine::load(Table table, const Row& row) {
  if (table == tables::kQueues) return load_queue(row);
  if (table == tables::kKeys) return load_key(row);
  if (table == tables::kLeases) return load_lease(row);
  if (table == tables::kDedup) return load_dedup(row);
  if (table == tables::kOutgoing) return load_outgoing(row);
  if (table == tables::kReceived) {
    Decoder in(row.key);
    const std::uint64_t shard = in.big_u64();
    TransferId transfer;
    transfer.boot = in.big_u64();
    transfer.number = in.big_u64();
    if (!in.finish()) return Error{Errc::store_corrupt, "a row of the table 'received'"};
    Decoder fields(row.value);
    skip_fields(fields);
    if (!fields.ok()) {
      return unreadable(fields, Errc::store_corrupt, "a row of the table 'received'");
    }
    received_.emplace(shard, transfer);
    return {};
  }
  if (table == tables::kState && row.key == "next_queue_id") {
    next_queue_ = QueueId{Decoder(row.value).varint()};
  }
  return {};
}

Status QueueMachine::load_queue(const Row& row) {
  BATON_TRY(QueueRow decoded, decode_queue_row(row.value));
  auto queue = std::make_unique<Queue>();
  queue->id = decoded.id;
  queue->name = row.key;
  queue->settings = std::make_shared<const QueueSettings>(std::move(decoded.settings));
  queue->next_sequence = decoded.next_sequence;
  queue->purged_before = decoded.purged_before;
  queue->bytes = decoded.bytes;
  queue->delayed = queue->delayed_far = decoded.delayed;
  delayed_far_ += decoded.delayed;
  queues_by_id_[queue->id] = queue.get();
  // The next checkpoint writes the row in the current format.
  if (decoded.old) settle(*queue);
  next_queue_ = QueueId{std::max(next_queue_.value, decoded.id.value + 1)};
  queues_[row.key] = std::move(queue);
  return {};
}

Status QueueMachine::load_key(const Row& row) {
  BATON_TRY(auto name, decode_fairness_key_row(row.key));
  BATON_TRY(const KeyRow decoded, decode_key_row(row.value));
  Queue* const queue = find_queue(name.first);
  if (queue == nullptr) return unknown_queue("keys");
  Key& key = queue->keys.try_emplace(name.second).first->second;
  key.name = std::move(name.second);
  key.queue = queue;
  key.spilled = decoded.count;
  key.cursor = decoded.head;
  key.low = decoded.head;
  queue->ready += decoded.count;
  activate(key);
  return {};
}

Status QueueMachine::load_lease(const Row& row) {
  BATON_TRY(const QueueAndId name, decode_queue_and_id(row.key));
  BATON_TRY(const LeaseRow decoded, decode_lease_row(row.value));
  Queue* const queue = find_queue(name.queue);
  if (queue == nullptr) return unknown_queue("leases");
  Stored& stored = add_message(*queue, name.id, decoded.bytes);
  stored.sequence = decoded.sequence;
  enter_key(stored, decoded.key);
  Holder& holder = holder_of(*queue, decoded.consumer_id);
  stored.place = Place::leased;
  stored.token = decoded.token;
  stored.deadline = decoded.deadline;
  stored.holder = &holder;
  leases_.grant(stored.token, stored.deadline, &stored);
  holder.leases.push_back(stored);
  holder.in_flight_bytes += stored.bytes;
  ++queue->leased;
  return {};
}

Status QueueMachine::load_dedup(const Row& row) {
  BATON_TRY(const QueueAndId name, decode_queue_and_id(row.key));
  BATON_TRY(const DedupRow decoded, decode_dedup_row(row.value));
  Queue* const queue = find_queue(name.queue);
  if (queue == nullptr) return unknown_queue("dedup");
  queue->dedup.load(name.id.bytes, decoded.id, decoded.seen);
  return {};
}

Status QueueMachine::load_outgoing(const Row& row) {
  BATON_TRY(const QueueAndId name, decode_queue_and_id(row.key));
  BATON_TRY(const MessageRow decoded, decode_message_row(row.value));
  Queue* const queue = find_queue(name.queue);
  if (queue == nullptr) return unknown_queue("outgoing");
  Stored& stored = add_message(*queue, name.id, 0);
  set_body(stored, decoded);
  stored.sequence = decoded.sequence;
  stored.place = Place::outgoing;
  stored.to = decoded.to;
  stored.transfer = decoded.transfer.value_or(TransferId::of_message(name.id));
  ++queue->outgoing;
  return {};
}

void QueueMachine::loaded() {
  for (const auto& [name, queue] : queues_) {
    queue->dedup.sort_loaded();
    for (auto& [id, holder] : queue->holders) {
      // Rows come in the order of message ids; the tokens tell the order of leasing.
      std::vector<Stored*> leases = leases_of(holder);
      std::ranges::sort(leases, {}, &Stored::token);
      for (Stored* stored : leases) {
        holder.leases.remove(*stored);
        holder.leases.push_back(*stored);
      }
    }
  }
}

std::optional<QueueMachine::RowName> QueueMachine::body_of_lease(LeaseToken token) const {
  const Stored* const stored = leases_.find(token);
  if (stored == nullptr || stored->body != nullptr) return std::nullopt;
  return RowName(tables::kMessages,
                 message_key(stored->queue->id, stored->key->name, stored->sequence));
}

std::optional<QueueMachine::RowName> QueueMachine::body_of_ready(const MessagePlace& place) const {
  const Queue* const queue = find_queue(place.queue);
  if (queue == nullptr || queue->messages.contains(place.id)) return std::nullopt;
  return RowName(tables::kMessages, message_key(place.queue, place.key, place.sequence));
}

std::optional<QueueMachine::RowName> QueueMachine::body_of_delayed(const BecameReady& fact) const {
  const Queue* const queue = find_queue(fact.queue);
  if (queue == nullptr || queue->messages.contains(fact.id)) return std::nullopt;
  return RowName(tables::kDelayed, time_key(fact.due, fact.queue, fact.id));
}

std::optional<std::pair<Table, std::string>> QueueMachine::wants(const QueueFact& fact) const {
  if (const auto* ended = std::get_if<Ended>(&fact)) return body_of_lease(ended->token);
  if (const auto* dead = std::get_if<DeadLettered>(&fact)) return body_of_lease(dead->token);
  if (const auto* redriven = std::get_if<Redriven>(&fact)) return body_of_ready(redriven->place);
  if (const auto* ready = std::get_if<BecameReady>(&fact)) return body_of_delayed(*ready);
  if (const auto* outgoing = std::get_if<Outgoing>(&fact)) {
    return outgoing->token.number != 0 ? body_of_lease(outgoing->token)
                                       : body_of_ready(outgoing->place);
  }
  return std::nullopt;
}

Status QueueMachine::restore(Table table, const Row& row) {
  BATON_TRY(const MessageRow decoded, decode_message_row(row.value));
  const Uuid id = decoded.message->id();
  MessagePlace place{.queue = {}, .id = id, .key = {}, .sequence = decoded.sequence, .due = {}};
  if (table == tables::kDelayed) {
    BATON_TRY(const TimeKey name, decode_time_key(row.key));
    place.queue = name.queue;
    place.due = name.at;
  } else {
    BATON_TRY(const MessageKey name, decode_message_key(row.key));
    place.queue = name.queue;
    place.key = name.fairness_key;
    place.sequence = name.sequence;
  }
  Queue* const queue = find_queue(place.queue);
  if (queue == nullptr) return unknown_queue("messages");
  const auto known = queue->messages.find(id);
  Stored& stored = known != queue->messages.end() ? known->second : materialize(place, 0);
  if (stored.body != nullptr) return {};
  set_body(stored, decoded);
  if (stored.place != Place::leased) watch_expiry(stored);
  return {};
}

std::vector<std::string> QueueMachine::missing_bodies() const {
  std::vector<std::string> keys;
  for (const auto& [name, queue] : queues_) {
    if (queue->leased == 0) continue;
    for (const auto& [id, stored] : queue->messages) {
      if (stored.place == Place::leased && stored.body == nullptr) {
        keys.push_back(message_key(queue->id, stored.key->name, stored.sequence));
      }
    }
  }
  std::ranges::sort(keys);
  return keys;
}

}  // namespace baton
