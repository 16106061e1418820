#pragma once

#include <cstdint>

#include "base/random.h"
#include "base/time.h"

namespace baton::flow {

/// Waits that double up to a limit, each drawn from its whole range ("full jitter"), so that
/// workers that failed together do not retry together.
struct Backoff {
  Duration first = std::chrono::milliseconds(100);
  Duration most = std::chrono::seconds(10);

  /// The wait after the `attempt`-th failure in a row, from 1.
  [[nodiscard]] Duration wait(std::uint32_t attempt, Random& random) const;
  /// limit(), plus or minus a tenth: for probes that should be regular.
  [[nodiscard]] Duration steady(std::uint32_t attempt, Random& random) const;
  /// The upper end of the range.
  [[nodiscard]] Duration limit(std::uint32_t attempt) const;
};

}  // namespace baton::flow
