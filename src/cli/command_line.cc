#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/parse.h"

namespace baton::cli {
namespace {

constexpr std::string_view kConnection = "Connection";

/// Prints help, or what is wrong with the line.
ExitCode explain(const CLI::App& app, const CLI::ParseError& problem, bool json) {
  if (problem.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
    app.exit(problem);
    return ExitCode::ok;
  }
  std::string why = problem.what();
  std::ranges::replace(why, '\n', ' ');
  return Output(json).fail("usage", why + "; see --help", ExitCode::usage);
}

ExitCode finish(const Action& action) {
  const ExitCode code = action();
  // Written to a full disk or a closed pipe, the answer is not there.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return Output(false).fail("output", "cannot write to standard output", ExitCode::failure);
  }
  return code;
}

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

ExitCode run(int argc, const char* const* argv) {
  // gRPC's own lines would stand between ours; whoever wants them sets the variable.
  ::setenv("GRPC_VERBOSITY", "NONE", 0);  // NOLINT(concurrency-mt-unsafe): there is one thread.
  const std::span<const char* const> words(argv, static_cast<std::size_t>(argc));
  const bool json =
      std::ranges::any_of(words, [](std::string_view word) { return word == "--json"; });
  try {
    CLI::App app("Baton: a message broker built around the lease.", "baton");
    app.set_version_flag("--version", std::string("baton ") + BATON_VERSION);
    app.require_subcommand(1);
    app.footer(
        fmt::format("{}\nExample:\n  baton server --data /tmp/baton &\n  baton queue create jobs\n"
                    "  baton queue send jobs hello\n  baton queue lease jobs --ack",
                    exit_code_help()));
    Action action;
    add_server_command(app, action);
    add_queue_commands(app, action);
    add_stream_commands(app, action);
    add_group_commands(app, action);
    add_kv_commands(app, action);
    add_worker_commands(app, action);
    add_pipeline_commands(app, action);
    add_bench_commands(app, action);
    add_store_commands(app, action);
    add_demo_command(app, action);
    try {
      app.parse(argc, argv);
    } catch (const CLI::ParseError& problem) {
      return explain(app, problem, json);
    }
    return finish(action);
  } catch (const std::exception& problem) {
    return Output(json).fail("internal", problem.what(), ExitCode::failure);
  }
}

}  // namespace baton::cli
