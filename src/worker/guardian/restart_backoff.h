#pragma once

#include <algorithm>
#include <chrono>

#include "base/time.h"

namespace baton::worker {

/// How long a handler that has ended waits before it is started again: 1 s after the first crash,
/// doubled up to 30 s; reset once a run has lasted a minute or ended with 0.
class RestartBackoff {
 public:
  static constexpr Duration kFirst = std::chrono::seconds(1);
  static constexpr Duration kLast = std::chrono::seconds(30);
  static constexpr Duration kGoodRun = std::chrono::seconds(60);

  /// A run of `ran` has ended with `code`.
  Duration next(Duration ran, int code) {
    const bool good = code == 0 || ran >= kGoodRun;
    delay_ = good ? kFirst : std::clamp(delay_ * 2, kFirst, kLast);
    return delay_;
  }

 private:
  Duration delay_{0};
};

}  // namespace baton::worker
