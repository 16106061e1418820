#include "cli/command_line.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cli/base/help.h"
#include "cli/base/line.h"
#include "cli/base/terminal.h"
#include "cli/broker/commands.h"
#include "cli/demo/commands.h"
#include "cli/pipeline/commands.h"
#include "cli/server/commands.h"
#include "cli/worker/commands.h"

namespace baton::cli {
namespace {

constexpr std::string_view kVersion = "baton " BATON_VERSION;

struct NoFlags {};

struct HelpFlags {
  const CLI::App* root = nullptr;
  std::vector<std::string> words;
};

std::size_t help_width() { return terminal_size(STDOUT_FILENO).columns; }

/// `why`, followed by "; see 'baton queue send --help'".
std::string with_help(const std::string& why, const CLI::App& command) {
  const bool question = why.ends_with('?');
  return fmt::format("{}{} '{} --help'", why, question ? " See" : "; see", command_path(command));
}

/// Reports a usage error of the line that names `command`.
ExitCode fail_usage(bool json, const CLI::App& command, const std::string& why) {
  const std::string path = command_path(command);
  const auto space = path.find(' ');
  const std::string what = space == std::string::npos ? std::string() : path.substr(space + 1);
  return Output(json).fail(what, with_help(why, command), ExitCode::usage);
}

ExitCode run_help(const HelpFlags& flags) {
  if (flags.words == std::vector<std::string>{"connection"}) {
    fmt::print("{}", connection_page(help_width()));
    return ExitCode::ok;
  }
  std::vector<const char*> words;
  words.reserve(flags.words.size());
  for (const std::string& word : flags.words) words.push_back(word.c_str());
  const Line line = arrange(*flags.root, words);
  if (!line.problem.empty()) return fail_usage(false, *line.command, line.problem);
  fmt::print("{}", help_page(*line.command, help_width()));
  return ExitCode::ok;
}

ExitCode run_version(const NoFlags& /*flags*/) {
  Output::text(kVersion);
  return ExitCode::ok;
}

void add_help_command(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<HelpFlags>();
  flags->root = &app;
  CLI::App* help = add_verb(app,
                            {.name = "help",
                             .help = "Show the help of a command, or of 'connection': the flags of "
                                     "every command that talks to a broker.",
                             .example = "baton help queue send\n  baton help connection"},
                            flags, run_help, action);
  help->add_option("COMMAND", flags->words, "The words of the command [all commands].");
  add_verb(app, {.name = "version", .help = "Print the version.", .example = "baton version"},
           std::make_shared<NoFlags>(), run_version, action);
}

ExitCode finish(const Action& action) {
  const ExitCode code = action();
  // On a full disk or a closed pipe, the answer was not written.
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    return Output(false).fail("output", "cannot write to standard output", ExitCode::failure);
  }
  return code;
}

/// Does what the line asks for, or says what is wrong with it.
ExitCode run_line(std::span<const char* const> words, bool json) {
  CLI::App app;
  Action action;
  add_commands(app, action);
  const Line line = arrange(app, words);
  if (!line.problem.empty()) return fail_usage(json, *line.command, line.problem);
  try {
    std::vector<std::string> backwards(line.words.rbegin(), line.words.rend());
    app.parse(std::move(backwards));
  } catch (const CLI::CallForVersion&) {
    action = [] { return run_version({}); };
  } catch (const CLI::CallForHelp&) {
    action = [command = line.command] {
      fmt::print("{}", help_page(*command, help_width()));
      return ExitCode::ok;
    };
  } catch (const CLI::ParseError& problem) {
    return fail_usage(json, *line.command, usage_problem(*line.command, problem));
  }
  return finish(action);
}

}  // namespace

void add_commands(CLI::App& app, Action& action) {
  app.name("baton");
  app.description(
      "Baton: a message broker built around the lease. Queues, streams with a single active "
      "consumer, partition leases, and pipelines into databases.");
  app.set_version_flag("-v,--version", std::string(kVersion), "Print the version and exit.");
  app.set_help_flag("-h,--help", "Print this help and exit.");
  app.require_subcommand(1);
  app.footer(
      fmt::format("{}\nExample:\n  baton server --data /tmp/baton &\n"
                  "  baton queue create jobs\n  baton queue send jobs hello\n"
                  "  baton queue lease jobs --ack",
                  exit_code_help()));
  add_server_command(app, action);
  add_queue_commands(app, action);
  add_stream_commands(app, action);
  add_group_commands(app, action);
  add_kv_commands(app, action);
  add_worker_commands(app, action);
  add_pipeline_commands(app, action);
  add_bench_commands(app, action);
  add_store_commands(app, action);
  add_cluster_commands(app, action);
  add_demo_command(app, action);
  add_help_command(app, action);
}

ExitCode run(int argc, const char* const* argv) {
  // gRPC's own log lines would stand between ours; a user who wants them sets the variable.
  ::setenv("GRPC_VERBOSITY", "NONE", 0);  // NOLINT(concurrency-mt-unsafe): there is one thread.
  const auto words = std::span(argv, static_cast<std::size_t>(argc)).subspan(argc > 0 ? 1 : 0);
  const bool json = wants_json(words);
  try {
    return run_line(words, json);
  } catch (const std::exception& problem) {
    return Output(json).fail("internal", problem.what(), ExitCode::failure);
  }
}

}  // namespace baton::cli
