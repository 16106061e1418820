#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/rows.h"
#include "base/time.h"
#include "core/group/effects.h"
#include "core/group/facts.h"
#include "core/group/state.h"
#include "core/group/types.h"

namespace baton {

struct ConsumerToRegister {
  GroupId group;
  MemberId member;
  Ticket ticket;
  bool single_active = true;
  PartitionIndex partition_index = kSimple;  // For single-active groups.
  std::string owner;                         // For people: who this consumer is.
  std::optional<Handover> handover{};        // nullopt: what the group has.
  bool has_lease = false;                    // Heartbeats renew its session.
};

struct OffsetToStore {
  GroupId group;
  /// The seat that stores the offset, under its epoch. nullopt: set from outside (the unary call,
  /// an operator).
  struct Holder {
    MemberId member;
    Generation epoch;
  };
  std::optional<Holder> holder;
  GroupOffset offset;
  bool may_rewind = false;  // If false, an offset lower than the stored one changes nothing.
};

struct MemberDescription {
  MemberId member;
  Ticket ticket;
  std::string owner;
  ConsumerStatus status;
  Instant since;
  Generation epoch;
  std::optional<Instant> forgotten_at;   // Present while disconnected.
  std::optional<Instant> lease_until{};  // Of its session; the connections' owner fills it in.
};

struct GroupDescription : coordinator_state::Record {
  GroupId group;
  bool frozen = false;
  std::vector<MemberDescription> members;  // In order of registration.
  Instant last_handover_at;
  Duration last_handover_took{0};
  std::string why;  // Of the last hand-over; empty before the first. If the seat is empty: why.
};

/// The bounds of the buckets in which hand-overs are counted by how long they took.
inline constexpr std::array<Duration, 8> kHandoverBounds = {
    std::chrono::milliseconds{1},   std::chrono::milliseconds{5},   std::chrono::milliseconds{20},
    std::chrono::milliseconds{100}, std::chrono::milliseconds{500}, std::chrono::seconds{1},
    std::chrono::seconds{5},        std::chrono::seconds{10}};

/// Counted as things happen: reading them costs nothing.
struct CoordinatorTotals {
  /// How many took no longer than each bound (and longer than the one before); the last entry
  /// counts those longer than all bounds.
  std::array<std::uint64_t, kHandoverBounds.size() + 1> handovers{};
  Duration handovers_took{0};  // Sum over all of them.
  std::uint64_t groups = 0;
  std::uint64_t consumers = 0;
  std::uint64_t groups_without_active = 0;  // With consumers, but no connected, active one.
  std::uint64_t activations_total = 0;
  std::uint64_t step_downs_total = 0;
  std::uint64_t forgotten_total = 0;     // Connections whose time ran out.
  std::uint64_t stale_epochs_total = 0;  // Offsets refused.
  std::uint64_t groups_touched_total = 0;
};

/// Who has the seat of each group of one shard. Pure: events and time in, facts and effects out.
/// Owned by one shard; not thread-safe.
///
/// Truth (a group's kind, generation and offset) changes only in apply(). Members are not truth:
/// they make no facts, and a restart begins without them.
///
/// Invariant: a group has at most one consumer that is connected and active, and no consumer is
/// told Activate while another one may still be receiving, that is, until the other has answered
/// its StepDown, has gone, or its node's lease has run out.
///
/// Cost: an event costs the groups it touches, never all groups.
class Coordinator {
 public:
  struct Options {
    Duration node_lease = limits::kNodeLeaseCoordinator;
    /// How long a client may be at work after the broker last heard of it.
    Duration session_lease = limits::kNodeLeaseCoordinator;
    std::size_t groups_max = limits::kGroupsPerShard;
    std::size_t consumers_per_group_max = limits::kConsumersPerGroup;
  };
  /// Called with each fact as it happens, before it is applied: the journal.
  using Recorder = std::function<void(const CoordinatorFact&)>;

  Coordinator(Options options, Recorder recorder);

