#pragma once

#include <optional>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "core/group/types.h"

namespace baton {

/// What the coordinator asks for, in the order in which it asks. Effects for one connection must
/// arrive in this order or not at all, and only after the facts that were recorded before them are
/// durable.
struct CoordinatorEffects {
  /// To a consumer: the seat is yours. The ticket names the Start that is meant: a subscription id
  /// may be used again, and an effect for the former one must not reach the new one.
  struct Activate {
    GroupId group;
    MemberId member;
    Ticket ticket;
    Generation generation;              // The seat's epoch.
    std::optional<GroupOffset> offset;  // Where to begin; nullopt: where the Start said.
  };
  /// To a consumer: stop, finish, and answer with this generation.
  struct StepDown {
    GroupId group;
    MemberId member;
    Ticket ticket;
    Generation generation;
  };
  /// To a consumer: you are not active, whatever you heard up to this generation. Needs no answer.
  struct Inform {
    GroupId group;
    MemberId member;
    Ticket ticket;
    Generation generation;
  };
  /// To a consumer: the group is gone, and your subscription with it.
  struct Closed {
    GroupId group;
    MemberId member;
    Ticket ticket;
    Error reason;
  };
  /// To a connection that is back: it has no consumers in this group any more, because an operator
  /// dropped them. End their subscriptions, so that their clients subscribe again.
  struct Unknown {
    GroupId group;
    ConnectionId connection;
  };
  /// Ask this connection whether it is alive: connection_reconnected() or connection_down().
  struct Check {
    ConnectionId connection;
  };
  /// Report connection_down() when it closes.
  struct WatchConnection {
    ConnectionId connection;
  };
  struct UnwatchConnection {
    ConnectionId connection;
  };
  /// Report node_disconnected() and node_up().
  struct WatchNode {
    NodeId node;
  };
  struct UnwatchNode {
    NodeId node;
  };
  /// Report disconnect_timer(connection) at or after `at`. An owner that calls expire() when
  /// next_deadline() has passed may ignore these.
  struct SetTimer {
    ConnectionId connection;
    Instant at;
  };

  using Effect = std::variant<Activate, StepDown, Inform, Closed, Unknown, Check, WatchConnection,
                              UnwatchConnection, WatchNode, UnwatchNode, SetTimer>;
  std::vector<Effect> list;

  [[nodiscard]] bool empty() const { return list.empty(); }
};

}  // namespace baton
