#include "base/secure/settings.h"

#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "base/secure/pem.h"

namespace baton::secure {
namespace {

constexpr std::size_t kSecretBytesMax = 4096;

void take(std::string& value, const char* name, const Environment& environment) {
  if (value.empty()) value = environment(name).value_or("");
}

/// The first line of a file, or what was given directly. Never quoted: it is a secret.
Result<std::string> secret(std::string given, const std::string& path, std::string_view what) {
  if (path.empty()) return given;
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  std::string line;
  std::getline(file, line);
  if (!file.is_open() || file.bad() || (line.empty() && errno != 0)) {
    return invalid_argument(fmt::format("cannot read the {} file {}: {}", what, path,
                                        std::generic_category().message(errno)));
  }
  if (line.ends_with('\r')) line.pop_back();
  if (line.empty())
    return invalid_argument(fmt::format("the first line of the {} file {} is empty", what, path));
  if (line.size() > kSecretBytesMax) {
    return invalid_argument(
        fmt::format("the {} in {} is longer than {} bytes", what, path, kSecretBytesMax));
  }
  return line;
}

Status check_login(const client::SecurityOptions& options) {
  const int ways = (options.user.empty() && options.password.empty() ? 0 : 1) +
                   (options.token.empty() ? 0 : 1) + (options.credentials_file.empty() ? 0 : 1);
  if (ways > 1)
    return invalid_argument("give one login: a user with a password, a token, or credentials");
  if (options.user.empty() && !options.password.empty()) {
    return invalid_argument("a password is given without a user");
  }
  if (!options.user.empty() && options.password.empty()) {
    return invalid_argument(fmt::format(
        "user {} has no password: name a file that holds it, or set BATON_PASSWORD", options.user));
  }
  if (options.credentials_file.empty() || std::ifstream(options.credentials_file)) return {};
  return invalid_argument(fmt::format("cannot read the credentials file {}: {}",
                                      options.credentials_file,
                                      std::generic_category().message(errno)));
}

}  // namespace

Environment process_environment() {
  return [](const char* name) -> std::optional<std::string> {
    const char* value = std::getenv(name);  // NOLINT(concurrency-mt-unsafe): nobody sets any.
    if (value == nullptr) return std::nullopt;
    return value;
  };
}

bool Settings::wants_tls() const { return tls || files != client::TlsOptions{}; }

bool Settings::wants_login() const {
  return !user.empty() || !password_file.empty() || !token_file.empty() ||
         !credentials_file.empty() || !mechanism.empty() || !password.empty() || !token.empty();
}

void take_tls_variables(Settings& settings, Scheme scheme, const Environment& environment) {
  if (scheme == Scheme::plain && !settings.wants_tls()) return;
  take(settings.files.ca_file, "BATON_TLS_CA", environment);
  take(settings.files.server_name, "BATON_TLS_SERVER_NAME", environment);
  // Do not combine a given certificate with the environment's key, or the other way round.
  if (!settings.files.certificate_file.empty() || !settings.files.key_file.empty()) return;
  take(settings.files.certificate_file, "BATON_TLS_CERT", environment);
  take(settings.files.key_file, "BATON_TLS_KEY", environment);
}

void take_login_variables(Settings& settings, const Environment& environment) {
  const bool has_secret = !settings.password_file.empty() || !settings.password.empty();
  if (!settings.user.empty() && !has_secret) {
    take(settings.password, "BATON_PASSWORD", environment);
    if (settings.password.empty()) {
      take(settings.password_file, "BATON_PASSWORD_FILE", environment);
    }
  }
  if (settings.wants_login()) return;
  take(settings.user, "BATON_USER", environment);
  take(settings.password, "BATON_PASSWORD", environment);
  if (settings.password.empty()) take(settings.password_file, "BATON_PASSWORD_FILE", environment);
  take(settings.token, "BATON_TOKEN", environment);
  if (settings.token.empty()) take(settings.token_file, "BATON_TOKEN_FILE", environment);
  take(settings.credentials_file, "BATON_CREDENTIALS_FILE", environment);
}

Result<client::SecurityOptions> load(const Settings& settings, bool tls) {
  client::SecurityOptions options;
  if (tls || settings.wants_tls()) {
    BATON_TRY_STATUS(read_pem(settings.files));
    options.tls = settings.files;
  }
  options.user = settings.user;
  BATON_TRY(options.password, secret(settings.password, settings.password_file, "password"));
  BATON_TRY(options.token, secret(settings.token, settings.token_file, "token"));
  options.credentials_file = settings.credentials_file;
  options.mechanism = settings.mechanism;
  BATON_TRY_STATUS(check_login(options));
  return options;
}

}  // namespace baton::secure
