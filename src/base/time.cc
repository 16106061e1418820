#include "base/time.h"

#include <array>
#include <charconv>
#include <utility>

#include <fmt/format.h>

namespace baton {
namespace {

constexpr std::array<std::pair<std::string_view, std::int64_t>, 7> kUnits{{
    {"ns", 1},
    {"us", 1'000},
    {"ms", 1'000'000},
    {"s", 1'000'000'000},
    {"m", 60'000'000'000},
    {"h", 3'600'000'000'000},
    {"d", 86'400'000'000'000},
}};

Error bad_duration(std::string_view text) {
  return {Errc::invalid_argument,
          fmt::format("'{}' is not a duration; write it as 250ms, 5s, 2m, 1h or 7d",
                      text.substr(0, 64))};
}

/// The nanoseconds in the unit that `text` begins with, and the unit's length; 0 if there is no
/// unit.
std::pair<std::int64_t, std::size_t> unit_at(std::string_view text) {
  std::size_t length = 0;
  while (length < text.size() && text[length] >= 'a' && text[length] <= 'z') ++length;
  for (const auto& [name, ns] : kUnits) {
    if (name == text.substr(0, length)) return {ns, length};
  }
  return {0, 0};
}

}  // namespace

Result<Duration> parse_duration(std::string_view text) {
  if (text == "0") return Duration{0};
  if (text.empty()) return bad_duration(text);
  std::string_view rest = text;
  std::int64_t total = 0;
  while (!rest.empty()) {
    std::int64_t number = 0;
    const auto [end, failure] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (failure != std::errc{} || rest.front() == '-') return bad_duration(text);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    const auto [ns, length] = unit_at(rest);
    std::int64_t part = 0;
    if (ns == 0 || __builtin_mul_overflow(number, ns, &part) ||
        __builtin_add_overflow(total, part, &total)) {
      return bad_duration(text);
    }
    rest.remove_prefix(length);
  }
  return Duration{total};
}

std::string format_duration(Duration duration) {
  const std::int64_t count = duration.count();
  if (count == 0) return "0";
  for (std::size_t i = kUnits.size(); i > 0; --i) {
    const auto& [name, ns] = kUnits[i - 1];
    if (count % ns == 0) return fmt::format("{}{}", count / ns, name);
  }
  return fmt::format("{}ns", count);
}

}  // namespace baton
