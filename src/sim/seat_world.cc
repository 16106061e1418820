#include "sim/seat_world.h"

#include <algorithm>
#include <chrono>
#include <utility>
#include <variant>

#include <fmt/format.h>

namespace baton {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr SessionTerms kTerms;
const GroupId kGroup{.stream = "orders", .partition = 0, .name = "billing"};
constexpr Duration kFaults = seconds{60};
constexpr Duration kQuiet = seconds{40};
constexpr NodeId kNode{1};

ConnectionId connection_of(std::uint64_t call) { return {kNode, ConnectionNumber{call}}; }
MemberId member_of(std::uint64_t call) { return {connection_of(call), SubscriptionId{1}}; }

}  // namespace

SeatWorld::SeatWorld(Options options) : options_(options), random_(options.seed) {
  // In a group that hands over at once, two consumers may write for the milliseconds in which only
  // one end has seen a visible break. So visible breaks, and restarts, are only used with strict
  // groups.
  strict_ = options_.seed % 2 == 1;
  const double spread = has_bug(SeatBug::clocks_far_apart) ? 0.25 : 0.01;
  const auto rate = [&] { return 1 + (chance(0.5) ? spread : -spread); };
  broker_.rate = rate();
  for (Client& client : clients_) client.process.rate = rate();
  boot();
}

Instant SeatWorld::clock(const Process& process) const {
  const auto ns = static_cast<double>(timeline_.now().ns) * process.rate;
  return {static_cast<std::int64_t>(ns)};
}
Duration SeatWorld::between(std::int64_t least_ms, std::int64_t most_ms) {
  return milliseconds{least_ms + static_cast<std::int64_t>(random_.below(
                                     static_cast<std::uint64_t>(most_ms - least_ms + 1)))};
}
bool SeatWorld::chance(double probability) {
  return static_cast<double>(random_.below(1'000'000)) < probability * 1e6;
}

void SeatWorld::run() {
  for (std::size_t i = 0; i < kClients; ++i) {
    timeline_.after(between(0, 300), [this, i] { connect(i); });
    timeline_.after(between(0, 50), [this, i] { work(i); });
  }
  timeline_.after(seconds{1}, [this] { trouble(); });
  timeline_.after(kFaults, [this] { heal(); });
  const Instant end = timeline_.now() + kFaults + kQuiet;
  while (violation_.empty() && timeline_.now() < end && timeline_.step()) {
  }
  if (violation_.empty() && timeline_.now() - last_write_ > seconds{2}) {
    violation_ = "nobody writes, although nothing is wrong any more";
  }
}

// ---- Links ----

void SeatWorld::say(std::uint64_t call, bool up, Word word) {
  const auto found = calls_.find(call);
  if (found == calls_.end()) return;
  Way& way = up ? found->second.up : found->second.down;
  way.words.push_back(word);
  if (!way.moving) move(call, up);
}

void SeatWorld::move(std::uint64_t call, bool up) {
  Way& way = up ? calls_.at(call).up : calls_.at(call).down;
  way.moving = true;
  timeline_.after(between(0, chance(0.05) ? 900 : 20), [this, call, up] {
    const auto found = calls_.find(call);
    if (found == calls_.end()) return;
    Way& moved = up ? found->second.up : found->second.down;
    const Process& receiver = up ? broker_ : clients_[found->second.client].process;
    if (moved.cut || receiver.stopped) return move(call, up);
    moved.moving = !moved.words.empty();
    if (!moved.moving) return;
    const Word word = moved.words.front();
    moved.words.pop_front();
    moved.moving = !moved.words.empty();
    if (moved.moving) move(call, up);
    deliver(call, up, word);
  });
}

void SeatWorld::deliver(std::uint64_t call, bool up, const Word& word) {
  if (up) return take(call, word);
  const std::size_t client = calls_.at(call).client;
  if (clients_[client].call == call) hear(client, word);
}

void SeatWorld::break_visibly(std::uint64_t call) {
  const auto found = calls_.find(call);
  if (found == calls_.end()) return;
  for (Way* way : {&found->second.up, &found->second.down}) {
    way->words.clear();
    way->cut = false;
  }
  say(call, true, Ended{});
  say(call, false, Ended{});
}

// ---- Clients ----

void SeatWorld::connect(std::size_t index) {
  Client& client = clients_[index];
  if (client.process.stopped || client.call != 0) {
    if (client.call == 0) timeline_.after(milliseconds{100}, [this, index] { connect(index); });
    return;
  }
  client.call = ++next_call_;
  client.hold = {};
  client.seat.reset();
  client.answer_until = {};
  calls_[client.call].client = index;
  beat(index, client.call);
}

