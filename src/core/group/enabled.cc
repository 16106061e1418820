// Which events are possible in a world, and what must hold in it.

#include <algorithm>

#include <fmt/format.h>

#include "core/group/world.h"

namespace baton::checker {
namespace {

constexpr std::size_t kSettleSteps = 1'000;

std::string name_of_peer(std::uint8_t peer, const SearchOptions& options) {
  const bool shared = options.topology == Topology::shared_connection;
  const std::uint8_t connection = shared && peer + 1U == options.consumers ? 0 : peer;
  return fmt::format("{}.{}", "xyzw"[connection], peer);
}

}  // namespace

std::string to_string(const Event& event, const SearchOptions& options) {
  using Kind = Event::Kind;
  const char connection = "xyzw"[event.subject];
  const std::string peer = name_of_peer(event.subject, options);
  switch (event.kind) {
    case Kind::deliver_down: return fmt::format("{} hears what the coordinator said", connection);
    case Kind::deliver_up: return fmt::format("the coordinator hears what {} said", connection);
    case Kind::client_replies: return fmt::format("the client of {} answers", peer);
    case Kind::notice_cut:
      return fmt::format("the coordinator notices the loss of node {}", event.subject);
    case Kind::connection_down:
      return fmt::format("the coordinator hears that {} is dead", connection);
    case Kind::node_returns: return fmt::format("node {} is back", event.subject);
    case Kind::fence: return fmt::format("the lease of {} runs out at its node", peer);
    case Kind::timer: return fmt::format("the timer of {} goes off", connection);
    case Kind::register_consumer: return fmt::format("{} registers", peer);
    case Kind::unsubscribe: return fmt::format("{} unsubscribes", peer);
    case Kind::client_times_out: return fmt::format("{} is ended: its client did not answer", peer);
    case Kind::cut: return fmt::format("node {} is cut off", event.subject);
    case Kind::crash_connection: return fmt::format("connection {} dies", connection);
    case Kind::crash_node: return fmt::format("node {} dies", event.subject);
    case Kind::new_leader: return "the coordinator gets a successor";
    case Kind::restart: return "the broker starts anew from its rows";
    case Kind::evaluate: return "an operator says that whoever is not connected is gone";
    case Kind::purge:
      return fmt::format("node {} is no part of the cluster any more", event.subject);
  }
  return "?";
}

void World::enabled(std::vector<Event>& events) const {
  events.clear();
  for (std::uint8_t i = 0; i < peer_count_; ++i) enabled_for_peer(i, events);
  for (std::uint8_t i = 0; i < connection_count_; ++i) enabled_for_connection(i, events);
  for (std::uint8_t i = 0; i < node_count_; ++i) enabled_for_node(i, events);
  for (const auto& [at, connection] : timers_) {
    if (may_fire(connection, at)) events.push_back({Event::Kind::timer, connection, at});
  }
  const bool anybody = std::ranges::any_of(peers_, &Peer::joined);
  if (restarts_ > 0 && anybody) {
    events.push_back({Event::Kind::new_leader, 0, {}});
    events.push_back({Event::Kind::restart, 0, {}});
  }
  if (may_evaluate()) events.push_back({Event::Kind::evaluate, 0, {}});
}

/// Whether the peer delivers, or will when its client answers: its lease is not over.
bool World::may_deliver(std::uint8_t peer) const {
  const std::optional<Seat>& seat = peers_[peer].seat;
  return seat.has_value() && (seat->phase() == Seat::Phase::asking || peers_[peer].delivering);
}

// The operator says that consumers which are not connected have ended, or that their leases are
// over.
bool World::may_evaluate() const {
  if (evaluations_ == 0 || group() == nullptr) return false;
  return std::ranges::none_of(group()->consumers, [this](const auto& consumer) {
    return !consumer.connected() &&
           may_deliver(static_cast<std::uint8_t>(consumer.member.subscription.value));
  });
}

bool World::may_purge(std::uint8_t node) const {
  if (purges_ == 0) return false;
  for (std::uint8_t i = 0; i < peer_count_; ++i) {
    if (node_of(connection_of(i)) == node && may_deliver(i)) return false;
  }
  return true;
}

void World::enabled_for_peer(std::uint8_t peer, std::vector<Event>& events) const {
  const Peer& self = peers_[peer];
  if (may_join(peer)) events.push_back({Event::Kind::register_consumer, peer, {}});
  if (!self.seat.has_value()) return;
  if (!self.owed.empty()) events.push_back({Event::Kind::client_replies, peer, {}});
  if (must_fence(peer)) events.push_back({Event::Kind::fence, peer, {}});
  if (unsubscribes_ == 0) return;
  events.push_back({Event::Kind::unsubscribe, peer, {}});
  if (self.seat->deadline() < Instant::never()) {
    events.push_back({Event::Kind::client_times_out, peer, {}});
  }
}

bool World::may_join(std::uint8_t peer) const {
  const Peer& self = peers_[peer];
  const std::uint8_t connection = connection_of(peer);
  if (self.seat.has_value() || connections_[connection].dead || !link_is_up(connection))
    return false;
  const coordinator_state::Link* link = coordinator_.find(connection_id(connection));
  if (link != nullptr && link->connectivity != Connectivity::connected) return false;
  if (!self.joined) {
    // Peers with a connection and a node to themselves are all alike: one order is enough.
    const bool alike = options_->topology == Topology::separate;
    return !alike || peer == 0 || peers_[peer - 1U].joined;
  }
  // Registering is a call in this model, and must not overtake the end of the former subscription.
  const auto& up = connections_[connection].up;
  const bool ending = std::ranges::any_of(up, [&](const Message& message) {
    return message.kind == Message::Kind::unregister && message.peer == peer;
  });
  return rejoins_ > 0 && !self.unregister_pending && !ending;
}

bool World::must_fence(std::uint8_t peer) const {
  const Peer& self = peers_[peer];
  if (!self.unconfirmed || !self.seat.has_value() || has(Bug::node_does_not_fence)) return false;
  return self.seat->phase() == Seat::Phase::asking || self.seat->delivering();
}

void World::enabled_for_connection(std::uint8_t connection, std::vector<Event>& events) const {
  const Connection& self = connections_[connection];
  if (!self.down.empty()) events.push_back({Event::Kind::deliver_down, connection, {}});
  if (!self.up.empty()) events.push_back({Event::Kind::deliver_up, connection, {}});
  const bool known = coordinator_.find(connection_id(connection)) != nullptr;
  if (self.dead && !self.down_said && known && link_is_up(connection)) {
    events.push_back({Event::Kind::connection_down, connection, {}});
  }
  if (may_crash(connection)) events.push_back({Event::Kind::crash_connection, connection, {}});
}

bool World::may_crash(std::uint8_t connection) const {
  if (crashes_ == 0 || connections_[connection].dead) return false;
  for (std::uint8_t i = 0; i < peer_count_; ++i) {
    if (connection_of(i) == connection && peers_[i].seat.has_value()) return true;
  }
  return false;
}

void World::enabled_for_node(std::uint8_t node, std::vector<Event>& events) const {
  const Node::Link link = nodes_[node].link;
  if (link == Node::Link::cut) events.push_back({Event::Kind::notice_cut, node, {}});
  if (link == Node::Link::noticed) events.push_back({Event::Kind::node_returns, node, {}});
  const bool away = link == Node::Link::cut || link == Node::Link::noticed;
  if (away && may_purge(node)) events.push_back({Event::Kind::purge, node, {}});
  if (link != Node::Link::up || !is_of_interest(node)) return;
  if (cuts_ > 0) events.push_back({Event::Kind::cut, node, {}});
  if (crashes_ > 0) events.push_back({Event::Kind::crash_node, node, {}});
}

bool World::is_of_interest(std::uint8_t node) const {
  for (std::uint8_t i = 0; i < peer_count_; ++i) {
    if (node_of(connection_of(i)) == node && peers_[i].seat.has_value()) return true;
  }
  return false;
}

// The lease rule: the node's four seconds are over before the coordinator's five.
bool World::may_fire(std::uint8_t connection, Instant at) const {
  const coordinator_state::Link* link = coordinator_.find(connection_id(connection));
  if (link == nullptr || !link->deadline.has_value()) return true;
  if (std::max(now_, at) < *link->deadline) return true;
  for (std::uint8_t i = 0; i < peer_count_; ++i) {
    if (connection_of(i) == connection && must_fence(i)) return false;
  }
  return true;
}

bool World::has_cut() const {
  return std::ranges::any_of(nodes_, [](const Node& node) { return node.link != Node::Link::up; });
}

std::optional<std::string> World::violation() const {
  if (violation_.has_value()) return violation_;
  if (std::ranges::count_if(peers_, &Peer::delivering) > 1) return "two consumers are delivering";
  return std::nullopt;
}

std::optional<std::string> World::settle(bool heal, std::vector<Event>* path) {
  std::vector<Event> events;
  for (std::size_t step = 0; step < kSettleSteps; ++step) {
    if (const auto wrong = violation()) return wrong;
    enabled(events);
    std::erase_if(events, [&](const Event& event) {
      return event.kind >= Event::Kind::register_consumer ||
             (event.kind == Event::Kind::node_returns && !heal);
    });
    if (events.empty()) return unsettled();
    const Event next = *std::ranges::min_element(events, {}, &Event::kind);
    if (path != nullptr) path->push_back(next);
    happen(next);
  }
  return fmt::format("things do not settle within {} steps", kSettleSteps);
}

std::optional<std::string> World::unsettled() const {
  std::size_t connected = 0;
  std::size_t delivering = 0;
  const Peer* holder = nullptr;
  for (std::uint8_t i = 0; i < peer_count_; ++i) {
    if (peers_[i].delivering) holder = &peers_[i];
    delivering += peers_[i].delivering ? 1 : 0;
    connected += peers_[i].seat.has_value() && link_is_up(connection_of(i)) ? 1 : 0;
  }
  if (delivering != (connected == 0 ? 0U : 1U)) {
    return fmt::format("settled with {} connected, {} delivering", connected, delivering);
  }
  if (holder == nullptr) return std::nullopt;
  const coordinator_state::Consumer* active = group()->connected_active();
  if (active == nullptr || active->ticket != holder->ticket) {
    return "settled, and the one that is delivering is not the active one";
  }
  // In a simple group the consumer that has the seat keeps it.
  if (options_->partition_index != kSimple && active != group()->target()) {
    return "settled, and the active one is not the target";
  }
  return std::nullopt;
}

std::string World::describe() const {
  std::string text;
  if (group() != nullptr) {
    for (const auto& consumer : group()->consumers) {
      const auto peer = static_cast<std::uint8_t>(consumer.member.subscription.value);
      text += fmt::format("{}{}:{}", text.empty() ? "" : " ", name_of_peer(peer, *options_),
                          to_string(consumer.status));
    }
  }
  for (std::uint8_t i = 0; i < peer_count_; ++i) {
    if (peers_[i].delivering) text += fmt::format(", {} delivers", name_of_peer(i, *options_));
  }
  return "[" + text + "]";
}

}  // namespace baton::checker
