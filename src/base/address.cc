#include "base/address.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include <fmt/format.h>

#include "base/parse.h"
#include "base/result.h"

namespace baton {
namespace {

bool is_host(std::string_view host) {
  if (host.empty() || host.size() > kHostBytesMax) return false;
  return std::ranges::all_of(host, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '.' ||
           c == '-' || c == '_';
  });
}

/// Whether `host`, which stands between brackets, is an IPv6 address; a zone ("%eth0") may follow.
bool is_ipv6(std::string_view host) {
  if (host.empty() || host.size() > kHostBytesMax) return false;
  const std::string_view number = host.substr(0, host.find('%'));
  return std::ranges::all_of(number, [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F') || c == ':' || c == '.';
  });
}

Result<std::uint16_t> parse_port(std::string_view text) {
  std::uint16_t number = 0;
  const auto [end, problem] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (problem == std::errc{} && end == text.data() + text.size() && number != 0) return number;
  if (problem == std::errc::result_out_of_range && std::ranges::all_of(text, is_digit)) {
    return invalid_argument(fmt::format("port {} is above 65535", text));
  }
  return invalid_argument(fmt::format("\"{}\" is not a port", text));
}

}  // namespace

Result<Address> parse_address(std::string_view text) {
  const auto colon = text.rfind(':');
  if (colon == std::string_view::npos || text.ends_with(']')) {
    return invalid_argument(fmt::format("the port is missing in \"{}\"", text));
  }
  std::string_view host = text.substr(0, colon);
  const bool has_brackets = host.size() > 2 && host.starts_with('[') && host.ends_with(']');
  if (has_brackets) host = host.substr(1, host.size() - 2);
  if (has_brackets ? !is_ipv6(host) : !is_host(host)) {
    return invalid_argument(fmt::format("\"{}\" is not a host", text.substr(0, colon)));
  }
  BATON_TRY(const std::uint16_t port, parse_port(text.substr(colon + 1)));
  return Address{.host = std::string(host), .port = port};
}

SchemeSplit split_scheme(std::string_view url) {
  constexpr std::string_view kMark = "://";
  const auto at = url.find(kMark);
  if (at == std::string_view::npos) return {.scheme = {}, .rest = url};
  return {.scheme = url.substr(0, at), .rest = url.substr(at + kMark.size())};
}

Result<BrokerAddress> parse_broker_address(std::string_view text) {
  const auto [scheme, rest] = split_scheme(text);
  if (!scheme.empty() && scheme != "baton" && scheme != "batons") {
    return invalid_argument(fmt::format(
        "address \"{}\": a broker's address is HOST:PORT, baton://HOST:PORT or batons://HOST:PORT",
        text));
  }
  BrokerAddress found{
      .address = std::string(rest), .is_tls = scheme == "batons", .is_plain = scheme == "baton"};
  if (scheme.empty() && (rest.starts_with("unix:") || rest.starts_with("unix-abstract:"))) {
    return found;
  }
  const auto parsed = parse_address(rest);
  if (!parsed)
    return invalid_argument(fmt::format("address \"{}\": {}", text, parsed.error().text));
  return found;
}

}  // namespace baton
