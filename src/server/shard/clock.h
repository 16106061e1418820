#pragma once

#include <cstdint>

#include "base/time.h"

namespace baton {

/// Broker time: begins at the wall clock, or at the last time in the journal if that is later, and
/// advances by CLOCK_BOOTTIME. Never goes back, and does not follow jumps of the wall clock.
class BrokerClock {
 public:
  explicit BrokerClock(Instant start);
  [[nodiscard]] Instant now() const;

  /// The wall clock, only for where broker time begins.
  static Instant wall();

 private:
  Instant start_;
  std::int64_t boottime_ns_;
};

}  // namespace baton