  // Consumers. `now` never goes back.
  /// Adds a consumer; returns the group's stored offset, where a plain subscription begins (a
  /// single-active one waits for its Activate). The same member again changes nothing; under
  /// another ticket it is a new Start whose predecessor has ended, and replaces it.
  Result<std::optional<GroupOffset>> register_consumer(const ConsumerToRegister& registration,
                                                       Instant now);
  /// An unknown member is not an error: the subscription is gone, which is what was asked for.
  void unregister(const GroupId& group, const MemberId& member, Instant now);
  /// The consumer has answered the StepDown of this generation. Anything else is ignored.
  void step_down_replied(const GroupId& group, const MemberId& member, Generation generation,
                         Instant now);

  // Connections and nodes.
  /// The connection is over, and its client has stopped: it said so, or its lease has ended.
  void connection_down(ConnectionId connection, Instant now);
  /// The connection visibly broke while the lease of its session runs until `lease_until`. Groups
  /// that hand over strictly keep its seats until then; all others give them away at once.
  void connection_lost(ConnectionId connection, Instant lease_until, Instant now);
  /// The node's link broke. Its lease counts from `heard_last`, when its last heartbeat arrived.
  void node_disconnected(NodeId node, Instant heard_last, Instant now);
  /// A SetTimer has fired. Harmless if too early, or if the connection is back.
  void disconnect_timer(ConnectionId connection, Instant now);
  /// Tells a new leader's owner what to watch, check and time.
  void watch_again(Instant now);
  /// The node's link is back: asks each of its connections whether it is alive.
  void node_up(NodeId node);
  /// The connection answered a Check.
  void connection_reconnected(ConnectionId connection, Instant now);
  /// These nodes are not part of the cluster any more: they have ended, or their lease is over, and
  /// none of them returns under its id.
  void nodes_purged(std::span<const NodeId> nodes, Instant now);
  /// Every node that has a consumer's connection, for the periodic comparison with the
  /// cluster.
  [[nodiscard]] std::vector<NodeId> known_nodes() const;

  // Operators.
  /// Drops every consumer that is not connected, or whose connection is in `dead`, without waiting
  /// for a lease: the operator says that each of them has ended, or that its lease is over. One
  /// that returns all the same is told (Unknown). Fails with not_found.
  Status evaluate_group(const GroupId& group, std::span<const ConnectionId> dead, Instant now);
  /// Forgets the group, its generation and its offset. Refused while it has consumers.
  Status delete_group(const GroupId& group);
  /// Forgets all groups of the stream; its consumers get Closed.
  void delete_stream(std::string_view stream);

  // Offsets.
  /// Returns the offset that is stored now.
  Result<GroupOffset> store_offset(const OffsetToStore& request, Instant now);
  /// nullopt if the group has stored no offset, or does not exist.
  [[nodiscard]] std::optional<GroupOffset> query_offset(const GroupId& group) const;

  // Time.
  [[nodiscard]] Instant next_deadline() const;
  /// Whether a strict group waits for leases from before the restart.
  [[nodiscard]] bool waits_for_leases() const { return !held_back_.empty(); }
  /// Calls disconnect_timer() for every connection whose time has come, and fills the seats that
  /// had to wait after a restart.
  void expire(Instant now);

  /// The effects since the last call.
  CoordinatorEffects take_effects() { return std::exchange(effects_, {}); }

  // Truth.
  /// Makes `fact` true; live and when recovering.
  void apply(const CoordinatorFact& fact);
  /// Puts the rows of the groups that changed since the last call. O(changed).
  void append_changed_rows(RowBatch& batch);
  [[nodiscard]] const std::set<GroupId>& changed_groups() const { return changed_; }
  /// Recovery: takes a row of `groups`, before the facts of the journal are applied.
  Status load(const Row& row);
  /// This coordinator serves from now on: after recovery, or as the successor of another.
  /// Whatever may not have been sent is said again; timers keep the time they had left. May
  /// record facts.
  void become_leader(Instant now);

