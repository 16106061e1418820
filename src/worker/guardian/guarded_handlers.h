#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <utility>
#include <variant>
#include <vector>

#include "base/time.h"
#include "worker/guardian/guard_protocol.h"

namespace baton::worker {

/// The handlers that a guardian has started, and when each must be dead. Pure: commands and time
/// in, actions out. Owned by the guardian's one thread.
///
/// Invariant: unless fenced, no handler is left running at the deadline.
class GuardedHandlers {
 public:
  struct Options {
    /// Whether the sink checks epochs: handlers may run past the deadline.
    bool fenced = false;
    /// Handlers that are to stop are killed this long before the deadline.
    Duration stop_margin = std::chrono::milliseconds(200);
    /// All get SIGTERM this long before the deadline kills them, unless it moves; 0: no SIGTERM.
    Duration notice{0};
    /// How long a handler that got SIGTERM may take, if the deadline moves after all.
    Duration drain = std::chrono::hours(24);
  };
  struct Spawn {
    HandlerTask task;
    bool operator==(const Spawn&) const = default;
  };
  /// To a process group.
  struct Signal {
    pid_t group = 0;
    int number = 0;
    bool operator==(const Signal&) const = default;
  };
  using Action = std::variant<Spawn, Signal, GuardReport>;

  explicit GuardedHandlers(Options options) : options_(options) {}

  void on(const GuardCommand& command, Instant now);
  /// A Spawn succeeded; its process leads the group `pid`.
  void spawned(const HandlerTask& task, pid_t pid);
  /// A Spawn failed.
  void not_spawned(const HandlerTask& task, int code);
  [[nodiscard]] bool leads(pid_t pid) const { return by_pid_.contains(pid); }
  /// The process `pid`, and all of its group, is gone.
  void ended(pid_t pid, int code);
  /// Kills what must be dead by `now`.
  void tick(Instant now);
  /// Kills everything: the runner is gone.
  void kill_all();

  /// When tick() has to be called.
  [[nodiscard]] Instant next_deadline() const;
  [[nodiscard]] bool empty() const { return handlers_.empty(); }
  std::vector<Action> take_actions() { return std::exchange(actions_, {}); }

 private:
  struct Handler {
    HandlerTask task;
    pid_t pid = 0;                       // 0: about to be started.
    Instant stop_by = Instant::never();  // Told to stop: its own deadline.
    bool stopping = false;               // The runner wants it to end.
    bool told = false;                   // It has got SIGTERM.
    bool lease_over = false;             // Ended without the runner's wish.
    bool killed = false;
  };

  void apply(const NewDeadline& command, Instant now);
  void apply(const StartHandler& command, Instant now);
  void apply(const StopHandler& command, Instant now);
  void apply(const KillHandler& command, Instant now);
  void apply(const SignalHandlers& command, Instant now);
  void tell_to_stop(Handler& handler);
  void kill(Handler& handler);
  [[nodiscard]] Instant notice_at(const Handler& handler) const;
  [[nodiscard]] Instant kill_at(const Handler& handler) const;

  Options options_;
  Instant deadline_;
  std::map<std::uint32_t, Handler> handlers_;  // By partition.
  std::map<pid_t, std::uint32_t> by_pid_;
  std::vector<Action> actions_;
};

}  // namespace baton::worker
