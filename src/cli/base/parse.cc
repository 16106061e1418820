#include "cli/base/parse.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "cli/base/output.h"

namespace baton::cli {
Result<Milliseconds> parse_duration(std::string_view text) { return parse_milliseconds(text); }

Result<std::uint64_t> parse_whole(std::string_view text) {
  return parse_number(text, 0, std::numeric_limits<std::uint64_t>::max());
}

Result<std::uint64_t> parse_count(std::string_view text) {
  return parse_number(text, 1, std::numeric_limits<std::uint64_t>::max());
}

Result<double> parse_rate(std::string_view text) {
  double rate = 0;
  // NaN compares false.
  if (read_all(text, rate) && rate >= 0 && rate <= limits::kThrottleRateMax) return rate;
  return invalid_argument(fmt::format("{} is not a rate from 0 to {:.0f} a second", shown(text),
                                      limits::kThrottleRateMax));
}

Result<client::FairnessCost> parse_fairness_cost(std::string_view text) {
  if (text == "message") return client::FairnessCost::message;
  if (text == "byte") return client::FairnessCost::byte;
  return invalid_argument(fmt::format("{} is neither 'message' nor 'byte'", shown(text)));
}

Result<std::uint64_t> parse_size_between(std::string_view text, std::uint64_t min,
                                         std::uint64_t max) {
  BATON_TRY(const std::uint64_t bytes, parse_size(text));
  if (bytes >= min && bytes <= max) return bytes;
  return invalid_argument(fmt::format("{} is not a size from {} to {}", shown(text),
                                      format_bytes(min), format_bytes(max)));
}

Result<std::pair<std::string, std::string>> parse_header(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return invalid_argument(fmt::format("{} is not of the form NAME=VALUE", shown(text)));
  }
  return std::pair{std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

Result<std::pair<std::string, std::uint32_t>> parse_weight(std::string_view text) {
  const auto equals = text.rfind('=');
  if (equals == std::string_view::npos) {
    return invalid_argument(fmt::format("{} is not of the form KEY=WEIGHT", shown(text)));
  }
  BATON_TRY(const std::uint64_t weight,
            parse_number(text.substr(equals + 1), 0, limits::kWeightMax));
  return std::pair{std::string(text.substr(0, equals)), static_cast<std::uint32_t>(weight)};
}

Result<std::pair<std::string, client::Throttle>> parse_throttle(std::string_view text) {
  const auto equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0) {
    return invalid_argument(fmt::format("{} is not of the form KEY=RATE/BURST", shown(text)));
  }
  std::string key(text.substr(0, equals));
  const std::string_view value = text.substr(equals + 1);
  if (value == "off") return std::pair{std::move(key), client::Throttle{}};
  const auto slash = value.find('/');
  BATON_TRY(const double rate, parse_rate(value.substr(0, slash)));
  client::Throttle throttle{
      .rate = rate,
      .burst = std::max<std::uint64_t>(1, static_cast<std::uint64_t>(std::ceil(rate)))};
  if (slash != std::string_view::npos) {
    BATON_TRY(throttle.burst, parse_number(value.substr(slash + 1), 1, limits::kThrottleBurstMax));
  }
  return std::pair{std::move(key), throttle};
}

}  // namespace baton::cli
