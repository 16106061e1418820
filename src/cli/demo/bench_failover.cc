#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <baton/worker.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/address.h"
#include "base/random.h"
#include "cli/base/parse.h"
#include "cli/base/security_flags.h"
#include "cli/demo/commands.h"
#include "cli/demo/demo_stage.h"
#include "cli/demo/failover_report.h"
#include "cli/demo/worker_fleet.h"
#include "cli/worker/worker_flags.h"
#include "worker/registry/registry.h"

/// Measures how long partitions are without an owner when workers join, leave, die and restart.
namespace baton::cli {
namespace {

struct FailoverFlags {
  std::vector<std::string> stores;
  std::vector<std::string> profiles{"default"};
  std::uint64_t runs = 20;
  std::string out_folder;
  secure::Settings security;
  bool json = false;
};

constexpr double kReferenceJoinMs = 3'000;
constexpr double kReferenceLeaveMs = 4'000;
constexpr double kReferenceKillMs = 11'000;

double ms_between(Instant from, Instant to) {
  return std::chrono::duration<double, std::milli>(to - from).count();
}

/// One store under one profile.
class Measuring {
 public:
  struct Options {
    std::string store;
    std::string profile;
    std::uint64_t runs = 0;
    std::string folder;
    std::vector<std::string> security;  // Flags.
    bool quiet = false;
  };

