#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/group/checker.h"
#include "core/group/machine.h"
#include "core/group/seat.h"

/// The model around the real machines: clients that answer sooner or later or not at all; links
/// that keep order and lose messages in flight when they are cut; nodes that hold a lease.
/// Copyable: the search copies a world and lets one event happen.
namespace baton::checker {

inline constexpr std::size_t kPeersMax = 4;

/// A possible next event. `subject` is a consumer, a connection or a node, by kind.
struct Event {
  /// In the order in which they happen when things settle: messages in flight first, time last.
  enum class Kind : std::uint8_t {
    deliver_down,
    deliver_up,
    client_replies,
    notice_cut,
    connection_down,
    node_returns,
    fence,
    timer,
    // Optional events: they do not happen when things settle.
    register_consumer,
    unsubscribe,
    client_times_out,
    cut,
    crash_connection,
    crash_node,
    new_leader,
    restart,
    evaluate,
    purge,
  };
  Kind kind = Kind::deliver_down;
  std::uint8_t subject = 0;
  Instant at;  // Of a timer.
};
/// The event in words.
std::string to_string(const Event& event, const SearchOptions& options);

/// A restart of the broker: `restarted` loads the group's row, which is all that is left of
/// `before`, and leads.
void lead_from_row(Coordinator& restarted, const Coordinator& before, const GroupId& id,
                   Instant now);

class World {
 public:
  using Event = checker::Event;

  explicit World(const SearchOptions& options);

  /// Every event that is possible now.
  void enabled(std::vector<Event>& events) const;
  void happen(const Event& event);
  /// What is wrong with this state, if anything.
  [[nodiscard]] std::optional<std::string> violation() const;
  /// Lets events happen until nothing is in flight, with the cut nodes staying away or (`heal`)
  /// coming back. Returns what is wrong then; `path` receives the events.
  std::optional<std::string> settle(bool heal, std::vector<Event>* path = nullptr);
  [[nodiscard]] bool has_cut() const;
  /// Equal for states that behave alike: numbers that only order things (generations, tickets,
  /// times) are replaced by their ranks.
  [[nodiscard]] std::string encode() const;
  /// "[x.0:A delivering, y.1:W]".
  [[nodiscard]] std::string describe() const;

 private:
  struct Message {
    enum class Kind : std::uint8_t {
      activate,
      step_down,
      inform,
      check,
      unknown,
      reply,
      unregister,
      there
    };
    Kind kind = Kind::check;
    std::uint8_t peer = 0;
    Generation generation;
    Ticket ticket;
  };
  /// A consumer: its seat at the connection, and its client.
  struct Peer {
    std::optional<Seat> seat;
    Ticket ticket;
    bool joined = false;              // Has registered, now or before.
    bool delivering = false;          // As the seat's actions left it.
    bool unconfirmed = false;         // Was cut off, and got no Activate over the new link.
    bool unregister_pending = false;  // Ended while the link was down.
    std::vector<Generation> owed;     // Updates that the client has not answered yet.
    bool client_active = false;
    bool repeat_allowed = false;  // There was a cut since the client was last told active.
  };
  struct Connection {
    bool dead = false;
    bool down_said = false;  // The coordinator was told that it is dead.
    std::vector<Message> down;
    std::vector<Message> up;
  };
  struct Node {
    enum class Link : std::uint8_t { up, cut, noticed, purged };
    Link link = Link::up;
  };

  // world.cc: what events do.
  void join(std::uint8_t peer);
  void deliver_down(std::uint8_t connection);
  void deliver_up(std::uint8_t connection);
  void deliver(const Message& message);
  void answer_check(std::uint8_t connection);
  /// The coordinator has no consumers of this connection any more: its subscriptions begin anew.
  void drop_unknown(std::uint8_t connection);
  void client_replies(std::uint8_t peer);
  void notice_cut(std::uint8_t node);
  void connection_down(std::uint8_t connection);
  void timer(std::uint8_t connection, Instant at);
  void node_returns(std::uint8_t node);
  void end_subscription(std::uint8_t peer);
  void cut(std::uint8_t node);
  void crash(std::uint8_t connection);
  void new_leader();
  void restart();
  void act(std::uint8_t peer, const SeatActions& actions);
  void tell_client(std::uint8_t peer, const SeatUpdate& update);
  void take_effects(Generation before);
  void take(const CoordinatorEffects::Effect& effect, Generation before);
  void send_down(const MemberId& to, Message message);
  void send_up(std::uint8_t connection, Message message);
  void drop_stale_timers();

