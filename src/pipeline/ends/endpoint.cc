#include "pipeline/ends/endpoint.h"

#include <algorithm>
#include <cstdint>
#include <set>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/parse.h"
#include "base/result.h"

namespace baton::pipeline {
namespace {

constexpr std::size_t kUrlMax = 4096;

/// The URL for errors, which are logged: without a possible password.
std::string shown(std::string_view url) {
  constexpr std::size_t kShownMax = 64;
  if (url.find('@') == url.npos) return std::string(url.substr(0, kShownMax));
  const std::size_t scheme = url.find("://");
  return scheme == url.npos ? "..."
                            : fmt::format("{}://...", url.substr(0, std::min(scheme, kShownMax)));
}

/// Shows "kafkas://" in the form of "kafka://".
std::string form_of(const EndKind& kind, const EndKind::Scheme& scheme) {
  return fmt::format("{}{}", scheme.prefix, kind.form);
}

/// The single addresses of "HOST:PORT,HOST:PORT".
std::set<std::string> hosts_of(std::string_view addresses) {
  constexpr std::string_view kLocal = "localhost:";
  std::set<std::string> hosts;
  while (!addresses.empty()) {
    const std::size_t comma = std::min(addresses.find(','), addresses.size());
    std::string host(addresses.substr(0, comma));
    if (host.starts_with(kLocal)) host = "127.0.0.1:" + host.substr(kLocal.size());
    hosts.insert(std::move(host));
    addresses.remove_prefix(std::min(comma + 1, addresses.size()));
  }
  return hosts;
}

/// Checks the name and the addresses, each by itself.
Status check_addresses(const Endpoint& endpoint, const std::string& form) {
  // The URL is logged and shown, so it must not contain a password.
  if (endpoint.address.find('@') != std::string::npos) {
    return invalid_argument(
        "user names and passwords have no place in a URL: set login.user and login.password_file");
  }
  for (const std::string& host : hosts_of(endpoint.address)) {
    const auto place = parse_host_port(host);
    if (!place.has_value()) {
      return invalid_argument(fmt::format("{}; the form is {}", place.error().text, form));
    }
  }
  return {};
}

Result<Endpoint> parse_kind(const EndKind& kind, const EndKind::Scheme& scheme,
                            std::string_view url) {
  const std::string form = form_of(kind, scheme);
  const Error not_the_form = invalid_argument(fmt::format("'{}' is not {}", shown(url), form));
  const std::string_view rest = url.substr(scheme.prefix.size());
  Endpoint endpoint{.url = std::string(url), .kind = &kind, .tls = scheme.tls};
  switch (kind.shape) {
    case UrlShape::whole: return endpoint;
    case UrlShape::nothing:
      if (rest != "" && rest != ":") return not_the_form;
      return endpoint;
    case UrlShape::path:
      if (rest.empty()) return not_the_form;
      endpoint.name = rest;
      return endpoint;
    case UrlShape::address_and_name: break;
  }
  const std::size_t slash = rest.find('/');
  if (slash == rest.npos || slash == 0 || slash + 1 == rest.size()) return not_the_form;
  endpoint.address = rest.substr(0, slash);
  endpoint.name = rest.substr(slash + 1);
  BATON_TRY_STATUS(check_addresses(endpoint, form));
  return endpoint;
}

}  // namespace

Result<std::pair<std::string, int>> parse_host_port(std::string_view address) {
  constexpr std::uint64_t kPortMax = 65'535;
  const std::size_t colon = address.rfind(':');
  if (colon == std::string_view::npos || colon == 0) {
    return invalid_argument(fmt::format("'{}' is not HOST:PORT", address.substr(0, 64)));
  }
  BATON_TRY(const std::uint64_t port, parse_number(address.substr(colon + 1), 0, kPortMax));
  return std::pair(std::string(address.substr(0, colon)), static_cast<int>(port));
}

Result<client::SecurityOptions> load_security(const Endpoint& endpoint,
                                              const secure::Settings& settings,
                                              const secure::Environment& environment) {
  secure::Settings complete = settings;
  if (endpoint.is_broker()) {
    secure::take_tls_variables(complete, endpoint.tls ? secure::Scheme::tls : secure::Scheme::plain,
                               environment);
    if (complete.wants_login()) {
      return invalid_argument(
          "a Baton broker has no logins: it knows clients by their certificates");
    }
  }
  if (endpoint.address.empty() && (complete.wants_tls() || complete.wants_login())) {
    return invalid_argument(
        fmt::format("{} has no settings for TLS and logins", endpoint.kind_name()));
  }
  return secure::load(complete, endpoint.tls);
}

client::ConnectionOptions connection_to(const Endpoint& endpoint) {
  client::ConnectionOptions connection;
  connection.address = endpoint.address;
  connection.tls = endpoint.security.tls;
  return connection;
}

bool is_same_place(const Endpoint& left, const Endpoint& right) {
  if (left.kind == nullptr || left.kind != right.kind || left.name != right.name) return false;
  const std::set<std::string> hosts = hosts_of(left.address);
  return std::ranges::any_of(hosts_of(right.address),
                             [&](const std::string& host) { return hosts.contains(host); });
}

bool is_same_servers(const Endpoint& left, const Endpoint& right) {
  return left.kind != nullptr && right.kind != nullptr && !left.address.empty() &&
         left.address == right.address && left.kind->servers == right.kind->servers;
}

Result<Endpoint> parse_url(std::string_view url, std::span<const KnownKind> kinds) {
  if (url.size() > kUrlMax)
    return invalid_argument(fmt::format("is longer than {} bytes", kUrlMax));
  if (url.find('\0') != url.npos) return invalid_argument("holds a zero byte");
  std::vector<std::string> forms;
  for (const auto& [kind, is_on] : kinds) {
    for (const EndKind::Scheme& scheme : kind->schemes) {
      if (scheme.prefix.empty() || !url.starts_with(scheme.prefix)) continue;
      if (is_on) return parse_kind(*kind, scheme, url);
      return invalid_argument(
          fmt::format("this build has no {}: build it with -D{}=ON", kind->name, kind->option));
    }
    if (is_on) forms.push_back(form_of(*kind, kind->schemes.front()));
  }
  return invalid_argument(fmt::format("'{}' is none of {}", shown(url), fmt::join(forms, ", ")));
}

}  // namespace baton::pipeline
