#include "cli/base/security_flags.h"

#include <array>

#include "cli/base/help.h"

namespace baton::cli {
namespace {

struct Flag {
  const char* name;
  const char* value;
  std::string& (*field)(secure::Settings& settings);
  const char* help;
};

using secure::Settings;

constexpr std::array kTlsFlags = std::to_array<Flag>({
    {"--tls-ca", "FILE", [](Settings& s) -> std::string& { return s.files.ca_file; },
     "Trust this authority (PEM); implies --tls [$BATON_TLS_CA]."},
    {"--tls-cert", "FILE", [](Settings& s) -> std::string& { return s.files.certificate_file; },
     "Show this certificate (PEM); implies --tls [$BATON_TLS_CERT]."},
    {"--tls-key", "FILE", [](Settings& s) -> std::string& { return s.files.key_file; },
     "The certificate's private key (PEM) [$BATON_TLS_KEY]."},
    {"--tls-server-name", "NAME", [](Settings& s) -> std::string& { return s.files.server_name; },
     "The name in the server's certificate, if it differs from the address; or set "
     "$BATON_TLS_SERVER_NAME."},
});

constexpr std::array kLoginFlags = std::to_array<Flag>({
    {"--user", "NAME", [](Settings& s) -> std::string& { return s.user; },
     "Log in as this user (NATS, etcd, Kafka) [$BATON_USER]; the password is in $BATON_PASSWORD or "
     "a file."},
    {"--password-file", "FILE", [](Settings& s) -> std::string& { return s.password_file; },
     "The user's password is the first line of this file [$BATON_PASSWORD_FILE]."},
    {"--token-file", "FILE", [](Settings& s) -> std::string& { return s.token_file; },
     "A token, the first line of this file (NATS) [$BATON_TOKEN_FILE; the token: $BATON_TOKEN]."},
    {"--credentials", "FILE", [](Settings& s) -> std::string& { return s.credentials_file; },
     "A credentials file (NATS) [$BATON_CREDENTIALS_FILE]."},
});

template <class Flags>
void add(CLI::App& command, const char* group, const Flags& flags, secure::Settings& settings) {
  for (const Flag& flag : flags) {
    command.add_option(flag.name, flag.field(settings), flag.help)
        ->type_name(flag.value)
        ->group(group);
  }
}

}  // namespace

void add_tls_flags(CLI::App& command, secure::Settings& settings) {
  command.add_flag("--tls", settings.tls, "Connect with TLS, trusting the system's authorities.")
      ->group(kConnectionGroup);
  add(command, kConnectionGroup, kTlsFlags, settings);
}

void add_login_flags(CLI::App& command, secure::Settings& settings) {
  add(command, kLoginGroup, kLoginFlags, settings);
}

std::vector<std::string> to_flags(const secure::Settings& settings) {
  std::vector<std::string> flags;
  if (settings.tls) flags.emplace_back("--tls");
  secure::Settings copy = settings;
  const auto put = [&](const auto& all) {
    for (const Flag& flag : all) {
      if (flag.field(copy).empty()) continue;
      flags.emplace_back(flag.name);
      flags.push_back(flag.field(copy));
    }
  };
  put(kTlsFlags);
  put(kLoginFlags);
  return flags;
}

}  // namespace baton::cli
