#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <baton/security.h>

#include "base/result.h"

/// How a server is reached that asks for TLS or a login: the same settings, from flags, a config or
/// the environment, for Baton, NATS, etcd and Kafka.
namespace baton::secure {

/// The value of a variable; none: it is not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;
Environment process_environment();

/// What was given; files are not read yet.
struct Settings {
  bool tls = false;  // Asked for by itself.
  client::TlsOptions files{};
  std::string user{};
  std::string password_file{};
  std::string token_file{};
  std::string credentials_file{};
  std::string mechanism{};
  std::string password{};  // These two from the environment alone: others can see command lines.
  std::string token{};

  /// A file is asking for TLS, too.
  [[nodiscard]] bool wants_tls() const;
  [[nodiscard]] bool wants_login() const;

  bool operator==(const Settings&) const = default;
};

/// What a server's URL says of TLS; an address without a scheme says nothing.
enum class Scheme : std::uint8_t { open, plain, tls };

/// Takes what is not given from BATON_TLS_CA, BATON_TLS_CERT, BATON_TLS_KEY and
/// BATON_TLS_SERVER_NAME. The variables complete TLS where it is wanted; by themselves they ask for
/// it only where the URL says nothing.
void take_tls_variables(Settings& settings, Scheme scheme, const Environment& environment);
/// The same with BATON_USER, BATON_PASSWORD, BATON_PASSWORD_FILE, BATON_TOKEN, BATON_TOKEN_FILE
/// and BATON_CREDENTIALS_FILE, unless a login is given.
void take_login_variables(Settings& settings, const Environment& environment);

/// Reads the files, and checks that all of it is usable and fits together. `tls`: the URL says so.
/// Fails with invalid_argument, naming the file; no error holds a secret.
Result<client::SecurityOptions> load(const Settings& settings, bool tls);

}  // namespace baton::secure
