#pragma once

#include <string>
#include <string_view>
#include <utility>

#include <baton/connection.h>
#include <baton/security.h>

#include "base/result.h"
#include "base/secure/settings.h"

namespace baton::pipeline {

/// What a source, a sink or a target of dead letters is, and where: "KIND://ADDRESS/NAME", or
/// "KIND:PATH".
struct Endpoint {
  std::string url{};      // As it was written.
  std::string kind{};     // "baton-stream", "kafka", "sqlite", ...
  std::string address{};  // "127.0.0.1:7470"; several between commas.
  std::string name{};     // Stream, queue, topic; a path after "sqlite:" and "file:".
  bool tls = false;       // By the scheme: batons-stream://, kafkas://, natss://.
  /// How to reach it, once the files that the settings name are read.
  client::SecurityOptions security{};

  [[nodiscard]] bool is_broker() const { return kind.starts_with("baton-"); }
};

/// baton-stream://HOST:PORT/STREAM, baton-queue://HOST:PORT/QUEUE, kafka://HOST:PORT[,...]/TOPIC,
/// nats://HOST:PORT[,...]/STREAM/SUBJECT; with TLS batons-stream://, batons-queue://, kafkas:// and
/// natss:// (or tls://). baton:// and batons:// are streams.
Result<Endpoint> parse_source_url(std::string_view url);
/// sqlite:PATH, postgres://..., http://..., https://..., stdout (or "stdout:").
Result<Endpoint> parse_sink_url(std::string_view url);
/// baton-queue://HOST:PORT/QUEUE, kafka://HOST:PORT[,...]/TOPIC, file:PATH.
Result<Endpoint> parse_dead_letters_url(std::string_view url);

/// HOST:PORT, to listen on; port 0 is any.
Result<std::pair<std::string, int>> parse_host_port(std::string_view address);

/// Settings, completed by the environment, and the files behind them, for a server at `endpoint`.
/// BATON_TLS_CA and the others like it are of Baton brokers; BATON_USER and the others like it are
/// of none, since a pipeline may log in to two servers.
Result<client::SecurityOptions> load_security(const Endpoint& endpoint,
                                              const secure::Settings& settings,
                                              const secure::Environment& environment);
/// To the broker of a baton-stream or baton-queue.
client::ConnectionOptions connection_to(const Endpoint& endpoint);

/// Whether both are one and the same queue or topic. Names of hosts are not looked up, but
/// localhost is 127.0.0.1.
bool is_same_place(const Endpoint& left, const Endpoint& right);

}  // namespace baton::pipeline
