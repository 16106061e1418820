#include "core/group/world.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/assert.h"
#include "core/group/rows.h"

namespace baton::checker {
namespace {

Coordinator new_coordinator() {
  return {Coordinator::Options{}, [](const CoordinatorFact&) {}};
}

}  // namespace

void lead_from_row(Coordinator& restarted, const Coordinator& before, const GroupId& id,
                   Instant now) {
  if (const coordinator_state::Group* const group = before.find(id); group != nullptr) {
    BATON_ASSERT(restarted.load({group_row_key(id), encode_row(group->record)}).has_value());
  }
  restarted.become_leader(now);
}

const GroupId& World::group_id() {
  static const GroupId kGroup{.stream = "s", .partition = 0, .name = "g"};
  return kGroup;
}

World::World(const SearchOptions& options)
    : options_(&options),
      peer_count_(static_cast<std::uint8_t>(options.consumers)),
      connection_count_(peer_count_),
      node_count_(peer_count_),
      coordinator_(new_coordinator()),
      cuts_(options.cuts),
      unsubscribes_(options.unsubscribes),
      crashes_(options.crashes),
      restarts_(options.restarts),
      rejoins_(options.rejoins),
      evaluations_(options.evaluations),
      purges_(options.purges) {
  BATON_ASSERT(options.consumers >= 1 && options.consumers <= kPeersMax);
}

std::uint8_t World::connection_of(std::uint8_t peer) const {
  const bool shared = options_->topology == Topology::shared_connection;
  return shared && peer + 1 == peer_count_ ? 0 : peer;
}
std::uint8_t World::node_of(std::uint8_t connection) const {
  const bool shared = options_->topology == Topology::shared_node;
  return shared && connection == 1 ? 0 : connection;
}
ConnectionId World::connection_id(std::uint8_t connection) const {
  return {NodeId{node_of(connection)}, ConnectionNumber{connection}};
}
MemberId World::member_of(std::uint8_t peer) const {
  return {connection_id(connection_of(peer)), SubscriptionId{peer}};
}
bool World::link_is_up(std::uint8_t connection) const {
  return nodes_[node_of(connection)].link == Node::Link::up;
}
Seat& World::seat_of(std::uint8_t peer) {
  std::optional<Seat>& seat = peers_[peer].seat;
  BATON_ASSERT(seat.has_value());
  return *seat;
}
const coordinator_state::Group* World::group() const { return coordinator_.find(group_id()); }
Generation World::generation() const {
  return group() == nullptr ? Generation{} : group()->record.generation;
}

void World::happen(const Event& event) {
  const Generation before = generation();
  const std::uint64_t consumers = coordinator_.totals().consumers;
  switch (event.kind) {
    case Event::Kind::register_consumer: join(event.subject); break;
    case Event::Kind::deliver_down: deliver_down(event.subject); break;
    case Event::Kind::deliver_up: deliver_up(event.subject); break;
    case Event::Kind::client_replies: client_replies(event.subject); break;
    case Event::Kind::notice_cut: notice_cut(event.subject); break;
    case Event::Kind::connection_down: connection_down(event.subject); break;
    case Event::Kind::fence: act(event.subject, seat_of(event.subject).self_fence()); break;
    case Event::Kind::timer: timer(event.subject, event.at); break;
    case Event::Kind::node_returns: node_returns(event.subject); break;
    case Event::Kind::unsubscribe:
      --unsubscribes_;
      end_subscription(event.subject);
      break;
    case Event::Kind::client_times_out:
      --unsubscribes_;
      act(event.subject, seat_of(event.subject).expire(Instant::never()));
      break;
    case Event::Kind::cut:
      --cuts_;
      cut(event.subject);
      break;
    case Event::Kind::crash_connection:
      --crashes_;
      crash(event.subject);
      break;
    case Event::Kind::crash_node:
      --crashes_;
      cut(event.subject);
      for (std::uint8_t i = 0; i < connection_count_; ++i) {
        if (node_of(i) == event.subject) crash(i);
      }
      break;
    case Event::Kind::new_leader: new_leader(); break;
    case Event::Kind::restart: restart(); break;
    case Event::Kind::evaluate:
      --evaluations_;
      BATON_ASSERT(coordinator_.evaluate_group(group_id(), {}, now_).has_value());
      break;
    case Event::Kind::purge: {
      --purges_;
      nodes_[event.subject].link = Node::Link::purged;
      const std::array purged{NodeId{event.subject}};
      coordinator_.nodes_purged(purged, now_);
      break;
    }
  }
  take_effects(before);
  if (coordinator_.totals().consumers != consumers) plant_after_membership_change(before);
  drop_stale_timers();
  if (generation() < before) violation_ = "the generation went back";
}

void World::join(std::uint8_t peer) {
  Peer& self = peers_[peer];
  if (self.joined) --rejoins_;
  self = {};
  self.joined = true;
  self.ticket = last_ticket_ = Ticket{last_ticket_.value + 1};
  self.seat.emplace(Seat::Options{.ticket = self.ticket,
                                  .ask_offset = options_->ask_offset,
                                  .handover_timeout = limits::kHandoverTimeout});
  const auto registered =
      coordinator_.register_consumer({.group = group_id(),
                                      .member = member_of(peer),
                                      .ticket = self.ticket,
                                      .single_active = true,
                                      .partition_index = options_->partition_index,
                                      .owner = {}},
                                     now_);
  BATON_ASSERT(registered.has_value());
}

void World::deliver_down(std::uint8_t connection) {
  std::vector<Message>& queue = connections_[connection].down;
  const Message message = queue.front();
  queue.erase(queue.begin());
  deliver(message);
}

void World::answer_check(std::uint8_t connection) {
  // Subscriptions that ended during the cut are reported first. A dead connection has its own
  // event.
  for (std::uint8_t i = 0; i < peer_count_; ++i) {
    if (connection_of(i) != connection || !peers_[i].unregister_pending) continue;
    peers_[i].unregister_pending = false;
    send_up(connection, {Message::Kind::unregister, i, {}, {}});
  }
  send_up(connection, {Message::Kind::there, connection, {}, {}});
}

void World::drop_unknown(std::uint8_t connection) {
  for (std::uint8_t i = 0; i < peer_count_; ++i) {
    if (connection_of(i) != connection || !peers_[i].seat.has_value()) continue;
    peers_[i] = {};
    peers_[i].joined = true;
  }
}

void World::deliver(const Message& message) {
  if (message.kind == Message::Kind::check) return answer_check(message.peer);
  if (message.kind == Message::Kind::unknown) return drop_unknown(message.peer);
  Peer& peer = peers_[message.peer];
  if (!peer.seat.has_value()) return;
  const MemberId member = member_of(message.peer);
  const Ticket ticket = has(Bug::tickets_ignored) ? peer.ticket : message.ticket;
  const Generation generation = message.generation;
  if (message.kind == Message::Kind::activate) {
    if (ticket == peer.ticket) peer.unconfirmed = false;
    act(message.peer, peer.seat->on({group_id(), member, ticket, generation, std::nullopt}, now_));
  } else if (message.kind == Message::Kind::step_down) {
    act(message.peer,
        peer.seat->on(CoordinatorEffects::StepDown{group_id(), member, ticket, generation}, now_));
  } else {
    act(message.peer,
        peer.seat->on(CoordinatorEffects::Inform{group_id(), member, ticket, generation}));
  }
}

void World::deliver_up(std::uint8_t connection) {
  std::vector<Message>& queue = connections_[connection].up;
  Message message = queue.front();
  queue.erase(queue.begin());
  if (message.kind == Message::Kind::reply) {
    plant_in_reply(message);
    replier_ = message.peer;
    coordinator_.step_down_replied(group_id(), member_of(message.peer), message.generation, now_);
    answer_awaited_ = false;
  } else if (message.kind == Message::Kind::unregister) {
    coordinator_.unregister(group_id(), member_of(message.peer), now_);
  } else {
    coordinator_.connection_reconnected(connection_id(connection), now_);
  }
}

void World::client_replies(std::uint8_t peer) {
  Peer& self = peers_[peer];
  const Generation generation = self.owed.front();
  self.owed.erase(self.owed.begin());
  SeatActions actions = seat_of(peer).client_replied(generation, std::nullopt);
  if (has(Bug::old_reply_restarts_delivery) && actions.empty()) actions.start_delivery = true;
  act(peer, actions);
}

void World::notice_cut(std::uint8_t node) {
  nodes_[node].link = Node::Link::noticed;
  // Later than any cut before it, so that the timers can be told apart.
  now_ = now_ + Duration{1};
  coordinator_.node_disconnected(NodeId{node}, now_, now_);
  plant_after_cut(node);
}

void World::connection_down(std::uint8_t connection) {
  connections_[connection].down_said = true;
  if (!plant_in_connection_down(connection)) {
    coordinator_.connection_down(connection_id(connection), now_);
  }
}

void World::timer(std::uint8_t connection, Instant at) {
  timers_.erase({at, connection});
  now_ = std::max(now_, at);
  if (plant_in_timer(connection)) return;
  const coordinator_state::Link* link = coordinator_.find(connection_id(connection));
  const bool early = has(Bug::stale_timer_forgets) && link != nullptr && link->deadline.has_value();
  coordinator_.disconnect_timer(connection_id(connection), early ? *link->deadline : now_);
}

void World::node_returns(std::uint8_t node) {
  nodes_[node].link = Node::Link::up;
  for (std::uint8_t i = 0; i < peer_count_; ++i) {
    if (node_of(connection_of(i)) == node && has(Bug::lease_renewed_by_return)) {
      peers_[i].unconfirmed = false;
    }
  }
  coordinator_.node_up(NodeId{node});
}

void World::end_subscription(std::uint8_t peer) {
  const bool forget_to_say = plant_in_unsubscribe(peer);
  Peer& self = peers_[peer];
  self.seat.reset();
  self.delivering = false;
  self.unconfirmed = false;
  self.client_active = false;
  self.owed.clear();
  if (forget_to_say) return;
  const std::uint8_t connection = connection_of(peer);
  self.unregister_pending = !link_is_up(connection);
  send_up(connection, {Message::Kind::unregister, peer, {}, {}});
}

void World::cut(std::uint8_t node) {
  nodes_[node].link = Node::Link::cut;
  for (std::uint8_t i = 0; i < connection_count_; ++i) {
    if (node_of(i) != node) continue;
    for (const Message& lost : connections_[i].up) {
      if (lost.kind == Message::Kind::unregister) peers_[lost.peer].unregister_pending = true;
    }
    connections_[i].down.clear();
    connections_[i].up.clear();
  }
  for (std::uint8_t i = 0; i < peer_count_; ++i) {
    if (node_of(connection_of(i)) != node) continue;
    peers_[i].unconfirmed = true;
    peers_[i].repeat_allowed = true;
  }
}

void World::crash(std::uint8_t connection) {
  connections_[connection].dead = true;
  connections_[connection].down.clear();
  for (std::uint8_t i = 0; i < peer_count_; ++i) {
    if (connection_of(i) != connection) continue;
    const bool joined = peers_[i].joined;
    peers_[i] = {};
    peers_[i].joined = joined;
  }
}

// The former leader failed before it sent its effects.
void World::new_leader() {
  --restarts_;
  timers_.clear();
  for (Connection& connection : connections_) connection.down.clear();
  coordinator_.become_leader(now_);
}

// The broker restarts from its rows: no connection survives.
void World::restart() {
  --restarts_;
  Coordinator restarted = new_coordinator();
  lead_from_row(restarted, coordinator_, group_id(), now_);
  coordinator_ = std::move(restarted);
  timers_.clear();
  peers_ = {};
  connections_ = {};
  nodes_ = {};
}

void World::act(std::uint8_t peer, const SeatActions& actions) {
  Peer& self = peers_[peer];
  if (actions.stop_delivery) self.delivering = false;
  if (actions.update.has_value()) tell_client(peer, *actions.update);
  if (actions.start_delivery) self.delivering = true;
  if (actions.reply.has_value()) {
    send_up(connection_of(peer), {Message::Kind::reply, peer, *actions.reply, {}});
  }
  if (actions.ended.has_value()) end_subscription(peer);
}

void World::tell_client(std::uint8_t peer, const SeatUpdate& update) {
  Peer& self = peers_[peer];
  if (update.active == self.client_active && !self.repeat_allowed) {
    violation_ = fmt::format("consumer {} is told {} twice in a row, without a cut", peer,
                             self.client_active ? "active" : "not active");
  }
  self.client_active = update.active;
  if (self.client_active) self.repeat_allowed = false;
  const bool asks = update.stepping_down || (options_->ask_offset && update.active);
  if (asks) self.owed.push_back(update.generation);
}

void World::take_effects(Generation before) {
  for (const auto& effect : coordinator_.take_effects().list) take(effect, before);
  replier_ = kPeersMax;
}

void World::take(const CoordinatorEffects::Effect& effect, Generation before) {
  Message::Kind kind = Message::Kind::check;
  const auto tell = [&](const auto& told) {
    const auto peer = static_cast<std::uint8_t>(told.member.subscription.value);
    const Message message{kind, peer, told.generation, told.ticket};
    if (!plant_in_told(message, before)) send_down(told.member, message);
  };
  if (const auto* activate = std::get_if<CoordinatorEffects::Activate>(&effect)) {
    kind = Message::Kind::activate;
    tell(*activate);
  } else if (const auto* step_down = std::get_if<CoordinatorEffects::StepDown>(&effect)) {
    kind = Message::Kind::step_down;
    tell(*step_down);
  } else if (const auto* inform = std::get_if<CoordinatorEffects::Inform>(&effect)) {
    kind = Message::Kind::inform;
    tell(*inform);
  } else if (const auto* check = std::get_if<CoordinatorEffects::Check>(&effect)) {
    const auto connection = static_cast<std::uint8_t>(check->connection.number.value);
    send_down({check->connection, {}}, {kind, connection, {}, {}});
  } else if (const auto* unknown = std::get_if<CoordinatorEffects::Unknown>(&effect)) {
    const auto connection = static_cast<std::uint8_t>(unknown->connection.number.value);
    if (has(Bug::dropped_not_told)) return;
    send_down({unknown->connection, {}}, {Message::Kind::unknown, connection, {}, {}});
  } else if (const auto* timer = std::get_if<CoordinatorEffects::SetTimer>(&effect)) {
    timers_.insert({timer->at, static_cast<std::uint8_t>(timer->connection.number.value)});
  }
}

void World::send_down(const MemberId& to, Message message) {
  const auto connection = static_cast<std::uint8_t>(to.connection.number.value);
  if (!link_is_up(connection) || connections_[connection].dead) return;
  connections_[connection].down.push_back(message);
}

void World::send_up(std::uint8_t connection, Message message) {
  if (link_is_up(connection)) connections_[connection].up.push_back(message);
}

// A timer for a connection that is not cut off, and never will be again, does nothing.
void World::drop_stale_timers() {
  std::erase_if(timers_, [&](const auto& timer) {
    const coordinator_state::Link* link = coordinator_.find(connection_id(timer.second));
    const bool at_risk = cuts_ + crashes_ > 0 || !link_is_up(timer.second);
    return link == nullptr || (!at_risk && !link->deadline.has_value());
  });
}

}  // namespace baton::checker
