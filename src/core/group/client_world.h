#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/group/client_checker.h"
#include "core/group/machine.h"
#include "core/group/seat.h"
#include "core/lease/session_lease.h"

/// The model around the real machines, with clients at the far end of their links. Time goes on by
/// ticks, at any moment; messages in flight arrive in order, at any time, unless the link is cut
/// (they wait) or broken (they are lost). Copyable.
namespace baton::checker {

inline constexpr std::size_t kSessionsMax = 4;

class ClientWorld {
 public:
  struct Event {
    /// In the order in which they happen when things settle.
    enum class Kind : std::uint8_t {
      deliver_up,
      deliver_down,
      client_replies,
      client_sees_break,
      broker_sees_break,
      client_gives_up,
      heartbeat,
      lease_over,
      handover_over,
      timer,
      tick,
      thaw,  // Only when things heal.
      // Optional events: they do not happen when things settle.
      join,
      unsubscribe,
      cut,
      break_link,
      crash,
      restart,
      evaluate,
      keepalive,
    };
    Kind kind = Kind::tick;
    std::uint8_t session = 0;
  };

  explicit ClientWorld(const ClientSearchOptions& options);

  void enabled(std::vector<Event>& events) const;
  void happen(const Event& event);
  [[nodiscard]] std::optional<std::string> violation() const;
  std::optional<std::string> settle(bool heal, std::vector<Event>* path = nullptr);
  /// A link may thaw at any time, which leads to another state of the search.
  [[nodiscard]] static bool has_cut() { return false; }
  [[nodiscard]] std::string encode() const;
  [[nodiscard]] std::string describe() const;

 private:
  using Kind = Event::Kind;
  /// A tick is as short as the gap between the two leases; only their order matters.
  static constexpr SessionTerms kTerms{
      .heartbeat = Duration{1}, .client_lease = Duration{2}, .broker_lease = Duration{3}};
  struct Message {
    enum class Kind : std::uint8_t {
      start,
      heartbeat,
      reply,
      unsubscribe,
      gone,  // The call was cancelled, or the client's process ended.
      answer,
      active,
      stepping_down,
      inactive,
      closed,
      end,
    };
    Kind kind = Kind::heartbeat;
    std::uint64_t number = 0;  // The number of a heartbeat, or a generation.
  };
  struct Session {
    enum class Link : std::uint8_t { up, cut, broken };
    // The client's side.
    bool joined = false;
    bool open = false;
    bool left = false;  // Has unsubscribed: messages about the seat are ignored.
    SessionHold hold;
    Instant beat_at{};  // When it sent its last heartbeat: one per tick.
    Generation active;  // The generation under which it hands out; 0: it has no seat.
    std::vector<Generation> owed;
    Instant planted_until{};
    // On the way between the two.
    Link link = Link::up;
    std::vector<Message> up;
    std::vector<Message> down;
    bool broker_to_see = false;
    // The broker's side.
    bool at_broker = false;
    bool orphan = false;  // The broker has restarted since.
    Ticket ticket;
    SessionGrant grant;
    std::optional<Seat> seat;
  };

  void enabled_for(std::uint8_t number, std::vector<Event>& events) const;
  [[nodiscard]] bool may_beat(const Session& session) const;
  void join(Session& session);
  void send_heartbeat(Session& session, Message::Kind kind);
  void deliver_up(std::uint8_t number);
  void deliver_down(Session& session);
  void take_answer(Session& session, std::uint64_t number);
  void register_session(std::uint8_t number);
  void close_client(Session& session);
  void lose(std::uint8_t number);
  void down_at_broker(std::uint8_t number);
  void restart();
  void evaluate();
  void act(std::uint8_t number, const SeatActions& actions);
  void say(Session& session, Message message) const;
  void take_effects();
  [[nodiscard]] bool works(const Session& session) const;
  [[nodiscard]] bool excused(const Session& session) const;
  [[nodiscard]] bool may_evaluate() const;
  [[nodiscard]] std::optional<std::string> unsettled() const;
  void encode_session(const Session& session, std::string& out) const;
  [[nodiscard]] Coordinator new_coordinator() const;
  [[nodiscard]] bool has(ClientBug bug) const { return options_->bug == bug; }
  [[nodiscard]] const coordinator_state::Group* group() const;
  [[nodiscard]] std::uint8_t ago(Instant at) const;
  [[nodiscard]] std::uint8_t left(std::optional<Instant> at) const;

  const ClientSearchOptions* options_;
  Coordinator coordinator_;
  std::array<Session, kSessionsMax> sessions_;
  Instant now_{1'000};
  Ticket last_ticket_;
  std::uint8_t cuts_;
  std::uint8_t breaks_;
  std::uint8_t crashes_;
  std::uint8_t unsubscribes_;
  std::uint8_t restarts_;
  std::uint8_t evaluations_;
  std::uint8_t restarted_ago_ = 255;  // Ticks.
};

std::string to_string(const ClientWorld::Event& event, const ClientSearchOptions& options);

}  // namespace baton::checker
