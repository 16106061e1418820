#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "core/queue/machine.h"

/// The operators' tools: peek, cancel, redrive. They look at memory first and then read rows, one
/// page at a time. The state may change between two pages, so every row is checked against the
/// current state.
namespace baton {
namespace {

constexpr std::size_t kPageRows = 256;
constexpr std::size_t kPageBytes = limits::kMiB;

Progress read_page(Table table, std::string begin, std::string end) {
  return {.kind = Progress::Kind::needs_rows,
          .rows = {.table = table,
                   .begin = std::move(begin),
                   .end = std::move(end),
                   .rows_max = kPageRows,
                   .bytes_max = kPageBytes},
          .until = {}};
}

Progress read_row(Table table, const std::string& key) { return read_page(table, key, key + '\0'); }

PeekedMessage peeked(const queue_state::Stored& stored) {
  PeekedMessage message{.message = stored.body,
                        .state = MessageState::ready,
                        .attempts = stored.attempts,
                        .consumer_id = {},
                        .visible_at = {}};
  if (stored.place == Place::leased) {
    message.state = MessageState::leased;
    message.consumer_id = *stored.holder->id;
    message.visible_at = stored.deadline;
  }
  if (stored.place == Place::delayed) {
    message.state = MessageState::delayed;
    message.visible_at = stored.due;
  }
  return message;
}

Error no_such_message(Uuid id) {
  return {Errc::message_not_found,
          fmt::format("there is no message {} in the queue", id.to_string())};
}

bool matches(const RedriveCommand& command, const Message& message) {
  if (!command.source_queue.empty() &&
      message.header("baton-source-queue") != command.source_queue) {
    return false;
  }
  return command.reason_contains.empty() ||
         message.header("baton-last-error").find(command.reason_contains) != std::string_view::npos;
}

/// How long the moves so far take at the command's rate; at most a hundred years, so that no rate
/// can make the result overflow.
Duration spent(const RedriveCommand& command) {
  constexpr Duration kMost = std::chrono::hours{24 * 365 * 100};
  const double ns = static_cast<double>(command.moved) / command.rate * 1e9;
  return ns < static_cast<double>(kMost.count()) ? Duration{static_cast<std::int64_t>(ns)} : kMost;
}

}  // namespace

/// Whether that row is a ready message that is not in memory.
bool QueueMachine::is_spilled_ready(const Queue& queue, const MessageKey& name, Uuid id) const {
  // The page may have been asked for before the queue was deleted and created again.
  if (name.queue != queue.id || queue.messages.contains(id)) return false;
  const auto key = queue.keys.find(name.fairness_key);
  if (key == queue.keys.end() || key->second.spilled == 0) return false;
  if (name.sequence < key->second.cursor) return false;
  return key->second.taken == nullptr || !key->second.taken->contains(name.sequence);
}

/// The same for a row of `delayed`.
bool QueueMachine::is_spilled_delayed(const Queue& queue, const std::string& key,
                                      const MessageRow& row) const {
  const Result<TimeKey> name = decode_time_key(key);
  if (!name.has_value() || name->queue != queue.id) return false;
  if (queue.messages.contains(name->id) || row.sequence < queue.purged_before) return false;
  return queue.delayed_far > 0 && key >= delayed_horizon_ && !delayed_taken_.contains(key);
}

Progress QueueMachine::on(PeekCommand& command, Instant) {
  Queue* const queue = find_queue(command.queue);
  if (queue == nullptr) {
    command.error = no_such_queue(command.queue);
    return {};
  }
  if (command.id.has_value()) {
    const auto entry = queue->messages.find(*command.id);
    if (entry != queue->messages.end() && entry->second.place != Place::outgoing) {
      command.messages.push_back(peeked(entry->second));
      return {};
    }
    return read_row(tables::kIds, queue_and_id(queue->id, command.id->raw()));
  }
  queue->active.for_each([&](const Key& key) {
    for (const auto& [sequence, stored] : key.ready) {
      if (command.messages.size() >= command.messages_max) return;
      if (stored->body != nullptr) command.messages.push_back(peeked(*stored));
    }
  });
  if (command.messages.size() >= command.messages_max || command.messages.size() >= queue->ready)
    return {};
  return read_page(tables::kMessages, queue_prefix(queue->id), prefix_end(queue_prefix(queue->id)));
}

/// The message of a row, if the row is still what the machine expects there.
std::optional<PeekedMessage> QueueMachine::peek_row(const Queue& queue, const Row& row) const {
  const Result<MessageRow> decoded = decode_message_row(row.value);
  if (!decoded.has_value()) return std::nullopt;
  PeekedMessage message{.message = decoded->message,
                        .state = MessageState::ready,
                        .attempts = decoded->attempts,
                        .consumer_id = {},
                        .visible_at = {}};
  if (const Result<MessageKey> name = decode_message_key(row.key);
      name.has_value() && name->fairness_key == decoded->message->fairness_key()) {
    if (!is_spilled_ready(queue, *name, decoded->message->id())) return std::nullopt;
    return message;
  }
  if (!is_spilled_delayed(queue, row.key, *decoded)) return std::nullopt;
  message.state = MessageState::delayed;
  message.visible_at = decode_time_key(row.key)->at;
  return message;
}

Progress QueueMachine::peek_rows(PeekCommand& command, const std::vector<Row>& rows, bool exhausted,
                                 Queue& queue) {
  if (command.id.has_value()) return peek_id_row(command, rows, queue);
  for (const Row& row : rows) {
    if (command.messages.size() >= command.messages_max) return {};
    if (auto message = peek_row(queue, row); message.has_value()) {
      command.messages.push_back(*std::move(message));
    }
  }
  if (exhausted || command.messages.size() >= command.messages_max) return {};
  return read_page(tables::kMessages, rows.back().key + '\0', prefix_end(queue_prefix(queue.id)));
}

/// Takes the row of `ids`, and after it the message's own row.
Progress QueueMachine::peek_id_row(PeekCommand& command, const std::vector<Row>& rows,
                                   const Queue& queue) {
  const Uuid id = command.id.value_or(Uuid{});
  const auto known = queue.messages.find(id);
  if (known != queue.messages.end() && known->second.place != Place::outgoing) {
    command.messages.push_back(peeked(known->second));
    return {};
  }
  if (!rows.empty() && command.next_row.empty()) {
    if (Result<IdRow> where = decode_id_row(rows.front().value); where.has_value()) {
      command.next_row = where->key;
      return read_row(where->table, where->key);
    }
  }
  auto message = rows.empty() ? std::nullopt : peek_row(queue, rows.front());
  if (message.has_value()) {
    command.messages.push_back(*std::move(message));
  } else {
    command.error = no_such_message(id);
  }
  return {};
}

Progress QueueMachine::on(CancelCommand& command, Instant now) { return cancel_next(command, now); }

/// Cancels messages in memory, up to the first id that must be looked up in the store.
Progress QueueMachine::cancel_next(CancelCommand& command, Instant now) {
  Queue* const queue = find_queue(command.queue);
  while (command.outcomes.size() < command.ids.size()) {
    const Uuid id = command.ids[command.outcomes.size()];
    if (queue == nullptr) {
      command.outcomes.emplace_back(no_such_queue(command.queue));
      continue;
    }
    const auto entry = queue->messages.find(id);
    if (entry == queue->messages.end()) {
      command.row_read.clear();
      return read_row(tables::kIds, queue_and_id(queue->id, id.raw()));
    }
    const Stored& stored = entry->second;
    if (stored.place == Place::outgoing) {
      command.outcomes.emplace_back(no_such_message(id));
      continue;
    }
    commit(removal_of(stored, Removed::Why::cancelled), now);
    command.outcomes.emplace_back();
  }
  return {};
}

/// Takes the row of `ids`, and after it the message's own row, for the next id.
Progress QueueMachine::cancel_row(CancelCommand& command, const std::vector<Row>& rows,
                                  Instant now) {
  const Queue* const queue = find_queue(command.queue);
  const Uuid id = command.ids[command.outcomes.size()];
  if (queue == nullptr || queue->messages.contains(id)) return cancel_next(command, now);
  if (!rows.empty() && command.row_read.empty()) {
    if (Result<IdRow> where = decode_id_row(rows.front().value); where.has_value()) {
      command.row_read = where->key;
      return read_row(where->table, where->key);
    }
  }
  ItemOutcome outcome = no_such_message(id);
  if (!rows.empty() && restore_spilled(*queue, rows.front())) return cancel_next(command, now);
  command.outcomes.push_back(std::move(outcome));
  return cancel_next(command, now);
}

/// Brings one spilled message into memory, if its row is still what the machine expects there.
bool QueueMachine::restore_spilled(const Queue& queue, const Row& row) {
  const Result<MessageRow> decoded = decode_message_row(row.value);
  if (!decoded.has_value()) return false;
  const Uuid id = decoded->message->id();
  if (const Result<MessageKey> name = decode_message_key(row.key);
      name.has_value() && name->fairness_key == decoded->message->fairness_key()) {
    return is_spilled_ready(queue, *name, id) && restore(tables::kMessages, row).has_value();
  }
  return is_spilled_delayed(queue, row.key, *decoded) && restore(tables::kDelayed, row).has_value();
}

Progress QueueMachine::on(RedriveCommand& command, Instant now) {
  Queue* const queue = find_queue(command.queue);
  if (queue == nullptr) {
    command.error = no_such_queue(command.queue);
    return {};
  }
  command.started = now;
  return redrive_memory(command, *queue, now);
}

Progress QueueMachine::redrive_memory(RedriveCommand& command, Queue& queue, Instant now) {
  std::vector<Stored*> in_memory;
  queue.active.for_each([&](const Key& key) {
    for (const auto& [sequence, stored] : key.ready) {
      if (stored->body != nullptr) in_memory.push_back(stored);
    }
  });
  const bool limited = command.rate > 0 && !command.dry_run;
  for (Stored* stored : in_memory) {
    const Instant allowed = command.started + spent(command);
    if (limited && allowed > now) {
      return {.kind = Progress::Kind::waits, .rows = {}, .until = allowed};
    }
    redrive_one(command, queue, *stored, now);
  }
  return redrive_page(command, queue, queue_prefix(queue.id), now);
}

/// Waits until the rate allows more, reads the next page, or finishes.
Progress QueueMachine::redrive_page(RedriveCommand& command, const Queue& queue, std::string from,
                                    Instant now) {
  const bool enough = command.messages_max != 0 && command.matched >= command.messages_max;
  if (from.empty() || enough || queue.ready == 0) return {};
  command.next_row = std::move(from);
  if (command.rate > 0 && !command.dry_run) {
    if (const Instant allowed = command.started + spent(command); allowed > now) {
      return {.kind = Progress::Kind::waits, .rows = {}, .until = allowed};
    }
  }
  Progress page =
      read_page(tables::kMessages, command.next_row, prefix_end(queue_prefix(queue.id)));
  // With a rate, pages are small, because the command waits between two pages.
  if (command.rate > 0) {
    page.rows.rows_max =
        std::clamp<std::size_t>(static_cast<std::size_t>(command.rate / 10), 1, kPageRows);
  }
  return page;
}

Progress QueueMachine::redrive_rows(RedriveCommand& command, const std::vector<Row>& rows,
                                    bool exhausted, Instant now) {
  Queue* const queue = find_queue(command.queue);
  if (queue == nullptr) return {};
  for (const Row& row : rows) redrive_row(command, *queue, row, now);
  std::string next = exhausted || rows.empty() ? std::string{} : rows.back().key + '\0';
  return redrive_page(command, *queue, std::move(next), now);
}

void QueueMachine::redrive_row(RedriveCommand& command, Queue& queue, const Row& row, Instant now) {
  if (command.messages_max != 0 && command.matched >= command.messages_max) return;
  const Result<MessageRow> decoded = decode_message_row(row.value);
  if (!decoded.has_value() || !matches(command, *decoded->message)) return;
  const Uuid id = decoded->message->id();
  if (command.dry_run) {
    const Result<MessageKey> name = decode_message_key(row.key);
    if (name.has_value() && is_spilled_ready(queue, *name, id)) ++command.matched;
  } else if (restore_spilled(queue, row)) {
    redrive_one(command, queue, queue.messages.at(id), now);
  }
}

void QueueMachine::redrive_one(RedriveCommand& command, Queue& queue, Stored& stored, Instant now) {
  if (command.messages_max != 0 && command.matched >= command.messages_max) return;
  if (!matches(command, *stored.body)) return;
  ++command.matched;
  if (command.dry_run) return;
  const std::string to =
      command.to.empty() ? std::string(stored.body->header("baton-source-queue")) : command.to;
  const MessagePlace place{.queue = queue.id,
                           .id = stored.id,
                           .key = stored.key->name,
                           .sequence = stored.sequence,
                           .due = {}};
  if (to.empty() || to == queue.name) {
    ++command.skipped;
    return;
  }
  if (shard_of(to) != options_.shard) {
    send_away(stored, to, {}, now);
    ++command.moved;
    return;
  }
  const Queue* const target = find_queue(to);
  if (target == nullptr) {
    ++command.skipped;
    return;
  }
  finish_outgoing(*target, stored.id, now);
  commit(Redriven{.place = place, .to = target->id, .sequence = target->next_sequence}, now);
  ++command.moved;
}

Progress QueueMachine::resume(QueueCommand& command, const std::vector<Row>& rows, bool exhausted,
                              Instant now) {
  if (auto* peek = std::get_if<PeekCommand>(&command)) {
    Queue* const queue = find_queue(peek->queue);
    if (queue != nullptr) return peek_rows(*peek, rows, exhausted, *queue);
    peek->error = no_such_queue(peek->queue);
    return {};
  }
  if (auto* cancel = std::get_if<CancelCommand>(&command)) return cancel_row(*cancel, rows, now);
  auto* const redrive = std::get_if<RedriveCommand>(&command);
  BATON_ASSERT(redrive != nullptr);
  if (rows.empty() && !exhausted) {
    // The wait is over.
    Queue* const queue = find_queue(redrive->queue);
    if (queue == nullptr) return {};
    return redrive->next_row.empty() ? redrive_memory(*redrive, *queue, now)
                                     : redrive_page(*redrive, *queue, redrive->next_row, now);
  }
  return redrive_rows(*redrive, rows, exhausted, now);
}

}  // namespace baton
