#include "base/net/listen.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <charconv>

#include <fmt/format.h>

namespace baton {
namespace {

Error bad_address(std::string_view text, std::string_view why) {
  return {Errc::invalid_argument,
          fmt::format("the address '{}' {}; write HOST:PORT, [IPV6]:PORT or unix:PATH", text, why)};
}

/// Splits "host:port"; an IPv6 address stands in brackets, so that its colons are not taken for
/// ours.
Result<std::pair<std::string_view, std::string_view>> split(std::string_view text) {
  if (text.starts_with('[')) {
    const std::size_t close = text.find("]:");
    if (close == std::string_view::npos) return bad_address(text, "has no ']:PORT'");
    return std::pair{text.substr(1, close - 1), text.substr(close + 2)};
  }
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return bad_address(text, "has no port");
  if (text.find(':', colon + 1) != std::string_view::npos) {
    return bad_address(text, "has too many colons");
  }
  return std::pair{text.substr(0, colon), text.substr(colon + 1)};
}

bool is_loopback_v6(const std::string& host) {
  in6_addr address{};
  if (inet_pton(AF_INET6, host.c_str(), &address) != 1) return false;
  if (IN6_IS_ADDR_LOOPBACK(&address)) return true;
  return IN6_IS_ADDR_V4MAPPED(&address) && address.s6_addr[12] == 127;
}

bool is_loopback_v4(const std::string& host) {
  in_addr address{};
  return inet_pton(AF_INET, host.c_str(), &address) == 1 && (ntohl(address.s_addr) >> 24U) == 127U;
}

}  // namespace

bool ListenAddress::is_local() const {
  return unix_socket || host == "localhost" || is_loopback_v4(host) || is_loopback_v6(host);
}

std::string ListenAddress::to_string() const {
  if (unix_socket) return "unix:" + host;
  if (host.find(':') != std::string::npos) return fmt::format("[{}]:{}", host, port);
  return fmt::format("{}:{}", host, port);
}

Result<ListenAddress> parse_listen(std::string_view text) {
  ListenAddress out;
  if (text.starts_with("unix:")) {
    out.host = text.substr(5);
    out.unix_socket = true;
    if (out.host.empty()) return bad_address(text, "has no path");
    return out;
  }
  BATON_TRY(const auto parts, split(text));
  const auto [host, port] = parts;
  if (host.empty()) return bad_address(text, "has no host");
  const auto [end, problem] = std::from_chars(port.data(), port.data() + port.size(), out.port);
  if (port.empty() || problem != std::errc{} || end != port.data() + port.size()) {
    return bad_address(text, "has a port that is not 0 to 65535");
  }
  out.host = host;
  return out;
}

Status check_listen(const ListenAddress& address, bool tls, bool insecure) {
  if (tls || insecure || address.is_local()) return {};
  return Error{
      Errc::failed_precondition,
      fmt::format("--listen {} can be reached from other machines, and without TLS whoever reaches "
                  "it can read and delete every message: give a certificate and key (--tls-cert, "
                  "--tls-key), or say --insecure if the network is trusted",
                  address.to_string())};
}

Status check_http_listen(const ListenAddress& address, bool insecure) {
  if (insecure || address.is_local()) return {};
  return Error{
      Errc::failed_precondition,
      fmt::format("--http {} can be reached from other machines, and HTTP is always plain text: "
                  "whoever reaches it can read health and metrics. Choose an address of this "
                  "machine (127.0.0.1) or 'off', or say --insecure if the network is trusted",
                  address.to_string())};
}

}  // namespace baton
