#include "worker/guardian/guardian_process.h"

#include <signal.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include <fmt/format.h>

namespace baton::worker {
namespace {

constexpr const char* kThisProgram = "/proc/self/exe";
constexpr std::chrono::milliseconds kReapPoll{2};
constexpr std::chrono::seconds kReapPatience{10};

Error system_error(std::string_view what, int error) {
  return {Errc::io_error, fmt::format("{}: {}", what, std::strerror(error))};
}

/// The guardian's standard input is its end of the channel; it leads a group, and no signal is
/// blocked or ignored.
class SpawnSettings {
 public:
  explicit SpawnSettings(int channel) {
    posix_spawn_file_actions_init(&actions_);
    posix_spawn_file_actions_adddup2(&actions_, channel, STDIN_FILENO);
    posix_spawnattr_init(&attributes_);
    sigset_t signals;
    sigfillset(&signals);
    posix_spawnattr_setsigdefault(&attributes_, &signals);
    sigemptyset(&signals);
    posix_spawnattr_setsigmask(&attributes_, &signals);
    posix_spawnattr_setpgroup(&attributes_, 0);
    posix_spawnattr_setflags(
        &attributes_, POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETPGROUP);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;
  ~SpawnSettings() {
    posix_spawn_file_actions_destroy(&actions_);
    posix_spawnattr_destroy(&attributes_);
  }

  int spawn(pid_t& pid, std::vector<std::string> words) const {
    std::vector<char*> arguments;
    arguments.reserve(words.size() + 1);
    for (std::string& word : words) arguments.push_back(word.data());
    arguments.push_back(nullptr);
    return ::posix_spawn(&pid, kThisProgram, &actions_, &attributes_, arguments.data(), environ);
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

}  // namespace

std::vector<std::string> guardian_arguments(const GuardianOptions& options) {
  std::vector<std::string> words{"baton", "worker-guard", "--group", options.group};
  for (const auto& [flag, time] : {std::pair{"--stop-margin-ns", options.stop_margin},
                                   {"--notice-ns", options.notice},
                                   {"--drain-ns", options.drain}}) {
    words.insert(words.end(), {flag, fmt::format("{}", time.count())});
  }
  if (options.fenced) words.emplace_back("--fenced");
  words.emplace_back("--");
  words.insert(words.end(), options.command.begin(), options.command.end());
  return words;
}

Result<std::unique_ptr<GuardianProcess>> GuardianProcess::start(const GuardianOptions& options) {
  std::array<int, 2> ends{};
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()) != 0) {
    return system_error("socketpair", errno);
  }
  pid_t pid = -1;
  const int error = SpawnSettings(ends[1]).spawn(pid, guardian_arguments(options));
  ::close(ends[1]);
  if (error != 0) {
    ::close(ends[0]);
    return system_error("cannot start the guardian of the handlers", error);
  }
  return std::unique_ptr<GuardianProcess>(new GuardianProcess(pid, ends[0]));
}

GuardianProcess::~GuardianProcess() {
  channel_.reset();
  const auto give_up = std::chrono::steady_clock::now() + kReapPatience;
  while (::waitpid(pid_, nullptr, WNOHANG) == 0) {
    if (std::chrono::steady_clock::now() >= give_up) {
      // Its handlers die with it: the kernel kills them with their parent.
      ::kill(pid_, SIGKILL);
      ::waitpid(pid_, nullptr, 0);
      return;
    }
    std::this_thread::sleep_for(kReapPoll);
  }
}

}  // namespace baton::worker
