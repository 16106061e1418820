#include <algorithm>
#include <iterator>

#include "sim/mirror.h"

/// The rules, fact by fact.
namespace baton {
namespace {

bool is_dead_letter_queue(std::string_view name) { return name.ends_with(".dlq"); }

}  // namespace

void Mirror::on(const QueueCreated& fact) {
  if (fact.queue <= last_queue_) refuse("queue number {} was given before", fact.queue.value);
  last_queue_ = fact.queue;
  for (const auto& [id, queue] : queues_) {
    if (queue.name == fact.name) refuse("queue '{}' exists", fact.name);
  }
  MirrorQueue& queue = queues_[fact.queue];
  queue.id = fact.queue;
  queue.name = fact.name;
  queue.settings = fact.settings;
  queue.dedup_window = fact.settings.dedup_window;
}

void Mirror::on(const QueueUpdated& fact) {
  MirrorQueue* const queue = queue_of(fact.queue);
  if (queue == nullptr) return;
  queue->settings = fact.settings;
  queue->dedup_window = std::min(queue->dedup_window, fact.settings.dedup_window);
  queue->buckets.clear();
  queue->races.clear();
}

void Mirror::on(const QueueDeleted& fact) {
  const MirrorQueue* const queue = queue_of(fact.queue);
  if (queue == nullptr) return;
  for (const auto& [id, letter] : queue->letters) {
    if (letter.place == Place::leased) leases_.erase(letter.token);
  }
  queues_.erase(fact.queue);
}

void Mirror::check_dedup(MirrorQueue& queue, const Enqueued& fact) {
  if (!fact.dedup.has_value()) return;
  const auto seen = queue.dedup.find(*fact.dedup);
  if (seen != queue.dedup.end() && seen->second + queue.dedup_window > now_) {
    refuse("'{}' takes a dedup id again within its window", queue.name);
  }
  queue.dedup[*fact.dedup] = now_;
}

void Mirror::on(const Enqueued& fact) {
  MirrorQueue* const queue = queue_of(fact.queue);
  if (queue == nullptr) return;
  if (!ids_.insert(fact.message->id()).second) refuse("a message id was given before");
  check_dedup(*queue, fact);
  const std::uint64_t most = queue->settings.messages_max;
  if (most != 0 && queue->letters.size() >= most)
    refuse("'{}' is over its messages_max", queue->name);
  add_ready(*queue, fact.message, fact.sequence);
  if (!fact.due.has_value()) return;
  Letter& letter = queue->letters.at(fact.message->id());
  letter.place = Place::delayed;
  letter.due = *fact.due;
}

void Mirror::check_order(MirrorQueue& queue, const Letter& letter, const std::string& key) {
  // A throttled message may be overtaken; one that returns was not undisturbed.
  if (letter.body->has_throttle_keys() || letter.leased_before) return;
  Sequence& last = queue.last_first_lease[key];
  if (letter.sequence < last) {
    refuse("'{}': message {} of key '{}' is leased after {}", queue.name, letter.sequence.value,
           key, last.value);
  }
  last = letter.sequence;
}

void Mirror::check_throttles(MirrorQueue& queue, const Letter& letter) {
  for (const std::string_view key : letter.body->throttle_keys()) {
    const auto rate = queue.settings.throttles.find(key);
    if (rate == queue.settings.throttles.end()) continue;
    const Duration interval{static_cast<std::int64_t>(1e9 / rate->second.rate)};
    const Duration capacity = interval * static_cast<std::int64_t>(rate->second.burst);
    Tokens fresh{.filled_at = now_, .level = capacity};
    Tokens& tokens = queue.buckets.try_emplace(std::string(key), fresh).first->second;
    tokens.level = std::min(capacity, tokens.level + (now_ - tokens.filled_at));
    tokens.filled_at = now_;
    tokens.level -= interval;
    // A message that names a throttle twice pays twice.
    if (tokens.level < Duration{0})
      refuse("'{}' leases faster than throttle '{}'", queue.name, key);
  }
}

void Mirror::on(const Leased& fact) {
  MirrorQueue* const queue = queue_of(fact.queue);
  if (queue == nullptr) return;
  if (fact.deadline != now_ + queue->settings.visibility_timeout)
    refuse("a lease of another length");
  LeaseToken token = fact.first;
  for (const Leased::Item& item : fact.items) {
    Letter* const letter = letter_of(fact.queue, item.id);
    if (letter == nullptr) return;
    check_token(token);
    check_leasable(item, *letter);
    check_order(*queue, *letter, item.key);
    check_throttles(*queue, *letter);
    run_races(*queue, item.key);
    letter->place = Place::leased;
    letter->token = token;
    letter->deadline = fact.deadline;
    letter->leased_before = true;
    leases_[token] = {fact.queue, item.id};
    if (queue->ready_of(item.key) == 0) queue->unfair.erase(item.key);
    ++token.number;
  }
}

void Mirror::check_token(LeaseToken token) {
  if (!tokens_.insert(token).second) {
    refuse("token {}.{} was given before", token.boot, token.number);
  }
  if (token.boot != boot_) refuse("a token of boot {} in boot {}", token.boot, boot_);
}

void Mirror::check_leasable(const Leased::Item& item, const Letter& letter) {
  if (letter.place != Place::ready) refuse("leases {}, which is not ready", item.id.to_string());
  if (letter.sequence != item.sequence || letter.body->fairness_key() != item.key) {
    refuse("leases {} at a place where it is not", item.id.to_string());
  }
  if (letter.body->expires_at() <= now_) refuse("leases {}, which is over", item.id.to_string());
}

void Mirror::run_races(MirrorQueue& queue, const std::string& served) {
  const QueueSettings& settings = queue.settings;
  if (!options_.roomy || !settings.throttles.empty() || queue.unfair.contains(served)) return;
  if (settings.fairness_cost != FairnessCost::message) return;
  std::set<std::string> keys;
  for (const auto& [id, letter] : queue.letters) {
    if (letter.place == Place::ready) keys.emplace(letter.body->fairness_key());
  }
  for (const std::string& other : keys) {
    if (other != served && !queue.unfair.contains(other)) run_race(queue, served, other);
  }
}

/// Deficit round robin: of two keys that both have messages all the time, neither gets more than
/// two turns ahead of its share.
void Mirror::run_race(MirrorQueue& queue, const std::string& served, const std::string& other) {
  const bool first = served < other;
  auto& race = queue.races[first ? std::pair(served, other) : std::pair(other, served)];
  ++(first ? race.first : race.second);
  const auto mine = static_cast<std::int64_t>(first ? race.first : race.second);
  const auto theirs = static_cast<std::int64_t>(first ? race.second : race.first);
  const std::int64_t my_weight = weight_of(queue, served);
  const std::int64_t their_weight = weight_of(queue, other);
  if (mine * their_weight - theirs * my_weight > 2 * my_weight * their_weight) {
    refuse("'{}': key '{}' of weight {} got {}, while key '{}' of weight {} got {}", queue.name,
           served, my_weight, mine, other, their_weight, theirs);
  }
}

/// Ends races in which one key has no messages left.
void Mirror::end_races(MirrorQueue& queue) {
  std::erase_if(queue.races, [&](const auto& race) {
    return queue.ready_of(race.first.first) == 0 || queue.ready_of(race.first.second) == 0;
  });
}

void Mirror::on(const Acked& fact) {
  MirrorQueue* queue = nullptr;
  if (leased_under(fact.token, queue) == nullptr) return;
  queue->letters.erase(leases_.at(fact.token).second);
  leases_.erase(fact.token);
}

void Mirror::on(const Extended& fact) {
  MirrorQueue* queue = nullptr;
  Letter* const letter = leased_under(fact.token, queue);
  if (letter != nullptr) letter->deadline = fact.deadline;
}

void Mirror::fail_once(Letter& letter) {
  if (letter.attempts == 0) letter.first_failure = now_;
  ++letter.attempts;
}

void Mirror::check_last_attempt(const MirrorQueue& queue, const Letter& letter) {
  const std::uint32_t most = queue.settings.attempts_max;
  if (most == 0 || letter.attempts + 1 < most || is_dead_letter_queue(queue.name)) {
    refuse("a dead letter of '{}' after attempt {} of {}", queue.name, letter.attempts + 1, most);
  }
}

/// A lease that ends by itself counts an attempt; a release does not.
void Mirror::check_end(const Ended& fact, const Letter& letter) {
  const bool expired = fact.reason == "the lease expired";
  const bool left = fact.reason == "the consumer disconnected";
  if (expired && letter.deadline > now_) refuse("a lease expired early");
  if ((expired || left) && !fact.counted) refuse("an end that counts no attempt: {}", fact.reason);
  if (fact.reason.empty() && fact.counted) refuse("a release that counts an attempt");
}

void Mirror::on(const Ended& fact) {
  MirrorQueue* queue = nullptr;
  Letter* const letter = leased_under(fact.token, queue);
  if (letter == nullptr) return;
  check_end(fact, *letter);
  leases_.erase(fact.token);
  if (fact.counted) fail_once(*letter);
  const std::uint32_t most = queue->settings.attempts_max;
  if (fact.counted && most != 0 && letter->attempts >= most && !is_dead_letter_queue(queue->name)) {
    refuse("'{}' gives a message back after attempt {} of {}", queue->name, letter->attempts, most);
  }
  letter->place = fact.due.has_value() ? Place::delayed : Place::ready;
  if (!fact.due.has_value()) return;
  letter->due = *fact.due;
  letter->sequence = queue->next_sequence;
  take_sequence(*queue, letter->sequence);
}

MessageRef Mirror::dead_body(const MirrorQueue& from, const Letter& letter,
                             const std::string& reason, Instant expires) const {
  return Message::with_headers(*letter.body,
                               {{"baton-source-queue", from.name},
                                {"baton-attempts", std::to_string(letter.attempts)},
                                {"baton-first-failure-ns", std::to_string(letter.first_failure.ns)},
                                {"baton-last-failure-ns", std::to_string(now_.ns)},
                                {"baton-last-error", reason}},
                               expires);
}

void Mirror::on(const DeadLettered& fact) {
  MirrorQueue* queue = nullptr;
  Letter* const letter = leased_under(fact.token, queue);
  MirrorQueue* const to = queue_of(fact.to);
  if (letter == nullptr || to == nullptr) return;
  check_last_attempt(*queue, *letter);
  fail_once(*letter);
  const Duration retention = to->settings.retention;
  const MessageRef body = dead_body(*queue, *letter, fact.reason,
                                    retention > Duration{0} ? now_ + retention : Instant::never());
  queue->letters.erase(body->id());
  leases_.erase(fact.token);
  add_ready(*to, body, fact.sequence);
}

void Mirror::on(const BecameReady& fact) {
  Letter* const letter = letter_of(fact.queue, fact.id);
  if (letter == nullptr) return;
  if (letter->place != Place::delayed || letter->due != fact.due || fact.due > now_) {
    refuse("message {} became ready out of turn", fact.id.to_string());
  }
  take_sequence(*queue_of(fact.queue), fact.sequence);
  letter->place = Place::ready;
  letter->sequence = fact.sequence;
}

void Mirror::on(const Removed& fact) {
  const Letter* const letter = letter_of(fact.place.queue, fact.place.id);
  if (letter == nullptr) return;
  const bool expired = fact.why == Removed::Why::expired;
  if (expired && (letter->body->expires_at() > now_ || letter->place == Place::leased)) {
    refuse("message {} expired early", fact.place.id.to_string());
  }
  if (letter->body->fairness_key() != fact.place.key || letter->sequence != fact.place.sequence ||
      (letter->place == Place::delayed) != fact.place.due.has_value() ||
      letter->body->bytes().size() != fact.bytes) {
    refuse("message {} is removed as {} bytes at {} of key '{}', due {}; it is {} at {}, {} bytes",
           fact.place.id.to_string(), fact.bytes, fact.place.sequence.value, fact.place.key,
           fact.place.due.has_value(), static_cast<int>(letter->place), letter->sequence.value,
           letter->body->bytes().size());
  }
  if (letter->place == Place::leased) leases_.erase(letter->token);
  queue_of(fact.place.queue)->letters.erase(fact.place.id);
}

void Mirror::on(const Purged& fact) {
  MirrorQueue* const queue = queue_of(fact.queue);
  if (queue == nullptr) return;
  purges_.emplace(fact.queue, now_.ns / 1'000'000);
  std::erase_if(queue->letters, [](const auto& entry) {
    return entry.second.place == Place::ready || entry.second.place == Place::delayed;
  });
}

void Mirror::on(const Redriven& fact) {
  const Letter* const letter = letter_of(fact.place.queue, fact.place.id);
  MirrorQueue* const to = queue_of(fact.to);
  if (letter == nullptr || to == nullptr) return;
  if (letter->place != Place::ready) refuse("redrives what is not ready");
  const MessageRef body = letter->body;
  queue_of(fact.place.queue)->letters.erase(fact.place.id);
  add_ready(*to, body, fact.sequence);
}

void Mirror::on(const Outgoing& fact) {
  Letter* const letter = letter_of(fact.place.queue, fact.place.id);
  if (letter == nullptr) return;
  if (letter->place == Place::leased) {
    check_last_attempt(*queue_of(fact.place.queue), *letter);
    if (letter->token != fact.token) refuse("a message leaves a lease it has not");
    leases_.erase(letter->token);
    fail_once(*letter);
  } else if (letter->place != Place::ready) {
    refuse("a message leaves that is not ready");
  }
  if (!transfers_.insert(fact.transfer).second) refuse("a transfer's name was given before");
  letter->place = Place::outgoing;
  letter->transfer = fact.transfer;
}

void Mirror::on(const OutgoingDone& fact) {
  const Letter* const letter = letter_of(fact.queue, fact.id);
  if (letter == nullptr) return;
  if (letter->place != Place::outgoing || letter->transfer != fact.transfer) {
    refuse("a message is done that did not leave");
  }
  queue_of(fact.queue)->letters.erase(fact.id);
}

void Mirror::on(const Received& fact) {
  MirrorQueue* const queue = queue_of(fact.queue);
  if (queue == nullptr) return;
  if (!received_.emplace(fact.from_shard, fact.transfer).second) refuse("received twice");
  add_ready(*queue, fact.message, fact.sequence);
}

void Mirror::on(const ReceivedForgotten& fact) {
  if (received_.erase({fact.from_shard, fact.transfer}) == 0)
    refuse("forgets what it did not receive");
}

}  // namespace baton
