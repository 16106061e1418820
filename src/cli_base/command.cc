#include "cli_base/command.h"

#include <string>
#include <string_view>

#include "cli_base/help.h"
#include "cli_base/parse.h"

namespace baton::cli {

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
  add_json_flag(command, flags.json);
  const std::string group(kConnectionGroup);
  command.add_option("-a,--address", flags.address, "The broker [127.0.0.1:7470].")
      ->type_name("HOST:PORT")
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
      ->type_name("FILE")
      ->group(group);
  command
      .add_option("--tls-cert", flags.tls_files.certificate_file,
                  "Show this certificate (PEM) to the broker.")
      ->type_name("FILE")
      ->group(group);
  command.add_option("--tls-key", flags.tls_files.key_file, "The certificate's private key (PEM).")
      ->type_name("FILE")
      ->group(group);
  command
      .add_option("--tls-server-name", flags.tls_files.server_name,
                  "The name in the broker's certificate, if it differs from the address.")
      ->type_name("NAME")
      ->group(group);
}

void add_json_flag(CLI::App& command, bool& json) {
  command.add_flag("-j,--json", json, "Print JSON, one object per line.");
}

void add_yes_flag(CLI::App& command, bool& yes) {
  command.add_flag("-y,--yes", yes, "Do not ask. Scripts are never asked; only a terminal is.");
}

CLI::App* add_noun(CLI::App& parent, const Verb& noun) {
  CLI::App* command = parent.add_subcommand(noun.name, noun.help);
  command->require_subcommand(1);
  command->footer("Example:\n  " + noun.example);
  return command;
}

std::vector<std::string> aliases_of(std::string_view verb) {
  if (verb == "list") return {"ls"};
  if (verb == "ls") return {"list"};
  if (verb == "delete") return {"rm"};
  if (verb == "del") return {"delete", "rm"};
  if (verb == "describe") return {"info"};
  return {};
}

}  // namespace baton::cli
