#include <signal.h>

#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <baton/worker.h>
#include <fmt/format.h>

#include "cli/base/command.h"
#include "cli/base/help.h"
#include "cli/base/parse.h"
#include "cli/worker/handler_program.h"
#include "cli/worker/worker_events.h"
#include "cli/worker/worker_flags.h"
#include "cli/worker/worker_timing.h"
#include "core/workers/names.h"
#include "worker/guardian/worker_host.h"
#include "worker/runner/runner.h"

namespace baton::cli {
namespace {

struct RunFlags : GroupOfWorkersFlags {
  std::uint64_t partitions = 0;
  std::string id;
  bool static_id = false;
  bool fenced = false;
  bool renewals = false;
  std::uint64_t weight = 1;
  std::string profile = "default";
  WorkerTimes times;
  std::vector<std::string> command;
};

// Poll interval for the end of the worker.
constexpr timespec kSignalSlice{.tv_sec = 0, .tv_nsec = 10'000'000};

sigset_t handled_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) sigaddset(&signals, signal);
  return signals;
}

constexpr Duration kOneWish = std::chrono::milliseconds(200);

/// Runs one worker until it has left: handles signals, returns an exit code.
class Running {
 public:
  Running(const RunFlags& flags, worker::WorkerHost& host) : flags_(flags), host_(host) {}

  Status wait() {
    const sigset_t signals = handled_signals();
    while (true) {
      const int signal = sigtimedwait(&signals, nullptr, &kSignalSlice);
      if (signal > 0) on_signal(signal);
      if (auto end = host_.wait_for(Duration::zero())) return *std::move(end);
    }
  }

 private:
  void on_signal(int signal) {
    const bool forward = signal != SIGINT && signal != SIGTERM;
    if (forward && !flags_.command.empty()) return host_.signal(signal);
    // Without handlers a hang-up ends the worker, as it would end any program.
    if (forward && signal != SIGHUP) return;
    // timeout(1) and some supervisors signal the process and its group: that is one request, not
    // two.
    const Instant now = worker::boot_time();
    if (asked_to_leave_ > 0 && now < last_asked_ + kOneWish) return;
    last_asked_ = now;
    switch (++asked_to_leave_) {
      case 1: return host_.leave(false);
      case 2: host_.leave(true); return host_.hurry();
      default: std::_Exit(128 + signal);  // The guardian ends the handlers.
    }
  }

  const RunFlags& flags_;
  worker::WorkerHost& host_;
  int asked_to_leave_ = 0;
  Instant last_asked_{};
};

/// A different number of partitions is a wrong flag, like those found before the store is asked.
ExitCode fail(const Output& out, const std::string& what, const Error& error) {
  if (error.code != Errc::failed_precondition) return out.fail(what, error);
  return out.fail_here(what, error);
}

client::WorkerOptions to_options(const RunFlags& flags, const client::WorkerTiming& timing,
                                 client::SecurityOptions security) {
  client::WorkerOptions options;
  options.security = std::move(security);
  options.store = flags.store;
  options.group = flags.group;
  options.id = flags.id;
  options.partitions = static_cast<std::uint32_t>(flags.partitions);
  options.weight = static_cast<std::uint32_t>(flags.weight);
  options.static_id = flags.static_id;
  options.fenced = flags.fenced;
  options.timing = timing;
  return options;
}

ExitCode run_run(const RunFlags& flags) {
  const Output out = flags.output();
  const std::string what = fmt::format("worker run {}", printable(flags.group.substr(0, 64)));
  const auto timing =
      resolve_timing(flags.profile, flags.store, flags.times, process_environment());
  if (!timing) return out.fail_here(what, timing.error());
  // Before it joins: a worker that cannot run its program would keep partitions from those that
  // can.
  const Status runs =
      check_handler(flags.command, process_environment()("PATH").value_or(std::string()));
  if (!runs) return out.fail_here(what, runs.error());
  auto security = store_security(flags.store, flags.security, process_environment());
  if (!security) return out.fail_here(what, security.error());
  const sigset_t signals = handled_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // Inherited by all threads.
  EventPrinter printer({.json = flags.json, .renewals = flags.renewals});
  auto host = worker::WorkerHost::start(
      {.worker = to_options(flags, *timing, *std::move(security)),
       .command = flags.command,
       .tell = [&printer](const worker::HostEvent& event) { printer.print(event); }});
  if (!host) return fail(out, what, host.error());
  const Status end = Running(flags, **host).wait();
  const std::string id = (*host)->id();
  host->reset();
  printer.print_finished(id, end);
  if (!printer.flush()) {
    // A reader that does not read our output must not keep us from ending.
    std::_Exit(static_cast<int>(end ? ExitCode::ok : exit_code_of(end.error().code)));
  }
  return end ? ExitCode::ok : fail(out, what, end.error());
}

