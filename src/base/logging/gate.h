#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <utility>

#include "base/time.h"

namespace baton {

/// Lets a bounded number of log lines of a kind through per interval and counts the rest, so that a
/// peer that misbehaves a thousand times a second does not fill the disk. Thread-safe.
class LogGate {
 public:
  explicit LogGate(Duration interval, std::uint64_t lines_max = 1)
      : interval_(interval), lines_max_(lines_max) {}

  /// How many lines were held back before this one; nullopt when this one is to be held back, too.
  /// `now` never goes back.
  std::optional<std::uint64_t> pass(Instant now) {
    const std::lock_guard lock(mutex_);
    if (!began_.has_value() || now - *began_ >= interval_) {
      began_ = now;
      lines_ = 0;
    }
    if (lines_ >= lines_max_) {
      ++held_back_;
      return std::nullopt;
    }
    ++lines_;
    return std::exchange(held_back_, 0);
  }

 private:
  Duration interval_;
  std::uint64_t lines_max_;
  std::mutex mutex_;
  std::optional<Instant> began_;
  std::uint64_t lines_ = 0;
  std::uint64_t held_back_ = 0;
};

}  // namespace baton
