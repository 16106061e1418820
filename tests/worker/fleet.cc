#include "worker/fleet.h"

#include <signal.h>

#include <algorithm>
#include <ctime>
#include <fstream>
#include <sstream>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "paths.h"

namespace baton::worker_tests {
namespace {

using Json = nlohmann::json;

std::string handler_program() { return std::string(paths::kTests) + "/worker/handler.py"; }

std::vector<std::string> command_of(const WorkerProcess::Options& options) {
  std::vector<std::string> words{
      e2e::binary(), "worker",      "run",          "--json",
      "--group",     "orders",      "--id",         options.name,
      "--store",     options.store, "--partitions", fmt::format("{}", options.partitions)};
  words.insert(words.end(), options.flags.begin(), options.flags.end());
  if (!options.handler.empty()) words.emplace_back("--");
  words.insert(words.end(), options.handler.begin(), options.handler.end());
  return words;
}

/// One handler's time at work.
struct Run {
  std::int64_t first_ns = 0;
  std::int64_t last_ns = 0;
  std::uint64_t epoch = 0;
  pid_t pid = 0;
};

}  // namespace

std::int64_t boot_ns() {
  timespec time{};
  ::clock_gettime(CLOCK_BOOTTIME, &time);
  return (std::int64_t{time.tv_sec} * 1'000'000'000) + time.tv_nsec;
}

std::vector<HandlerLine> handler_lines(const std::string& log_file) {
  std::istringstream text(e2e::read_file(log_file));
  std::vector<HandlerLine> lines;
  HandlerLine line;
  while (text >> line.partition >> line.epoch >> line.pid >> line.word >> line.at_ns) {
    lines.push_back(line);
  }
  return lines;
}

void expect_no_overlap(const std::string& log_file) {
  std::map<std::uint32_t, std::map<pid_t, Run>> runs;
  for (const HandlerLine& line : handler_lines(log_file)) {
    Run& run = runs[line.partition]
                   .try_emplace(line.pid, Run{line.at_ns, line.at_ns, line.epoch, line.pid})
                   .first->second;
    run.first_ns = std::min(run.first_ns, line.at_ns);
    run.last_ns = std::max(run.last_ns, line.at_ns);
  }
  EXPECT_FALSE(runs.empty()) << "no handler wrote anything";
  for (const auto& [partition, by_pid] : runs) {
    std::vector<Run> ordered;
    for (const auto& [pid, run] : by_pid) ordered.push_back(run);
    std::ranges::sort(ordered, {}, &Run::first_ns);
    for (std::size_t i = 1; i < ordered.size(); ++i) {
      EXPECT_GT(ordered[i].first_ns, ordered[i - 1].last_ns)
          << "partition " << partition << ": epoch " << ordered[i].epoch << " began while epoch "
          << ordered[i - 1].epoch << " was at work";
      EXPECT_GE(ordered[i].epoch, ordered[i - 1].epoch) << "partition " << partition;
    }
  }
}

bool is_alive(pid_t pid) {
  std::ifstream stat(fmt::format("/proc/{}/stat", pid));
  std::string text;
  if (!std::getline(stat, text)) return false;
  const std::size_t name_end = text.rfind(") ");
  return name_end != std::string::npos && text[name_end + 2] != 'Z';
}

WorkerProcess::WorkerProcess(const Options& options)
    : options_(options),
      out_file_(options.folder + "/" + options.name + ".out"),
      err_file_(options.folder + "/" + options.name + ".err"),
      process_({.command = command_of(options),
                .out_file = out_file_,
                .err_file = err_file_,
                .environment = options.environment}) {}

std::vector<Json> WorkerProcess::events() const {
  std::istringstream text(e2e::read_file(out_file_));
  std::vector<Json> events;
  for (std::string line; std::getline(text, line) && !text.eof();) {
    Json event = Json::parse(line, nullptr, false);
    if (event.is_object()) events.push_back(std::move(event));
  }
  return events;
}

std::vector<Json> WorkerProcess::events(const std::string& kind) const {
  std::vector<Json> all = events();
  std::erase_if(all, [&](const Json& event) { return event["event"] != kind; });
  return all;
}

Partitions WorkerProcess::holds() const {
  Partitions held;
  for (const Json& event : events()) {
    if (event["event"] == "acquired") held.insert(event["partition"].get<std::uint32_t>());
    if (event["event"] == "lost" || event["event"] == "stopped") {
      held.erase(event["partition"].get<std::uint32_t>());
    }
  }
  return held;
}

std::int64_t WorkerProcess::last_acquired_ns() const {
  std::int64_t last = 0;
  for (const Json& event : events("acquired")) {
    last = std::max(last, event["at_ns"].get<std::int64_t>());
  }
  return last;
}

std::vector<pid_t> WorkerProcess::handler_pids() const {
  std::vector<pid_t> pids;
  for (const Json& event : events("handler_started")) {
    const auto pid = event["pid"].get<pid_t>();
    if (is_alive(pid)) pids.push_back(pid);
  }
  return pids;
}

std::string WorkerProcess::err() const { return e2e::read_file(err_file_); }

std::optional<int> WorkerProcess::leave() {
  signal(SIGTERM);
  return wait();
}

WorkerProcess& Fleet::start(const std::string& name, const std::vector<std::string>& flags,
                            const std::vector<std::string>& environment) {
  WorkerProcess::Options options{.name = name,
                                 .store = options_.store,
                                 .partitions = options_.partitions,
                                 .flags = options_.flags,
                                 .environment = environment,
                                 .folder = (folder_.path() / fmt::format("{}", ++lives_)).string()};
  std::filesystem::create_directory(options.folder);
  options.flags.insert(options.flags.end(), flags.begin(), flags.end());
  options.environment.push_back("HANDLER_LOG=" + handler_log());
  if (options_.handlers) options.handler = {handler_program()};
  std::unique_ptr<WorkerProcess>& worker = workers_[name];
  worker = std::make_unique<WorkerProcess>(options);
  return *worker;
}

bool Fleet::settles(const std::map<std::string, std::size_t>& shares, milliseconds within) {
  const auto end = e2e::Clock::now() + within;
  // Less often than eventually(): reading their output takes time from the writers.
  for (; e2e::Clock::now() < end; std::this_thread::sleep_for(milliseconds{20})) {
    if (are_divided(shares) && (!options_.handlers || all_at_work())) return true;
  }
  return false;
}

bool Fleet::are_divided(const std::map<std::string, std::size_t>& shares) const {
  std::size_t all = 0;
  for (const auto& [name, worker] : workers_) {
    const auto share = shares.find(name);
    const std::size_t held = worker->holds().size();
    if (held != (share == shares.end() ? 0 : share->second)) return false;
    all += held;
  }
  return all == options_.partitions;
}

/// Whether each held partition has a handler that has begun to write.
bool Fleet::all_at_work() const {
  std::set<pid_t> at_work;
  for (const HandlerLine& line : handler_lines(handler_log())) at_work.insert(line.pid);
  return std::ranges::all_of(workers_, [&](const auto& entry) {
    const std::vector<pid_t> pids = entry.second->handler_pids();
    return pids.size() == entry.second->holds().size() &&
           std::ranges::all_of(pids, [&](pid_t pid) { return at_work.contains(pid); });
  });
}

std::string Fleet::story() const {
  std::vector<std::pair<std::int64_t, std::string>> lines;
  for (const auto& [name, worker] : workers_) {
    for (const Json& event : worker->events()) {
      lines.emplace_back(event["at_ns"].get<std::int64_t>(), event.dump());
    }
    lines.emplace_back(0, worker->err());
  }
  std::ranges::sort(lines);
  std::string out;
  for (const auto& [at, line] : lines) out += line + "\n";
  return out;
}

void print_time(std::string_view store, std::string_view what, std::int64_t ns,
                std::string_view reference) {
  fmt::print("[ {:6} ] {}: {:.0f} ms (reference {})\n", store, what,
             static_cast<double>(ns) / 1'000'000, reference);
}

}  // namespace baton::worker_tests
