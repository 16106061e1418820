#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

#include <baton/strong.h>

#include "base/result.h"
#include "base/time.h"

namespace baton {

namespace limits {
inline constexpr std::size_t kStreamNameBytes = 200;
inline constexpr std::size_t kGroupNameBytes = 200;
inline constexpr std::size_t kOwnerLabelBytes = 256;
inline constexpr std::uint32_t kPartitionsPerStream = 10'000;
inline constexpr std::size_t kGroupsPerShard = 1'000'000;
inline constexpr std::size_t kConsumersPerGroup = 10'000;
/// The coordinator forgets a node this long after its last heartbeat arrived.
inline constexpr Duration kNodeLeaseCoordinator = std::chrono::seconds{5};
/// The node stops delivering this long after it sent its last acknowledged heartbeat: sooner than
/// the coordinator's time, so that it has stopped when its seats are given away.
inline constexpr Duration kNodeLeaseNode = std::chrono::seconds{4};
inline constexpr Duration kHandoverTimeout = std::chrono::seconds{10};
}  // namespace limits

/// A broker process that carries client connections.
using NodeId = Strong<struct NodeIdTag>;
using ConnectionNumber = Strong<struct ConnectionNumberTag>;

/// One Subscribe call, and the node it is connected to. Never given twice.
struct ConnectionId {
  NodeId node;
  ConnectionNumber number;
  auto operator<=>(const ConnectionId&) const = default;
};

/// The id that the client chose for a subscription, unique in its connection.
using SubscriptionId = Strong<struct SubscriptionIdTag>;

/// The identity of a consumer in a group.
struct MemberId {
  ConnectionId connection;
  SubscriptionId subscription;
  auto operator<=>(const MemberId&) const = default;
};

/// One group at one partition of one stream. Each has its own seat.
struct GroupId {
  std::string stream;
  std::uint32_t partition = 0;
  std::string name;
  auto operator<=>(const GroupId&) const = default;
};

/// Given to each Start from one counter of the process. Groups order their consumers by it, so that
/// all partitions of a stream, whatever their shards, agree on who came first.
using Ticket = Strong<struct TicketTag>;

/// Counts the hand-overs of a group. Grows with every Activate and every StepDown, outlives an
/// empty group and a restart, and never goes back. An Activate's generation is the seat's epoch.
using Generation = Strong<struct GenerationTag>;

/// The next offset to read.
using GroupOffset = Strong<struct GroupOffsetTag>;

/// A partition's number as the balancing rule uses it, or kSimple: the first consumer keeps the
/// seat.
using PartitionIndex = Strong<struct PartitionIndexTag, std::int32_t>;
inline constexpr PartitionIndex kSimple{-1};

/// When the seat of a consumer whose connection visibly broke is given to another: at once, or when
/// the lease of its session is over. A silent cut waits for the end of the lease in any group.
enum class Handover : std::uint8_t { at_once, strict };

enum class Connectivity : std::uint8_t { connected, disconnected, forgotten };
enum class Activity : std::uint8_t { waiting, active, deactivating };

struct ConsumerStatus {
  Connectivity connectivity = Connectivity::connected;
  Activity activity = Activity::waiting;
  auto operator<=>(const ConsumerStatus&) const = default;
};

/// "A", "W", "X", with the prefix d (disconnected) or f (forgotten), as in the
/// specification.
std::string to_string(ConsumerStatus status);
/// "at once" or "strictly".
std::string_view to_string(Handover handover);
/// "orders/3 billing".
std::string to_string(const GroupId& group);
/// "node 1 connection 17 subscription 2".
std::string to_string(const MemberId& member);

/// Fails with the name of the first part that is outside its limits.
Status validate(const GroupId& group);

}  // namespace baton
