#pragma once

#include <algorithm>
#include <chrono>

#include "base/time.h"
#include "worker/stores/limits.h"

namespace baton::coord {

/// When a call must be over, by a clock that never jumps.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Deadline(Duration timeout)
      : at_(Clock::now() + std::clamp<Duration>(timeout, Duration::zero(), limits::kTimeoutMax)) {}

  [[nodiscard]] Clock::time_point at() const { return at_; }
  [[nodiscard]] bool has_passed() const { return Clock::now() >= at_; }
  /// Rounded up, so that it is 0 only once the deadline has passed.
  [[nodiscard]] std::chrono::milliseconds left() const {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(at_ - Clock::now());
    return std::max(left, std::chrono::milliseconds{0});
  }

 private:
  Clock::time_point at_;
};

}  // namespace baton::coord
