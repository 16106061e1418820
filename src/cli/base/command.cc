#include "cli/base/command.h"

#include <string>
#include <string_view>

#include "base/address.h"
#include "cli/base/help.h"
#include "cli/base/parse.h"
#include "cli/base/security_flags.h"
#include "sdk/base/channel.h"

namespace baton::cli {

client::ConnectionOptions ClientFlags::connection() const {
  client::ConnectionOptions options;
  options.address = address;
  options.deadline = timeout;
  options.give_up_after = timeout;
  // An invalid address is reported when it is used.
  const auto parsed = parse_broker_address(address);
  const auto scheme = !parsed            ? secure::Scheme::open
                      : parsed->is_tls   ? secure::Scheme::tls
                      : parsed->is_plain ? secure::Scheme::plain
                                         : secure::Scheme::open;
  secure::Settings complete = security;
  secure::take_tls_variables(complete, scheme, secure::process_environment());
  if (complete.wants_tls()) options.tls = complete.files;
  return options;
}

Output ClientFlags::output() const {
  return Output(json, [options = connection()](const Error& error) {
    return client::explain(options, error);
  });
}

void add_client_flags(CLI::App& command, ClientFlags& flags) {
  add_json_flag(command, flags.json);
  const std::string group(kConnectionGroup);
  command
      .add_option("-a,--address", flags.address,
                  "The broker; with TLS batons://HOST:PORT [127.0.0.1:7470].")
      ->type_name("HOST:PORT")
      ->envname("BATON_ADDRESS")
      ->group(group);
  const auto parse = +[](std::string_view text) { return parse_milliseconds(text); };
  add_parsed(
      command, "--timeout", parse, [&flags](Milliseconds value) { flags.timeout = value; },
      "How long a call may take, connecting included [30s].")
      ->group(group);
  add_tls_flags(command, flags.security);
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
