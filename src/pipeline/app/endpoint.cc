#include "pipeline/app/endpoint.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <set>
#include <span>

#include "base/parse.h"

namespace baton::pipeline {
namespace {

constexpr std::size_t kUrlMax = 4096;

/// How the rest of a URL is read.
enum class Shape : std::uint8_t { address_and_name, path, whole };
struct Kind {
  std::string_view name;
  std::string_view prefix;
  Shape shape;
  std::string_view form;
  bool tls = false;
};

constexpr Kind kStream{"baton-stream", "baton-stream://", Shape::address_and_name,
                       "baton-stream://HOST:PORT/STREAM"};
constexpr Kind kQueue{"baton-queue", "baton-queue://", Shape::address_and_name,
                      "baton-queue://HOST:PORT/QUEUE"};
constexpr Kind kStreamShort{"baton-stream", "baton://", Shape::address_and_name, ""};
constexpr Kind kStreamShortTls{"baton-stream", "batons://", Shape::address_and_name, "", true};
constexpr Kind kStreamTls{"baton-stream", "batons-stream://", Shape::address_and_name, "", true};
constexpr Kind kQueueTls{"baton-queue", "batons-queue://", Shape::address_and_name, "", true};
constexpr Kind kKafkaTls{"kafka", "kafkas://", Shape::address_and_name, "", true};
constexpr Kind kNatsTls{"nats", "natss://", Shape::address_and_name, "", true};
constexpr Kind kNatsTlsOwn{"nats", "tls://", Shape::address_and_name, "", true};
constexpr Kind kKafka{"kafka", "kafka://", Shape::address_and_name,
                      "kafka://HOST:PORT[,HOST:PORT...]/TOPIC"};
constexpr Kind kNats{"nats", "nats://", Shape::address_and_name,
                     "nats://HOST:PORT[,HOST:PORT...]/STREAM/SUBJECT.{partition}"};
constexpr Kind kSqlite{"sqlite", "sqlite:", Shape::path, "sqlite:PATH"};
constexpr Kind kFile{"file", "file:", Shape::path, "file:PATH"};
constexpr Kind kPostgres{"postgres", "postgres://", Shape::whole,
                         "postgres://USER@HOST:PORT/DATABASE"};
constexpr Kind kPostgresql{"postgres", "postgresql://", Shape::whole, ""};
constexpr Kind kHttp{"http", "http://", Shape::whole, "http://HOST:PORT/PATH"};
constexpr Kind kHttps{"http", "https://", Shape::whole, ""};
constexpr Kind kStdout{"stdout", "stdout", Shape::whole, "stdout"};

Error wrong(std::string text) { return {Errc::invalid_argument, std::move(text)}; }

/// For errors, which end up in logs: without what may be a password.
std::string shown(std::string_view url) {
  constexpr std::size_t kShownMax = 64;
  if (url.find('@') == url.npos) return std::string(url.substr(0, kShownMax));
  const std::size_t scheme = url.find("://");
  return scheme == url.npos ? "..."
                            : fmt::format("{}://...", url.substr(0, std::min(scheme, kShownMax)));
}

/// "kafkas://" is written like "kafka://".
std::string form_of(const Kind& kind) {
  if (!kind.form.empty()) return std::string(kind.form);
  const bool several = kind.name == "kafka" || kind.name == "nats";
  const std::string_view name = kind.name == "nats"          ? "STREAM/SUBJECT.{partition}"
                                : kind.name == "kafka"       ? "TOPIC"
                                : kind.name == "baton-queue" ? "QUEUE"
                                                             : "STREAM";
  return fmt::format("{}HOST:PORT{}/{}", kind.prefix, several ? "[,HOST:PORT...]" : "", name);
}

/// One by one, of "HOST:PORT,HOST:PORT".
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

Result<Endpoint> parse_kind(const Kind& kind, std::string_view url) {
  Endpoint endpoint{.url = std::string(url), .kind = std::string(kind.name)};
  const std::string_view rest = url.substr(kind.prefix.size());
  if (kind.name == "stdout" && rest != "" && rest != ":") {
    return wrong(fmt::format("'{}' is not {}", url, kind.form));
  }
  if (kind.shape == Shape::whole) return endpoint;
  const std::size_t slash = kind.shape == Shape::path ? 0 : rest.find('/');
  const bool has_address = kind.shape == Shape::path || (slash != rest.npos && slash > 0);
  const std::string_view name = !has_address                ? ""
                                : kind.shape == Shape::path ? rest
                                                            : rest.substr(slash + 1);
  if (name.empty()) return wrong(fmt::format("'{}' is not {}", shown(url), form_of(kind)));
  endpoint.address = rest.substr(0, slash);
  endpoint.name = name;
  endpoint.tls = kind.tls;
  if (kind.shape == Shape::path) return endpoint;
  // Passwords have no place in what is logged and shown.
  if (endpoint.address.find('@') != std::string::npos) {
    return wrong(
        "user names and passwords have no place in a URL: set login.user and login.password_file");
  }
  for (const std::string& host : hosts_of(endpoint.address)) {
    const auto place = parse_host_port(host);
    if (!place.has_value()) {
      return wrong(fmt::format("{}; the form is {}", place.error().text, form_of(kind)));
    }
  }
  return endpoint;
}

Result<Endpoint> parse(std::string_view url, std::span<const Kind> kinds) {
  if (url.size() > kUrlMax) return wrong(fmt::format("is longer than {} bytes", kUrlMax));
  if (url.find('\0') != url.npos) return wrong("holds a zero byte");
  std::string forms;
  for (const Kind& kind : kinds) {
    if (url.starts_with(kind.prefix)) return parse_kind(kind, url);
    if (!kind.form.empty()) forms += fmt::format("{}{}", forms.empty() ? "" : ", ", kind.form);
  }
  return wrong(fmt::format("'{}' is none of {}", shown(url), forms));
}

}  // namespace

Result<std::pair<std::string, int>> parse_host_port(std::string_view address) {
  constexpr std::uint64_t kPortMax = 65'535;
  const std::size_t colon = address.rfind(':');
  if (colon == std::string_view::npos || colon == 0) {
    return wrong(fmt::format("'{}' is not HOST:PORT", address.substr(0, 64)));
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
      return wrong("a Baton broker has no logins: it knows clients by their certificates");
    }
  }
  if (endpoint.address.empty() && (complete.wants_tls() || complete.wants_login())) {
    return wrong(fmt::format("TLS and logins are not for {}", endpoint.kind));
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
  if (left.kind != right.kind || left.name != right.name) return false;
  const std::set<std::string> hosts = hosts_of(left.address);
  return std::ranges::any_of(hosts_of(right.address),
                             [&](const std::string& host) { return hosts.contains(host); });
}

Result<Endpoint> parse_source_url(std::string_view url) {
  static constexpr std::array kKinds{kStream,      kQueue,          kKafka,     kNats,
                                     kStreamTls,   kQueueTls,       kKafkaTls,  kNatsTls,
                                     kStreamShort, kStreamShortTls, kNatsTlsOwn};
  return parse(url, kKinds);
}

Result<Endpoint> parse_sink_url(std::string_view url) {
  static constexpr std::array kKinds{kSqlite, kPostgres, kPostgresql, kHttp, kHttps, kStdout};
  return parse(url, kKinds);
}

Result<Endpoint> parse_dead_letters_url(std::string_view url) {
  static constexpr std::array kKinds{kQueue, kKafka, kFile, kQueueTls, kKafkaTls};
  return parse(url, kKinds);
}

}  // namespace baton::pipeline
