#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "core/lease/session_lease.h"
#include "server/session/server_state.h"
#include "server/session/session.h"

namespace baton {

/// The answer to a heartbeat.
struct HeartbeatAnswer {
  std::uint64_t number = 0;
  Instant broker_time;
  SessionTerms terms;
};

/// A Session whose client may have a lease (core/lease/session_lease.h): if its heartbeats stop,
/// the session ends, and what it held goes to others. A client that never sends one is known to be
/// gone only when its connection closes.
class LeasedSession : public Session {
 protected:
  explicit LeasedSession(std::shared_ptr<ServerState> state) : state_(std::move(state)) {}

  // With the lock held.

  /// A heartbeat has arrived, possibly with the first request; returns the answer. nullopt if the
  /// heartbeat is refused; the session then ends.
  std::optional<HeartbeatAnswer> heard(std::uint64_t number, bool with_first_request);
  [[nodiscard]] bool has_lease() const { return grant_.granted(); }
  /// Until when the client may be working, as far as is known; nullopt if it has no lease, or if
  /// the lease has ended.
  [[nodiscard]] std::optional<Instant> lease_running() const;
  /// No heartbeat came in time: the session has been ended.
  virtual void lease_ended() {}

  /// The end of the lease, as far as it is known now. Any thread, without the lock.
  [[nodiscard]] std::optional<Instant> known_lease() const;

  std::shared_ptr<ServerState> state_;

 private:
  void watch_lease(Instant at);
  void look_at_lease();

  SessionGrant grant_;
  bool watching_ = false;
  static constexpr std::int64_t kNone = -1;
  std::atomic<std::int64_t> until_ns_{kNone};
};

}  // namespace baton
