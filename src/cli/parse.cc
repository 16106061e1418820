#include "cli/parse.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include "base/limits.h"
#include "base/time.h"

namespace baton::cli {
namespace {

/// What was written, short enough for one line.
std::string shown(std::string_view text) { return fmt::format("'{}'", text.substr(0, 64)); }

Error wrong(std::string why) { return {Errc::invalid_argument, std::move(why)}; }

/// The whole of `text` as a T.
template <class T>
bool read_all(std::string_view text, T& value) {
  const auto [stop, failure] = std::from_chars(text.begin(), text.end(), value);
  return failure == std::errc{} && stop == text.end() && !text.empty();
}

constexpr std::array<std::pair<std::string_view, std::uint64_t>, 8> kSizeUnits{{
    {"KiB", std::uint64_t{1} << 10U},
    {"MiB", std::uint64_t{1} << 20U},
    {"GiB", std::uint64_t{1} << 30U},
    {"TiB", std::uint64_t{1} << 40U},
    {"kB", 1'000},
    {"MB", 1'000'000},
    {"GB", 1'000'000'000},
    {"B", 1},
}};

/// The bytes in the unit that `text` ends with, which is cut off.
std::uint64_t take_size_unit(std::string_view& text) {
  for (const auto& [unit, bytes] : kSizeUnits) {
    if (!text.ends_with(unit)) continue;
    text.remove_suffix(unit.size());
    return bytes;
  }
  return 1;
}

}  // namespace

Result<std::uint64_t> parse_number(std::string_view text, std::uint64_t min, std::uint64_t max) {
  std::uint64_t value = 0;
  if (read_all(text, value) && value >= min && value <= max) return value;
  if (max == std::numeric_limits<std::uint64_t>::max()) {
    return wrong(fmt::format("{} is not a whole number of at least {}", shown(text), min));
  }
  return wrong(fmt::format("{} is not a whole number from {} to {}", shown(text), min, max));
}

Result<bool> parse_bool(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return wrong(fmt::format("{} is neither true nor false", shown(text)));
}

Result<std::uint64_t> parse_size(std::string_view text) {
  std::string_view number = text;
  const std::uint64_t unit = take_size_unit(number);
  std::uint64_t value = 0;
  std::uint64_t bytes = 0;
  if (!read_all(number, value) || __builtin_mul_overflow(value, unit, &bytes)) {
    return wrong(fmt::format("{} is not a size; write it as 4096, 64KiB or 1MiB", shown(text)));
  }
  return bytes;
}

Result<Milliseconds> parse_milliseconds(std::string_view text) {
  BATON_TRY(const Duration duration, parse_duration(text));
  const auto whole = std::chrono::duration_cast<Milliseconds>(duration);
  if (Duration{whole} != duration) {
    return wrong(fmt::format("{} is not a whole number of milliseconds", shown(text)));
  }
  return whole;
}

Result<Milliseconds> parse_milliseconds(std::string_view text, Milliseconds min, Milliseconds max) {
  BATON_TRY(const Milliseconds value, parse_milliseconds(text));
  if (value >= min && value <= max) return value;
  return wrong(fmt::format("{} is not from {} to {}", shown(text), format_duration(min),
                           format_duration(max)));
}

Result<double> parse_rate(std::string_view text) {
  double rate = 0;
  // NaN compares false.
  if (read_all(text, rate) && rate >= 0 && rate <= limits::kThrottleRateMax) return rate;
  return wrong(fmt::format("{} is not a rate from 0 to {:.0f} a second", shown(text),
                           limits::kThrottleRateMax));
}

Result<client::FairnessCost> parse_fairness_cost(std::string_view text) {
  if (text == "message") return client::FairnessCost::message;
  if (text == "byte") return client::FairnessCost::byte;
  return wrong(fmt::format("{} is neither 'message' nor 'byte'", shown(text)));
}

Result<std::pair<std::string, std::string>> parse_header(std::string_view text) {
  const auto equals = text.find('=');
  if (equals == std::string_view::npos || equals == 0) {
    return wrong(fmt::format("{} is not of the form NAME=VALUE", shown(text)));
  }
  return std::pair{std::string(text.substr(0, equals)), std::string(text.substr(equals + 1))};
}

Result<std::pair<std::string, std::uint32_t>> parse_weight(std::string_view text) {
  const auto equals = text.rfind('=');
  if (equals == std::string_view::npos) {
    return wrong(fmt::format("{} is not of the form KEY=WEIGHT", shown(text)));
  }
  BATON_TRY(const std::uint64_t weight,
            parse_number(text.substr(equals + 1), 0, limits::kWeightMax));
  return std::pair{std::string(text.substr(0, equals)), static_cast<std::uint32_t>(weight)};
}

Result<std::pair<std::string, client::Throttle>> parse_throttle(std::string_view text) {
  const auto equals = text.rfind('=');
  if (equals == std::string_view::npos || equals == 0) {
    return wrong(fmt::format("{} is not of the form KEY=RATE/BURST", shown(text)));
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
