#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "sim/simulation.h"

/// Seeds run in a child process, which reports through a pipe which seed it runs: an assertion that
/// ends it is then a failure of that seed and not the end of the search.
namespace baton {
namespace {

constexpr std::uint64_t kTwiceEvery = 20;

std::optional<std::string> run_seed(std::uint64_t seed, Canary canary) {
  const RunResult result = run_simulation(draw_plan(seed, canary, false));
  if (result.failure.has_value()) return result.failure;
  if (seed % kTwiceEvery != 0) return std::nullopt;
  const RunResult again = run_simulation(draw_plan(seed, canary, false));
  if (again.hash == result.hash) return std::nullopt;
  return fmt::format("two runs of the seed differ: {:016x} and {:016x}", result.hash, again.hash);
}

void send(int pipe, std::string_view text) {
  while (!text.empty()) {
    const ssize_t sent = write(pipe, text.data(), text.size());
    if (sent <= 0) _exit(3);
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
}

[[noreturn]] void run_child(SeedRange seeds, Canary canary, int pipe) {
  for (std::uint64_t seed = seeds.first; seed < seeds.first + seeds.count; ++seed) {
    send(pipe, fmt::format("s{}\n", seed));
    if (const auto failure = run_seed(seed, canary); failure.has_value()) {
      send(pipe, fmt::format("f{}\n", *failure));
      _exit(1);
    }
  }
  send(pipe, "e\n");
  _exit(0);
}

struct ChildReport {
  std::uint64_t seed = 0;
  std::string failure;
  bool ended = false;
};

void read_line(const std::string& line, bool progress, ChildReport& report) {
  if (line.starts_with('s')) report.seed = std::stoull(line.substr(1));
  if (line.starts_with('f')) report.failure = line.substr(1);
  if (line.starts_with('e')) report.ended = true;
  if (progress && line.starts_with('s') && report.seed % 100 == 0) {
    fmt::print(stderr, "\rseed {} ", report.seed);
  }
}

ChildReport read_child(int pipe, bool progress) {
  ChildReport report;
  std::string text;
  std::array<char, 4096> buffer{};
  while (true) {
    const ssize_t got = read(pipe, buffer.data(), buffer.size());
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return report;
    text.append(buffer.data(), static_cast<std::size_t>(got));
    for (std::size_t end = text.find('\n'); end != std::string::npos; end = text.find('\n')) {
      read_line(text.substr(0, end), progress, report);
      text.erase(0, end + 1);
    }
  }
}

}  // namespace

std::optional<SeedFailure> find_failure(SeedRange seeds, Canary canary, bool progress) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return SeedFailure{seeds.first, "no pipe"};
  const pid_t child = fork();
  if (child < 0) return SeedFailure{seeds.first, "no process"};
  if (child == 0) {
    close(ends[0]);
    // What the code under test prints because of a planted bug is of no interest.
    if (canary != Canary::none && freopen("/dev/null", "w", stderr) == nullptr) _exit(3);
    run_child(seeds, canary, ends[1]);
  }
  close(ends[1]);
  const ChildReport report = read_child(ends[0], progress);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (report.ended) return std::nullopt;
  if (!report.failure.empty()) return SeedFailure{report.seed, report.failure};
  const std::string how = WIFSIGNALED(status) ? fmt::format("signal {}", WTERMSIG(status))
                                              : fmt::format("exit code {}", WEXITSTATUS(status));
  return SeedFailure{report.seed, "the code under test ended the process with " + how};
}

}  // namespace baton
