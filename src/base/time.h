#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>

#include "base/result.h"

namespace baton {

using Duration = std::chrono::nanoseconds;

/// A moment of broker time: nanoseconds since 1970, and never going back (see docs/glossary.md).
struct Instant {
  std::int64_t ns = 0;

  static constexpr Instant never() { return {std::numeric_limits<std::int64_t>::max()}; }
  constexpr auto operator<=>(const Instant&) const = default;
};

/// Saturates at never() (and at the other end), so that "now + a huge timeout" stays in order.
constexpr Instant operator+(Instant at, Duration by) {
  std::int64_t sum = 0;
  if (!__builtin_add_overflow(at.ns, by.count(), &sum)) return {sum};
  return by.count() < 0 ? Instant{std::numeric_limits<std::int64_t>::min()} : Instant::never();
}
/// Saturates as well: the time left until never() is Duration::max() or close to it.
constexpr Duration operator-(Instant later, Instant earlier) {
  std::int64_t difference = 0;
  if (!__builtin_sub_overflow(later.ns, earlier.ns, &difference)) return Duration{difference};
  return later < earlier ? Duration::min() : Duration::max();
}

/// Reads "250ms", "5s", "2m", "1h", "7d", "10us" or "0". A sum of parts ("1m30s") is fine.
Result<Duration> parse_duration(std::string_view text);
/// One number and the largest unit that fits, which parse_duration() reads back to the same value
/// unless it is negative.
std::string format_duration(Duration duration);

}  // namespace baton
