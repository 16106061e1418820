#include "sim/ledger.h"

#include <algorithm>
#include <charconv>

#include "core/queue/machine.h"

namespace baton {
namespace {

std::int64_t milliseconds_of(const Uuid& id) {
  std::int64_t value = 0;
  for (std::size_t i = 0; i < 6; ++i) value = (value << 8U) | id.bytes[i];
  return value;
}

/// A message that dies begins anew in another queue: the last failure says when that was.
std::string home_of(const std::string& queue, const Delivery& delivery) {
  return queue + "/" + std::string(delivery.message->header("baton-last-failure-ns"));
}

std::string text_of(const Ledger::LeaseName& name) {
  return fmt::format("{}.{}", name.token.boot, name.token.number);
}

}  // namespace

Ledger::LeaseName Ledger::name(const std::string& queue, LeaseToken token) const {
  return {.shard = shard_of_queue(queue, shards_), .token = token};
}

std::uint64_t Ledger::send(Sent sent) {
  const std::uint64_t number = next_++;
  Letter& letter = letters_[number];
  letter.sent = std::move(sent);
  letter.number = number;
  letter.life = life_;
  letter.excused = letter.sent.may_expire || destroying_[letter.sent.queue] != 0;
  return number;
}

void Ledger::answered(std::uint64_t number, const EnqueueOutcome& outcome, std::string_view queue) {
  Letter& letter = letters_.at(number);
  if (outcome.error.has_value()) {
    letter.fate = Fate::refused;
    if (!letter.leases.empty()) trace_.fail("message {} was delivered and then refused", number);
    return;
  }
  if (!outcome.duplicate) {
    letter.fate = Fate::confirmed;
    note_stored(letter, outcome.id);
    return;
  }
  letter.fate = Fate::duplicate;
  if (queue != letter.sent.queue) trace_.fail("message {} went to another queue", number);
  check_duplicate(letter, outcome.id);
}

void Ledger::check_duplicate(const Letter& letter, Uuid id) {
  const Sent& sent = letter.sent;
  if (sent.dedup_id.empty())
    trace_.fail("message {} without a dedup id is a duplicate", letter.number);
  const auto first = by_id_.find(id);
  if (first == by_id_.end()) return;  // Stored, but its confirmation was lost.
  const Letter& original = letters_.at(first->second);
  if (original.sent.dedup_id != sent.dedup_id || original.sent.queue != sent.queue) {
    trace_.fail("message {} is called a duplicate of {}, which it is not", letter.number,
                original.number);
  }
  const std::int64_t window = dedup_windows_.at(sent.queue).most.count() / 1'000'000;
  if (sent.at.ns / 1'000'000 > milliseconds_of(id) + window + 1) {
    trace_.fail("message {} is called a duplicate of {} after the window", letter.number,
                original.number);
  }
}

void Ledger::set_dedup_window(const std::string& queue, Duration window) {
  const auto entry = dedup_windows_.try_emplace(queue, Window{window, window}).first;
  entry->second.least = std::min(entry->second.least, window);
  entry->second.most = std::max(entry->second.most, window);
}

/// The message is in the queue, under that id.
void Ledger::note_stored(Letter& letter, Uuid id) {
  if (letter.id == id) return;
  if (letter.id.has_value()) trace_.fail("message {} is there twice, under two ids", letter.number);
  if (!by_id_.emplace(id, letter.number).second)
    trace_.fail("two messages have the id {}", id.to_string());
  letter.id = id;
  check_dedup(letter, id);
}

void Ledger::check_dedup(const Letter& letter, Uuid id) {
  const Sent& sent = letter.sent;
  if (sent.dedup_id.empty() || dedup_unknown_.contains(sent.queue)) return;
  const std::int64_t window = dedup_windows_.at(sent.queue).least.count() / 1'000'000;
  auto& stored = dedup_stored_[{sent.queue, sent.dedup_id}];
  for (const Uuid& other : stored) {
    // Ids carry milliseconds: one less, to be sure.
    const std::int64_t apart = milliseconds_of(id) - milliseconds_of(other);
    if (apart < window - 1 && -apart < window - 1) {
      trace_.fail("dedup id '{}' of '{}' was taken twice within {} ms", sent.dedup_id, sent.queue,
                  window);
    }
  }
  stored.push_back(id);
}

Ledger::Letter* Ledger::find_letter(const Message& message) {
  std::uint64_t number = 0;
  const std::string_view payload = message.payload();
  std::from_chars(payload.data(), payload.data() + payload.size(), number);
  const auto entry = letters_.find(number);
  if (entry == letters_.end()) {
    trace_.fail("a message that nobody sent: {}", message.id().to_string());
    return nullptr;
  }
  return &entry->second;
}

Ledger::Lease* Ledger::find_lease(const LeaseName& name) {
  const auto entry = leases_.find(name);
  return entry == leases_.end() ? nullptr : &entry->second;
}

bool Ledger::is_live(const Lease& lease, Instant now) {
  if (lease.doubt || lease.over || now >= lease.deadline) return false;
  // An extension may also shorten the lease.
  if (std::ranges::any_of(lease.extends, [&](Instant until) { return now >= until; })) return false;
  return !lease.orphan_until.has_value() || now < *lease.orphan_until;
}

void Ledger::delivered(const std::string& queue, const std::string& consumer_id,
                       const Delivery& delivery, Instant now) {
  Letter* const letter = find_letter(*delivery.message);
  if (letter == nullptr) return;
  if (letter->fate == Fate::refused || letter->fate == Fate::duplicate) {
    return trace_.fail("message {} is delivered, though it was not taken", letter->number);
  }
  note_stored(*letter, delivery.message->id());
  if (letter->acked)
    trace_.fail("message {} comes back after its ack was confirmed", letter->number);
  if (letter->cancelled)
    trace_.fail("message {} is delivered after it was cancelled", letter->number);
  if (letter->sent.key != delivery.message->fairness_key()) {
    trace_.fail("message {} has lost its key", letter->number);
  }
  const LeaseName lease = name(queue, delivery.token);
  if (leases_.contains(lease)) trace_.fail("token {} is given twice", text_of(lease));
  check_fresh_lease(*letter, lease, now);
  check_attempt(*letter, queue, delivery);
  check_order(*letter, queue, delivery);
  letter->leases.push_back(lease);
  leases_[lease] = {.number = letter->number,
                    .queue = queue,
                    .consumer_id = consumer_id,
                    .home = home_of(queue, delivery),
                    .deadline = delivery.deadline,
                    .extends = {},
                    .orphan_until = {},
                    .doubt = letter->cancels != 0 || destroying_[queue] != 0,
                    .over = false,
                    .touched = letter->cancels != 0 || destroying_[queue] != 0};
}

/// Checks that no other consumer may hold the message.
void Ledger::check_fresh_lease(const Letter& letter, const LeaseName& name, Instant now) {
  for (const LeaseName& other : letter.leases) {
    if (is_live(leases_.at(other), now)) {
      trace_.fail("message {} is leased under {} and under {} at once", letter.number,
                  text_of(other), text_of(name));
    }
    if (name.shard == other.shard && name < other) {
      trace_.fail("tokens of message {} are not in order", letter.number);
    }
  }
}

void Ledger::check_attempt(Letter& letter, const std::string& queue, const Delivery& delivery) {
  Home& home = letter.homes[home_of(queue, delivery)];
  if (delivery.attempt < home.attempt) {
    trace_.fail("message {} had attempt {}, and now has {}", letter.number, home.attempt,
                delivery.attempt);
  }
  home.attempt = delivery.attempt;
  if (delivery.attempt > 1 + home.written + letter.unwritten_lost + hidden_leases_) {
    trace_.fail("message {} has attempt {}, though only {} reached a consumer", letter.number,
                delivery.attempt, home.written);
  }
}

/// Messages of one producer and key come in the order in which they were sent.
void Ledger::check_order(const Letter& letter, const std::string& queue, const Delivery& delivery) {
  const bool first = letter.leases.empty() && delivery.attempt == 1;
  if (!first || !letter.sent.undisturbed || letter.life != life_ || queue != letter.sent.queue)
    return;
  auto& served = served_[{letter.sent.producer, queue, letter.sent.key}];
  const auto at = served.emplace(delivery.token, letter.number).first;
  const bool before = at == served.begin() || std::prev(at)->second < letter.number;
  const bool after = std::next(at) == served.end() || letter.number < std::next(at)->second;
  if (!before || !after) {
    trace_.fail("message {} is leased out of order with others of its producer and key",
                letter.number);
  }
}

void Ledger::written(const LeaseName& name) {
  const Lease& lease = leases_.at(name);
  ++letters_.at(lease.number).homes[lease.home].written;
}

void Ledger::arrived_late(const LeaseName& name) {
  Lease& lease = leases_.at(name);
  lease.doubt = lease.touched = true;
  ++letters_.at(lease.number).unwritten_lost;
}

void Ledger::ack_sent(const LeaseName& name) {
  Lease* const lease = find_lease(name);
  if (lease == nullptr) return;
  lease->touched = true;
  ++letters_.at(lease->number).unknown;
}

void Ledger::acked(const LeaseName& name, const ItemOutcome& outcome, Instant now) {
  Lease* const lease = find_lease(name);
  if (lease == nullptr) {
    if (!outcome.has_value())
      trace_.fail("token {}, which nobody was given, is acked", text_of(name));
    return;
  }
  Letter& letter = letters_.at(lease->number);
  --letter.unknown;
  if (outcome.has_value()) return check_refusal(name, outcome, now);
  if (letter.leases.back() != name) {
    trace_.fail("message {}: an ack under {} is taken, but {} was given since", letter.number,
                text_of(name), text_of(letter.leases.back()));
  }
  if (letter.acked) trace_.fail("message {} is acked twice", letter.number);
  lease->over = true;
  letter.acked = true;
  letter.ack_number = ++acked_;
}

void Ledger::check_refusal(const LeaseName& name, const ItemOutcome& outcome, Instant now) {
  if (!outcome.has_value()) return;
  if (outcome->code != Errc::lease_lost)
    trace_.fail("an ack is answered '{}'", to_string(*outcome));
  const Lease& lease = leases_.at(name);
  // An ack whose answer was lost may have ended it.
  if (letters_.at(lease.number).unknown != 0) return;
  if (is_live(lease, now)) {
    trace_.fail("the lease {} of message {} is called lost, but it should last", text_of(name),
                lease.number);
  }
}

void Ledger::nack_sent(const LeaseName& name) {
  if (Lease* const lease = find_lease(name); lease != nullptr) lease->doubt = lease->touched = true;
}

void Ledger::extend_sent(const LeaseName& name, Instant deadline_at_least) {
  Lease* const lease = find_lease(name);
  if (lease != nullptr) lease->extends.push_back(deadline_at_least);
}

void Ledger::extended(const LeaseName& name, Instant deadline_at_least, const ItemOutcome& outcome,
                      Instant now) {
  Lease* const lease = find_lease(name);
  if (lease == nullptr) return;
  const auto sent = std::ranges::find(lease->extends, deadline_at_least);
  if (sent != lease->extends.end()) lease->extends.erase(sent);
  if (outcome.has_value()) return check_refusal(name, outcome, now);
  if (letters_.at(lease->number).acked) trace_.fail("a lease is extended after its ack");
  lease->deadline = deadline_at_least;
}

void Ledger::left(const std::string& queue, const std::string& consumer_id) {
  ++leaving_;
  for (auto& [token, lease] : leases_) {
    if (lease.queue == queue && lease.consumer_id == consumer_id) lease.doubt = true;
  }
}

/// Of the messages it held until its end, only those it had begun, or as many of the oldest as it
/// works on at a time, can have counted an attempt.
void Ledger::left_for_good(const Parting& parting, Instant now) {
  --leaving_;
  // Another consumer may have taken its leases over; or they last until their deadlines.
  if (attaches_[{parting.queue, parting.consumer_id}] != parting.attach) return;
  if (keeps_leases_.contains(parting.queue)) return;
  std::uint32_t older = 0;
  for (const LeaseName& name : parting.written) {
    const Lease& lease = leases_.at(name);
    if (lease.touched || !lease.extends.empty() || now >= lease.deadline) continue;
    const bool counts =
        !parting.orderly && (older < parting.concurrency || parting.begun.contains(name));
    ++older;
    if (!counts) --letters_.at(lease.number).homes[lease.home].written;
  }
}

void Ledger::returned(const std::string& queue, const std::string& consumer_id, Instant now) {
  for (auto& [token, lease] : leases_) {
    if (lease.queue != queue || lease.consumer_id != consumer_id || !lease.orphan_until) continue;
    if (now < *lease.orphan_until) {
      lease.orphan_until.reset();
    } else {
      lease.doubt = true;
    }
  }
}

void Ledger::cancel_sent(Uuid id) {
  const auto entry = by_id_.find(id);
  if (entry == by_id_.end()) return;
  Letter& letter = letters_.at(entry->second);
  ++letter.unknown;
  ++letter.cancels;
  for (const LeaseName& name : letter.leases) {
    leases_.at(name).doubt = leases_.at(name).touched = true;
  }
}

void Ledger::cancelled(Uuid id, const std::string& queue, const ItemOutcome& outcome) {
  const auto entry = by_id_.find(id);
  if (entry == by_id_.end()) return;
  Letter& letter = letters_.at(entry->second);
  --letter.unknown;
  --letter.cancels;
  if (!outcome.has_value()) {
    if (letter.acked) trace_.fail("message {} is cancelled after its ack", letter.number);
    letter.cancelled = letter.excused = true;
    return;
  }
  check_found(letter, queue, *outcome);
}

void Ledger::destroy_sent(const std::string& queue) {
  ++destroying_[queue];
  for (auto& [number, letter] : letters_) {
    if (letter.sent.queue != queue) continue;
    letter.excused = true;
    for (const LeaseName& name : letter.leases) {
      leases_.at(name).doubt = leases_.at(name).touched = true;
    }
  }
  dedup_unknown_.insert(queue);
}

void Ledger::destroy_ended(const std::string& queue) { --destroying_[queue]; }

void Ledger::peeked(const PeekCommand& command, std::size_t acked_before) {
  std::set<Uuid> seen;
  for (const PeekedMessage& message : command.messages) {
    const Letter* const letter = find_letter(*message.message);
    if (letter == nullptr) return;
    if (!seen.insert(message.message->id()).second) {
      trace_.fail("a peek shows message {} twice", letter->number);
    }
    if (letter->fate == Fate::refused || (letter->acked && letter->ack_number <= acked_before)) {
      trace_.fail("a peek shows message {}, which is not there", letter->number);
    }
  }
  if (!command.id.has_value() || !command.error.has_value()) return;
  const auto entry = by_id_.find(*command.id);
  if (entry != by_id_.end()) check_found(letters_.at(entry->second), command.queue, *command.error);
}

/// An operator was told that a message does not exist.
void Ledger::check_found(const Letter& letter, const std::string& queue, const Error& error) {
  // A message that was ever leased may have died, and so be elsewhere.
  const bool may_be_gone = letter.excused || letter.unknown != 0 || !letter.leases.empty() ||
                           letter.life != life_ || letter.sent.queue != queue;
  if (!may_be_gone) {
    trace_.fail("message {} is not found ({}), but should be there", letter.number,
                to_string(error));
  }
}

std::optional<std::pair<std::string, Uuid>> Ledger::find_confirmed(std::uint64_t number) const {
  const auto entry = letters_.lower_bound(number);
  if (entry == letters_.end()) return std::nullopt;
  const Letter& letter = entry->second;
  if (!letter.id.has_value()) return std::nullopt;
  return std::pair(letter.sent.queue, *letter.id);
}

void Ledger::crashed(Instant now) {
  ++life_;
  // A lease that was given and taken back by a detach, before a client was told, counts too.
  hidden_leases_ += 1 + std::exchange(leaving_, 0);
  served_.clear();
  for (auto& [queue, count] : destroying_) count = 0;
  for (auto& [token, lease] : leases_) {
    // Past that point it may have been released, whether or not a client was told.
    if (lease.orphan_until.has_value() && now >= *lease.orphan_until) lease.doubt = true;
  }
}

void Ledger::restarted(Instant now, Duration return_after) {
  for (auto& [token, lease] : leases_) {
    if (!keeps_leases_.contains(lease.queue)) lease.orphan_until = now + return_after;
  }
}

void Ledger::finish() {
  for (const auto& [number, letter] : letters_) {
    if (letter.fate == Fate::confirmed && !letter.acked && !letter.excused && letter.unknown == 0) {
      trace_.fail("message {} ({}) of '{}' was confirmed, and is lost", number,
                  letter.id.value_or(Uuid{}).to_string(), letter.sent.queue);
    }
  }
}

}  // namespace baton