  Measuring(Options options, const client::WorkerTiming& timing)
      : options_(std::move(options)),
        timing_(timing),
        patience_(std::chrono::duration_cast<Milliseconds>((timing.lease * 4)) +
                  Milliseconds{20'000}),
        store_(split_scheme(options_.store).scheme) {}

  Result<std::vector<FailoverRow>> run() {
    BATON_TRY_STATUS(measure_moves());
    BATON_TRY(const coord::StoreUrl url, coord::parse_store_url(options_.store));
    if (url.kind->tells_of_lost_sessions) BATON_TRY_STATUS(measure_fenced_kill());
    BATON_TRY_STATUS(measure_static_restart());
    return std::move(rows_);
  }

 private:
  [[nodiscard]] WorkerFleet::Options fleet(const std::string& group,
                                           std::vector<std::string> flags) const {
    flags.insert(flags.end(), {"--profile", options_.profile});
    flags.insert(flags.end(), options_.security.begin(), options_.security.end());
    return {.store = options_.store,
            .group = fmt::format("bench-{}-{}-{}", group, options_.profile, ::getpid()),
            .flags = std::move(flags),
            .log_file = options_.folder + "/workers.log"};
  }

  Status measure_moves() {
    WorkerFleet workers(fleet("moves", {}));
    FailoverRow join = row("join", kReferenceJoinMs);
    FailoverRow spawn = row("start and join", kReferenceJoinMs);
    FailoverRow leave = row("leave", kReferenceLeaveMs);
    FailoverRow kill = row("kill", kReferenceKillMs);
    BATON_TRY_STATUS(start_and_settle(workers, "w1", {{"w1", 4}}));
    for (std::uint64_t i = 0; i < options_.runs; ++i) {
      BATON_TRY(Instant began, workers.start("w2"));
      BATON_TRY(Instant settled, workers.settle(kShared, patience_));
      spawn.ms.push_back(ms_between(began, settled));
      join.ms.push_back(ms_between(workers.joined_at("w2").value_or(began), settled));
      wait_for_any_phase();
      began = workers.terminate("w2");
      BATON_TRY(settled, workers.settle({{"w1", 4}}, patience_));
      leave.ms.push_back(ms_between(began, settled));
      workers.wait_for_end("w2");
      BATON_TRY_STATUS(start_and_settle(workers, "w2", kShared));
      BATON_TRY(const double took, kill_and_settle(workers));
      kill.ms.push_back(took);
      progress(i, {&join, &leave, &kill});
    }
    for (FailoverRow* done : {&join, &spawn, &leave, &kill}) rows_.push_back(std::move(*done));
    return end(workers, {"w1"});
  }

  Status measure_fenced_kill() {
    WorkerFleet workers(fleet("fenced", {"--fenced"}));
    FailoverRow kill = row("kill, fenced", kReferenceKillMs);
    BATON_TRY_STATUS(start_and_settle(workers, "w1", {{"w1", 4}}));
    for (std::uint64_t i = 0; i < options_.runs; ++i) {
      BATON_TRY_STATUS(start_and_settle(workers, "w2", kShared));
      BATON_TRY(const double took, kill_and_settle(workers));
      kill.ms.push_back(took);
      progress(i, {&kill});
    }
    rows_.push_back(std::move(kill));
    return end(workers, {"w1"});
  }

  /// From the signal to the last partition acquired again, including the start of the process.
  Status measure_static_restart() {
    WorkerFleet workers(fleet("static", {"--static", "--static-grace", "30s"}));
    FailoverRow restart = row("restart, static id", std::nullopt);
    BATON_TRY_STATUS(start_and_settle(workers, "w1", {{"w1", 4}}));
    BATON_TRY_STATUS(start_and_settle(workers, "w2", kShared));
    const std::uint64_t before = workers.acquisitions("w1");
    for (std::uint64_t i = 0; i < options_.runs; ++i) {
      const Instant began = workers.terminate("w2");
      workers.wait_for_end("w2");
      BATON_TRY(const Instant started, workers.start("w2"));
      static_cast<void>(started);
      BATON_TRY(const Instant settled, workers.settle(kShared, patience_));
      restart.ms.push_back(ms_between(began, settled));
      progress(i, {&restart});
    }
    restart.moves = workers.acquisitions("w1") - before;
    rows_.push_back(std::move(restart));
    return end(workers, {"w1", "w2"});
  }

  Status start_and_settle(WorkerFleet& workers, const std::string& name,
                          const WorkerFleet::Shares& shares) const {
    BATON_TRY(const Instant began, workers.start(name));
    static_cast<void>(began);
    BATON_TRY(const Instant settled, workers.settle(shares, patience_));
    static_cast<void>(settled);
    return {};
  }

  Result<double> kill_and_settle(WorkerFleet& workers) {
    wait_for_any_phase();
    const Instant began = workers.kill("w2");
    BATON_TRY(const Instant settled, workers.settle({{"w1", 4}}, patience_));
    return ms_between(began, settled);
  }

  static Status end(WorkerFleet& workers, const std::vector<std::string>& names) {
    for (const std::string& name : names) workers.terminate(name);
    for (const std::string& name : names) workers.wait_for_end(name);
    return {};
  }

  /// How long a dead worker is missed depends on when it dies between two heartbeats: waits for a
  /// random time.
  void wait_for_any_phase() {
    const auto range = static_cast<std::uint64_t>(timing_.heartbeat.count());
    std::this_thread::sleep_for(std::chrono::nanoseconds(random_.below(range)));
  }

  [[nodiscard]] FailoverRow row(std::string scenario, std::optional<double> reference_ms) const {
    return {.store = store_,
            .profile = options_.profile,
            .scenario = std::move(scenario),
            .reference_ms = reference_ms};
  }

  void progress(std::uint64_t run, const std::vector<const FailoverRow*>& rows) const {
    if (options_.quiet) return;
    std::string text;
    for (const FailoverRow* row : rows) {
      text += fmt::format("  {} {:.0f} ms", row->scenario, row->ms.back());
    }
    fmt::print(stderr, "{} {} {}/{}{}\n", store_, options_.profile, run + 1, options_.runs, text);
  }

  static inline const WorkerFleet::Shares kShared{{"w1", 2}, {"w2", 2}};

  Options options_;
  client::WorkerTiming timing_;
  Milliseconds patience_;
  std::string store_;
  Random random_{std::random_device{}()};
  std::vector<FailoverRow> rows_;
};

Status write_text(const std::filesystem::path& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary | std::ios::trunc);
  file << text;
  file.close();
  return file ? Status{} : Error{Errc::io_error, fmt::format("cannot write {}", path.string())};
}

Status save(const FailoverFlags& flags, const Json& document,
            const std::vector<FailoverRow>& rows) {
  std::error_code failure;
  std::filesystem::create_directories(flags.out_folder, failure);
  if (failure) {
    return Error{Errc::io_error,
                 fmt::format("cannot create {}: {}", flags.out_folder, failure.message())};
  }
  const std::filesystem::path folder = flags.out_folder;
  BATON_TRY_STATUS(write_text(folder / "failover.json", document.dump(1) + "\n"));
  return write_text(folder / "failover.svg", failover_svg(rows));
}

/// Reports a store that is missing or unusable before anything is measured.
Status check_store(const std::string& url, const secure::Settings& settings) {
  auto security = store_security(url, settings, process_environment());
  if (!security) return security.error();
  const auto store = coord::open_store(url, {.security = *std::move(security)});
  if (store) return {};
  return store.error();
}

Error at_store(const std::string& store, Error error) {
  error.text = fmt::format("{}: {}", store, error.text);
  return error;
}

/// Every profile on every store.
Result<std::vector<FailoverRow>> measure(const FailoverFlags& flags, const std::string& folder) {
  std::vector<FailoverRow> rows;
  for (const std::string& store : flags.stores) {
    for (const std::string& profile : flags.profiles) {
      const auto timing = client::worker_timing(profile, store);
      if (!timing) return timing.error();
      auto measured = Measuring({.store = store,
                                 .profile = profile,
                                 .runs = flags.runs,
                                 .folder = folder,
                                 .security = to_flags(flags.security),
                                 .quiet = flags.json},
                                *timing)
                          .run();
      if (!measured) return at_store(store, measured.error());
      rows.insert(rows.end(), measured->begin(), measured->end());
    }
  }
  return rows;
}

ExitCode run_failover(const FailoverFlags& flags) {
  const Output out(flags.json);
  for (const std::string& store : flags.stores) {
    if (const Status there = check_store(store, flags.security); !there) {
      return out.fail("bench failover", at_store(store, there.error()));
    }
  }
  DemoFolder folder;
  if (const Status made = folder.make(); !made)
    return out.fail_here("bench failover", made.error());
  const auto rows = measure(flags, folder.path());
  if (!rows) return out.fail("bench failover", rows.error());
  Json document{{"partitions", 4}, {"workers", 2}, {"rows", Json::array()}};
  for (const FailoverRow& row : *rows) document["rows"].push_back(to_json(row));
  if (flags.json) {
    Output::object(document);
  } else {
    Output::text(failover_table(*rows));
  }
  if (flags.out_folder.empty()) return ExitCode::ok;
  const Status saved = save(flags, document, *rows);
  return saved ? ExitCode::ok : out.fail_here("bench failover", saved.error());
}

Result<std::uint64_t> read_runs(std::string_view text) { return parse_number(text, 1, 10'000); }

}  // namespace

void add_bench_commands(CLI::App& app, Action& action) {
  CLI::App* bench = add_noun(app, {.name = "bench",
                                   .help = "Measure how fast Baton is on this machine.",
                                   .example = "baton bench failover --runs 20"});
  const auto flags = std::make_shared<FailoverFlags>();
  flags->stores = {default_store(process_environment())};
  CLI::App* command = add_verb(
      *bench,
      {.name = "failover",
       .help = "Measure how long partitions wait for a new owner when a worker joins, leaves, is "
               "killed, or restarts under a static id. Starts two workers with four partitions.",
       .example = "baton bench failover --store baton://127.0.0.1:7470 --runs 20\n"
                  "  baton bench failover --store nats://127.0.0.1:4222 --profile reference"},
      flags, run_failover, action);
  command->add_option("--store", flags->stores, std::string(kStoreHelp) + " Repeatable.")
      ->type_name("URL")
      ->allow_extra_args(false);
  add_tls_flags(*command, flags->security);
  add_login_flags(*command, flags->security);
  command
      ->add_option("--profile", flags->profiles,
                   "The times of the workers: default [default], reference or fast. Repeatable.")
      ->type_name("NAME")
      ->allow_extra_args(false);
  add_parsed(
      *command, "--runs", read_runs,
      [flags = flags.get()](std::uint64_t value) { flags->runs = value; },
      "Times to measure each of them [20].");
  command
      ->add_option("--out", flags->out_folder,
                   "Write failover.json and failover.svg into this folder.")
      ->type_name("FOLDER");
  add_json_flag(*command, flags->json);
}

}  // namespace baton::cli
