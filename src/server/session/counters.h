#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "base/latency.h"
#include "server/session/operations.h"

namespace baton {

/// Counters of the operations and sessions of all protocols. Written and read by any thread; only
/// RunningOperation writes the first two.
struct Counters {
  /// The results of operations, as the 17 canonical codes of google.rpc.Code (0 is OK), for every
  /// protocol: metrics have names for them.
  static constexpr std::size_t kCodes = 17;

  std::array<std::array<std::atomic<std::uint64_t>, kCodes>, kOperations.size()> calls{};
  std::array<LatencyHistogram, kOperations.size()> latencies{};  // For shape `call`.
  std::atomic<std::int64_t> consumers_open{0};
  std::atomic<std::int64_t> sessions_open{0};
  std::atomic<std::size_t> reads_open{0};  // Read sessions.

  /// How many times `operation` has ended.
  [[nodiscard]] std::uint64_t ended(Operation operation) const {
    std::uint64_t total = 0;
    for (const auto& count : calls[index_of(operation)]) {
      total += count.load(std::memory_order_relaxed);
    }
    return total;
  }
};

}  // namespace baton
