#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "e2e/process.h"
#include "stores/server.h"

/// Real workers, `baton worker run`, on a real store.
namespace baton::worker_tests {

using e2e::eventually;
using e2e::milliseconds;
using e2e::seconds;
using Partitions = std::set<std::uint32_t>;

/// CLOCK_BOOTTIME: the clock of workers' events and handlers' lines.
std::int64_t boot_ns();

/// A line that a handler wrote.
struct HandlerLine {
  std::uint32_t partition = 0;
  std::uint64_t epoch = 0;
  pid_t pid = 0;
  std::string word;
  std::int64_t at_ns = 0;
};
std::vector<HandlerLine> handler_lines(const std::string& log_file);

/// Checks that handlers of one partition never overlapped, and that epochs never went back.
void expect_no_overlap(const std::string& log_file);

bool is_alive(pid_t pid);

/// One `baton worker run --json`. Its events are what it printed.
class WorkerProcess {
 public:
  struct Options {
    std::string name;
    std::string store;
    std::uint32_t partitions = 4;
    std::vector<std::string> flags{};
    std::vector<std::string> handler{};  // Empty: partitions are only held.
    std::vector<std::string> environment{};
    std::string folder;  // For its output.
  };

  explicit WorkerProcess(const Options& options);

  [[nodiscard]] std::vector<nlohmann::json> events() const;
  [[nodiscard]] std::vector<nlohmann::json> events(const std::string& kind) const;
  /// The partitions that it holds, by its own events.
  [[nodiscard]] Partitions holds() const;
  /// When it last acquired a partition.
  [[nodiscard]] std::int64_t last_acquired_ns() const;
  /// The processes of its handlers that it has reported and that are alive.
  [[nodiscard]] std::vector<pid_t> handler_pids() const;
  [[nodiscard]] std::string err() const;

  void signal(int number) const { process_.signal(number); }
  void pause() const { process_.pause(); }
  void kill() { process_.kill(); }
  /// Sends SIGTERM; returns its exit code.
  std::optional<int> leave();
  std::optional<int> wait(milliseconds within = seconds{20}) { return process_.wait(within); }
  [[nodiscard]] pid_t pid() const { return process_.pid(); }

 private:
  Options options_;
  std::string out_file_;
  std::string err_file_;
  e2e::ChildProcess process_;
};

/// Workers of one group, "orders", and the log of their handlers.
class Fleet {
 public:
  struct Options {
    std::string store;
    std::uint32_t partitions = 4;
    std::vector<std::string> flags{"--profile", "fast"};
    bool handlers = true;
  };
  explicit Fleet(Options options) : options_(std::move(options)) {}

  /// A new process under a name replaces the former one.
  WorkerProcess& start(const std::string& name, const std::vector<std::string>& flags = {},
                       const std::vector<std::string>& environment = {});
  WorkerProcess& operator[](const std::string& name) { return *workers_.at(name); }
  /// Waits until each worker in `shares` holds that many partitions, together all of them, no other
  /// worker holds any, and their handlers are at work.
  bool settles(const std::map<std::string, std::size_t>& shares, milliseconds within = seconds{20});
  void forget(const std::string& name) { workers_.erase(name); }

  [[nodiscard]] std::string handler_log() const { return folder_ / "handlers"; }
  /// The output of all workers, for a test that failed.
  [[nodiscard]] std::string story() const;

 private:
  [[nodiscard]] bool are_divided(const std::map<std::string, std::size_t>& shares) const;
  [[nodiscard]] bool all_at_work() const;

  Options options_;
  e2e::TempFolder folder_;
  std::uint32_t lives_ = 0;
  std::map<std::string, std::unique_ptr<WorkerProcess>> workers_;
};

/// "join: 12 ms (reference 3 s)", for readers of the test's output.
void print_time(std::string_view store, std::string_view what, std::int64_t ns,
                std::string_view reference);

}  // namespace baton::worker_tests
