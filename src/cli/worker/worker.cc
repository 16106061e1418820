#include <memory>
#include <string>
#include <vector>

#include "cli/base/security_flags.h"
#include "cli/worker/commands.h"
#include "cli/worker/worker_flags.h"
#include "worker/guardian/guardian.h"
#include "worker/registry/registry.h"

namespace baton::cli {
namespace {

struct GuardFlags {
  worker::GuardianOptions options;
  std::int64_t stop_margin_ns = 0;
  std::int64_t notice_ns = 0;
  std::int64_t drain_ns = 0;
};

ExitCode run_guard(const GuardFlags& flags) {
  worker::GuardianOptions options = flags.options;
  options.stop_margin = Duration{flags.stop_margin_ns};
  options.notice = Duration{flags.notice_ns};
  options.drain = Duration{flags.drain_ns};
  return static_cast<ExitCode>(worker::run_guardian(options));
}

}  // namespace

void add_store_flags(CLI::App& command, GroupOfWorkersFlags& flags) {
  command.add_option("--store", flags.store, kStoreHelp)->type_name("URL");
  add_tls_flags(command, flags.security);
  add_login_flags(command, flags.security);
}

Result<client::SecurityOptions> store_security(const std::string& store,
                                               const secure::Settings& given,
                                               const Environment& environment) {
  BATON_TRY(const coord::StoreUrl url, coord::parse_store_url(store));
  secure::Settings complete = given;
  secure::take_tls_variables(complete, url.tls ? secure::Scheme::tls : secure::Scheme::plain,
                             environment);
  // The login of the environment is for stores that have logins.
  if (url.kind->has_logins) secure::take_login_variables(complete, environment);
  return secure::load(complete, url.tls);
}

void add_worker_guard(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<GuardFlags>();
  CLI::App* command = add_verb(app,
                               {.name = "worker-guard",
                                .help = "Started by `baton worker run`: looks after its handlers.",
                                .example = "(not for people)"},
                               flags, run_guard, action);
  command->group("");  // Not in --help.
  command->add_option("--group", flags->options.group)->required();
  command->add_option("--stop-margin-ns", flags->stop_margin_ns)->required();
  command->add_option("--notice-ns", flags->notice_ns)->required();
  command->add_option("--drain-ns", flags->drain_ns)->required();
  command->add_flag("--fenced", flags->options.fenced);
  command->add_option("COMMAND", flags->options.command)->required();
}

void add_worker_commands(CLI::App& app, Action& action) {
  CLI::App* worker = add_noun(
      app, {.name = "worker",
            .help = "Divide partitions among processes that agree through a key-value store.",
            .example = "baton worker run --group orders --partitions 64 -- ./handler {partition}\n"
                       "  baton worker status --group orders"});
  add_worker_run(*worker, action);
  add_worker_status(*worker, action);
  add_worker_guard(app, action);
}

}  // namespace baton::cli
