#include "base/parse.h"

#include <array>
#include <charconv>
#include <limits>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "base/time.h"

namespace baton {
namespace {

using Milliseconds = std::chrono::milliseconds;

/// Whether `text` is a number that does not fit into 64 bits.
bool overflows(std::string_view text) {
  std::uint64_t value = 0;
  const auto [stop, failure] = std::from_chars(text.begin(), text.end(), value);
  return failure == std::errc::result_out_of_range && stop == text.end();
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

/// Cuts the unit off the end of `text`, and returns its size in bytes.
std::uint64_t take_size_unit(std::string_view& text) {
  for (const auto& [unit, bytes] : kSizeUnits) {
    if (!text.ends_with(unit)) continue;
    text.remove_suffix(unit.size());
    return bytes;
  }
  return 1;
}

}  // namespace

std::string shown(std::string_view text) { return fmt::format("'{}'", text.substr(0, 64)); }

Status set_text(std::string& target, std::string_view text) {
  if (text.empty()) return invalid_argument("is empty");
  if (text.find('\0') != std::string_view::npos) return invalid_argument("holds a zero byte");
  target = text;
  return {};
}

Result<std::uint64_t> parse_number(std::string_view text, std::uint64_t min, std::uint64_t max) {
  std::uint64_t value = 0;
  if (read_all(text, value) && value >= min && value <= max) return value;
  if (max == std::numeric_limits<std::uint64_t>::max() && !overflows(text)) {
    return invalid_argument(
        fmt::format("{} is not a whole number of at least {}", shown(text), min));
  }
  return invalid_argument(
      fmt::format("{} is not a whole number from {} to {}", shown(text), min, max));
}

Result<bool> parse_bool(std::string_view text) {
  if (text == "true") return true;
  if (text == "false") return false;
  return invalid_argument(fmt::format("{} is neither true nor false", shown(text)));
}

Result<std::uint64_t> parse_size(std::string_view text) {
  std::string_view number = text;
  const std::uint64_t unit = take_size_unit(number);
  std::uint64_t value = 0;
  std::uint64_t bytes = 0;
  if (!read_all(number, value) || __builtin_mul_overflow(value, unit, &bytes)) {
    return invalid_argument(
        fmt::format("{} is not a size; write it as 4096, 64KiB or 1MiB", shown(text)));
  }
  return bytes;
}

Result<Milliseconds> parse_milliseconds(std::string_view text) {
  BATON_TRY(const Duration duration, parse_duration(text));
  const auto whole = std::chrono::duration_cast<Milliseconds>(duration);
  if (Duration{whole} != duration) {
    return invalid_argument(fmt::format("{} is not a whole number of milliseconds", shown(text)));
  }
  return whole;
}

Result<Milliseconds> parse_milliseconds(std::string_view text, Milliseconds min, Milliseconds max) {
  BATON_TRY(const Milliseconds value, parse_milliseconds(text));
  if (value >= min && value <= max) return value;
  return invalid_argument(fmt::format("{} is not from {} to {}", shown(text), format_duration(min),
                                      format_duration(max)));
}

}  // namespace baton
