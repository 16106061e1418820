#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <baton/connection.h>
#include <baton/security.h>

#include "base/result.h"
#include "base/secure/settings.h"

namespace baton::pipeline {

/// Names and values that are passed on unchanged: headers, properties of a client library.
using Properties = std::vector<std::pair<std::string, std::string>>;

/// How the rest of a URL, after its prefix, is read.
enum class UrlShape : std::uint8_t {
  address_and_name,  // HOST:PORT[,HOST:PORT...]/NAME
  path,              // A path of a file.
  whole,             // The kind parses it.
  nothing,           // The rest is empty or ":".
};

/// What is known of a kind of end without opening one: its name and the form of its URLs. Each kind
/// defines an EndKind in its kind.h, which is compiled even if the kind is switched off.
struct EndKind {
  struct Scheme {
    std::string_view prefix{};  // "kafka://".
    bool tls = false;
  };

  std::string_view name{};  // "kafka".
  /// The protocol of its servers: kinds with the same servers share TLS settings and logins. Empty:
  /// the kind has no settings for TLS and logins.
  std::string_view servers{};
  UrlShape shape = UrlShape::address_and_name;
  std::array<Scheme, 4> schemes{};  // Errors show the first one.
  std::string_view form{};          // The form of the rest, for errors: "HOST:PORT/STREAM".
  /// A Baton broker, which BATON_TLS_CA and similar variables are for, and which has no logins.
  bool is_broker = false;
  /// Those settings of this source that only some sources have.
  std::array<std::string_view, 3> settings{};
  /// The CMake option that switches the kind on; empty: every build has the kind.
  std::string_view option{};
};

/// The kind and place of a source, a sink or a target of dead letters: "KIND://ADDRESS/NAME", or
/// "KIND:PATH".
struct Endpoint {
  std::string url{};              // As it was written.
  const EndKind* kind = nullptr;  // Null if no URL was given.
  std::string address{};          // "127.0.0.1:7470"; several are separated by commas.
  std::string name{};             // Stream, queue, topic; a path after "sqlite:" and "file:".
  bool tls = false;               // Set by the scheme: batons-stream://, kafkas://, natss://.
  /// How to connect, once the files that the settings name have been read.
  client::SecurityOptions security{};

  [[nodiscard]] std::string_view kind_name() const { return kind == nullptr ? "" : kind->name; }
  [[nodiscard]] bool is_broker() const { return kind != nullptr && kind->is_broker; }
  [[nodiscard]] bool is_path() const { return kind != nullptr && kind->shape == UrlShape::path; }
};

/// A kind, and whether this build has it.
struct KnownKind {
  const EndKind* end = nullptr;
  bool is_on = true;
};
/// Fails with invalid_argument. The error for a kind that is not among `kinds` lists those that are
/// switched on; the error for a kind that is switched off says how to switch it on.
Result<Endpoint> parse_url(std::string_view url, std::span<const KnownKind> kinds);

/// Parses HOST:PORT to listen on; port 0 means any free port.
Result<std::pair<std::string, int>> parse_host_port(std::string_view address);

/// Settings for a server at `endpoint`, completed from the environment, with their files read.
/// BATON_TLS_CA and similar variables apply to Baton brokers. BATON_USER and similar variables
/// apply to none, because a pipeline may log in to two servers.
Result<client::SecurityOptions> load_security(const Endpoint& endpoint,
                                              const secure::Settings& settings,
                                              const secure::Environment& environment);
/// Options to connect to a Baton broker.
client::ConnectionOptions connection_to(const Endpoint& endpoint);

/// Whether both are the same queue or topic. Host names are not resolved, but localhost is
/// 127.0.0.1.
bool is_same_place(const Endpoint& left, const Endpoint& right);
/// Whether both are at the same servers, so that the same credentials work for both.
bool is_same_servers(const Endpoint& left, const Endpoint& right);

}  // namespace baton::pipeline