  // Inspection.
  [[nodiscard]] Result<GroupDescription> describe(const GroupId& group) const;
  /// The groups of `stream`, in order; of all streams when it is empty. Behind `after`, if it is
  /// given, and at most `groups_max`.
  [[nodiscard]] std::vector<GroupDescription> list(
      std::string_view stream, const std::optional<GroupId>& after = {},
      std::size_t groups_max = std::numeric_limits<std::size_t>::max()) const;
  [[nodiscard]] const coordinator_state::Group* find(const GroupId& group) const;
  [[nodiscard]] const coordinator_state::Link* find(ConnectionId connection) const;
  [[nodiscard]] const CoordinatorTotals& totals() const { return totals_; }

 private:
  using Record = coordinator_state::Record;
  using Consumer = coordinator_state::Consumer;
  using Cause = coordinator_state::Cause;
  using Group = coordinator_state::Group;
  using Groups = std::map<GroupId, Group>;
  using Link = coordinator_state::Link;
  using Links = std::map<ConnectionId, Link>;

  using Condition = std::function<bool(const Consumer&)>;
  using Change = std::function<void(Groups::value_type&, Consumer&)>;

  // machine.cc: consumers of a group, and the one procedure every event ends in.
  [[nodiscard]] Status refusal(const ConsumerToRegister& registration) const;
  [[nodiscard]] Status check_room(const GroupId& group) const;
  void admit(const ConsumerToRegister& registration, Instant now);
  void evaluate(const GroupId& group, Instant now);
  void settle_seat(Groups::value_type& entry, Instant now);
  /// Whether a consumer from before the restart may still be at work under its lease.
  bool hold_back(const Groups::value_type& entry, Instant now);
  void activate(Groups::value_type& entry, Consumer& consumer, Instant now);
  void step_down(Groups::value_type& entry, Consumer& consumer, Instant now);
  void say_again(const Groups::value_type& entry, const Consumer& consumer);
  Generation take_generation(const Groups::value_type& entry, Instant now);
  void remove_if(Groups::value_type& entry, Cause cause, Instant now, const Condition& condition);
  void tell_dropped(Links::value_type& link);
  static void set_status(Consumer& consumer, ConsumerStatus status, Instant now);
  static void vacate(Group& group, Cause cause, Instant now);
  void count_without_active(Group& group);

  // connections.cc: connections and nodes.
  void link(const GroupId& group, ConnectionId connection);
  void unlink(const Groups::value_type& entry, ConnectionId connection);
  void drop_link(Links::iterator link);
  [[nodiscard]] bool knows(NodeId node) const;
  [[nodiscard]] std::vector<ConnectionId> connections_of(NodeId node) const;
  /// Removes all consumers on these (sorted) connections, then evaluates each of their groups once.
  void remove_connections(const std::vector<ConnectionId>& connections, Cause cause, Instant now);
  /// Changes the consumers of a connection; adds its groups to `touched`.
  void change_consumers(const Links::value_type& link, std::set<GroupId>& touched,
                        const Change& change);
  void reconnect(Groups::value_type& entry, Consumer& consumer, Instant now);
  void set_connectivity(Links::value_type& link, Connectivity connectivity,
                        std::optional<Instant> deadline);

  // truth.cc: facts, rows, offsets, descriptions.
  void commit(const CoordinatorFact& fact);
  void on(const GroupCreated& fact);
  void on(const GenerationTaken& fact);
  void on(const OffsetStored& fact);
  void on(const GroupForgotten& fact);
  Status check_holder(const OffsetToStore& request, const Group& group);
  [[nodiscard]] GroupDescription description_of(const Groups::value_type& entry) const;
  [[nodiscard]] static bool is_worthless(const Group& group);
  void forget_all_worthless();

  Options options_;
  Recorder recorder_;
  Groups groups_;
  Links links_;  // A node's connections lie side by side.
  std::set<std::pair<Instant, ConnectionId>> deadlines_;
  Instant leases_of_others_until_{};  // Leases of sessions that this coordinator does not know.
  std::set<GroupId> held_back_;       // Strict groups that wait until then.
  std::set<GroupId> changed_;
  CoordinatorEffects effects_;
  CoordinatorTotals totals_;
};

}  // namespace baton
