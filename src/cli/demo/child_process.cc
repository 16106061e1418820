#include "cli/demo/child_process.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <thread>

#include <fmt/format.h>

namespace baton::cli {
namespace {

using Clock = std::chrono::steady_clock;

constexpr const char* kThisProgram = "/proc/self/exe";
constexpr std::chrono::milliseconds kReapPoll{5};

Error io_error(std::string_view what) {
  return {Errc::io_error, fmt::format("{}: {}", what, std::strerror(errno))};
}

/// Runs between fork and exec: only calls what is safe after a fork of a program with threads.
[[noreturn]] void become(char* const* arguments, int output, int log) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  if (::dup2(output, STDOUT_FILENO) >= 0 && ::dup2(log, STDERR_FILENO) >= 0) {
    ::execv(kThisProgram, arguments);
  }
  ::_exit(127);
}

}  // namespace

ChildProcess::~ChildProcess() {
  if (pid_ > 0) kill();
  close_output();
}

Status ChildProcess::start(const Options& options) {
  std::vector<std::string> words{"baton"};
  words.insert(words.end(), options.arguments.begin(), options.arguments.end());
  std::vector<char*> arguments;
  arguments.reserve(words.size() + 1);
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  const int log = ::open(options.log_file.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (log < 0) return io_error(options.log_file);
  std::array<int, 2> pipe{};
  if (::pipe2(pipe.data(), O_CLOEXEC) != 0) {
    ::close(log);
    return io_error("pipe");
  }
  close_output();
  pid_ = ::fork();
  if (pid_ == 0) become(arguments.data(), pipe[1], log);
  ::close(pipe[1]);
  ::close(log);
  output_ = pipe[0];
  return pid_ > 0 ? Status{} : Status{io_error("fork")};
}

std::optional<std::string> ChildProcess::read_line(std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  while (true) {
    if (const auto end = buffer_.find('\n'); end != std::string::npos) {
      std::string line = buffer_.substr(0, end);
      buffer_.erase(0, end + 1);
      return line;
    }
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd wanted{.fd = output_, .events = POLLIN, .revents = 0};
    if (left <= 0 || ::poll(&wanted, 1, static_cast<int>(left)) <= 0) return std::nullopt;
    std::array<char, 4096> bytes{};
    const ssize_t count = ::read(output_, bytes.data(), bytes.size());
    if (count <= 0) return std::nullopt;
    buffer_.append(bytes.data(), static_cast<std::size_t>(count));
  }
}

void ChildProcess::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  reap(0);
}

std::optional<int> ChildProcess::stop(std::chrono::milliseconds timeout) {
  if (pid_ <= 0) return std::nullopt;
  ::kill(pid_, SIGTERM);
  const std::optional<int> code = wait(timeout);
  if (!code.has_value()) kill();
  return code;
}

std::optional<int> ChildProcess::wait(std::chrono::milliseconds timeout) {
  const auto deadline = Clock::now() + timeout;
  while (pid_ > 0) {
    if (const auto code = reap(WNOHANG)) return code;
    if (Clock::now() >= deadline) return std::nullopt;
    std::this_thread::sleep_for(kReapPoll);
  }
  return std::nullopt;
}

bool ChildProcess::has_ended() { return pid_ <= 0 || reap(WNOHANG).has_value(); }

std::optional<int> ChildProcess::reap(int flags) {
  int status = 0;
  const pid_t ended = ::waitpid(pid_, &status, flags);
  if (ended == 0) return std::nullopt;
  pid_ = -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

void ChildProcess::close_output() {
  if (output_ >= 0) ::close(output_);
  output_ = -1;
  buffer_.clear();
}

}  // namespace baton::cli
