#include "pipeline/schema/formats.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <utility>

#include "base/parse.h"

namespace baton::schema {
namespace {

constexpr std::array<std::string_view, 8> kNames = {"date-time", "date", "time", "email",
                                                    "ipv4",      "ipv6", "uri",  "uuid"};
constexpr int kMinutesPerDay = 24 * 60;

constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
constexpr bool is_hex(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/// The number in text[at, at + count), which must be digits; -1 otherwise.
int number_at(std::string_view text, std::size_t at, std::size_t count) {
  if (at + count > text.size()) return -1;
  int value = 0;
  for (const char c : text.substr(at, count)) {
    if (!is_digit(c)) return -1;
    value = value * 10 + (c - '0');
  }
  return value;
}

bool in(int value, int least, int most) { return value >= least && value <= most; }

int days_in(int year, int month) {
  constexpr std::array<int, 12> kDays = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
  const bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
  return month == 2 && leap ? 29 : kDays.at(static_cast<std::size_t>(month - 1));
}

/// Minutes east of UTC of "Z", "z", "+hh:mm" or "-hh:mm".
std::optional<int> parse_offset(std::string_view text) {
  if (text == "Z" || text == "z") return 0;
  if (text.size() != 6 || (text[0] != '+' && text[0] != '-') || text[3] != ':') return std::nullopt;
  const int hours = number_at(text, 1, 2);
  const int minutes = number_at(text, 4, 2);
  if (!in(hours, 0, 23) || !in(minutes, 0, 59)) return std::nullopt;
  const int offset = hours * 60 + minutes;
  return text[0] == '-' ? -offset : offset;
}

/// Removes ".123" from the front of `rest`. False if there is a point without a digit.
bool skip_fraction(std::string_view& rest) {
  if (!rest.starts_with('.')) return true;
  rest.remove_prefix(1);
  const std::size_t digits =
      std::min(static_cast<std::size_t>(std::ranges::find_if_not(rest, is_digit) - rest.begin()),
               rest.size());
  rest.remove_prefix(digits);
  return digits > 0;
}

constexpr bool is_atom_character(char c) {
  return is_letter(c) || is_digit(c) ||
         std::string_view("!#$%&'*+-/=?^_`{|}~").find(c) != std::string_view::npos;
}

/// Whether each part between dots is not empty, and `fits`.
template <class Fits>
bool dotted(std::string_view text, Fits fits) {
  while (true) {
    const std::size_t dot = text.find('.');
    const std::string_view part = text.substr(0, dot);
    if (part.empty() || !fits(part)) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

bool is_domain_label(std::string_view label) {
  return label.size() <= 63 && label.front() != '-' && label.back() != '-' &&
         std::ranges::all_of(label, [](char c) { return is_letter(c) || is_digit(c) || c == '-'; });
}

bool is_mail_domain(std::string_view text) {
  if (text.starts_with('[') && text.ends_with(']')) {
    text = text.substr(1, text.size() - 2);
    if (text.starts_with("IPv6:")) return is_ipv6(text.substr(5));
    return is_ipv4(text);
  }
  return text.size() <= 253 && dotted(text, is_domain_label);
}

/// The inside of a quoted string: printable, with \ before \ and ".
bool is_quoted_local(std::string_view inside) {
  for (std::size_t i = 0; i < inside.size(); ++i) {
    if (inside[i] == '\\') ++i;
    if (i == inside.size() || inside[i] < ' ' || inside[i] > '~') return false;
    if (inside[i] == '"' && (i == 0 || inside[i - 1] != '\\')) return false;
  }
  return true;
}

bool is_mail_local(std::string_view text) {
  if (text.size() > 64) return false;
  if (text.size() >= 2 && text.starts_with('"') && text.ends_with('"')) {
    return is_quoted_local(text.substr(1, text.size() - 2));
  }
  return dotted(text,
                [](std::string_view atom) { return std::ranges::all_of(atom, is_atom_character); });
}

constexpr bool is_unreserved_or_sub_delimiter(char c) {
  return is_letter(c) || is_digit(c) ||
         std::string_view("-._~!$&'()*+,;=").find(c) != std::string_view::npos;
}

/// Whether the text has only RFC 3986's unreserved characters, `more`, and %XX.
bool is_uri_text(std::string_view text, std::string_view more) {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (i + 2 >= text.size() || !is_hex(text[i + 1]) || !is_hex(text[i + 2])) return false;
      i += 2;
    } else if (!is_unreserved_or_sub_delimiter(text[i]) &&
               more.find(text[i]) == std::string_view::npos) {
      return false;
    }
  }
  return true;
}

bool is_authority(std::string_view text) {
  if (const std::size_t at = text.find('@'); at != std::string_view::npos) {
    if (!is_uri_text(text.substr(0, at), ":")) return false;
    text.remove_prefix(at + 1);
  }
  std::size_t host = 0;
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos || !is_ipv6(text.substr(1, close - 1))) return false;
    host = close + 1;
  } else {
    host = std::min(text.find(':'), text.size());
    if (!is_uri_text(text.substr(0, host), "")) return false;
  }
  const std::string_view port = text.substr(host);
  return port.empty() || (port[0] == ':' && std::ranges::all_of(port.substr(1), is_digit));
}

/// How many of the eight groups `text` has, where an IPv4 address at its end counts as two; -1 if
/// it is something else.
int ipv6_groups(std::string_view text, bool may_end_in_ipv4) {
  if (text.empty()) return 0;
  int groups = 0;
  while (true) {
    const std::size_t colon = text.find(':');
    const std::string_view group = text.substr(0, colon);
    const bool last = colon == std::string_view::npos;
    if (last && may_end_in_ipv4 && is_ipv4(group)) return groups + 2;
    if (group.empty() || group.size() > 4 || !std::ranges::all_of(group, is_hex)) return -1;
    ++groups;
    if (last) return groups;
    text.remove_prefix(colon + 1);
  }
}

}  // namespace

