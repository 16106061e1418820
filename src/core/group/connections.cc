// Connections and nodes: what happens to all consumers of a connection at once. Each event first
// changes every consumer it is about and then evaluates each group once: evaluating in between
// would give the seat to a sibling that is just as dead.

#include <algorithm>

#include "core/group/machine.h"

namespace baton {

void Coordinator::link(const GroupId& group, ConnectionId connection) {
  const bool node_known = knows(connection.node);
  const auto [entry, added] = links_.try_emplace(connection);
  if (added) {
    effects_.list.emplace_back(CoordinatorEffects::WatchConnection{connection});
    if (!node_known) effects_.list.emplace_back(CoordinatorEffects::WatchNode{connection.node});
  }
  entry->second.groups.insert(group);
}

void Coordinator::unlink(const Groups::value_type& entry, ConnectionId connection) {
  const auto link = links_.find(connection);
  if (link == links_.end()) return;
  const bool sibling = std::ranges::any_of(entry.second.consumers, [&](const Consumer& consumer) {
    return consumer.member.connection == connection;
  });
  if (sibling) return;
  link->second.groups.erase(entry.first);
  if (link->second.groups.empty()) drop_link(link);
}

void Coordinator::drop_link(Links::iterator link) {
  const ConnectionId connection = link->first;
  const std::optional<Instant> deadline = link->second.deadline;
  if (deadline.has_value()) deadlines_.erase({*deadline, connection});
  links_.erase(link);
  effects_.list.emplace_back(CoordinatorEffects::UnwatchConnection{connection});
  if (!knows(connection.node)) {
    effects_.list.emplace_back(CoordinatorEffects::UnwatchNode{connection.node});
  }
}

bool Coordinator::knows(NodeId node) const {
  const auto link = links_.lower_bound({node, {}});
  return link != links_.end() && link->first.node == node;
}

std::vector<ConnectionId> Coordinator::connections_of(NodeId node) const {
  std::vector<ConnectionId> found;
  for (auto link = links_.lower_bound({node, {}}); link != links_.end(); ++link) {
    if (link->first.node != node) break;
    found.push_back(link->first);
  }
  return found;
}

std::vector<NodeId> Coordinator::known_nodes() const {
  std::vector<NodeId> nodes;
  for (const auto& [connection, link] : links_) {
    if (nodes.empty() || nodes.back() != connection.node) nodes.push_back(connection.node);
  }
  return nodes;
}

void Coordinator::remove_connections(const std::vector<ConnectionId>& connections, Cause cause,
                                     Instant now) {
  std::set<GroupId> touched;
  for (const ConnectionId connection : connections) {
    const auto link = links_.find(connection);
    if (link == links_.end()) continue;
    touched.merge(link->second.groups);
    drop_link(link);
  }
  for (const GroupId& group : touched) {
    // An index entry without its group is a bug elsewhere; a dead connection must not bring the
    // broker down because of it.
    const auto entry = groups_.find(group);
    if (entry == groups_.end()) continue;
    remove_if(*entry, cause, now, [&](const Consumer& consumer) {
      return std::ranges::binary_search(connections, consumer.member.connection);
    });
  }
  for (const GroupId& group : touched) evaluate(group, now);
}

void Coordinator::change_consumers(const Links::value_type& link, std::set<GroupId>& touched,
                                   const Change& change) {
  for (const GroupId& group : link.second.groups) {
    const auto entry = groups_.find(group);
    if (entry == groups_.end()) continue;
    touched.insert(group);
    for (Consumer& consumer : entry->second.consumers) {
      if (consumer.member.connection == link.first) change(*entry, consumer);
    }
  }
}

void Coordinator::set_connectivity(Links::value_type& link, Connectivity connectivity,
                                   std::optional<Instant> deadline) {
  if (link.second.deadline.has_value()) deadlines_.erase({*link.second.deadline, link.first});
  link.second.connectivity = connectivity;
  link.second.deadline = deadline;
  if (!deadline.has_value()) return;
  deadlines_.insert({*deadline, link.first});
  effects_.list.emplace_back(CoordinatorEffects::SetTimer{link.first, *deadline});
}

void Coordinator::connection_down(ConnectionId connection, Instant now) {
  remove_connections({connection}, Cause::connection_closed, now);
}

void Coordinator::connection_lost(ConnectionId connection, Instant lease_until, Instant now) {
  const auto known = links_.find(connection);
  if (known == links_.end()) return;
  const std::set<GroupId> touched = known->second.groups;
  for (const GroupId& group : touched) {
    const auto entry = groups_.find(group);
    if (entry == groups_.end()) continue;
    const bool strict = entry->second.record.handover == Handover::strict && lease_until > now;
    remove_if(*entry, Cause::connection_closed, now, [&](const Consumer& consumer) {
      return consumer.member.connection == connection && !(strict && consumer.holds_seat());
    });
  }
  // Its remaining consumers hold seats that the client may still work on.
  if (const auto link = links_.find(connection); link != links_.end()) {
    link->second.gone = true;
    set_connectivity(*link, Connectivity::disconnected, lease_until);
    std::set<GroupId> kept;
    change_consumers(*link, kept, [&](Groups::value_type& entry, Consumer& consumer) {
      set_status(consumer, {Connectivity::disconnected, consumer.status.activity}, now);
      vacate(entry.second, Cause::connection_closed, now);
    });
  }
  for (const GroupId& group : touched) evaluate(group, now);
}

void Coordinator::nodes_purged(std::span<const NodeId> nodes, Instant now) {
  std::vector<ConnectionId> connections;
  for (const NodeId node : nodes) {
    const std::vector<ConnectionId> more = connections_of(node);
    connections.insert(connections.end(), more.begin(), more.end());
  }
  std::ranges::sort(connections);
  remove_connections(connections, Cause::node_purged, now);
}

void Coordinator::node_disconnected(NodeId node, Instant heard_last, Instant now) {
  std::set<GroupId> touched;
  for (const ConnectionId connection : connections_of(node)) {
    auto& link = *links_.find(connection);
    // A connection that was cut off before and has not answered yet keeps its deadline: the lease
    // of its seats has not been renewed since.
    if (link.second.connectivity != Connectivity::connected) continue;
    set_connectivity(link, Connectivity::disconnected, heard_last + options_.node_lease);
    change_consumers(link, touched, [&](Groups::value_type& entry, Consumer& consumer) {
      // The consumer keeps its activity: if it was told to step down, it may not have heard it.
      set_status(consumer, {Connectivity::disconnected, consumer.status.activity}, now);
      if (consumer.holds_seat()) vacate(entry.second, Cause::node_lost, now);
    });
  }
  for (const GroupId& group : touched) evaluate(group, now);
}

void Coordinator::disconnect_timer(ConnectionId connection, Instant now) {
  const auto link = links_.find(connection);
  if (link == links_.end()) return;
  // No deadline: the connection is back, or forgotten already. A later deadline: this is the timer
  // of an earlier cut, and the seats' present lease still runs.
  if (link->second.deadline.value_or(Instant::never()) > now) return;
  ++totals_.forgotten_total;
  if (link->second.gone) return connection_down(connection, now);
  set_connectivity(*link, Connectivity::forgotten, std::nullopt);
  std::set<GroupId> touched;
  change_consumers(*link, touched, [&](Groups::value_type&, Consumer& consumer) {
    const bool active = consumer.status.activity == Activity::active;
    set_status(consumer, {Connectivity::forgotten, active ? Activity::active : Activity::waiting},
               now);
  });
  for (const GroupId& group : touched) evaluate(group, now);
}

void Coordinator::node_up(NodeId node) {
  for (const ConnectionId connection : connections_of(node)) {
    if (find(connection)->gone) continue;
    effects_.list.emplace_back(CoordinatorEffects::WatchConnection{connection});
    effects_.list.emplace_back(CoordinatorEffects::Check{connection});
  }
}

void Coordinator::connection_reconnected(ConnectionId connection, Instant now) {
  const auto link = links_.find(connection);
  if (link == links_.end() || link->second.gone) return;
  set_connectivity(*link, Connectivity::connected, std::nullopt);
  tell_dropped(*link);
  if (link->second.groups.empty()) return drop_link(link);
  std::set<GroupId> touched;
  change_consumers(*link, touched, [&](Groups::value_type& entry, Consumer& consumer) {
    reconnect(entry, consumer, now);
  });
  for (const GroupId& group : touched) evaluate(group, now);
}

void Coordinator::tell_dropped(Links::value_type& link) {
  std::erase_if(link.second.groups, [&](const GroupId& group) {
    const Group* known = find(group);
    const bool there =
        known != nullptr && std::ranges::any_of(known->consumers, [&](const Consumer& consumer) {
          return consumer.member.connection == link.first;
        });
    if (!there) effects_.list.emplace_back(CoordinatorEffects::Unknown{group, link.first});
    return !there;
  });
}

void Coordinator::reconnect(Groups::value_type& entry, Consumer& consumer, Instant now) {
  if (consumer.is(Connectivity::forgotten, Activity::active)) {
    // The seat may have been given to another consumer since. This one stopped when its lease ran
    // out; it only needs to be told, and no answer is awaited.
    set_status(consumer, {Connectivity::connected, Activity::waiting}, now);
    effects_.list.emplace_back(CoordinatorEffects::Inform{
        entry.first, consumer.member, consumer.ticket, entry.second.record.generation});
    return;
  }
  set_status(consumer, {Connectivity::connected, consumer.status.activity}, now);
  if (consumer.status.activity == Activity::active) entry.second.vacancy.reset();
  // Repeats what was lost in the cut, with the same generation: a consumer that heard it the first
  // time is not disturbed.
  say_again(entry, consumer);
}

Instant Coordinator::next_deadline() const {
  const Instant next = deadlines_.empty() ? Instant::never() : deadlines_.begin()->first;
  return held_back_.empty() ? next : std::min(next, leases_of_others_until_);
}

void Coordinator::expire(Instant now) {
  while (!deadlines_.empty() && deadlines_.begin()->first <= now) {
    disconnect_timer(deadlines_.begin()->second, now);
  }
  if (now < leases_of_others_until_) return;
  for (const GroupId& group : std::exchange(held_back_, {})) evaluate(group, now);
}

void Coordinator::become_leader(Instant now) {
  forget_all_worthless();
  leases_of_others_until_ = now + options_.session_lease;
  for (auto& [group, state] : groups_) state.seated = false;
  watch_again(now);
  for (const auto& entry : groups_) {
    for (const Consumer& consumer : entry.second.consumers) {
      if (consumer.connected()) say_again(entry, consumer);
    }
  }
}

void Coordinator::watch_again(Instant now) {
  std::optional<NodeId> node;
  for (const auto& [connection, link] : links_) {
    if (node != connection.node) {
      effects_.list.emplace_back(CoordinatorEffects::WatchNode{connection.node});
    }
    node = connection.node;
    effects_.list.emplace_back(CoordinatorEffects::WatchConnection{connection});
    if (link.connectivity == Connectivity::connected) continue;
    if (!link.gone) effects_.list.emplace_back(CoordinatorEffects::Check{connection});
    if (!link.deadline.has_value()) continue;
    // The deadline may have passed while there was no leader.
    const Instant at = std::max(*link.deadline, now);
    effects_.list.emplace_back(CoordinatorEffects::SetTimer{connection, at});
  }
}

}  // namespace baton
