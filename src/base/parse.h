#pragma once

#include <charconv>
#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>

#include "base/result.h"

/// Values as people write them on a command line or in a config file. Every error says what would
/// be right.
namespace baton {

/// In ASCII, whatever the locale is.
constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The text as written, cut short enough for one line.
std::string shown(std::string_view text);

/// Whether the whole of `text` is a T, which it stores in `value`.
template <class T>
bool read_all(std::string_view text, T& value) {
  const auto [stop, failure] = std::from_chars(text.begin(), text.end(), value);
  return failure == std::errc{} && stop == text.end() && !text.empty();
}

/// Any text that can name something: not empty, no zero byte.
Status set_text(std::string& target, std::string_view text);
/// A whole number in [min, max].
Result<std::uint64_t> parse_number(std::string_view text, std::uint64_t min, std::uint64_t max);
/// "true" or "false".
Result<bool> parse_bool(std::string_view text);
/// "4096", "64KiB", "1MiB", "2GiB"; kB, MB and GB are powers of 1000.
Result<std::uint64_t> parse_size(std::string_view text);
/// A duration of whole milliseconds, as the wire carries it.
Result<std::chrono::milliseconds> parse_milliseconds(std::string_view text);
/// A duration in [min, max].
Result<std::chrono::milliseconds> parse_milliseconds(std::string_view text,
                                                     std::chrono::milliseconds min,
                                                     std::chrono::milliseconds max);

}  // namespace baton
