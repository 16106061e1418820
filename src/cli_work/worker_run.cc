#include <signal.h>

#include <cstdlib>
#include <ctime>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include <baton/worker.h>

#include "cli_base/command.h"
#include "cli_base/parse.h"
#include "cli_work/worker_events.h"
#include "cli_work/worker_flags.h"
#include "cli_work/worker_timing.h"
#include "partition/names.h"
#include "worker/runner.h"
#include "worker/worker_host.h"

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

// How often it is looked whether the worker has ended.
constexpr timespec kSlice{.tv_sec = 0, .tv_nsec = 10'000'000};

sigset_t handled_signals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2}) sigaddset(&signals, signal);
  return signals;
}

constexpr Duration kOneWish = std::chrono::milliseconds(200);

/// Runs one worker until it has left: signals in, an exit code out.
class Running {
 public:
  Running(const RunFlags& flags, worker::WorkerHost& host) : flags_(flags), host_(host) {}

  client::Status wait() {
    const sigset_t signals = handled_signals();
    while (true) {
      const int signal = sigtimedwait(&signals, nullptr, &kSlice);
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
    // timeout(1) and some supervisors signal the process and its group: that is one wish, not two.
    const Instant now = worker::boot_time();
    if (asked_to_leave_ > 0 && now < last_asked_ + kOneWish) return;
    last_asked_ = now;
    switch (++asked_to_leave_) {
      case 1: return host_.leave(false);
      case 2: host_.leave(true); return host_.hurry();
      default: std::_Exit(128 + signal);  // The guardian sees to the handlers.
    }
  }

  const RunFlags& flags_;
  worker::WorkerHost& host_;
  int asked_to_leave_ = 0;
  Instant last_asked_{};
};

/// Another number of partitions is a wrong flag, like those that are found before asking the store.
ExitCode fail(const Output& out, const std::string& what, const client::Error& error) {
  if (error.code != client::Code::failed_precondition) return out.fail(what, error);
  return out.fail(what, Error{Errc::failed_precondition, error.text});
}

client::WorkerOptions to_options(const RunFlags& flags, const client::WorkerTiming& timing) {
  client::WorkerOptions options;
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
  if (!timing) return out.fail(what, timing.error());
  const sigset_t signals = handled_signals();
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);  // For all threads to come.
  EventPrinter printer({.json = flags.json, .renewals = flags.renewals});
  auto host = worker::WorkerHost::start(
      {.worker = to_options(flags, *timing),
       .command = flags.command,
       .tell = [&printer](const worker::HostEvent& event) { printer.print(event); }});
  if (!host) return fail(out, what, host.error());
  const client::Status end = Running(flags, **host).wait();
  const std::string id = (*host)->id();
  host->reset();
  printer.print_finished(id, end);
  if (!printer.flush()) {
    // Whoever does not read our output must not keep us from ending.
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
  command.add_option("--group", flags.group, "The group of workers.")->required();
  add_parsed(
      command, "--partitions", read_partitions,
      [&flags](std::uint64_t value) { flags.partitions = value; },
      "How many partitions the group divides; the same for all of its workers.")
      ->required();
  command.add_option("--store", flags.store, kStoreHelp)->type_name("URL");
  command.add_option("--id", flags.id, "This worker's name [made up].")->type_name("NAME");
  command
      .add_flag("--static", flags.static_id,
                "The name is for ever: a worker that restarts under it finds its partitions as it "
                "left them.")
      ->needs("--id");
  add_parsed(
      command, "--weight", read_weight, [&flags](std::uint64_t value) { flags.weight = value; },
      "Gets so many times the share of one with weight 1 [1].");
  command.add_flag("--fenced", flags.fenced,
                   "What the handlers write to checks epochs: they may go on while the store is "
                   "away, and a killed worker is replaced at once (Baton's own store).");
  command.add_flag("--json", flags.json, "Print events as JSON, one object per line.");
  command.add_flag("--show-renewals", flags.renewals, "Print each renewal of the lease, too.");
}

void add_times(CLI::App& command, RunFlags& flags) {
  constexpr const char* kTimes = "Times";
  command
      .add_option(
          "--profile", flags.profile,
          "default (lease 5s, on NATS 10s; heartbeat a quarter), reference (5s, 2s) or fast "
          "(1.5s, 0.4s).")
      ->type_name("NAME")
      ->group(kTimes);
  const auto parse = +[](std::string_view text) { return parse_milliseconds(text); };
  const auto add = [&](const char* name, std::optional<Milliseconds>& field, const char* help) {
    add_parsed(
        command, name, parse, [&field](Milliseconds value) { field = value; }, help)
        ->group(kTimes);
  };
  add("--lease-ttl", flags.times.lease,
      "Others take over after so long a silence [$LEASE_TTL_SEC, or the profile's].");
  add("--heartbeat", flags.times.heartbeat,
      "How often the lease is renewed [$HEARTBEAT_SEC, or in proportion to the lease].");
  add("--resync", flags.times.resync,
      "How often the whole group is read anew [$CLAIM_SEC, or the profile's].");
  add("--drain", flags.times.drain, "How long a handler may take to stop [the profile's].");
  add("--static-grace", flags.times.static_grace,
      "Partitions of a static id wait so long for its return [the profile's].");
  add("--reclaim-grace", flags.times.reclaim_grace,
      "Before work begins again on a partition just given up [$GRACE_SEC, or the profile's].");
}

}  // namespace

void add_worker_run(CLI::App& worker, Action& action) {
  const auto flags = std::make_shared<RunFlags>();
  CLI::App* command = add_verb(
      worker,
      {.name = "run",
       .help =
           "Hold a share of a group's partitions, and run a program for each. {partition} and "
           "{epoch} in its arguments are replaced; it also gets BATON_GROUP, BATON_PARTITION and "
           "BATON_EPOCH. When a partition moves it gets SIGTERM, and SIGKILL once the time to "
           "drain "
           "is over or the lease about to end. A handler that ends, with whatever code, is started "
           "again: after 1s, doubled up to 30s while it keeps failing. SIGTERM or SIGINT: leave; a "
           "second one: without waiting for handlers, and a static id gives its partitions away. "
           "SIGHUP, SIGUSR1 and SIGUSR2 go to the handlers. Without a program the partitions are "
           "only held.",
       .example = "baton worker run --group orders --partitions 64 -- ./handler {partition}\n"
                  "  baton worker run --group orders --partitions 64 --store nats://10.0.0.1:4222 "
                  "--id $HOSTNAME --static -- ./handler {partition}"},
      flags, run_run, action);
  add_identity(*command, *flags);
  add_times(*command, *flags);
  command->add_option("COMMAND", flags->command, "The handler and its arguments, after --.")
      ->type_name("");
}

}  // namespace baton::cli
