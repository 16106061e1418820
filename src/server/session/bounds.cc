#include "server/session/bounds.h"

#include <chrono>

#include <fmt/format.h>

namespace baton {

Error over_limit(std::string_view field, std::uint64_t value, std::uint64_t limit) {
  return {Errc::invalid_argument, fmt::format("{} is {}; the limit is {}", field, value, limit)};
}

Result<Duration> convert_ms(std::string_view field, std::uint64_t value, Duration limit) {
  const auto most = static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::milliseconds>(limit).count());
  if (value > most) return over_limit(field, value, most);
  return Duration{std::chrono::milliseconds{static_cast<std::int64_t>(value)}};
}

}  // namespace baton
