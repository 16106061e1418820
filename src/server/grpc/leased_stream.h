#pragma once

#include <baton/v1/session.pb.h>

#include <atomic>
#include <memory>
#include <optional>
#include <utility>

#include "core/lease/session_lease.h"
#include "server/grpc/api_state.h"
#include "server/grpc/stream.h"

namespace baton {

/// A Stream whose client may have a lease (lease/session_lease.h): when its heartbeats stop, the
/// stream ends, and what it held goes to others. A client that never sends one is known to be gone
/// only when its connection closes.
class LeasedStream : public Stream {
 protected:
  explicit LeasedStream(std::shared_ptr<ApiState> state) : state_(std::move(state)) {}

  // With the lock held.

  /// A heartbeat has arrived, perhaps with the first request of the call; answers with what to say
  /// to it. Nothing: it is refused, and the stream ends.
  std::optional<v1::HeartbeatAck> heard(const v1::Heartbeat& heartbeat, bool with_first_request);
  [[nodiscard]] bool has_lease() const { return grant_.granted(); }
  /// The client may be at work until then, for all that is known; none: it has no lease, or the
  /// lease is over.
  [[nodiscard]] std::optional<Instant> lease_running() const;
  /// No heartbeat came in time: the stream has been ended.
  virtual void lease_ended() {}

  /// The end of the lease, as far as it is known now. Any thread, without the lock.
  [[nodiscard]] std::optional<Instant> known_lease() const;

  std::shared_ptr<ApiState> state_;

 private:
  void watch_lease(Instant at);
  void look_at_lease();

  SessionGrant grant_;
  bool watching_ = false;
  static constexpr std::int64_t kNone = -1;
  std::atomic<std::int64_t> until_ns_{kNone};
};

}  // namespace baton
