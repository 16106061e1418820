// Two worlds with clients are alike when they differ only in times that make no difference any
// more: times count from now.

#include <algorithm>

#include <fmt/format.h>

#include "base/bytes.h"
#include "core/group/client_world.h"

namespace baton::checker {

std::string to_string(const ClientWorld::Event& event, const ClientSearchOptions& /*options*/) {
  using Kind = ClientWorld::Event::Kind;
  const char who = "xyzw"[event.session];
  switch (event.kind) {
    case Kind::deliver_up: return fmt::format("the broker hears what {} said", who);
    case Kind::deliver_down: return fmt::format("{} hears what the broker said", who);
    case Kind::client_replies: return fmt::format("{} answers the step-down", who);
    case Kind::client_sees_break: return fmt::format("{} notices that its link broke", who);
    case Kind::broker_sees_break: return fmt::format("the broker notices the break of {}", who);
    case Kind::client_gives_up: return fmt::format("{} notices that its lease is over", who);
    case Kind::heartbeat: return fmt::format("{} sends a heartbeat", who);
    case Kind::lease_over: return fmt::format("the lease of {} is over at the broker", who);
    case Kind::handover_over: return fmt::format("{} has not answered in time", who);
    case Kind::timer: return "the coordinator's timer goes off";
    case Kind::tick: return "time passes";
    case Kind::thaw: return fmt::format("the link of {} thaws", who);
    case Kind::join: return fmt::format("{} comes", who);
    case Kind::unsubscribe: return fmt::format("{} leaves in order", who);
    case Kind::cut: return fmt::format("the link of {} is cut silently", who);
    case Kind::break_link: return fmt::format("the link of {} breaks", who);
    case Kind::crash: return fmt::format("{} dies", who);
    case Kind::restart: return "the broker starts anew from its rows";
    case Kind::evaluate: return "an operator says that whoever is not connected is gone";
    case Kind::keepalive: return fmt::format("the keepalive gives up {}", who);
  }
  return "?";
}

std::uint8_t ClientWorld::ago(Instant at) const {
  const Duration since = std::clamp(now_ - at, Duration{0}, kTerms.client_lease);
  return static_cast<std::uint8_t>(since.count());
}

std::uint8_t ClientWorld::left(std::optional<Instant> at) const {
  if (!at.has_value() || *at == Instant::never()) return 255;
  return static_cast<std::uint8_t>(
      std::clamp((*at - now_).count(), std::int64_t{0}, std::int64_t{99}));
}

// One branch for each field: cut up, the function would be harder to check.
// NOLINTNEXTLINE(readability-function-cognitive-complexity)
void ClientWorld::encode_session(const Session& session, std::string& out) const {
  Encoder to(out);
  to.u8(static_cast<std::uint8_t>(
      (session.joined ? 1U : 0U) | (session.open ? 2U : 0U) | (session.at_broker ? 4U : 0U) |
      (session.orphan ? 8U : 0U) | (session.broker_to_see ? 16U : 0U) |
      (session.seat.has_value() ? 32U : 0U) | (session.left ? 64U : 0U)));
  if (!session.joined) return;
  const std::uint64_t newest = group() == nullptr ? 0 : group()->record.generation.value;
  const auto age = [&](std::uint64_t generation) {
    return static_cast<std::uint8_t>(
        generation == 0 ? 255 : std::min<std::uint64_t>(newest - generation, 9));
  };
  const auto beat = [&](std::uint64_t number) {
    const auto& sent = session.hold.outstanding();
    return static_cast<std::uint8_t>(
        sent.empty() || number < sent.front().number ? 255 : number - sent.front().number);
  };
  to.u8(static_cast<std::uint8_t>(session.link));
  to.u8(session.beat_at < now_ ? 1 : 0);
  to.u8(left(session.hold.until()));
  to.u8(left(session.planted_until));
  to.u8(static_cast<std::uint8_t>(session.hold.outstanding().size()));
  for (const auto& sent : session.hold.outstanding()) to.u8(ago(sent.at));
  to.u8(age(session.active.value));
  to.u8(static_cast<std::uint8_t>(session.owed.size()));
  for (const Generation generation : session.owed) to.u8(age(generation.value));
  for (const auto* queue : {&session.up, &session.down}) {
    to.u8(static_cast<std::uint8_t>(queue->size()));
    for (const Message& message : *queue) {
      const bool beats = message.kind == Message::Kind::start ||
                         message.kind == Message::Kind::heartbeat ||
                         message.kind == Message::Kind::answer;
      to.u8(static_cast<std::uint8_t>(message.kind));
      to.u8(beats ? beat(message.number) : age(message.number));
    }
  }
  to.u8(session.at_broker ? left(session.grant.until()) : 0);
  if (!session.seat.has_value()) return;
  to.u8(static_cast<std::uint8_t>(session.seat->phase()));
  to.u8(age(session.seat->told().value));
  to.u8(left(session.seat->deadline()));
}

std::string ClientWorld::encode() const {
  std::string out;
  Encoder to(out);
  for (std::uint32_t i = 0; i < options_->sessions; ++i) encode_session(sessions_[i], out);
  for (const std::uint8_t budget :
       {cuts_, breaks_, crashes_, unsubscribes_, restarts_, evaluations_}) {
    to.u8(budget);
  }
  to.u8(std::min<std::uint8_t>(restarted_ago_,
                               static_cast<std::uint8_t>(kTerms.broker_lease.count())));
  to.u8(coordinator_.waits_for_leases() ? 1 : 0);
  if (group() == nullptr) return out;
  to.u8(group()->seated ? 1 : 0);
  for (const coordinator_state::Consumer& consumer : group()->consumers) {
    const coordinator_state::Link* link = coordinator_.find(consumer.member.connection);
    to.u8(static_cast<std::uint8_t>(consumer.member.subscription.value));
    to.u8(static_cast<std::uint8_t>(consumer.status.connectivity));
    to.u8(static_cast<std::uint8_t>(consumer.status.activity));
    to.u8(link == nullptr ? 255 : left(link->deadline));
  }
  return out;
}

std::string ClientWorld::describe() const {
  std::string text;
  if (group() != nullptr) {
    for (const auto& consumer : group()->consumers) {
      text += fmt::format("{}{}:{}", text.empty() ? "" : " ",
                          "xyzw"[consumer.member.subscription.value], to_string(consumer.status));
    }
  }
  for (std::uint32_t i = 0; i < options_->sessions; ++i) {
    if (works(sessions_[i])) text += fmt::format(", {} works", "xyzw"[i]);
  }
  return "[" + text + "]";
}

}  // namespace baton::checker
