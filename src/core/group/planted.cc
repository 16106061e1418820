// The bugs that the search must find: messages between the parts, changed or lost on the way.

#include <algorithm>

#include "core/group/world.h"

namespace baton::checker {
namespace {

using coordinator_state::Consumer;

const Consumer* deactivating(const coordinator_state::Group* group) {
  if (group == nullptr) return nullptr;
  const auto found = std::ranges::find_if(group->consumers, [](const Consumer& consumer) {
    return consumer.status.activity == Activity::deactivating;
  });
  return found == group->consumers.end() ? nullptr : &*found;
}

}  // namespace

void World::plant_in_reply(Message& message) const {
  const Consumer* asked = deactivating(group());
  if (!has(Bug::stale_reply_promotes) || asked == nullptr) return;
  message.peer = static_cast<std::uint8_t>(asked->member.subscription.value);
  message.generation = asked->stepping;
}

void World::plant_after_membership_change(Generation before) {
  const Consumer* asked = deactivating(group());
  if (!has(Bug::step_down_sent_again) || asked == nullptr || !asked->connected()) return;
  if (asked->stepping > before) return;  // This very event has sent it for the first time.
  send_down(asked->member,
            {Message::Kind::step_down, static_cast<std::uint8_t>(asked->member.subscription.value),
             Generation{generation().value + 1}, asked->ticket});
}

void World::plant_after_cut(std::uint8_t node) {
  const Consumer* asked = deactivating(group());
  if (!has(Bug::cut_off_deactivating_replaced) || asked == nullptr) return;
  if (asked->member.connection.node != NodeId{node}) return;
  const Consumer copy = *asked;
  coordinator_.step_down_replied(group_id(), copy.member, copy.stepping, now_);
}

bool World::plant_in_connection_down(std::uint8_t connection) {
  if (!has(Bug::dead_sibling_elected) || group() == nullptr) return false;
  const auto& consumers = group()->consumers;
  const auto on_it = [&](const Consumer& consumer) {
    return consumer.member.connection == connection_id(connection);
  };
  if (std::ranges::count_if(consumers, on_it) < 2) return false;
  const MemberId first = std::ranges::find_if(consumers, on_it)->member;
  coordinator_.unregister(group_id(), first, now_);
  return true;
}

bool World::plant_in_timer(std::uint8_t connection) const {
  const Consumer* asked = deactivating(group());
  return has(Bug::cut_off_deactivating_blocks) && asked != nullptr &&
         asked->member.connection == connection_id(connection);
}

bool World::plant_in_unsubscribe(std::uint8_t peer) const {
  if (!has(Bug::step_down_lost_with_subscription)) return false;
  return std::ranges::any_of(connections_[connection_of(peer)].down, [&](const Message& message) {
    return message.kind == Message::Kind::step_down && message.peer == peer;
  });
}

bool World::plant_in_told(const Message& message, Generation before) {
  if (has(Bug::lost_words_not_repeated) && message.kind != Message::Kind::inform) {
    return message.generation <= before;
  }
  const bool activate = message.kind == Message::Kind::activate;
  if (has(Bug::rechosen_not_told)) return activate && message.peer == replier_;
  if (has(Bug::returned_active_must_answer)) {
    if (message.kind == Message::Kind::inform) answer_awaited_ = true;
    return activate && answer_awaited_;
  }
  return false;
}

}  // namespace baton::checker
