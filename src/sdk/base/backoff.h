#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "base/random.h"

namespace baton::client {

/// How long to wait before the next try: `min`, doubled with each failure up to `max`, each time
/// shortened by up to a fifth. Not thread-safe.
class Backoff {
 public:
  using Wait = std::chrono::microseconds;

  Backoff(Wait min, Wait max, std::uint64_t seed) : min_(min), max_(max), random_(seed) {}

  Wait next() {
    const Wait wait = std::min(max_, min_ * (std::int64_t{1} << std::min(failures_, 20)));
    ++failures_;
    return wait - Wait(random_.below(static_cast<std::uint64_t>(wait.count()) / 5 + 1));
  }
  void reset() { failures_ = 0; }

 private:
  Wait min_;
  Wait max_;
  int failures_ = 0;
  Random random_;
};

}  // namespace baton::client
