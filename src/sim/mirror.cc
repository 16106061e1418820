#include "sim/mirror.h"

#include <algorithm>

#include "base/bytes.h"
#include "core/group/facts.h"
#include "core/kv/facts.h"
#include "core/stream/catalog.h"
#include "server/shard/round_facts.h"

namespace baton {
namespace {

/// A description names the dead-letter queue that an empty setting stands for.
bool same_settings(QueueSettings is, const QueueSettings& described) {
  if (is.dead_letter_queue.empty()) is.dead_letter_queue = described.dead_letter_queue;
  return is == described;
}

std::string text_of(LeaseToken token) { return fmt::format("{}.{}", token.boot, token.number); }
std::string text_of(const Message& message) {
  return fmt::format("{} {} key '{}'", message.id().to_string(), message.payload().substr(0, 5),
                     message.fairness_key());
}
std::string text_of(const MessagePlace& place) {
  return fmt::format("{} of {} at {} due {}", place.id.to_string(), place.queue.value,
                     place.sequence.value, place.due.value_or(Instant{}).ns / 1000);
}
std::string text_of(const Leased& fact) {
  std::string text = fmt::format("leased by {}:", fact.consumer_id);
  LeaseToken token = fact.first;
  for (const Leased::Item& item : fact.items) {
    text += fmt::format(" {} {} of {} at {}", text_of(token), item.id.to_string(), fact.queue.value,
                        item.sequence.value);
    ++token.number;
  }
  return text;
}

/// A fact in the form of the trace.
std::string text_of(const QueueFact& fact) {
  const auto us = [](const std::optional<Instant>& at) { return at.value_or(Instant{}).ns / 1000; };
  if (const auto* created = std::get_if<QueueCreated>(&fact)) {
    return fmt::format("queue {} '{}' created", created->queue.value, created->name);
  }
  if (const auto* enqueued = std::get_if<Enqueued>(&fact)) {
    return fmt::format("enqueued {} in {} at {} due {}", text_of(*enqueued->message),
                       enqueued->queue.value, enqueued->sequence.value, us(enqueued->due));
  }
  if (const auto* leased = std::get_if<Leased>(&fact)) return text_of(*leased);
  if (const auto* acked = std::get_if<Acked>(&fact)) return "acked " + text_of(acked->token);
  if (const auto* ended = std::get_if<Ended>(&fact)) {
    return fmt::format("ended {} counted {} due {}", text_of(ended->token), ended->counted,
                       us(ended->due));
  }
  if (const auto* dead = std::get_if<DeadLettered>(&fact)) {
    return fmt::format("dead {} to {} at {}", text_of(dead->token), dead->to.value,
                       dead->sequence.value);
  }
  if (const auto* ready = std::get_if<BecameReady>(&fact)) {
    return fmt::format("ready {} of {} at {}", ready->id.to_string(), ready->queue.value,
                       ready->sequence.value);
  }
  if (const auto* removed = std::get_if<Removed>(&fact))
    return "removed " + text_of(removed->place);
  if (const auto* redriven = std::get_if<Redriven>(&fact)) {
    return fmt::format("redriven {} to {} at {}", text_of(redriven->place), redriven->to.value,
                       redriven->sequence.value);
  }
  return fmt::format("fact {}", fact.index());
}

}  // namespace

std::size_t Mirror::MirrorQueue::count(Place place) const {
  return static_cast<std::size_t>(std::ranges::count_if(
      letters, [&](const auto& entry) { return entry.second.place == place; }));
}

std::size_t Mirror::MirrorQueue::ready_of(std::string_view key) const {
  return static_cast<std::size_t>(std::ranges::count_if(letters, [&](const auto& entry) {
    return entry.second.place == Place::ready && entry.second.body->fairness_key() == key;
  }));
}

void Mirror::reset() {
  boot_ = 0;
  now_ = {};
  queues_.clear();
  leases_.clear();
  tokens_.clear();
  ids_.clear();
  received_.clear();
  transfers_.clear();
  last_queue_ = QueueId{0};
}

void Mirror::apply(const Round& round, bool live) {
  position_ = round.position;
  if (round.now < now_) refuse("time went back");
  now_ = round.now;
  const Status read = visit_facts(round.facts, [&]<class Fact>(const Fact& fact) -> Status {
    if (trace_.failed()) return {};
    if constexpr (std::is_same_v<Fact, ShardFact>) {
      apply_boot(std::get<Booted>(fact));
    } else if constexpr (std::is_same_v<Fact, QueueFact>) {
      apply_fact(fact, live);
    } else {
      refuse("holds facts of other machines");
    }
    return {};
  });
  if (!read.has_value()) refuse("cannot be read: {}", to_string(read.error()));
}

void Mirror::apply_boot(const Booted& booted) {
  if (booted.boot <= boot_) refuse("boot number {} again", booted.boot);
  boot_ = booted.boot;
  // Every ready message may be only a row now, and throttles begin anew.
  for (auto& [id, queue] : queues_) {
    for (const auto& [letter_id, letter] : queue.letters) {
      queue.unfair.insert(std::string(letter.body->fairness_key()));
    }
    queue.buckets.clear();
    queue.races.clear();
  }
}

void Mirror::apply_fact(const QueueFact& fact, bool live) {
  if (live) trace_.note("{}: round {}: {}", options_.name, position_.value, text_of(fact));
  std::visit([&](const auto& happened) { on(happened); }, fact);
  if (!options_.roomy) return;
  for (auto& [id, queue] : queues_) end_races(queue);
}

void Mirror::compare(const std::vector<QueueDescription>& found, std::string_view when) const {
  if (found.size() != queues_.size()) {
    return trace_.fail("{} {}: there are {} queues and should be {}", options_.name, when,
                       found.size(), queues_.size());
  }
  for (const QueueDescription& description : found) {
    const auto entry = queues_.find(description.id);
    if (entry == queues_.end() || entry->second.name != description.name ||
        !same_settings(entry->second.settings, description.settings)) {
      return trace_.fail("{} {}: queue '{}' is not the one it should be", options_.name, when,
                         description.name);
    }
    const MirrorQueue& queue = entry->second;
    std::uint64_t bytes = 0;
    for (const auto& [id, letter] : queue.letters) bytes += letter.body->bytes().size();
    const auto& stats = description.stats;
    const std::string is =
        fmt::format("ready {} leased {} delayed {} outgoing {} bytes {}", stats.ready, stats.leased,
                    stats.delayed, stats.outgoing, stats.bytes);
    const std::string should_be =
        fmt::format("ready {} leased {} delayed {} outgoing {} bytes {}", queue.count(Place::ready),
                    queue.count(Place::leased), queue.count(Place::delayed),
                    queue.count(Place::outgoing), bytes);
    if (is != should_be) {
      trace_.fail("{} {}: queue '{}' says {}; it has {}", options_.name, when, queue.name, is,
                  should_be);
    }
    const auto live = static_cast<std::uint64_t>(std::ranges::count_if(
        queue.dedup, [&](const auto& seen) { return seen.second + queue.dedup_window > now_; }));
    if (stats.dedup_ids < live || stats.dedup_ids > queue.dedup.size()) {
      trace_.fail("{} {}: queue '{}' remembers {} dedup ids; it saw {}, {} within the window",
                  options_.name, when, queue.name, stats.dedup_ids, queue.dedup.size(), live);
    }
  }
}

void Mirror::check_deadlines(Instant now) const {
  for (const auto& [id, queue] : queues_) {
    for (const auto& [letter_id, letter] : queue.letters) {
      if (letter.place == Place::leased && letter.deadline <= now) {
        refuse("the lease of {} should have expired", letter_id.to_string());
      }
    }
  }
}

std::size_t Mirror::messages() const {
  std::size_t count = 0;
  for (const auto& [id, queue] : queues_) count += queue.letters.size();
  return count;
}

bool Mirror::purged_when_made(QueueId queue, const Uuid& id) const {
  std::int64_t made = 0;
  for (std::size_t i = 0; i < 6; ++i) made = (made << 8U) | id.bytes[i];
  return purges_.contains({queue, made});
}

std::string Mirror::summary() const {
  std::string text;
  for (const auto& [id, queue] : queues_) {
    if (queue.letters.empty()) continue;
    text += fmt::format("{}: '{}' ready {} leased {} delayed {} outgoing {}; ", options_.name,
                        queue.name, queue.count(Place::ready), queue.count(Place::leased),
                        queue.count(Place::delayed), queue.count(Place::outgoing));
  }
  return text;
}

Mirror::MirrorQueue* Mirror::queue_of(QueueId id) {
  const auto entry = queues_.find(id);
  if (entry == queues_.end()) {
    refuse("there is no queue {}", id.value);
    return nullptr;
  }
  return &entry->second;
}

Mirror::Letter* Mirror::letter_of(QueueId queue_id, Uuid id) {
  MirrorQueue* const queue = queue_of(queue_id);
  if (queue == nullptr) return nullptr;
  const auto entry = queue->letters.find(id);
  if (entry == queue->letters.end()) {
    refuse("there is no message {} in '{}'", id.to_string(), queue->name);
    return nullptr;
  }
  return &entry->second;
}

/// Ends the lease.
Mirror::Letter* Mirror::leased_under(LeaseToken token, MirrorQueue*& queue) {
  const auto lease = leases_.find(token);
  if (lease == leases_.end()) {
    refuse("no message is leased under {}.{}", token.boot, token.number);
    return nullptr;
  }
  queue = queue_of(lease->second.first);
  return letter_of(lease->second.first, lease->second.second);
}

void Mirror::take_sequence(MirrorQueue& queue, Sequence sequence) {
  if (sequence < queue.next_sequence) {
    refuse("sequence {} of '{}' was given before", sequence.value, queue.name);
  }
  queue.next_sequence = Sequence{std::max(queue.next_sequence.value, sequence.value + 1)};
}

void Mirror::add_ready(MirrorQueue& queue, const MessageRef& body, Sequence sequence) {
  take_sequence(queue, sequence);
  Letter letter;
  letter.body = body;
  letter.sequence = sequence;
  if (!queue.letters.emplace(body->id(), letter).second) {
    refuse("message {} is in '{}' already", body->id().to_string(), queue.name);
  }
}

std::uint32_t Mirror::weight_of(const MirrorQueue& queue, const std::string& key) {
  const auto entry = queue.settings.weights.find(key);
  return entry == queue.settings.weights.end() ? 1 : entry->second;
}

}  // namespace baton
