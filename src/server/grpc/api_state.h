#pragma once

#include <atomic>
#include <mutex>
#include <string>

#include "base/random.h"
#include "server/grpc/api_limits.h"
#include "server/grpc/background.h"
#include "server/grpc/change_log.h"
#include "server/grpc/counters.h"
#include "server/grpc/stream.h"
#include "server/shard/broker.h"

namespace baton {

/// What the services and their streams share. Held by shared_ptr: a stream that waits for the
/// broker may outlive the server. Thread-safe.
class ApiState {
 public:
  ApiState(Broker& the_broker, std::uint64_t seed)
      : broker(the_broker),
        background(limits::kBackgroundThreads, [&the_broker] { return the_broker.now(); }),
        random_(seed) {}

  /// A name for a consumer that came without one.
  std::string make_consumer_id() {
    const Instant now = broker.now();
    const std::lock_guard lock(mutex_);
    return Uuid::make_v7(now, random_).to_string();
  }

  Broker& broker;  // Outlives every call it was given, and thus everybody here.
  Counters counters;
  ChangeLog changes;
  OpenStreams streams;
  Background background;
  std::atomic<std::uint64_t> next_connection{1};
  std::atomic<bool> accepting{true};

 private:
  std::mutex mutex_;
  Random random_;
};

/// What a call gets that comes too late.
inline Error shutting_down() { return {Errc::unavailable, "shutting down"}; }

}  // namespace baton
