#pragma once

#include <cstdint>

#include "base/random.h"
#include "base/time.h"

namespace baton::flow {

/// Waits that double up to a limit, each drawn from all of its range ("full jitter"): workers that
/// failed together do not come back together.
struct Backoff {
  Duration first = std::chrono::milliseconds(100);
  Duration most = std::chrono::seconds(10);

  /// Of the `attempt`-th failure in a row, from 1.
  [[nodiscard]] Duration wait(std::uint32_t attempt, Random& random) const;
  /// As long as limit() says, give or take a tenth: for questions that are to come regularly.
  [[nodiscard]] Duration steady(std::uint32_t attempt, Random& random) const;
  /// The upper end of its range.
  [[nodiscard]] Duration limit(std::uint32_t attempt) const;
};

}  // namespace baton::flow
