// Two worlds are alike when they differ only in numbers that order things. Generations, tickets and
// times are replaced by their ranks, and what cannot matter any more is left out.

#include <algorithm>
#include <initializer_list>

#include "base/bytes.h"
#include "core/group/world.h"

namespace baton::checker {
/// Numbers that only matter by their order.
class Ranking {
 public:
  void add(std::uint64_t number) { numbers_.push_back(number); }
  void seal() {
    std::ranges::sort(numbers_);
    const auto rest = std::ranges::unique(numbers_);
    numbers_.erase(rest.begin(), rest.end());
  }
  [[nodiscard]] std::uint8_t of(std::uint64_t number) const {
    return static_cast<std::uint8_t>(std::ranges::lower_bound(numbers_, number) - numbers_.begin());
  }

 private:
  std::vector<std::uint64_t> numbers_{0};
};

namespace {

std::uint8_t bits(std::initializer_list<bool> flags) {
  unsigned value = 0;
  for (const bool flag : flags) value = value * 2 + (flag ? 1 : 0);
  return static_cast<std::uint8_t>(value);
}

std::uint64_t number_of(Instant at) { return static_cast<std::uint64_t>(at.ns); }

/// Only the generation that belongs to the consumer's activity can still matter.
Generation word_of(const coordinator_state::Consumer& consumer) {
  if (consumer.status.activity == Activity::active) return consumer.epoch;
  if (consumer.status.activity == Activity::deactivating) return consumer.stepping;
  return {};
}

}  // namespace

struct World::Ranks {
  Ranking generations;
  Ranking tickets;
  Ranking times;
};

World::Ranks World::ranks() const {
  Ranks ranks;
  const auto add_messages = [&](const std::vector<Message>& messages) {
    for (const Message& message : messages) {
      ranks.generations.add(message.generation.value);
      ranks.tickets.add(message.ticket.value);
    }
  };
  for (const Peer& peer : peers_) {
    if (!peer.seat.has_value()) continue;
    ranks.tickets.add(peer.ticket.value);
    ranks.generations.add(peer.seat->told().value);
    ranks.generations.add(peer.seat->answered().value);
    for (const Generation generation : peer.owed) ranks.generations.add(generation.value);
  }
  for (std::uint8_t i = 0; i < connection_count_; ++i) {
    add_messages(connections_[i].down);
    add_messages(connections_[i].up);
    const coordinator_state::Link* link = coordinator_.find(connection_id(i));
    if (link != nullptr && link->deadline.has_value()) ranks.times.add(number_of(*link->deadline));
  }
  if (group() != nullptr) {
    for (const coordinator_state::Consumer& consumer : group()->consumers) {
      ranks.tickets.add(consumer.ticket.value);
      ranks.generations.add(word_of(consumer).value);
    }
  }
  for (const auto& timer : timers_) ranks.times.add(number_of(timer.first));
  ranks.generations.add(generation().value);
  ranks.times.add(number_of(now_));
  ranks.generations.seal();
  ranks.tickets.seal();
  ranks.times.seal();
  return ranks;
}

void World::encode_messages(const std::vector<Message>& messages, const Ranks& ranks,
                            std::string& out) {
  Encoder to(out);
  to.u8(static_cast<std::uint8_t>(messages.size()));
  for (const Message& message : messages) {
    to.u8(static_cast<std::uint8_t>(message.kind));
    to.u8(message.peer);
    to.u8(ranks.generations.of(message.generation.value));
    to.u8(ranks.tickets.of(message.ticket.value));
  }
}

void World::encode_peer(const Peer& peer, const Ranks& ranks, std::string& out) const {
  Encoder to(out);
  to.u8(bits({peer.seat.has_value(), peer.joined, peer.delivering, peer.unconfirmed,
              peer.unregister_pending, peer.client_active, peer.repeat_allowed}));
  if (!peer.seat.has_value()) return;
  to.u8(ranks.tickets.of(peer.ticket.value));
  to.u8(static_cast<std::uint8_t>(peer.seat->phase()));
  to.u8(ranks.generations.of(peer.seat->told().value));
  to.u8(ranks.generations.of(peer.seat->answered().value));
  to.u8(static_cast<std::uint8_t>(peer.owed.size()));
  for (const Generation generation : peer.owed) to.u8(ranks.generations.of(generation.value));
}

void World::encode_coordinator(const Ranks& ranks, std::string& out) const {
  Encoder to(out);
  to.u8(ranks.generations.of(generation().value));
  if (group() == nullptr) return;
  for (const coordinator_state::Consumer& consumer : group()->consumers) {
    to.u8(static_cast<std::uint8_t>(consumer.member.subscription.value));
    to.u8(ranks.tickets.of(consumer.ticket.value));
    to.u8(static_cast<std::uint8_t>(consumer.status.connectivity));
    to.u8(static_cast<std::uint8_t>(consumer.status.activity));
    to.u8(ranks.generations.of(word_of(consumer).value));
  }
}

std::string World::encode() const {
  const Ranks known = ranks();
  std::string out;
  Encoder to(out);
  for (std::uint8_t i = 0; i < peer_count_; ++i) encode_peer(peers_[i], known, out);
  for (std::uint8_t i = 0; i < connection_count_; ++i) {
    const coordinator_state::Link* link = coordinator_.find(connection_id(i));
    const bool waits = link != nullptr && link->deadline.has_value();
    to.u8(bits({connections_[i].dead, connections_[i].down_said}));
    to.u8(waits ? known.times.of(number_of(*link->deadline)) : 0);
    encode_messages(connections_[i].down, known, out);
    encode_messages(connections_[i].up, known, out);
  }
  for (std::uint8_t i = 0; i < node_count_; ++i) to.u8(static_cast<std::uint8_t>(nodes_[i].link));
  to.u8(static_cast<std::uint8_t>(timers_.size()));
  for (const auto& [at, connection] : timers_) {
    to.u8(known.times.of(number_of(at)));
    to.u8(connection);
  }
  to.u8(known.times.of(number_of(now_)));
  for (const std::uint8_t left :
       {cuts_, unsubscribes_, crashes_, restarts_, rejoins_, evaluations_, purges_})
    to.u8(left);
  to.u8(bits({answer_awaited_}));
  encode_coordinator(known, out);
  return out;
}

}  // namespace baton::checker
