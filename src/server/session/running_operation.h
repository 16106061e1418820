#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <utility>

#include "server/session/change_log.h"
#include "server/session/operations.h"
#include "server/session/server_state.h"
#include "server/session/session.h"

namespace baton {

/// An operation of a client, in any protocol, from its arrival to its end. A protocol makes one for
/// everything that it serves: here operations are admitted, counted, timed and logged, as their row
/// of operations.def says. A handle of a few words, cheap to copy; ended() is called once.
class RunningOperation {
 public:
  RunningOperation(std::shared_ptr<ServerState> state, Operation operation)
      : state_(std::move(state)), operation_(operation), began_(std::chrono::steady_clock::now()) {}

  [[nodiscard]] ServerState& state() const { return *state_; }

  /// Fails if the operation must not begin. `late` operations are also taken during a shutdown,
  /// because they finish work that was begun.
  [[nodiscard]] Status admit(bool late) const {
    if (!late && !state_->accepting.load(std::memory_order_relaxed)) return shutting_down();
    return {};
  }

  /// Logs what `done` has changed, if the operation is an event. `peer()` is the client's address.
  template <class Wanted, class Peer>
  void log_change(const Wanted& done, Peer peer) const {
    if (!ChangeLog::takes(operation_)) return;
    state_->changes.add(operation_, subject_of(done), peer(), state_->broker.now());
  }

  /// Counts the end, by its canonical code.
  void ended(std::size_t code) const {
    Counters& counters = state_->counters;
    const std::size_t index = index_of(operation_);
    if (code < Counters::kCodes) {
      counters.calls[index][code].fetch_add(1, std::memory_order_relaxed);
    }
    if (info_of(operation_).shape == Shape::call) {
      counters.latencies[index].add(std::chrono::steady_clock::now() - began_);
    }
  }

 private:
  std::shared_ptr<ServerState> state_;
  Operation operation_;
  std::chrono::steady_clock::time_point began_;
};

/// An operation that is a session, while a protocol serves it: counted as open, and ended by a
/// shutdown. A session that arrives too late is ended at once.
class RunningSession {
 public:
  RunningSession(std::shared_ptr<ServerState> state, Operation operation,
                 std::shared_ptr<Session> session);
  RunningSession(const RunningSession&) = delete;
  RunningSession& operator=(const RunningSession&) = delete;
  ~RunningSession();

  void ended(std::size_t code) const { operation_.ended(code); }

 private:
  RunningOperation operation_;
  std::shared_ptr<Session> session_;
};

}  // namespace baton
