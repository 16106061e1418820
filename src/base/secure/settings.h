#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include <baton/security.h>

#include "base/result.h"

/// How to reach a server that asks for TLS or a login: the same settings, from flags, a config or
/// the environment, for Baton, NATS, etcd and Kafka.
namespace baton::secure {

/// The value of an environment variable; nullopt if it is not set.
using Environment = std::function<std::optional<std::string>(const char* name)>;
Environment process_environment();

/// The settings as given; files are not read yet.
struct Settings {
  bool tls = false;  // TLS was asked for explicitly.
  client::TlsOptions files{};
  std::string user{};
  std::string password_file{};
  std::string token_file{};
  std::string credentials_file{};
  std::string mechanism{};
  std::string password{};  // These two only from the environment: others see command lines.
  std::string token{};

  /// Naming a TLS file asks for TLS, too.
  [[nodiscard]] bool wants_tls() const;
  [[nodiscard]] bool wants_login() const;

  bool operator==(const Settings&) const = default;
};

/// What a server's URL says about TLS; an address without a scheme says nothing.
enum class Scheme : std::uint8_t { open, plain, tls };

/// Fills in what is not given from BATON_TLS_CA, BATON_TLS_CERT, BATON_TLS_KEY and
/// BATON_TLS_SERVER_NAME. The variables complete TLS where it is wanted; by themselves they turn
/// TLS on only where the URL says nothing.
void take_tls_variables(Settings& settings, Scheme scheme, const Environment& environment);
/// The same with BATON_USER, BATON_PASSWORD, BATON_PASSWORD_FILE, BATON_TOKEN, BATON_TOKEN_FILE
/// and BATON_CREDENTIALS_FILE, unless a login is given.
void take_login_variables(Settings& settings, const Environment& environment);

/// Reads the files, and checks that the settings are usable and fit together. `tls`: the URL says
/// so. Fails with invalid_argument, naming the file; no error text holds a secret.
Result<client::SecurityOptions> load(const Settings& settings, bool tls);

}  // namespace baton::secure
