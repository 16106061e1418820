#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "base/result.h"

namespace baton::pipeline {

/// What a source, a sink or a target of dead letters is, and where: "KIND://ADDRESS/NAME", or
/// "KIND:PATH".
struct Endpoint {
  std::string url{};      // As it was written.
  std::string kind{};     // "baton-stream", "kafka", "sqlite", ...
  std::string address{};  // "127.0.0.1:7470"; several between commas.
  std::string name{};     // Stream, queue, topic; a path after "sqlite:" and "file:".

  bool operator==(const Endpoint&) const = default;
};

/// baton-stream://HOST:PORT/STREAM, baton-queue://HOST:PORT/QUEUE, kafka://HOST:PORT[,...]/TOPIC,
/// nats://HOST:PORT[,...]/STREAM/SUBJECT.
Result<Endpoint> parse_source_url(std::string_view url);
/// sqlite:PATH, postgres://..., http://..., https://..., stdout (or "stdout:").
Result<Endpoint> parse_sink_url(std::string_view url);
/// baton-queue://HOST:PORT/QUEUE, kafka://HOST:PORT[,...]/TOPIC, file:PATH.
Result<Endpoint> parse_dead_letters_url(std::string_view url);

/// HOST:PORT.
Result<std::pair<std::string, int>> parse_host_port(std::string_view address);

/// Whether both are one and the same queue or topic. Names of hosts are not looked up, but
/// localhost is 127.0.0.1.
bool is_same_place(const Endpoint& left, const Endpoint& right);

}  // namespace baton::pipeline
