#include "cli_base/command.h"

#include <string>
#include <string_view>

#include "cli_base/parse.h"

namespace baton::cli {
namespace {

constexpr std::string_view kConnection = "Connection";

}  // namespace

client::ConnectionOptions ClientFlags::connection() const {
  client::ConnectionOptions options;
  options.address = address;
  options.deadline = timeout;
  options.give_up_after = timeout;
  if (tls || !tls_files.ca_file.empty() || !tls_files.certificate_file.empty()) {
    options.tls = tls_files;
  }
  return options;
}

void add_client_flags(CLI::App& command, ClientFlags& flags) {
  command.add_flag("--json", flags.json, "Print JSON, one object per line.");
  const std::string group(kConnection);
  command.add_option("--address", flags.address, "The broker's HOST:PORT [127.0.0.1:7470].")
      ->envname("BATON_ADDRESS")
      ->group(group);
  const auto parse = +[](std::string_view text) { return parse_milliseconds(text); };
  add_parsed(
      command, "--timeout", parse, [&flags](Milliseconds value) { flags.timeout = value; },
      "How long a call may take, connecting included [30s].")
      ->group(group);
  command.add_flag("--tls", flags.tls, "Connect with TLS, trusting the system's authorities.")
      ->group(group);
  command
      .add_option("--tls-ca", flags.tls_files.ca_file, "Trust this authority (PEM); implies --tls.")
      ->group(group);
  command
      .add_option("--tls-cert", flags.tls_files.certificate_file, "Show this certificate (PEM).")
      ->group(group);
  command.add_option("--tls-key", flags.tls_files.key_file, "The certificate's private key (PEM).")
      ->group(group);
  command
      .add_option("--tls-server-name", flags.tls_files.server_name,
                  "The name in the broker's certificate, where it is not the address.")
      ->group(group);
}

}  // namespace baton::cli
