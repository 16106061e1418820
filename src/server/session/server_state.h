#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "base/random.h"
#include "base/result.h"
#include "base/uuid.h"
#include "server/session/background.h"
#include "server/session/change_log.h"
#include "server/session/counters.h"
#include "server/session/limits.h"
#include "server/session/session.h"
#include "server/shard/broker.h"

namespace baton {

/// What the protocols and their sessions share. Held by shared_ptr: a session that waits for the
/// broker may outlive the server. Thread-safe.
class ServerState {
 public:
  ServerState(Broker& the_broker, std::uint64_t seed)
      : broker(the_broker),
        background(limits::kBackgroundThreads, [&the_broker] { return the_broker.now(); }),
        random_(seed) {}

  /// An id for a consumer that did not give one.
  std::string make_consumer_id() {
    const Instant now = broker.now();
    const std::lock_guard lock(mutex_);
    return Uuid::make_v7(now, random_).to_string();
  }

  Broker& broker;  // Outlives every call that it was given, and so every session.
  Counters counters;
  ChangeLog changes;
  OpenSessions sessions;
  Background background;
  std::atomic<std::uint64_t> next_connection{1};
  std::atomic<bool> accepting{true};

 private:
  std::mutex mutex_;
  Random random_;
};

/// The error of an operation that arrives during a shutdown.
inline Error shutting_down() { return {Errc::unavailable, "shutting down"}; }
/// The error of an operation that the broker does not take because it is full or stopping.
inline Error busy() {
  return {Errc::unavailable, "the broker is full or stopping; try again later"};
}

}  // namespace baton
