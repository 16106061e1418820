#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/time.h"
#include "worker/guardian/guard_protocol.h"
#include "worker/guardian/restart_backoff.h"

namespace baton::worker {

/// A runner's handlers: one for each partition it holds, started again when it ends, stopped when
/// the partition is given up. Pure: events and time in, actions out. Owned by one thread.
///
/// Invariant: Stopped is sent for a partition only when no handler of it is left.
class HandlerBook {
 public:
  /// The partition may be given to another worker.
  struct Stopped {
    HandlerTask task;
    bool operator==(const Stopped&) const = default;
  };
  /// A handler has ended by itself; the next one starts after `delay`. `lease_over`: the lease was
  /// about to end, and the next one starts when it is renewed.
  struct WillRestart {
    HandlerTask task;
    int code = 0;
    Duration delay{0};
    bool lease_over = false;
    bool operator==(const WillRestart&) const = default;
  };
  using Action = std::variant<GuardCommand, Stopped, WillRestart>;

  void acquired(const HandlerTask& task, Instant now);
  void revoking(std::uint32_t partition, Instant kill_at);
  void lost(std::uint32_t partition);
  void ended(const HandlerEnded& report, Instant now);
  void renewed(Instant deadline);
  void signal(int number);
  /// Handlers that are stopping get no more time.
  void hurry();
  /// Starts handlers that are due again.
  void tick(Instant now);
  /// The guardian is gone, and with it every handler.
  void guardian_gone();

  [[nodiscard]] Instant next_deadline() const;
  std::vector<Action> take_actions() { return std::exchange(actions_, {}); }

 private:
  struct Handler {
    enum class State : std::uint8_t { running, waiting, stopping };
    HandlerTask task;
    State state = State::running;
    // running, stopping: when it was started; waiting: when it will be; never: once the lease is
    // renewed.
    Instant since;
    RestartBackoff backoff{};
  };

  void start(Handler& handler, Instant now);
  void command(GuardCommand what) { actions_.emplace_back(what); }
  void forget(std::map<std::uint32_t, Handler>::iterator handler);

  std::map<std::uint32_t, Handler> handlers_;  // By partition.
  std::vector<Action> actions_;
};

}  // namespace baton::worker
