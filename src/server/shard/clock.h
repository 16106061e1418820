#pragma once

#include <cstdint>

#include "base/time.h"

namespace baton {

/// Broker time: begins at the wall clock, or where the journal says the broker already was if that
/// is later, and advances by CLOCK_BOOTTIME. Never goes back, and a wall clock that jumps does not
/// reach it.
class BrokerClock {
 public:
  explicit BrokerClock(Instant start);
  [[nodiscard]] Instant now() const;

  /// The machine's wall clock: only for where broker time begins.
  static Instant wall();

 private:
  Instant start_;
  std::int64_t boottime_ns_;
};

}  // namespace baton
