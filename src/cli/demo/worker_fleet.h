#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "cli/demo/child_process.h"

namespace baton::cli {

/// Workers of one group, each a process of this program that holds partitions without any work on
/// them, and the events they print: for measurements and the demo. Not thread-safe.
class WorkerFleet {
 public:
  struct Options {
    std::string store;
    std::string group;
    std::uint32_t partitions = 4;
    std::vector<std::string> flags;  // For every worker.
    std::string log_file;
  };
  /// How many partitions each worker holds; those that are not named hold none.
  using Shares = std::map<std::string, std::uint32_t>;

  explicit WorkerFleet(Options options) : options_(std::move(options)) {}

  /// These three return the time at which it was done (CLOCK_BOOTTIME).
  Result<Instant> start(const std::string& name, const std::vector<std::string>& flags = {});
  Instant terminate(const std::string& name);
  Instant kill(const std::string& name);
  /// Waits for the end after terminate(). Returns the exit code; nullopt if it did not end in time.
  std::optional<int> wait_for_end(const std::string& name);

  /// Waits until the partitions are divided as `shares` says, all of them held. Returns when the
  /// last one was acquired; fails if that takes longer than `patience`, or a worker ends.
  Result<Instant> settle(const Shares& shares, std::chrono::milliseconds patience);

  /// When the newest process of that name had opened its store and began to join.
  [[nodiscard]] std::optional<Instant> joined_at(const std::string& name) const;
  /// How often `name` has acquired a partition so far.
  [[nodiscard]] std::uint64_t acquisitions(const std::string& name) const;
  /// Which partitions it holds.
  [[nodiscard]] std::vector<std::uint32_t> held_by(const std::string& name) const;
  [[nodiscard]] pid_t pid(const std::string& name) const;

 private:
  struct Member {
    std::unique_ptr<ChildProcess> process;
    std::optional<Instant> joined_at{};
    std::uint64_t acquisitions = 0;
  };

  void read_events();
  void take(const std::string& line);
  [[nodiscard]] Shares shares() const;
  void drop(const std::string& name);
  /// An error with the last lines of the log, which does not outlive the measurement.
  [[nodiscard]] Error with_log(Errc code, const std::string& what) const;

  Options options_;
  std::map<std::string, Member> members_;
  std::map<std::uint32_t, std::string> holders_;
  Instant last_acquired_;
};

}  // namespace baton::cli
