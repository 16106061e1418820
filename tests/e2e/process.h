#pragma once

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Real processes for tests: each is ended with the test, by its id, however the test ends.
namespace baton::e2e {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;
using std::chrono::seconds;

/// The program under test: the one built beside this, or the one that BATON_BINARY names.
std::string binary();

/// Whether to run soaks instead of samples: `./dev test --long`.
bool is_long_run();

/// Asks again every few milliseconds until `holds`, or until `within` has passed.
bool eventually(const std::function<bool()>& holds, milliseconds within = seconds{20});

/// The content of a file; empty if it does not exist.
std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, std::string_view text);

/// A folder that is removed with everything in it.
class TempFolder {
 public:
  TempFolder();
  TempFolder(const TempFolder&) = delete;
  TempFolder& operator=(const TempFolder&) = delete;
  ~TempFolder();

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] std::string operator/(std::string_view name) const {
    return (path_ / name).string();
  }

 private:
  std::filesystem::path path_;
};

/// A child process. It is killed with its owner, and by the system when the thread that started it
/// ends: start it from the test's own thread.
class ChildProcess {
 public:
  struct Options {
    std::vector<std::string> command{};
    std::string in_file{};   // Empty: no input.
    std::string out_file{};  // Empty: discarded.
    std::string err_file{};
    std::vector<std::string> environment{};  // "NAME=value", beside the test's own.
  };

  explicit ChildProcess(const Options& options);
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;
  ~ChildProcess();

  [[nodiscard]] pid_t pid() const { return pid_; }
  void signal(int number) const;
  /// Sends SIGSTOP, and waits until every thread has stopped. SIGCONT wakes it.
  void pause() const;
  /// Its exit code (128 + the number of the signal that ended it); nullopt while it runs.
  std::optional<int> exit_code();
  std::optional<int> wait(milliseconds within);
  /// SIGKILL, and waits for the end.
  void kill();

 private:
  pid_t pid_ = -1;
  std::optional<int> exit_code_;
};

struct CommandResult {
  int exit_code = -1;  // -1: it did not end in time, and was killed.
  std::string out;
  std::string err;
};

struct CommandOptions {
  std::string in{};
  std::vector<std::string> environment{};
  milliseconds within = seconds{60};
};

/// Runs a command to its end.
CommandResult run_command(std::vector<std::string> command, const CommandOptions& options = {});

/// The body of an HTTP response of this machine; nullopt unless its status is 200.
std::optional<std::string> http_get(int port, std::string_view path);

}  // namespace baton::e2e
