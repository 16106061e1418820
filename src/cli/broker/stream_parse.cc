#include "cli/broker/stream_parse.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>

#include <fmt/format.h>

#include "base/fsync_mode.h"
#include "base/time.h"
#include "core/stream/compression.h"

namespace baton::cli {
namespace {

Error wrong(std::string_view text, std::string_view allowed) {
  return {Errc::invalid_argument, fmt::format("'{}' is not {}", text.substr(0, 64), allowed)};
}

bool is_digits(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// Takes `digits` digits and the character after them from the front of `text`.
bool take_field(std::string_view& text, std::size_t digits, char after, int& value) {
  if (text.size() <= digits || text[digits] != after || !is_digits(text.substr(0, digits))) {
    return false;
  }
  const std::string_view field = text.substr(0, digits);
  std::from_chars(field.begin(), field.end(), value);
  text.remove_prefix(digits + 1);
  return true;
}

/// Reads "123Z" or "5Z" behind the point; anything else is wrong.
bool take_fraction(std::string_view& text, int& milliseconds) {
  const auto end = text.find('Z');
  if (end > 9 || !is_digits(text.substr(0, end))) return false;
  const std::string digits = (std::string(text.substr(0, end)) + "00").substr(0, 3);
  std::from_chars(digits.data(), digits.data() + digits.size(), milliseconds);
  text.remove_prefix(end + 1);
  return true;
}

}  // namespace

Result<Retention> parse_retention(std::string_view text) {
  if (text == "0") return Retention{.age = Milliseconds{0}, .bytes = 0};
  // Without a unit it could be a time or a size.
  if (!is_digits(text)) {
    if (const auto age = parse_milliseconds(text); age) return Retention{.age = *age};
    if (const auto bytes = parse_size(text); bytes) return Retention{.bytes = *bytes};
  }
  return wrong(text, "an age as 7d or 12h, nor a size as 100GB or 64MiB, nor 0 for no limit");
}

Result<std::string> parse_fsync(std::string_view text) {
  if (parse_fsync_mode(text)) return std::string(text);
  return wrong(text, "always, interval:MS (as interval:100) or never");
}

Result<client::RecordTime> parse_time(std::string_view text) {
  constexpr std::string_view kAllowed = "a time as 2026-01-31T08:30:00Z";
  std::string_view rest = text;
  int year = 0;
  int month = 0;
  int day = 0;
  int hour = 0;
  int minute = 0;
  int second = 0;
  int milliseconds = 0;
  const bool date = take_field(rest, 4, '-', year) && take_field(rest, 2, '-', month) &&
                    (take_field(rest, 2, 'T', day) || take_field(rest, 2, ' ', day));
  const bool clock = date && take_field(rest, 2, ':', hour) && take_field(rest, 2, ':', minute);
  if (!clock) return wrong(text, kAllowed);
  const bool whole = take_field(rest, 2, 'Z', second);
  const bool parts =
      !whole && take_field(rest, 2, '.', second) && take_fraction(rest, milliseconds);
  const std::chrono::year_month_day on{std::chrono::year(year),
                                       std::chrono::month(static_cast<unsigned>(month)),
                                       std::chrono::day(static_cast<unsigned>(day))};
  if ((!whole && !parts) || !rest.empty() || !on.ok() || hour > 23 || minute > 59 || second > 59) {
    return wrong(text, kAllowed);
  }
  return std::chrono::sys_days(on) + std::chrono::hours(hour) + std::chrono::minutes(minute) +
         std::chrono::seconds(second) + std::chrono::milliseconds(milliseconds);
}

Result<client::StartFrom> parse_from(std::string_view text, client::RecordTime now) {
  using client::StartFrom;
  if (text == "first") return StartFrom::first();
  if (text == "last") return StartFrom::last();
  if (text == "next") return StartFrom::next();
  if (is_digits(text)) {
    const auto offset =
        parse_number(text, 0, static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()));
    if (!offset) return offset.error();
    return StartFrom::at(Offset{static_cast<std::int64_t>(*offset)});
  }
  if (const auto time = parse_time(text); time) return StartFrom::at_time(*time);
  if (const auto age = parse_milliseconds(text); age) return StartFrom::at_time(now - *age);
  return wrong(text,
               "first, last, next, an offset, a time as 2026-01-31T08:30:00Z, or an age as 15m");
}

Result<client::RecordCompression> parse_record_compression(std::string_view text) {
  if (const auto compression = parse_compression(text); compression) {
    return static_cast<client::RecordCompression>(*compression);
  }
  return wrong(text, "none, lz4, zstd, gzip or snappy");
}

}  // namespace baton::cli
