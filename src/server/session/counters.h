#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/latency.h"
#include "server/session/operations.h"

namespace baton {

/// What the protocols count. Written and read by any thread.
struct Counters {
  /// How a call ended, in gRPC's numbers 0 to 16, whatever its protocol: metrics have names for
  /// them.
  static constexpr std::size_t kCodes = 17;

  std::array<std::array<std::atomic<std::uint64_t>, kCodes>, kOperations.size()> calls{};
  std::array<LatencyHistogram, kOperations.size()> latencies{};  // Of unary calls.
  std::atomic<std::int64_t> consumers_open{0};
  std::atomic<std::int64_t> sessions_open{0};
  std::atomic<std::size_t> reads_open{0};  // Read sessions.

  void ended(Operation operation, std::size_t code) {
    if (code >= kCodes) return;
    calls[static_cast<std::size_t>(operation)][code].fetch_add(1, std::memory_order_relaxed);
  }
};

}  // namespace baton
