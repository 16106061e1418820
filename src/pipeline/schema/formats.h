#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace baton::schema {

/// The formats that are actually checked. The schema compiler refuses every other name.
enum class Format : std::uint8_t { date_time, date, time, email, ipv4, ipv6, uri, uuid };

std::optional<Format> parse_format(std::string_view name);
std::string_view to_string(Format format);
bool matches(Format format, std::string_view text);

// RFC 3339: a valid date, "T" and "Z" in either case, an offset, any number of digits after the
// second, and second 60 only where a leap second can be: at 23:59:60 UTC.
bool is_date_time(std::string_view text);
bool is_date(std::string_view text);
bool is_time(std::string_view text);
/// RFC 5321's mailbox, in ASCII: dotted atoms or a quoted string, then a domain name (of one label
/// or more) or an address in brackets.
bool is_email(std::string_view text);
bool is_ipv4(std::string_view text);
/// RFC 4291, without a zone.
bool is_ipv6(std::string_view text);
/// RFC 3986, with a scheme.
bool is_uri(std::string_view text);
/// Five groups of hexadecimal digits, of any version.
bool is_uuid(std::string_view text);

}  // namespace baton::schema
