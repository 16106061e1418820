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

/// Names and values that are passed on as they are: headers, properties of a client library.
using Properties = std::vector<std::pair<std::string, std::string>>;

/// How the rest of a URL is read, after what it begins with.
enum class UrlShape : std::uint8_t {
  address_and_name,  // HOST:PORT[,HOST:PORT...]/NAME
  path,              // Of a file.
  whole,             // By the kind itself.
  nothing,           // There is none, or ":".
};

/// What is to be known of a kind of end without opening one: its name and how its URLs are written.
/// Each kind defines them in its kind.h, which is there even where the kind is switched off.
struct EndKind {
  struct Scheme {
    std::string_view prefix{};  // "kafka://".
    bool tls = false;
  };

  std::string_view name{};  // "kafka".
  /// What it is spoken to with: kinds of the same servers share TLS settings and logins. Empty:
  /// settings of TLS and logins are not for it.
  std::string_view servers{};
  UrlShape shape = UrlShape::address_and_name;
  std::array<Scheme, 4> schemes{};  // The first is the one that errors show.
  std::string_view form{};          // What follows, for errors: "HOST:PORT/STREAM".
  /// A Baton broker: BATON_TLS_CA and the others like it are meant for it, and it has no logins.
  bool is_broker = false;
  /// Of the settings that not every source has, those that this one has.
  std::array<std::string_view, 3> settings{};
  /// The CMake option that switches the kind on; empty: every build has it.
  std::string_view option{};
};

/// What a source, a sink or a target of dead letters is, and where: "KIND://ADDRESS/NAME", or
/// "KIND:PATH".
struct Endpoint {
  std::string url{};              // As it was written.
  const EndKind* kind = nullptr;  // Null: none was given.
  std::string address{};          // "127.0.0.1:7470"; several between commas.
  std::string name{};             // Stream, queue, topic; a path after "sqlite:" and "file:".
  bool tls = false;               // By the scheme: batons-stream://, kafkas://, natss://.
  /// How to reach it, once the files that the settings name are read.
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
/// Fails with invalid_argument. A kind that is not among `kinds` is an error that lists those that
/// are on; one that is switched off is an error that says how to switch it on.
Result<Endpoint> parse_url(std::string_view url, std::span<const KnownKind> kinds);

/// HOST:PORT, to listen on; port 0 is any.
Result<std::pair<std::string, int>> parse_host_port(std::string_view address);

/// Settings, completed by the environment, and the files behind them, for a server at `endpoint`.
/// BATON_TLS_CA and the others like it are of Baton brokers; BATON_USER and the others like it are
/// of none, since a pipeline may log in to two servers.
Result<client::SecurityOptions> load_security(const Endpoint& endpoint,
                                              const secure::Settings& settings,
                                              const secure::Environment& environment);
/// To a Baton broker.
client::ConnectionOptions connection_to(const Endpoint& endpoint);

/// Whether both are one and the same queue or topic. Names of hosts are not looked up, but
/// localhost is 127.0.0.1.
bool is_same_place(const Endpoint& left, const Endpoint& right);
/// Whether both are at the same servers, so that what opens the one opens the other.
bool is_same_servers(const Endpoint& left, const Endpoint& right);

}  // namespace baton::pipeline
