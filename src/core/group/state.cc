#include "core/group/state.h"

#include <algorithm>

namespace baton::coordinator_state {

std::string_view to_string(Cause cause) {
  switch (cause) {
    case Cause::none: return "";
    case Cause::first_consumer: return "the first consumer registered";
    case Cause::rebalanced: return "the former one stepped down for the partition's balance";
    case Cause::unregistered: return "the former one unsubscribed";
    case Cause::connection_closed: return "the connection of the former one closed";
    case Cause::node_lost: return "the node of the former one was lost";
    case Cause::node_purged: return "the node of the former one left the cluster";
    case Cause::operator_evaluated: return "an operator removed the former one";
  }
  return "";
}

const Consumer* Group::find(const MemberId& member) const {
  const auto found = std::ranges::find(consumers, member, &Consumer::member);
  return found == consumers.end() ? nullptr : &*found;
}

bool Group::frozen() const {
  return std::ranges::any_of(consumers, [](const Consumer& consumer) {
    return consumer.status.connectivity == Connectivity::disconnected && consumer.holds_seat();
  });
}

const Consumer* Group::connected_active() const {
  const auto found = std::ranges::find_if(consumers, [](const Consumer& consumer) {
    return consumer.is(Connectivity::connected, Activity::active);
  });
  return found == consumers.end() ? nullptr : &*found;
}

const Consumer* Group::target() const {
  const auto eligible =
      static_cast<std::size_t>(std::ranges::count_if(consumers, &Consumer::connected));
  if (eligible == 0) return nullptr;
  const bool simple = record.partition_index == kSimple;
  auto place = simple ? 0 : static_cast<std::size_t>(record.partition_index.value) % eligible;
  for (const Consumer& consumer : consumers) {
    if (consumer.connected() && place-- == 0) return &consumer;
  }
  return nullptr;
}

}  // namespace baton::coordinator_state