std::optional<Format> parse_format(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Format>(found - kNames.begin());
}

std::string_view to_string(Format format) { return kNames.at(std::to_underlying(format)); }

bool matches(Format format, std::string_view text) {
  switch (format) {
    case Format::date_time: return is_date_time(text);
    case Format::date: return is_date(text);
    case Format::time: return is_time(text);
    case Format::email: return is_email(text);
    case Format::ipv4: return is_ipv4(text);
    case Format::ipv6: return is_ipv6(text);
    case Format::uri: return is_uri(text);
    case Format::uuid: return is_uuid(text);
  }
  return false;
}

bool is_date_time(std::string_view text) {
  return text.size() > 11 && (text[10] == 'T' || text[10] == 't') && is_date(text.substr(0, 10)) &&
         is_time(text.substr(11));
}

bool is_date(std::string_view text) {
  if (text.size() != 10 || text[4] != '-' || text[7] != '-') return false;
  const int year = number_at(text, 0, 4);
  const int month = number_at(text, 5, 2);
  return year >= 0 && in(month, 1, 12) && in(number_at(text, 8, 2), 1, days_in(year, month));
}

bool is_time(std::string_view text) {
  if (text.size() < 9 || text[2] != ':' || text[5] != ':') return false;
  const int hour = number_at(text, 0, 2);
  const int minute = number_at(text, 3, 2);
  const int second = number_at(text, 6, 2);
  if (!in(hour, 0, 23) || !in(minute, 0, 59) || !in(second, 0, 60)) return false;
  std::string_view rest = text.substr(8);
  if (!skip_fraction(rest)) return false;
  const auto offset = parse_offset(rest);
  if (!offset.has_value()) return false;
  const int utc = (hour * 60 + minute - *offset + 2 * kMinutesPerDay) % kMinutesPerDay;
  return second < 60 || utc == kMinutesPerDay - 1;
}

bool is_email(std::string_view text) {
  const std::size_t at = text.rfind('@');
  return at != std::string_view::npos && is_mail_local(text.substr(0, at)) &&
         is_mail_domain(text.substr(at + 1));
}

bool is_ipv4(std::string_view text) {
  if (std::ranges::count(text, '.') != 3) return false;
  return dotted(text, [](std::string_view part) {
    const bool plain = part.size() <= 3 && (part.size() == 1 || part.front() != '0');
    return plain && in(number_at(part, 0, part.size()), 0, 255);
  });
}

bool is_ipv6(std::string_view text) {
  const std::size_t gap = text.find("::");
  if (gap == std::string_view::npos) return ipv6_groups(text, true) == 8;
  const int before = ipv6_groups(text.substr(0, gap), false);
  const int after = ipv6_groups(text.substr(gap + 2), true);
  return before >= 0 && after >= 0 && before + after <= 7;
}

bool is_uri(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos || colon == 0 || !is_letter(text[0])) return false;
  const auto in_scheme = [](char c) {
    return is_letter(c) || is_digit(c) || c == '+' || c == '-' || c == '.';
  };
  if (!std::ranges::all_of(text.substr(0, colon), in_scheme)) return false;
  text.remove_prefix(colon + 1);
  if (const std::size_t hash = text.find('#'); hash != std::string_view::npos) {
    if (!is_uri_text(text.substr(hash + 1), ":@/?")) return false;
    text = text.substr(0, hash);
  }
  if (const std::size_t mark = text.find('?'); mark != std::string_view::npos) {
    if (!is_uri_text(text.substr(mark + 1), ":@/?")) return false;
    text = text.substr(0, mark);
  }
  if (text.starts_with("//")) {
    const std::size_t slash = std::min(text.find('/', 2), text.size());
    if (!is_authority(text.substr(2, slash - 2))) return false;
    text.remove_prefix(slash);
  }
  return is_uri_text(text, ":@/");
}

bool is_uuid(std::string_view text) {
  if (text.size() != 36) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool dash = i == 8 || i == 13 || i == 18 || i == 23;
    if (dash ? text[i] != '-' : !is_hex(text[i])) return false;
  }
  return true;
}

}  // namespace baton::schema
