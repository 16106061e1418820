#include "core/group/client_world.h"

#include <algorithm>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "core/group/rows.h"
#include "core/group/search.h"
#include "core/group/world.h"

namespace baton::checker {
namespace {

// A hand-over waits for longer than the client's lease.
constexpr Duration kHandoverTicks{4};
constexpr std::size_t kBeatsMax = 1;
constexpr int kSettleTicks = 12;
constexpr std::size_t kClientSettleSteps = 2'000;

const GroupId& group_id() {
  static const GroupId kGroup{.stream = "s", .partition = 0, .name = "g"};
  return kGroup;
}
ConnectionId connection_of(std::uint8_t number) {
  return {NodeId{1}, ConnectionNumber{number + 1U}};
}
MemberId member_of(std::uint8_t number) { return {connection_of(number), SubscriptionId{number}}; }

}  // namespace

ClientWorld::ClientWorld(const ClientSearchOptions& options)
    : options_(&options),
      coordinator_(new_coordinator()),
      cuts_(options.cuts),
      breaks_(options.breaks),
      crashes_(options.crashes),
      unsubscribes_(options.unsubscribes),
      restarts_(options.restarts),
      evaluations_(options.evaluations) {
  BATON_ASSERT(options.sessions >= 1 && options.sessions <= kSessionsMax);
}

Coordinator ClientWorld::new_coordinator() const {
  Coordinator::Options options;
  options.session_lease =
      has(ClientBug::restart_forgets_leases) ? Duration{0} : kTerms.broker_lease;
  return {options, [](const CoordinatorFact&) {}};
}

const coordinator_state::Group* ClientWorld::group() const { return coordinator_.find(group_id()); }

// Which events are possible.

void ClientWorld::enabled(std::vector<Event>& events) const {
  events.clear();
  events.push_back({Kind::tick, 0});
  for (std::uint32_t i = 0; i < options_->sessions; ++i) {
    enabled_for(static_cast<std::uint8_t>(i), events);
  }
  if (coordinator_.next_deadline() <= now_) events.push_back({Kind::timer, 0});
  if (restarts_ > 0 && group() != nullptr) events.push_back({Kind::restart, 0});
  if (may_evaluate()) events.push_back({Kind::evaluate, 0});
}

bool ClientWorld::may_beat(const Session& session) const {
  return session.open && session.link != Session::Link::broken &&
         session.hold.outstanding().size() < kBeatsMax && session.beat_at < now_ &&
         !session.hold.has_ended(now_);
}

// One branch for each possible event: cut up, the function would be harder to check.
// NOLINTNEXTLINE(readability-function-cognitive-complexity)
void ClientWorld::enabled_for(std::uint8_t number, std::vector<Event>& events) const {
  const Session& self = sessions_[number];
  const auto may = [&](Kind kind, bool condition) {
    if (condition) events.push_back({kind, number});
  };
  if (!self.joined) {
    // All sessions are alike: one order of joining is enough.
    return may(Kind::join, number == 0 || sessions_[number - 1U].joined);
  }
  const bool up = self.link == Session::Link::up;
  const bool broken = self.link == Session::Link::broken;
  may(Kind::deliver_up, up && !self.up.empty());
  may(Kind::deliver_down, up && self.open && !self.down.empty());
  may(Kind::client_replies, self.open && !self.owed.empty());
  may(Kind::client_sees_break, broken && self.open);
  may(Kind::broker_sees_break, self.broker_to_see);
  may(Kind::client_gives_up, self.open && self.hold.has_ended(now_));
  may(Kind::heartbeat, may_beat(self));
  may(Kind::lease_over, self.at_broker && self.grant.is_over(now_));
  may(Kind::handover_over, self.seat.has_value() && self.seat->deadline() <= now_);
  may(Kind::thaw, self.link == Session::Link::cut);
  may(Kind::unsubscribe, unsubscribes_ > 0 && self.open && !self.left && !broken);
  may(Kind::cut, cuts_ > 0 && up && self.open);
  may(Kind::break_link, breaks_ > 0 && up && self.open);
  may(Kind::crash, crashes_ > 0 && self.open && !broken);
  may(Kind::keepalive,
      has(ClientBug::keepalive_gives_away) && self.at_broker && self.link == Session::Link::cut);
}

// What an event does.

void ClientWorld::happen(const Event& event) {
  Session& self = sessions_[event.session];
  switch (event.kind) {
    case Kind::tick:
      now_ = now_ + Duration{1};
      if (restarted_ago_ < 255) ++restarted_ago_;
      break;
    case Kind::join: join(self); break;
    case Kind::deliver_up: deliver_up(event.session); break;
    case Kind::deliver_down: deliver_down(self); break;
    case Kind::client_replies:
      self.up.push_back({Message::Kind::reply, self.owed.front().value});
      self.owed.erase(self.owed.begin());
      break;
    case Kind::client_sees_break: close_client(self); break;
    case Kind::broker_sees_break:
    case Kind::keepalive:
      if (event.kind == Kind::keepalive) {
        down_at_broker(event.session);
      } else {
        lose(event.session);
      }
      break;
    case Kind::client_gives_up:
    case Kind::crash:
      if (event.kind == Kind::crash) --crashes_;
      close_client(self);
      if (self.link != Session::Link::broken) self.up.push_back({Message::Kind::gone, 0});
      break;
    case Kind::heartbeat: send_heartbeat(self, Message::Kind::heartbeat); break;
    case Kind::lease_over:
      say(self, {Message::Kind::end, 0});
      down_at_broker(event.session);
      break;
    case Kind::handover_over:
      BATON_ASSERT(self.seat.has_value());
      act(event.session, self.seat->expire(now_));
      break;
    case Kind::timer: coordinator_.expire(now_); break;
    case Kind::thaw: self.link = self.orphan ? Session::Link::broken : Session::Link::up; break;
    case Kind::unsubscribe:
      --unsubscribes_;
      self.left = true;
      self.active = {};
      self.owed.clear();
      self.up.push_back({Message::Kind::unsubscribe, 0});
      break;
    case Kind::cut:
      --cuts_;
      self.link = Session::Link::cut;
      break;
    case Kind::break_link:
      --breaks_;
      self.link = Session::Link::broken;
      self.up.clear();
      self.down.clear();
      self.broker_to_see = self.at_broker;
      break;
    case Kind::restart: restart(); break;
    case Kind::evaluate: evaluate(); break;
  }
  take_effects();
}

void ClientWorld::join(Session& session) {
  session = Session();
  session.joined = true;
  session.open = true;
  session.grant = SessionGrant(kTerms.broker_lease);
  send_heartbeat(session, Message::Kind::start);
}

void ClientWorld::send_heartbeat(Session& session, Message::Kind kind) {
  session.beat_at = now_;
  session.up.push_back({kind, session.hold.send(now_)});
}

void ClientWorld::deliver_up(std::uint8_t number) {
  Session& self = sessions_[number];
  const Message message = self.up.front();
  self.up.erase(self.up.begin());
  // The broker accepts nothing more from a call that it has ended.
  if (message.kind != Message::Kind::start && !self.at_broker) return;
  switch (message.kind) {
    case Message::Kind::start:
    case Message::Kind::heartbeat:
      self.grant.heard(now_);
      if (message.kind == Message::Kind::start) register_session(number);
      say(self, {Message::Kind::answer, message.number});
      break;
    case Message::Kind::reply:
      if (self.seat.has_value()) {
        act(number, self.seat->client_replied(Generation{message.number}, std::nullopt));
      }
      break;
    case Message::Kind::unsubscribe:
      self.seat.reset();
      coordinator_.unregister(group_id(), member_of(number), now_);
      break;
    default: lose(number);
  }
}

void ClientWorld::register_session(std::uint8_t number) {
  Session& self = sessions_[number];
  self.at_broker = true;
  self.ticket = last_ticket_ = Ticket{last_ticket_.value + 1};
  self.seat.emplace(Seat::Options{
      .ticket = self.ticket, .ask_offset = false, .handover_timeout = kHandoverTicks});
  const auto registered =
      coordinator_.register_consumer({.group = group_id(),
                                      .member = member_of(number),
                                      .ticket = self.ticket,
                                      .single_active = true,
                                      .partition_index = options_->partition_index,
                                      .owner = {},
                                      .handover = options_->handover,
                                      .has_lease = true},
                                     now_);
  BATON_ASSERT(registered.has_value());
}

void ClientWorld::deliver_down(Session& session) {
  const Message message = session.down.front();
  session.down.erase(session.down.begin());
  const bool of_the_call =
      message.kind == Message::Kind::answer || message.kind == Message::Kind::end;
  if (session.left && !of_the_call) return;
  switch (message.kind) {
    case Message::Kind::answer: take_answer(session, message.number); break;
    case Message::Kind::active: session.active = Generation{message.number}; break;
    case Message::Kind::stepping_down:
      session.active = {};
      session.owed.push_back(Generation{message.number});
      break;
    case Message::Kind::end: close_client(session); break;
    default: session.active = {}; session.owed.clear();
  }
}

void ClientWorld::take_answer(Session& session, std::uint64_t number) {
  if (has(ClientBug::lease_from_answer) ||
      (has(ClientBug::late_answer_revives) && session.hold.has_ended(now_))) {
    session.planted_until = now_ + kTerms.client_lease;
  }
  session.hold.acknowledged(number, now_, kTerms, now_);
}

void ClientWorld::close_client(Session& session) {
  session.open = false;
  session.active = {};
  session.owed.clear();
  session.planted_until = {};
  session.hold = {};
  session.down.clear();
}

/// A visible break, or the end of the client.
void ClientWorld::lose(std::uint8_t number) {
  Session& self = sessions_[number];
  if (!self.at_broker) return;
  if (has(ClientBug::strict_moves_at_once) || self.grant.is_over(now_)) {
    return down_at_broker(number);
  }
  const std::optional<Instant> until = self.grant.until();
  BATON_ASSERT(until.has_value());
  coordinator_.connection_lost(connection_of(number), *until, now_);
  self.broker_to_see = false;
  self.at_broker = false;
  self.seat.reset();
}

void ClientWorld::down_at_broker(std::uint8_t number) {
  Session& self = sessions_[number];
  coordinator_.connection_down(connection_of(number), now_);
  self.broker_to_see = false;
  self.at_broker = false;
  self.seat.reset();
}

void ClientWorld::restart() {
  --restarts_;
  Coordinator restarted = new_coordinator();
  lead_from_row(restarted, coordinator_, group_id(), now_);
  coordinator_ = std::move(restarted);
  restarted_ago_ = 0;
  for (Session& session : sessions_) {
    if (!session.joined) continue;
    session.at_broker = false;
    session.broker_to_see = false;
    session.seat.reset();
    session.grant = SessionGrant(kTerms.broker_lease);
    session.orphan = true;
    session.up.clear();
    if (session.link != Session::Link::up) continue;
    session.link = Session::Link::broken;
    session.down.clear();
  }
}

/// The operator says that clients which are not connected work no more. That must be true.
bool ClientWorld::may_evaluate() const {
  if (evaluations_ == 0 || group() == nullptr) return false;
  return std::ranges::none_of(group()->consumers, [&](const auto& consumer) {
    return !consumer.connected() && works(sessions_[consumer.member.subscription.value]);
  });
}

void ClientWorld::evaluate() {
  --evaluations_;
  BATON_ASSERT(coordinator_.evaluate_group(group_id(), {}, now_).has_value());
}

void ClientWorld::act(std::uint8_t number, const SeatActions& actions) {
  Session& self = sessions_[number];
  if (actions.update.has_value()) {
    const SeatUpdate& update = *actions.update;
    const auto kind = update.active          ? Message::Kind::active
                      : update.stepping_down ? Message::Kind::stepping_down
                                             : Message::Kind::inactive;
    say(self, {kind, update.generation.value});
  }
  if (actions.reply.has_value()) {
    coordinator_.step_down_replied(group_id(), member_of(number), *actions.reply, now_);
  }
  if (actions.ended.has_value()) {
    say(self, {Message::Kind::closed, 0});
    self.seat.reset();
    coordinator_.unregister(group_id(), member_of(number), now_);
  }
}

void ClientWorld::say(Session& session, Message message) const {
  if (session.link == Session::Link::broken || !session.open) return;
  const bool ahead =
      has(ClientBug::answer_overtakes_words) && message.kind == Message::Kind::answer;
  session.down.insert(ahead ? session.down.begin() : session.down.end(), message);
}

// One branch for each kind of effect: cut up, the function would be harder to check.
// NOLINTNEXTLINE(readability-function-cognitive-complexity)
void ClientWorld::take_effects() {
  // The answer of a seat may cause further effects.
  for (auto effects = coordinator_.take_effects(); !effects.empty();
       effects = coordinator_.take_effects()) {
    for (const auto& effect : effects.list) {
      std::visit(
          [this](const auto& told) {
            if constexpr (requires { told.generation; }) {
              const auto number = static_cast<std::uint8_t>(told.member.subscription.value);
              Session& self = sessions_[number];
              if (!self.seat.has_value()) return;
              if constexpr (requires { self.seat->on(told, now_); }) {
                act(number, self.seat->on(told, now_));
              } else {
                act(number, self.seat->on(told));
              }
            }
          },
          effect);
    }
  }
}

// What must hold.

/// Whether the client may hand out records at this moment, by its own clock.
bool ClientWorld::works(const Session& session) const {
  if (!session.open || session.active == Generation{}) return false;
  if (has(ClientBug::no_check_at_hand_out)) return true;
  return session.hold.holds(now_) || now_ < session.planted_until;
}

/// Whether the client's connection visibly broke, or its broker restarted, and it has not noticed
/// yet: in a group that hands over at once its successor may be at work.
bool ClientWorld::excused(const Session& session) const {
  if (options_->handover == Handover::strict) return false;
  return session.link == Session::Link::broken || session.orphan;
}

std::optional<std::string> ClientWorld::violation() const {
  const auto count = std::ranges::count_if(
      sessions_, [&](const Session& session) { return works(session) && !excused(session); });
  if (count > 1) return "two clients may hand out records";
  return std::nullopt;
}

// One branch for each way to settle: cut up, the function would be harder to check.
// NOLINTNEXTLINE(readability-function-cognitive-complexity)
std::optional<std::string> ClientWorld::settle(bool heal, std::vector<Event>* path) {
  std::vector<Event> events;
  int ticks = 0;
  for (std::size_t step = 0; step < kClientSettleSteps; ++step) {
    if (const auto wrong = violation()) return wrong;
    enabled(events);
    std::erase_if(events, [&](const Event& event) {
      return event.kind >= Kind::join || (event.kind == Kind::thaw && !heal);
    });
    // A link that heals does so before time goes on.
    const auto order = [](const Event& event) {
      return event.kind == Kind::thaw ? -1 : static_cast<int>(event.kind);
    };
    Event next = *std::ranges::min_element(events, {}, order);
    // An event before the next tick leads to a state that the search visits by itself.
    if (step == 0 && next.kind != Kind::tick) return std::nullopt;
    if (next.kind == Kind::tick && ++ticks > kSettleTicks) return unsettled();
    if (path != nullptr) path->push_back(next);
    happen(next);
  }
  return fmt::format("things do not settle within {} steps", kClientSettleSteps);
}

std::optional<std::string> ClientWorld::unsettled() const {
  std::size_t members = 0;
  std::size_t working = 0;
  for (const Session& session : sessions_) {
    members += session.seat.has_value() ? 1 : 0;
    working += works(session) ? 1 : 0;
  }
  if (working != (members == 0 ? 0U : 1U)) {
    return fmt::format("settled with {} in the group, {} at work", members, working);
  }
  return std::nullopt;
}

SearchResult search(const ClientSearchOptions& options) {
  return Search<ClientWorld, ClientSearchOptions>(options).run();
}

}  // namespace baton::checker
