#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "core/workers/documents.h"
#include "core/workers/effects.h"
#include "core/workers/plan.h"
#include "core/workers/settings.h"
#include "core/workers/view.h"

namespace baton::partition {

/// How much the clocks of two machines may differ in rate: 1 %.
constexpr std::int64_t kClockErrorPercent = 1;
constexpr Duration kRankDelay = std::chrono::milliseconds(50);
constexpr Duration kHintDebounce = std::chrono::milliseconds(100);

/// One worker of a group: keeps its session, divides the partitions with the others, and says what
/// may be worked on. Pure: events and time in, effects out. Owned by one thread.
///
/// Safety, in one paragraph. A worker works on a partition only while the newest assignment it has
/// seen names it, and its clock is before its deadline, which counts from before its last
/// successful renewal was sent. An owner is changed only by the owner itself, having stopped, or by
/// a worker that knows the owner's session to be dead. A session is killed only by a
/// compare-and-set on a revision that the killer has seen for longer than the lease: so the owner's
/// deadline has passed, and a renewal that comes late fails. The same holds for a session that was
/// removed (revision 0): its owner may not know that yet, and may work for as long as its lease.
class Machine {
 public:
  explicit Machine(Settings settings);

  void start(Instant now);
  /// Call at next_deadline(), at the latest.
  void tick(Instant now) { pump(now); }
  void on_reply(RequestId id, const Reply& reply, Instant now);
  /// Takes several events at once: of a key that changed more than once only the newest state is
  /// read.
  void on_watch(std::span<const WatchEvent> events, Instant now);
  void on_watch(const WatchEvent& event, Instant now) { on_watch(std::span(&event, 1), now); }
  /// The work on the partition has ended, after Revoking or Lost, or by itself. False if there was
  /// none. What follows from it comes with the next tick, which is due now.
  bool stopped(std::uint32_t partition, Instant now);
  /// Drains, hands everything over and finishes. A static id keeps its partitions for its return,
  /// unless `for_good`.
  void leave(bool for_good, Instant now);

  [[nodiscard]] Instant next_deadline() const;
  std::vector<Effect> take_effects() { return std::exchange(effects_, {}); }

  /// Ask before each effect on the world.
  [[nodiscard]] bool may_act(std::uint32_t partition, Instant now) const;
  [[nodiscard]] Instant deadline() const { return deadline_; }
  [[nodiscard]] const GroupView& view() const { return view_; }
  [[nodiscard]] const SessionId& session() const { return me_; }
  [[nodiscard]] bool finished() const { return phase_ == Phase::finished; }
  [[nodiscard]] bool blind() const { return blind_; }

 private:
  enum class Phase : std::uint8_t {
    looking,   // Reads what is there; has no session yet.
    creating,  // The session's first write is in flight, or to be tried again.
    joined,    // The session exists: active, standby, draining or restarting.
    closing,   // The last write: gone, or restarting and stopped.
    finished,
  };
  enum class Purpose : std::uint8_t {
    session,
    read_session,
    chunk,
    read_chunk,
    evict,
    read,
    list,
    cleanup
  };
  struct Pending {
    Purpose purpose = Purpose::read;
    SessionId session{};      // For evict and read.
    std::uint32_t chunk = 0;  // For chunk and read_chunk.
    std::string value{};      // What a cas writes.
    Revision expected = 0;    // The revision it expects.
    Revision newest = 0;      // The highest revision seen before.
    Instant sent_at{};
  };
  /// What the program that does the work was told about a partition.
  struct Work {
    enum class State : std::uint8_t { running, revoking, lost, stopped };
    State state = State::running;
    std::uint64_t epoch = 0;
    Instant deadline{};    // revoking: when it becomes lost.
    Instant stopped_at{};  // stopped: since when; not to be taken again for a while.
  };
  /// A partition that the assignment gives to us.
  struct Share {
    std::uint32_t partition = 0;
    const Holding* holding = nullptr;  // In the view, while its shape is the same.
  };
  struct ReadyChunks {
    std::set<std::uint32_t> chunks{};
    bool waiting = false;  // For more partitions to hand over.
  };
  struct Attempt {
    WorkerSession session;
    Instant sent_at;
  };

  // machine.cc: events in.
  void pump(Instant now);
  void request(Request::Kind kind, Pending pending, Instant now, std::string key,
               Revision expected = 0);
  void check_revision(const Pending& pending, const Reply& reply, Instant now);
  void on_list(const Pending& pending, const Reply& reply, Instant now);
  void on_read(const Pending& pending, const Reply& reply, Instant now);
  void see(const WatchEvent& event, bool outdated, Instant now);
  void learn(const Entry& entry, Instant now);
  void end_snapshot();
  void take_hint(std::string_view key, Instant now);
  void begin_leaving(bool for_good, Instant now);
  void finish(Status status);
  void note(bool warning, std::string text);
  void wake_at(Instant at) { next_ = std::min(next_, at); }

  // session.cc: the worker's own session.
  void begin_life(Instant now);
  void step_session(Instant now);
  void step_look();
  void check_partition_count();
  void read_session(Instant now);
  bool must_end_for_static_id();
  bool must_give_up(Instant now);
  void step_closing(Instant now);
  [[nodiscard]] WorkerSession wanted_session(Instant now) const;
  [[nodiscard]] SessionState wanted_state() const;
  void write_session(WorkerSession session, Instant now);
  void on_session_written(const Pending& pending, const Reply& reply, Instant now);
  void on_session_read(const Pending& pending, const Reply& reply, Instant now);
  void accept_attempt(const WorkerSession& session, Instant now);
  void session_died(std::string why, Instant now);
  void fence(Instant now);
  [[nodiscard]] const GroupView::KnownSession* former_life() const;
  [[nodiscard]] bool static_id_in_use();
  [[nodiscard]] bool stands(SessionState state) const {
    return phase_ == Phase::joined && written_.state == state;
  }

