#include "core/queue/delta.h"

#include "base/assert.h"
#include "base/bytes.h"

namespace baton {
namespace {

/// The row that holds the message's bytes: its table and key.
struct RowName {
  Table table;
  std::string key;
  bool operator==(const RowName&) const = default;
};

std::string_view key_of(const MessageChange& change) {
  return change.body != nullptr ? change.body->fairness_key() : std::string_view(change.key);
}

std::optional<RowName> row_name(const MessageChange& change, const MessageRows& rows) {
  switch (rows.place) {
    case Place::gone: return std::nullopt;
    case Place::ready:
    case Place::leased:
      return RowName{tables::kMessages, message_key(change.queue, key_of(change), rows.sequence)};
    case Place::delayed:
      return RowName{tables::kDelayed, time_key(rows.due, change.queue, change.id)};
    case Place::outgoing:
      return RowName{tables::kOutgoing, queue_and_id(change.queue, change.id.raw())};
  }
  return std::nullopt;
}

bool same_content(const MessageRows& a, const MessageRows& b) {
  return a.attempts == b.attempts && a.failure == b.failure && a.to == b.to &&
         a.transfer == b.transfer;
}

void append_body(const MessageChange& change, RowBatch& batch) {
  const std::optional<RowName> before = row_name(change, change.before);
  const std::optional<RowName> after = row_name(change, change.after);
  const std::string id_key = queue_and_id(change.queue, change.id.raw());
  if (before.has_value() && before != after) batch.erase(before->table, before->key);
  if (change.stray_due.has_value()) {
    batch.erase(tables::kDelayed, time_key(*change.stray_due, change.queue, change.id));
  }
  if (!after.has_value()) {
    if (before.has_value() || change.stray_due.has_value()) batch.erase(tables::kIds, id_key);
    return;
  }
  const bool moved = before != after || change.rewrite;
  if (!moved && same_content(change.before, change.after)) return;
  // A message without its body can only be leased or gone: nothing else happens to it until
  // recovery has fetched the body.
  BATON_ASSERT(change.body != nullptr);
  batch.put(after->table, after->key,
            encode_row(MessageRow{.sequence = change.after.sequence,
                                  .attempts = change.after.attempts,
                                  .failure = change.after.failure,
                                  .to = change.after.to,
                                  .transfer = change.after.transfer,
                                  .message = change.body}));
  if (moved) batch.put(tables::kIds, id_key, encode_row(IdRow{after->table, after->key}));
}

/// Erases rows of a deleted queue that are sorted by time, and so lie in none of the queue's
/// ranges.
void append_leftovers(const MessageChange& change, RowBatch& batch) {
  if (change.before.place == Place::leased) {
    batch.erase(tables::kLeaseExpiry, time_key(change.before.deadline, change.queue, change.id));
  }
  if (change.before.place == Place::delayed) {
    batch.erase(tables::kDelayed, time_key(change.before.due, change.queue, change.id));
  }
  if (change.stray_due.has_value()) {
    batch.erase(tables::kDelayed, time_key(*change.stray_due, change.queue, change.id));
  }
}

void append_lease(const MessageChange& change, RowBatch& batch) {
  const bool was = change.before.place == Place::leased;
  const bool is = change.after.place == Place::leased;
  if (was && (!is || change.before.deadline != change.after.deadline)) {
    batch.erase(tables::kLeaseExpiry, time_key(change.before.deadline, change.queue, change.id));
  }
  const std::string key = queue_and_id(change.queue, change.id.raw());
  if (was && !is) batch.erase(tables::kLeases, key);
  if (!is) return;
  batch.put(tables::kLeases, key,
            encode_row(LeaseRow{.consumer_id = *change.after.consumer_id,
                                .deadline = change.after.deadline,
                                .token = change.after.token,
                                .bytes = change.bytes,
                                .key = std::string(key_of(change)),
                                .sequence = change.after.sequence}));
  batch.put(tables::kLeaseExpiry, time_key(change.after.deadline, change.queue, change.id), "");
}

}  // namespace

void append_rows(const QueueDelta& delta, RowBatch& batch) {
  for (const RowChange& change : delta.other.changes()) batch.add(change);
  for (const MessageChange& change : delta.messages) {
    if (delta.deleted.contains(change.queue)) {
      append_leftovers(change, batch);
      continue;
    }
    append_body(change, batch);
    append_lease(change, batch);
  }
  for (const KeyChange& change : delta.keys) {
    if (delta.deleted.contains(change.queue)) continue;
    std::string key = fairness_key_row(change.queue, change.key);
    if (change.after.count != 0) {
      batch.put(tables::kKeys, std::move(key), encode_row(change.after));
    } else if (change.stored_before) {
      batch.erase(tables::kKeys, std::move(key));
    }
  }
  for (const QueueChange& change : delta.queues) {
    if (delta.deleted.contains(change.id)) continue;
    batch.put(tables::kQueues, change.name,
              encode_row(QueueRow{.id = change.id,
                                  .next_sequence = change.next_sequence,
                                  .purged_before = change.purged_before,
                                  .bytes = change.bytes,
                                  .delayed = change.delayed,
                                  .settings = *change.settings}));
  }
  std::string next;
  Encoder(next).varint(delta.next_queue.value);
  batch.put(tables::kState, "next_queue_id", std::move(next));
}

void append_spilled(RowBatch& batch, QueueId queue, const MessageRow& row, Place place,
                    Instant due) {
  const Uuid id = row.message->id();
  const bool delayed = place == Place::delayed;
  const Table table = delayed ? tables::kDelayed : tables::kMessages;
  std::string key = delayed ? time_key(due, queue, id)
                            : message_key(queue, row.message->fairness_key(), row.sequence);
  batch.put(tables::kIds, queue_and_id(queue, id.raw()), encode_row(IdRow{table, key}));
  batch.put(table, std::move(key), encode_row(row));
}

}  // namespace baton
