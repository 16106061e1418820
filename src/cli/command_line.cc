#include "cli/command_line.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <span>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "cli_client/commands.h"
#include "cli_demo/commands.h"
#include "cli_work/commands.h"

namespace baton::cli {
namespace {

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
