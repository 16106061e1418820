#pragma once

#include <sys/types.h>

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/result.h"

namespace baton::cli {

/// Another process of this very program. It dies when this process dies. Not thread-safe.
class ChildProcess {
 public:
  struct Options {
    std::vector<std::string> arguments;  // Without the program's name.
    std::string log_file;                // Its standard error goes to this file.
  };

  ChildProcess() = default;
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  /// Kills it if it still runs.
  ~ChildProcess();

  Status start(const Options& options);
  [[nodiscard]] pid_t pid() const { return pid_; }
  /// The next line of its standard output; nullopt at its end or after `timeout`.
  std::optional<std::string> read_line(std::chrono::milliseconds timeout);
  /// Sends SIGKILL, and waits for its end.
  void kill();
  /// Sends SIGTERM. Returns its exit code; nullopt if it had to be killed at the timeout.
  std::optional<int> stop(std::chrono::milliseconds timeout);
  /// Whether it ended by itself.
  bool has_ended();
  /// Waits for it to end by itself. Returns its exit code; nullopt after `timeout`.
  std::optional<int> wait(std::chrono::milliseconds timeout);

 private:
  void close_output();
  std::optional<int> reap(int flags);

  pid_t pid_ = -1;
  int output_ = -1;
  std::string buffer_;
};

}  // namespace baton::cli