void SeatWorld::beat(std::size_t index, std::uint64_t call) {
  Client& client = clients_[index];
  if (client.call != call) return;
  if (client.process.stopped) {
    timeline_.after(milliseconds{20}, [this, index, call] { beat(index, call); });
    return;
  }
  if (!may_work(client) && client.hold.granted()) return give_up(index);
  say(call, true, Heartbeat{client.hold.send(clock(client.process))});
  timeline_.after(kTerms.heartbeat, [this, index, call] { beat(index, call); });
}

void SeatWorld::hear(std::size_t index, const Word& word) {
  Client& client = clients_[index];
  if (std::holds_alternative<Ended>(word)) return give_up(index);
  if (const auto* answer = std::get_if<Acknowledged>(&word)) return hear_answer(index, *answer);
  if (const auto* active = std::get_if<Active>(&word)) {
    client.seat = active->epoch;
    ++handovers_;
  }
  if (const auto* down = std::get_if<StepDown>(&word)) {
    client.seat.reset();
    say(client.call, true, *down);
  }
}

void SeatWorld::hear_answer(std::size_t index, const Acknowledged& answer) {
  Client& client = clients_[index];
  const Instant now = clock(client.process);
  // The lease has ended, and the client has not checked it yet.
  const bool looks = !has_bug(SeatBug::client_looks_at_no_clock);
  if (looks && client.hold.granted() && !may_work(client)) return give_up(index);
  client.hold.acknowledged(answer.number, answer.broker_time, kTerms, now);
  client.answer_until = now + kTerms.client_lease;
}

bool SeatWorld::may_work(const Client& client) const {
  const Instant now = clock(client.process);
  if (has_bug(SeatBug::client_counts_from_the_answer)) return now < client.answer_until;
  return client.hold.holds(now);
}

void SeatWorld::work(std::size_t index) {
  timeline_.after(between(10, 40), [this, index] { work(index); });
  Client& client = clients_[index];
  if (client.process.stopped || !client.seat) return;
  if (!has_bug(SeatBug::client_looks_at_no_clock) && !may_work(client)) return give_up(index);
  if (*client.seat < newest_) {
    violation_ = fmt::format("seed {}: at {} ms client {} wrote under epoch {} after epoch {}",
                             options_.seed, timeline_.now().ns / 1'000'000, index,
                             client.seat->value, newest_.value);
    return;
  }
  newest_ = *client.seat;
  last_write_ = timeline_.now();
  ++writes_;
}

void SeatWorld::give_up(std::size_t index) {
  Client& client = clients_[index];
  if (client.call == 0) return;
  // The broker is told if the way is open.
  say(client.call, true, Ended{});
  client.call = 0;
  client.seat.reset();
  timeline_.after(between(10, 200), [this, index] { connect(index); });
}

// ---- The broker ----

void SeatWorld::boot() {
  ++boots_;
  Coordinator::Options options;
  if (has_bug(SeatBug::restart_forgets_leases)) options.session_lease = milliseconds{1};
  coordinator_ = std::make_unique<Coordinator>(
      options, [this](const CoordinatorFact& fact) { facts_.push_back(fact); });
  for (const CoordinatorFact& fact : std::vector(facts_)) coordinator_->apply(fact);
  coordinator_->become_leader(clock(broker_));
  run_effects();
  timeline_.after(milliseconds{5}, [this] { look_at_deadline(); });
}

void SeatWorld::take(std::uint64_t id, const Word& word) {
  if (std::holds_alternative<Ended>(word)) return end_call(id);
  if (const auto* heartbeat = std::get_if<Heartbeat>(&word)) take_heartbeat(id, heartbeat->number);
  if (const auto* down = std::get_if<StepDown>(&word); down && calls_.at(id).open_at_broker) {
    coordinator_->step_down_replied(kGroup, member_of(id), down->generation, clock(broker_));
  }
  run_effects();
}

void SeatWorld::take_heartbeat(std::uint64_t id, std::uint64_t number) {
  Call& call = calls_.at(id);
  const Instant now = clock(broker_);
  const bool is_first = !std::exchange(call.registered, true);
  if (is_first) {
    call.open_at_broker = true;
    const bool impatient = has_bug(SeatBug::broker_is_impatient);
    call.grant = SessionGrant(impatient ? Duration{seconds{3}} : kTerms.broker_lease);
    watch_lease(id);
  }
  if (!call.open_at_broker) return;
  call.grant.heard(now);
  say(id, false, Acknowledged{.number = number, .broker_time = now});
  if (is_first) admit(id);
}