  // enabled.cc: which events are possible.
  void enabled_for_peer(std::uint8_t peer, std::vector<Event>& events) const;
  void enabled_for_connection(std::uint8_t connection, std::vector<Event>& events) const;
  void enabled_for_node(std::uint8_t node, std::vector<Event>& events) const;
  [[nodiscard]] bool may_join(std::uint8_t peer) const;
  [[nodiscard]] bool may_evaluate() const;
  [[nodiscard]] bool may_purge(std::uint8_t node) const;
  [[nodiscard]] bool may_deliver(std::uint8_t peer) const;
  [[nodiscard]] bool may_fire(std::uint8_t connection, Instant at) const;
  [[nodiscard]] bool must_fence(std::uint8_t peer) const;
  [[nodiscard]] bool may_crash(std::uint8_t connection) const;
  [[nodiscard]] bool is_of_interest(std::uint8_t node) const;
  [[nodiscard]] std::optional<std::string> unsettled() const;

  // canon.cc: what makes two states alike.
  struct Ranks;
  [[nodiscard]] Ranks ranks() const;
  void encode_peer(const Peer& peer, const Ranks& ranks, std::string& out) const;
  void encode_coordinator(const Ranks& ranks, std::string& out) const;
  static void encode_messages(const std::vector<Message>& messages, const Ranks& ranks,
                              std::string& out);

  // planted.cc: the bugs.
  [[nodiscard]] bool has(Bug bug) const { return options_->bug == bug; }
  void plant_in_reply(Message& message) const;
  void plant_after_membership_change(Generation before);
  void plant_after_cut(std::uint8_t node);
  [[nodiscard]] bool plant_in_connection_down(std::uint8_t connection);
  [[nodiscard]] bool plant_in_timer(std::uint8_t connection) const;
  [[nodiscard]] bool plant_in_unsubscribe(std::uint8_t peer) const;
  [[nodiscard]] bool plant_in_told(const Message& message, Generation before);

  [[nodiscard]] std::uint8_t connection_of(std::uint8_t peer) const;
  [[nodiscard]] std::uint8_t node_of(std::uint8_t connection) const;
  [[nodiscard]] ConnectionId connection_id(std::uint8_t connection) const;
  [[nodiscard]] MemberId member_of(std::uint8_t peer) const;
  [[nodiscard]] bool link_is_up(std::uint8_t connection) const;
  [[nodiscard]] Seat& seat_of(std::uint8_t peer);
  static const GroupId& group_id();
  [[nodiscard]] const coordinator_state::Group* group() const;
  [[nodiscard]] Generation generation() const;

  const SearchOptions* options_;
  std::uint8_t peer_count_;
  std::uint8_t connection_count_;
  std::uint8_t node_count_;
  Coordinator coordinator_;
  std::array<Peer, kPeersMax> peers_;
  std::array<Connection, kPeersMax> connections_;
  std::array<Node, kPeersMax> nodes_;
  std::set<std::pair<Instant, std::uint8_t>> timers_;  // By connection.
  Instant now_{1};
  Ticket last_ticket_;
  std::uint8_t cuts_;
  std::uint8_t unsubscribes_;
  std::uint8_t crashes_;
  std::uint8_t restarts_;
  std::uint8_t rejoins_;
  std::uint8_t evaluations_;
  std::uint8_t purges_;
  std::uint8_t replier_ = kPeersMax;  // The peer whose reply is being handled, for a planted bug.
  bool answer_awaited_ = false;       // For a planted bug.
  std::optional<std::string> violation_;
};

}  // namespace baton::checker
