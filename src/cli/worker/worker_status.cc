#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/base/command.h"
#include "cli/base/interrupt.h"
#include "cli/base/parse.h"
#include "cli/base/terminal.h"
#include "cli/worker/worker_flags.h"
#include "cli/worker/worker_report.h"
#include "core/workers/names.h"
#include "worker/registry/registry.h"

namespace baton::cli {
namespace {

constexpr Milliseconds kWatchEvery{500};
constexpr Milliseconds kSlice{50};
constexpr std::string_view kNoAnswer = "no answer";  // Not a shape of any report.

struct StatusFlags : GroupOfWorkersFlags {
  bool watch = false;
  Milliseconds timeout{5'000};
};

Result<WorkerReport> read_report(coord::KvStore& store, const StatusFlags& flags) {
  BATON_TRY(const std::vector<coord::StoredEntry> stored,
            store.list(partition::group_prefix(flags.group), flags.timeout));
  std::vector<partition::Entry> entries;
  entries.reserve(stored.size());
  for (const coord::StoredEntry& entry : stored) {
    entries.push_back({entry.key, entry.value, entry.revision});
  }
  const auto wall = std::chrono::system_clock::now().time_since_epoch();
  return make_report({.group = flags.group,
                      .store = store.name(),
                      .now = std::chrono::duration_cast<partition::WallTime>(wall)},
                     entries);
}

void print(const Output& out, const WorkerReport& report) {
  if (out.json()) {
    Output::object(to_json(report));
  } else {
    const bool screen = is_terminal(STDOUT_FILENO);
    Output::text(screen ? describe(report, terminal_size(STDOUT_FILENO).columns)
                        : describe(report));
  }
  std::fflush(stdout);
}

void show(const Output& out, const std::string& what, const Result<WorkerReport>& report) {
  if (report) return print(out, *report);
  static_cast<void>(out.fail(what, report.error()));
}

bool may_come_back(const Error& error) {
  return error.code == Errc::unavailable || error.code == Errc::deadline_exceeded;
}

void wait_for_next_look() {
  for (auto waited = Milliseconds{0}; waited < kWatchEvery && !is_interrupted(); waited += kSlice) {
    std::this_thread::sleep_for(kSlice);
  }
}

/// Draws the group on the terminal's alternate screen, ages included. While the store does not
/// answer, the last view stays, below the error.
Status watch_on_screen(coord::KvStore& store, const StatusFlags& flags) {
  const AlternateScreen screen;
  std::string view;
  while (!is_interrupted()) {
    const auto report = read_report(store, flags);
    if (!report && !may_come_back(report.error())) return report.error();
    if (report) {
      view = describe(*report, terminal_size(STDOUT_FILENO).columns);
      AlternateScreen::draw(view);
    } else {
      const std::string alarm = "!! the store does not answer: " + printable(report.error().text);
      AlternateScreen::draw(paint(Tone::alarm, alarm) + "\n" + view);
    }
    wait_for_next_look();
  }
  return {};
}

/// Prints again whenever something changes. If the store does not answer, that is reported once,
/// and the store is asked again.
Status watch_changes(coord::KvStore& store, const StatusFlags& flags, const std::string& what) {
  std::string shown;
  while (!is_interrupted()) {
    const auto report = read_report(store, flags);
    if (!report && !may_come_back(report.error())) return report.error();
    const std::string shape = report ? shape_of(*report) : std::string(kNoAnswer);
    if (shape != shown) show(flags.output(), what, report);
    shown = shape;
    wait_for_next_look();
  }
  return {};
}

ExitCode watch(coord::KvStore& store, const StatusFlags& flags, const std::string& what) {
  watch_for_interrupt();
  const bool screen = !flags.json && is_terminal(STDOUT_FILENO);
  const Status status = screen ? watch_on_screen(store, flags) : watch_changes(store, flags, what);
  return status ? ExitCode::ok : flags.output().fail(what, status.error());
}

Error no_group(const StatusFlags& flags, std::string_view more) {
  return {Errc::not_found, fmt::format("there is no group {}{}", flags.group, more)};
}

ExitCode run_status(const StatusFlags& flags) {
  const Output out = flags.output();
  const std::string what = fmt::format("worker status {}", printable(flags.group.substr(0, 64)));
  if (const Status named = partition::check_name("group", flags.group); !named) {
    return out.fail_here(what, named.error());
  }
  auto security = store_security(flags.store, flags.security, process_environment());
  if (!security) return out.fail_here(what, security.error());
  const auto store = coord::open_store(
      flags.store,
      {.connect_timeout = flags.timeout, .to_read = true, .security = *std::move(security)});
  if (!store && store.error().code == Errc::bucket_not_found) {
    return out.fail(what, no_group(flags, ": " + store.error().text));
  }
  if (!store) return out.fail(what, store.error());
  if (flags.watch) return watch(**store, flags, what);
  const auto report = read_report(**store, flags);
  if (!report) return out.fail(what, report.error());
  if (report->empty()) return out.fail(what, no_group(flags, " in " + (*store)->name()));
  print(out, *report);
  return ExitCode::ok;
}

}  // namespace

void add_worker_status(CLI::App& worker, Action& action) {
  const auto flags = std::make_shared<StatusFlags>();
  CLI::App* command = add_verb(
      worker,
      {.name = "status",
       .help = "Show a group of workers: which worker holds which partition, since when and why, "
               "and what is wrong. With --watch on a terminal, the view is drawn again twice a "
               "second and cut to the screen.",
       .example = "baton worker status --group orders\n"
                  "  baton worker status --group orders --store etcd://10.0.0.1:2379 --watch"},
      flags, run_status, action);
  command->add_option("-g,--group", flags->group, "The group of workers.")
      ->type_name("GROUP")
      ->required();
  add_store_flags(*command, *flags);
  command->add_flag("-w,--watch", flags->watch, "Show changes as they happen, until interrupted.");
  add_json_flag(*command, flags->json);
  add_parsed(
      *command, "--timeout", +[](std::string_view text) { return parse_milliseconds(text); },
      [flags = flags.get()](Milliseconds value) { flags->timeout = value; },
      "How long the store may take to answer [5s].");
}

}  // namespace baton::cli