void SeatWorld::admit(std::uint64_t id) {
  const auto registered =
      coordinator_->register_consumer({.group = kGroup,
                                       .member = member_of(id),
                                       .ticket = Ticket{id},
                                       .single_active = true,
                                       .owner = {},
                                       .handover = strict_ ? Handover::strict : Handover::at_once,
                                       .has_lease = true},
                                      clock(broker_));
  if (!registered) violation_ = "a consumer was refused: " + to_string(registered.error());
}

void SeatWorld::end_call(std::uint64_t id) {
  Call& call = calls_.at(id);
  const Instant now = clock(broker_);
  if (std::exchange(call.open_at_broker, false)) {
    const std::optional<Instant> until = call.grant.until();
    if (until && *until > now && !has_bug(SeatBug::break_hands_over_at_once)) {
      coordinator_->connection_lost(connection_of(id), *until, now);
    } else {
      coordinator_->connection_down(connection_of(id), now);
    }
    run_effects();
  }
  // A break that the client has not seen yet is still on its way to it.
  if (clients_[call.client].call != id) calls_.erase(id);
}

void SeatWorld::watch_lease(std::uint64_t id) {
  timeline_.after(milliseconds{10}, [this, id] { look_at_lease(id); });
}

void SeatWorld::look_at_lease(std::uint64_t id) {
  const auto found = calls_.find(id);
  if (found == calls_.end() || !found->second.open_at_broker) return;
  const Instant now = clock(broker_);
  if (broker_.stopped || !found->second.grant.is_over(now)) return watch_lease(id);
  found->second.open_at_broker = false;
  say(id, false, Ended{});
  coordinator_->connection_down(connection_of(id), now);
  run_effects();
}

void SeatWorld::run_effects() {
  for (const auto& effect : coordinator_->take_effects().list) {
    if (const auto* activate = std::get_if<CoordinatorEffects::Activate>(&effect)) {
      say(activate->member.connection.number.value, false, Active{activate->generation});
    } else if (const auto* down = std::get_if<CoordinatorEffects::StepDown>(&effect)) {
      say(down->member.connection.number.value, false, StepDown{down->generation});
    }
  }
}

void SeatWorld::look_at_deadline() {
  timeline_.after(milliseconds{5}, [this, boots = boots_] {
    if (boots == boots_) look_at_deadline();
  });
  if (broker_.stopped || coordinator_->next_deadline() > clock(broker_)) return;
  coordinator_->expire(clock(broker_));
  run_effects();
}

// Killed and started again: it has forgotten all calls, and every connection visibly breaks.
void SeatWorld::restart_broker() {
  for (auto& [id, call] : calls_) {
    call.up.words.clear();
    call.down.words.clear();
    call.open_at_broker = false;
    say(id, false, Ended{});
  }
  boot();
}

// ---- Faults ----

void SeatWorld::trouble() {
  if (quiet_) return;
  timeline_.after(between(50, 4'000), [this] { trouble(); });
  const std::size_t index = random_.below(kClients);
  const std::uint64_t id = clients_[index].call;
  const auto wake = [this](Process& process) {
    process.stopped = true;
    timeline_.after(between(100, 9'000), [&process] { process.stopped = false; });
  };
  switch (random_.below(strict_ ? 7 : 4)) {
    case 0: return wake(clients_[index].process);
    case 1:
      if (chance(0.3)) wake(broker_);
      return;
    case 2:
    case 3: {
      const auto call = calls_.find(id);
      if (call == calls_.end()) return;
      const auto ways = random_.below(3);
      call->second.up.cut = ways != 1;
      call->second.down.cut = ways != 0;
      timeline_.after(between(500, 12'000), [this, id] {
        const auto thawed = calls_.find(id);
        if (thawed == calls_.end()) return;
        thawed->second.up.cut = thawed->second.down.cut = false;
      });
      return;
    }
    case 4:
    case 5: return break_visibly(id);
    default:
      if (chance(0.3) && !broker_.stopped) restart_broker();
  }
}

void SeatWorld::heal() {
  quiet_ = true;
  broker_.stopped = false;
  for (Client& client : clients_) client.process.stopped = false;
  for (auto& [id, call] : calls_) call.up.cut = call.down.cut = false;
}

}  // namespace baton
