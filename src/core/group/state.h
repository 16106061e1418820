#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/time.h"
#include "core/group/types.h"

/// The state of the Coordinator: read by tests, the checker and Describe, changed by the
/// Coordinator alone. Values only, no pointers: a Coordinator can be copied, so that the checker
/// can search the real one.
namespace baton::coordinator_state {

/// The durable part of a group: changes only in apply(), and is what its row holds.
struct Record {
  bool single_active = false;
  Handover handover = Handover::at_once;
  PartitionIndex partition_index = kSimple;
  Generation generation;
  Instant generation_at;
  std::optional<GroupOffset> offset;
  Instant offset_at;
  bool operator==(const Record&) const = default;
};

struct Consumer {
  MemberId member;
  Ticket ticket;
  std::string owner;
  ConsumerStatus status;
  Instant since;        // When the status was reached.
  Generation epoch;     // Of its last Activate; 0: none.
  Generation stepping;  // Of its last StepDown; matches the reply.
  [[nodiscard]] bool is(Connectivity connectivity, Activity activity) const {
    return status == ConsumerStatus{connectivity, activity};
  }
  [[nodiscard]] bool connected() const { return status.connectivity == Connectivity::connected; }
  /// Whether the consumer may be receiving, as far as the coordinator knows.
  [[nodiscard]] bool holds_seat() const {
    return status.connectivity != Connectivity::forgotten && status.activity != Activity::waiting;
  }
};

/// Why a seat changed hands.
enum class Cause : std::uint8_t {
  none,
  first_consumer,
  rebalanced,
  unregistered,
  connection_closed,
  node_lost,
  node_purged,
  operator_evaluated,
};
std::string_view to_string(Cause cause);

/// A hand-over: since when the seat was empty or being emptied, and why.
struct Vacancy {
  Instant since;
  Cause cause = Cause::none;
};

struct Handover {
  Instant at;
  Duration took{0};
  Cause cause = Cause::none;
};

struct Group {
  Record record;
  std::vector<Consumer> consumers;  // By ticket.
  std::optional<Vacancy> vacancy;
  std::optional<Vacancy>
      emptied;  // The last vacancy, while the group has no consumers. Only shown.
  Handover last_handover;
  bool seated = false;          // A consumer was activated by this coordinator.
  bool without_active = false;  // Has consumers, none of which is connected and active. Counted.

  [[nodiscard]] const Consumer* find(const MemberId& member) const;
  [[nodiscard]] bool frozen() const;
  [[nodiscard]] const Consumer* connected_active() const;
  /// The consumer that should have the seat; null when none is connected.
  [[nodiscard]] const Consumer* target() const;
};

/// What the coordinator knows of a connection: an index, so that an event does not cost all
/// groups.
struct Link {
  std::set<GroupId> groups;
  Connectivity connectivity = Connectivity::connected;  // The same for all its consumers.
  std::optional<Instant> deadline;  // While disconnected: when its consumers are forgotten.
  bool gone = false;                // Broken for good: at the deadline it is removed.
};

}  // namespace baton::coordinator_state
