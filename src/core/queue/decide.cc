#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/hash.h"
#include "base/names.h"
#include "core/queue/machine.h"

/// Decides commands: what follows from each, as facts. Every item is decided, recorded and applied
/// before the next item is decided.
namespace baton {
namespace {

Error lease_lost() {
  return {Errc::lease_lost, "the lease is over: it expired, was released, or was never given"};
}

/// Fails with what is wrong in these settings for the queue of that name.
Status validate_for(std::string_view queue, const QueueSettings& settings) {
  if (settings.dead_letter_queue == queue) {
    return Error{Errc::invalid_argument,
                 fmt::format("dead_letter_queue is '{}', the queue itself: a message that fails "
                             "would come back to it for ever",
                             queue)};
  }
  return validate(settings);
}

}  // namespace

Progress QueueMachine::on(EnqueueCommand& command, Instant now) {
  Queue* const queue = find_queue(command.queue);
  command.outcomes.reserve(command.messages.size());
  for (const NewMessage& message : command.messages) {
    if (queue == nullptr) {
      command.outcomes.push_back(
          {.id = {}, .duplicate = false, .error = no_such_queue(command.queue)});
    } else {
      command.outcomes.push_back(enqueue(*queue, message, now));
    }
  }
  return {};
}

std::optional<Error> QueueMachine::refusal(const Queue& queue, const NewMessage& message,
                                           const std::optional<DedupHash>& dedup,
                                           Instant now) const {
  const QueueSettings& settings = *queue.settings;
  if (message.payload.size() > settings.payload_bytes_max) {
    return Error{Errc::invalid_argument,
                 fmt::format("payload has {} bytes; the limit of queue '{}' is {}",
                             message.payload.size(), queue.name, settings.payload_bytes_max)};
  }
  if (settings.messages_max != 0 && queue.messages_total() >= settings.messages_max) {
    return Error{Errc::queue_full, fmt::format("queue '{}' holds {} messages, its messages_max",
                                               queue.name, queue.messages_total())};
  }
  if (settings.bytes_max != 0 && queue.bytes + message.payload.size() > settings.bytes_max) {
    return Error{Errc::queue_full, fmt::format("queue '{}' holds {} bytes; its bytes_max is {}",
                                               queue.name, queue.bytes, settings.bytes_max)};
  }
  if (dedup.has_value() && queue.dedup.size() >= settings.dedup_ids_max &&
      !queue.dedup.oldest_is_before(now, settings.dedup_window)) {
    return Error{
        Errc::dedup_full,
        fmt::format("queue '{}' remembers {} dedup ids, its dedup_ids_max; a message with a "
                    "dedup_id can be taken when the oldest is {} old",
                    queue.name, queue.dedup.size(), format_duration(settings.dedup_window))};
  }
  return std::nullopt;
}

EnqueueOutcome QueueMachine::enqueue(Queue& queue, const NewMessage& message, Instant now) {
  const QueueSettings& settings = *queue.settings;
  std::optional<DedupHash> dedup;
  if (!message.dedup_id.empty()) {
    dedup = hash128(message.dedup_id);
    if (const auto first = queue.dedup.find(*dedup, now, settings.dedup_window);
        first.has_value()) {
      ++queue.totals.deduplicated_total;
      ++totals_.deduplicated_total;
      return {.id = *first, .duplicate = true, .error = {}};
    }
  }
  if (auto error = refusal(queue, message, dedup, now); error.has_value()) {
    return {.id = {}, .duplicate = false, .error = std::move(error)};
  }
  Instant expires = Instant::never();
  if (settings.retention > Duration{0}) expires = now + settings.retention;
  if (message.expires_after > Duration{0}) expires = std::min(expires, now + message.expires_after);
  const Uuid id = Uuid::make_v7(now, random_);
  commit(Enqueued{.queue = queue.id,
                  .sequence = queue.next_sequence,
                  .due = message.delay > Duration{0} ? std::optional(now + message.delay)
                                                     : std::nullopt,
                  .dedup = dedup,
                  .message = Message::make(message, id, now, expires)},
         now);
  return {.id = id, .duplicate = false, .error = {}};
}

Progress QueueMachine::on(AckCommand& command, Instant now) {
  command.outcomes.reserve(command.tokens.size());
  for (const LeaseToken token : command.tokens) {
    if (held(token, command.queue) == nullptr) {
      ++lease_lost_total_;
      command.outcomes.emplace_back(lease_lost());
      continue;
    }
    commit(Acked{token}, now);
    command.outcomes.emplace_back();
  }
  return {};
}

Progress QueueMachine::on(NackCommand& command, Instant now) {
  for (NackItem& item : command.items) {
    Stored* const stored = held(item.token, command.queue);
    if (stored == nullptr) {
      ++lease_lost_total_;
      command.outcomes.emplace_back(lease_lost());
      continue;
    }
    const bool counted = item.retry.kind != Retry::Kind::release;
    if (counted) {
      ++stored->queue->totals.nacked_total;
      ++totals_.nacked_total;
    }
    fail(*stored,
         {.counted = counted,
          .retry = item.retry,
          .reason = item.reason.empty() ? "nacked" : std::move(item.reason)},
         now);
    command.outcomes.emplace_back();
  }
  return {};
}

Progress QueueMachine::on(ExtendCommand& command, Instant now) {
  for (const ExtendItem& item : command.items) {
    const Stored* const stored = held(item.token, command.queue);
    if (stored == nullptr) {
      ++lease_lost_total_;
      command.outcomes.emplace_back(lease_lost());
      continue;
    }
    const Duration timeout =
        item.timeout > Duration{0} ? item.timeout : stored->queue->settings->visibility_timeout;
    commit(Extended{item.token, now + timeout}, now);
    command.outcomes.emplace_back();
  }
  return {};
}

Duration QueueMachine::backoff(const QueueSettings& settings, std::uint32_t attempts) {
  Duration delay = settings.retry_delay;
  for (std::uint32_t i = 1; i < attempts && delay < settings.retry_delay_max; ++i) delay *= 2;
  delay = std::min(delay, settings.retry_delay_max);
  // Half of the delay is fixed and half is random, so that messages that failed together do not
  // return together.
  const auto half = static_cast<std::uint64_t>(delay.count() / 2);
  return Duration{static_cast<std::int64_t>(half + random_.below(half + 1))};
}

void QueueMachine::fail(Stored& stored, Failure failure, Instant now) {
  const Queue& queue = *stored.queue;
  const QueueSettings& settings = *queue.settings;
  const std::uint32_t attempts = stored.attempts + (failure.counted ? 1 : 0);
  const bool used_up = settings.attempts_max != 0 && attempts >= settings.attempts_max;
  const std::string dead_letter_queue = dead_letter_queue_of(queue);
  if (failure.counted && used_up && !dead_letter_queue.empty()) {
    dead_letter(stored, dead_letter_queue, std::move(failure.reason), now);
    return;
  }
  std::optional<Instant> due;
  if (failure.retry.kind == Retry::Kind::backoff) due = now + backoff(settings, attempts);
  if (failure.retry.kind == Retry::Kind::after && failure.retry.delay > Duration{0}) {
    due = now + failure.retry.delay;
  }
  commit(Ended{.token = stored.token,
               .counted = failure.counted,
               .due = due,
               .reason = std::move(failure.reason)},
         now);
}

void QueueMachine::dead_letter(Stored& stored, const std::string& to, std::string reason,
                               Instant now) {
  if (shard_of(to) == options_.shard) {
    Queue* target = find_queue(to);
    if (target == nullptr) target = &create_queue(to, {}, now);
    finish_outgoing(*target, stored.id, now);
    commit(DeadLettered{.token = stored.token,
                        .to = target->id,
                        .sequence = target->next_sequence,
                        .reason = std::move(reason)},
           now);
    return;
  }
  send_away(stored, to, std::move(reason), now);
}

QueueMachine::Queue& QueueMachine::create_queue(std::string_view name,
                                                const QueueSettings& settings, Instant now) {
  commit(QueueCreated{.queue = next_queue_, .name = std::string(name), .settings = settings}, now);
  return *find_queue(name);
}

Progress QueueMachine::on(CreateQueueCommand& command, Instant now) {
  const QueueSettings settings = patched({}, command.settings);
  Status valid = validate_queue_name(command.queue);
  if (valid.has_value()) valid = validate_for(command.queue, settings);
  if (!valid.has_value()) {
    command.error = valid.error();
    return {};
  }
  const Queue* queue = find_queue(command.queue);
  if (queue == nullptr) valid = validate_new_name("queue name", command.queue);
  if (!valid.has_value()) {
    command.error = valid.error();
    return {};
  }
  if (queue != nullptr && *queue->settings != settings) {
    command.error =
        Error{Errc::queue_exists,
              fmt::format("queue '{}' exists with other settings; update it, or delete it "
                          "first",
                          command.queue)};
    return {};
  }
  if (queue == nullptr && queues_.size() >= limits::kQueuesPerShard) {
    command.error =
        Error{Errc::resource_exhausted,
              fmt::format("there are {} queues in this shard, which is the limit", queues_.size())};
    return {};
  }
  if (queue == nullptr) queue = &create_queue(command.queue, settings, now);
  command.description = describe(*queue);
  return {};
}

Progress QueueMachine::on(UpdateQueueCommand& command, Instant now) {
  const Queue* const queue = find_queue(command.queue);
  if (queue == nullptr) {
    command.error = no_such_queue(command.queue);
    return {};
  }
  const QueueSettings settings = patched(*queue->settings, command.settings);
  if (const Status valid = validate_for(command.queue, settings); !valid.has_value()) {
    command.error = valid.error();
    return {};
  }
  if (settings != *queue->settings) commit(QueueUpdated{queue->id, settings}, now);
  command.description = describe(*queue);
  return {};
}

Progress QueueMachine::on(DeleteQueueCommand& command, Instant now) {
  const Queue* const queue = find_queue(command.queue);
  if (queue == nullptr) {
    command.error = no_such_queue(command.queue);
  } else if (queue->outgoing != 0) {
    command.error = Error{Errc::failed_precondition,
                          fmt::format("queue '{}' has {} messages on their way to another queue",
                                      command.queue, queue->outgoing)};
  } else {
    commit(QueueDeleted{queue->id}, now);
  }
  return {};
}

Progress QueueMachine::on(PurgeCommand& command, Instant now) {
  const Queue* const queue = find_queue(command.queue);
  if (queue == nullptr) {
    command.error = no_such_queue(command.queue);
    return {};
  }
  command.purged = queue->ready + queue->delayed;
  if (command.purged != 0) commit(Purged{queue->id}, now);
  return {};
}

Progress QueueMachine::on(DescribeQueueCommand& command, Instant) {
  const Queue* const queue = find_queue(command.queue);
  if (queue == nullptr) {
    command.error = no_such_queue(command.queue);
  } else {
    command.description = describe(*queue);
  }
  return {};
}

Progress QueueMachine::on(ListQueuesCommand& command, Instant) {
  list(command);
  if (command.queue.empty()) command.left_out = queues_.size() - command.descriptions.size();
  if (command.with_oldest) find_oldest(command.descriptions);
  return {};
}

Progress QueueMachine::on(TransferCommand& command, Instant now) {
  if (received_.contains({command.from_shard, command.transfer})) return {};
  Queue* queue = find_queue(command.queue);
  if (queue == nullptr) queue = &create_queue(command.queue, {}, now);
  finish_outgoing(*queue, command.message->id(), now);
  commit(Received{.transfer = command.transfer,
                  .queue = queue->id,
                  .sequence = queue->next_sequence,
                  .from_shard = command.from_shard,
                  .message = command.message},
         now);
  return {};
}

Progress QueueMachine::on(TransferDoneCommand& command, Instant now) {
  const Queue* const queue = find_queue(command.from_queue);
  if (queue == nullptr) return {};
  const auto entry = queue->messages.find(command.id);
  // The message may have come back in the meantime, and may even be on its way again in another
  // transfer.
  if (entry == queue->messages.end() || entry->second.place != Place::outgoing ||
      entry->second.transfer != command.transfer) {
    return {};
  }
  finish_outgoing(*queue, command.id, now);
  return {};
}

Progress QueueMachine::on(TransferForgetCommand& command, Instant now) {
  if (received_.contains({command.from_shard, command.transfer})) {
    commit(ReceivedForgotten{.transfer = command.transfer, .from_shard = command.from_shard}, now);
  }
  return {};
}

}  // namespace baton
