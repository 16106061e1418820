#include "e2e/process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <stdexcept>
#include <thread>

#include <fmt/format.h>

#include "paths.h"

namespace baton::e2e {
namespace {

constexpr milliseconds kPoll{2};

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  out.reserve(words.size() + 1);
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

std::vector<std::string> environment_with(const std::vector<std::string>& more) {
  std::vector<std::string> all;
  for (char** each = environ; *each != nullptr; ++each) all.emplace_back(*each);
  all.insert(all.end(), more.begin(), more.end());
  return all;
}

/// What the child does between fork and exec: only calls that are safe there.
struct Launch {
  std::vector<char*> arguments;
  std::vector<char*> environment;
  std::array<const char*, 3> files{};
  pid_t parent = 0;

  [[noreturn]] void run() const {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (::getppid() != parent) ::_exit(126);
    for (int fd = 0; fd < 3; ++fd) {
      const int flags = fd == 0 ? O_RDONLY : O_WRONLY | O_CREAT | O_APPEND;
      const int file = ::open(files.at(static_cast<std::size_t>(fd)), flags, 0644);
      if (file < 0 || ::dup2(file, fd) < 0) ::_exit(126);
    }
    sigset_t none;
    sigemptyset(&none);
    ::sigprocmask(SIG_SETMASK, &none, nullptr);
    ::execve(arguments[0], arguments.data(), environment.data());
    ::_exit(127);
  }
};

const char* file_or_nothing(const std::string& file) {
  return file.empty() ? "/dev/null" : file.c_str();
}

}  // namespace

std::string binary() {
  const char* named = std::getenv("BATON_BINARY");  // NOLINT(concurrency-mt-unsafe)
  return named == nullptr ? paths::kBinary : named;
}

bool is_long_run() {
  return std::getenv("BATON_LONG") != nullptr;
}  // NOLINT(concurrency-mt-unsafe)

bool eventually(const std::function<bool()>& holds, milliseconds within) {
  const auto end = Clock::now() + within;
  while (!holds()) {
    if (Clock::now() >= end) return false;
    std::this_thread::sleep_for(kPoll);
  }
  return true;
}

std::string read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (file.is_open() && file.peek() != std::ifstream::traits_type::eof()) text << file.rdbuf();
  return std::move(text).str();
}

void write_file(const std::filesystem::path& path, std::string_view text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
}

TempFolder::TempFolder() {
  std::string pattern = (std::filesystem::temp_directory_path() / "baton-e2e-XXXXXX").string();
  if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no folder for the test");
  path_ = pattern;
}

TempFolder::~TempFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

ChildProcess::ChildProcess(const Options& options) {
  std::vector<std::string> words = options.command;
  std::vector<std::string> environment = environment_with(options.environment);
  const Launch launch{.arguments = pointers(words),
                      .environment = pointers(environment),
                      .files = {file_or_nothing(options.in_file), file_or_nothing(options.out_file),
                                file_or_nothing(options.err_file)},
                      .parent = ::getpid()};
  pid_ = ::fork();
  if (pid_ == 0) launch.run();
  if (pid_ < 0) throw std::runtime_error("the process cannot be started");
}

ChildProcess::~ChildProcess() { kill(); }

void ChildProcess::signal(int number) const {
  if (!exit_code_) ::kill(pid_, number);
}

void ChildProcess::pause() const {
  if (exit_code_) return;
  ::kill(pid_, SIGSTOP);
  siginfo_t info{};
  ::waitid(P_PID, static_cast<id_t>(pid_), &info, WSTOPPED | WEXITED | WNOWAIT);
}

std::optional<int> ChildProcess::exit_code() {
  int status = 0;
  if (!exit_code_ && ::waitpid(pid_, &status, WNOHANG) == pid_) {
    exit_code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }
  return exit_code_;
}

std::optional<int> ChildProcess::wait(milliseconds within) {
  eventually([this] { return exit_code().has_value(); }, within);
  return exit_code_;
}

void ChildProcess::kill() {
  signal(SIGKILL);
  while (!exit_code()) std::this_thread::sleep_for(kPoll);
}

CommandResult run_command(std::vector<std::string> command, const CommandOptions& options) {
  const TempFolder folder;
  if (!options.in.empty()) write_file(folder / "in", options.in);
  ChildProcess child({.command = std::move(command),
                      .in_file = options.in.empty() ? std::string() : folder / "in",
                      .out_file = folder / "out",
                      .err_file = folder / "err",
                      .environment = options.environment});
  const std::optional<int> code = child.wait(options.within);
  child.kill();
  return {.exit_code = code.value_or(-1),
          .out = read_file(folder / "out"),
          .err = read_file(folder / "err")};
}

std::optional<std::string> http_get(int port, std::string_view path) {
  const int connection = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in where{};
  where.sin_family = AF_INET;
  where.sin_port = htons(static_cast<std::uint16_t>(port));
  where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::string answer;
  if (::connect(connection, reinterpret_cast<const sockaddr*>(&where), sizeof where) == 0) {
    const std::string request =
        fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path);
    ::send(connection, request.data(), request.size(), MSG_NOSIGNAL);
    std::array<char, 4096> bytes{};
    while (true) {
      const ssize_t count = ::recv(connection, bytes.data(), bytes.size(), 0);
      if (count <= 0) break;
      answer.append(bytes.data(), static_cast<std::size_t>(count));
    }
  }
  ::close(connection);
  const auto body = answer.find("\r\n\r\n");
  if (!answer.starts_with("HTTP/1.1 200") || body == std::string::npos) return std::nullopt;
  return answer.substr(body + 4);
}

}  // namespace baton::e2e