  // sight.cc: the watch, lists, and the eviction of silent workers.
  void step_watch(Instant now);
  void step_poll(Instant now);
  void open_watch(Instant now);
  void lose_sight(std::string why, Instant now);
  void see_own(Revision revision, Instant now);
  void step_evict(Instant now);
  /// `delay`: how long our rank makes us wait.
  void consider_evicting(const SessionId& id, const GroupView::KnownSession& known, Duration delay,
                         Instant now);
  void step_unknown_owners(Duration delay, Instant now);
  [[nodiscard]] std::optional<Instant> eviction_due(const SessionId& id,
                                                    const GroupView::KnownSession& known,
                                                    Duration delay, Instant now) const;
  [[nodiscard]] Duration lease_of(const WorkerSession& session) const;
  void evict(const SessionId& id, const GroupView::KnownSession& known, SessionState state,
             Instant now);
  void step_cleanup(Instant now);
  [[nodiscard]] std::size_t rank() const;

  // work.cc: partitions.
  void look_for_shares();
  void step_work(Instant now);
  void check_work(std::uint32_t partition, Work& work, Instant now);
  void begin_work(Instant now);
  void lose(std::uint32_t partition, Work& work, std::string why);
  void step_hand_over(Instant now);
  void step_leave(Instant now);
  [[nodiscard]] ReadyChunks ready_chunks() const;
  void hand_over(std::uint32_t chunk, Instant now);
  [[nodiscard]] bool gives(const Holding& holding) const;
  [[nodiscard]] bool is_to_go(const Holding& holding) const;
  [[nodiscard]] bool has_stopped(std::uint32_t partition) const;
  bool step_release(Instant now);
  void step_plan(Instant now);
  [[nodiscard]] bool may_write(std::uint32_t chunk, Instant now);
  [[nodiscard]] bool is_our_turn(Instant now);
  void write_chunk(std::uint32_t chunk, const Assignment& assignment, Instant now);
  [[nodiscard]] bool idle() const;
  [[nodiscard]] bool must_drain(Instant now);
  [[nodiscard]] WallTime wall(Instant now) const;

  Settings settings_;
  GroupView view_;
  Phase phase_ = Phase::looking;
  SessionId me_;
  std::vector<Effect> effects_;
  Instant next_ = Instant::never();
  std::map<RequestId, Pending> pending_;
  RequestId next_request_ = 1;

  // The session.
  WorkerSession written_;  // As last confirmed.
  Revision revision_ = 0;  // Of that.
  Instant since_;          // Of this life.
  std::uint64_t beat_ = 0;
  std::map<std::uint64_t, Attempt> attempts_;  // By beat: those whose outcome is not known.
  bool session_busy_ = false;                  // A write or read of it is in flight.
  bool must_read_ = false;                     // The outcome of the last write is not known.
  Instant read_at_;
  Instant write_at_;
  std::string write_error_;  // As logged; empty: the last write succeeded.
  Instant next_renewal_;
  Instant deadline_;
  bool fenced_off_ = false;  // The deadline has passed, and the work was told.
  bool leaving_ = false;
  bool for_good_ = false;
  Status refused_;  // Why it leaves, if it was not asked to.
  Instant leave_by_;
  Instant revoke_by_;                // Leaving: the work is stopped then, in any case.
  std::optional<Instant> try_last_;  // Leaving: when work and lease were both over.
  Instant failed_at_;                // When the last failed request about the session was sent.
  std::uint64_t lives_ = 0;
  std::optional<std::uint64_t> former_beat_;  // Of another worker with our static id.

  // Sight.
  bool complete_ = false;  // All keys have been seen once.
  std::uint64_t watch_ = 0;
  bool watching_ = false;
  std::set<std::string> shown_;  // Keys of the watch's snapshot, until it ends.
  bool in_snapshot_ = false;
  Instant watch_opened_;
  Instant reopen_at_;
  Duration reopen_delay_{0};
  bool blind_ = false;
  bool sighted_ = false;  // An own heartbeat has come back since the last doubt.
  Instant sighted_since_;
  Revision own_seen_ = 0;
  std::optional<std::pair<Revision, Instant>> awaited_echo_;
  bool list_busy_ = false;
  std::string list_error_;  // As logged; empty: the last list succeeded.
  Instant next_list_;
  std::map<SessionId, Instant> hints_;        // Broken connections.
  std::map<SessionId, Instant> evict_again_;  // The earliest time of the next attempt.
  std::set<SessionId> evicting_;
  std::set<SessionId> reading_;
  std::vector<SessionId> unknown_owners_;  // As of `unknown_shape_`.
  /// Of these, the ones that the store does not have either, as they were last known; `seen_at`:
  /// since when, on our clock.
  std::map<SessionId, GroupView::KnownSession> missing_;
  std::uint64_t unknown_shape_ = 0;
  std::map<std::string, Revision> unreadable_;  // Documents that were complained about.
  Instant next_cleanup_;

  // Partitions.
  std::map<std::uint32_t, Work> work_;
  std::vector<Share> shares_;         // As of `shares_shape_`.
  std::size_t givers_before_us_ = 0;  // Workers of a lower rank that have something to hand over.
  std::uint64_t shares_shape_ = 0;
  SessionId shares_of_;
  std::set<std::uint32_t> busy_chunks_;
  std::map<std::uint32_t, Instant> retry_chunk_at_;
  std::optional<Instant> ready_since_;  // Since when something can be handed over.
  std::uint64_t planned_shape_ = 0;
  Plan plan_;
  std::uint64_t last_shape_ = 0;
  Instant last_shape_since_;
};

}  // namespace baton::partition