Result<std::uint64_t> read_partitions(std::string_view text) {
  return parse_number(text, 1, partition::kPartitionsMax);
}
Result<std::uint64_t> read_weight(std::string_view text) {
  return parse_number(text, 1, partition::kWeightMax);
}

void add_identity(CLI::App& command, RunFlags& flags) {
  command.add_option("-g,--group", flags.group, "The group of workers.")
      ->type_name("GROUP")
      ->required();
  add_parsed(
      command, "--partitions", read_partitions,
      [&flags](std::uint64_t value) { flags.partitions = value; },
      "The number of partitions that the group divides; the same for all of its workers.")
      ->required();
  add_store_flags(command, flags);
  command.add_option("--id", flags.id, "The name of this worker [a random one].")
      ->type_name("NAME");
  command
      .add_flag("--static", flags.static_id,
                "The name is permanent: a worker that restarts under this name gets the partitions "
                "that it had.")
      ->needs("--id");
  add_parsed(
      command, "--weight", read_weight, [&flags](std::uint64_t value) { flags.weight = value; },
      "The share of this worker: weight 2 gets twice the partitions of weight 1 [1].");
  command.add_flag("--fenced", flags.fenced,
                   "The program writes only to places that check epochs. Then handlers may go on "
                   "while the store is away, and a killed worker is replaced at once (Baton's own "
                   "store).");
  add_json_flag(command, flags.json);
  command.add_flag("--show-renewals", flags.renewals, "Also print each renewal of the lease.");
}

void add_times(CLI::App& command, RunFlags& flags) {
  constexpr const char* kTimes = "Times";
  command
      .add_option(
          "--profile", flags.profile,
          "default (lease 5s, on NATS 10s; heartbeat a quarter of it), reference (lease 5s, "
          "heartbeat 2s) or fast (1.5s, 0.4s).")
      ->type_name("NAME")
      ->group(kTimes);
  const auto parse = +[](std::string_view text) { return parse_milliseconds(text); };
  const auto add = [&](const char* name, std::optional<Milliseconds>& field, const char* help) {
    add_parsed(
        command, name, parse, [&field](Milliseconds value) { field = value; }, help)
        ->group(kTimes);
  };
  add("--lease-ttl", flags.times.lease,
      "Others take over when this worker was silent for this long [$LEASE_TTL_SEC, or the "
      "profile's].");
  add("--heartbeat", flags.times.heartbeat,
      "Time between two renewals of the lease [$HEARTBEAT_SEC, or in proportion to the lease].");
  add("--resync", flags.times.resync,
      "Time between two reads of the whole group [$CLAIM_SEC, or the profile's].");
  add("--drain", flags.times.drain, "How long a handler may take to stop [the profile's].");
  add("--static-grace", flags.times.static_grace,
      "How long the partitions of a static id wait for its return [the profile's].");
  add("--reclaim-grace", flags.times.reclaim_grace,
      "Pause before work begins on a partition that another worker just gave up [$GRACE_SEC, or "
      "the profile's].");
}

}  // namespace

void add_worker_run(CLI::App& worker, Action& action) {
  const auto flags = std::make_shared<RunFlags>();
  CLI::App* command = add_verb(
      worker,
      {.name = "run",
       .help =
           "Hold a share of a group's partitions, and run a program for each. Without a program "
           "the "
           "partitions are only held.\n\n"
           "In the program's arguments {partition} and {epoch} are replaced; its environment has "
           "BATON_GROUP, BATON_PARTITION and BATON_EPOCH. When a partition moves, its program gets "
           "SIGTERM, and SIGKILL when --drain has passed or the lease is about to end. A program "
           "that ends, with any exit code, is started again after 1s, doubled up to 30s while it "
           "keeps failing.\n\n"
           "SIGTERM or SIGINT: leave the group when the programs have stopped. A second one: leave "
           "at once, and give up the partitions of a static id. SIGHUP, SIGUSR1 and SIGUSR2 are "
           "passed on to the programs; without a program SIGHUP is like SIGTERM.",
       .example = "baton worker run --group orders --partitions 64 -- ./handler {partition}\n"
                  "  baton worker run --group orders --partitions 64 --id $HOSTNAME --static \\\n"
                  "    --store nats://10.0.0.1:4222 -- ./handler {partition}"},
      flags, run_run, action);
  add_identity(*command, *flags);
  add_times(*command, *flags);
  command->add_option("COMMAND", flags->command, "The program and its arguments, behind --.")
      ->type_name("")
      ->group(kBehindFlags);
}

}  // namespace baton::cli
