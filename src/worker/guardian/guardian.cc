#include "worker/guardian/guardian.h"

#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "worker/guardian/guarded_handlers.h"
#include "worker/guardian/line_channel.h"
#include "worker/guardian/process_group.h"
#include "worker/runner/runner.h"

namespace baton::worker {
namespace {

constexpr int kCannotRun = 126;
constexpr int kNotFound = 127;
// Poll interval while the rest of a killed group is ending.
constexpr int kEmptyingPollMs = 5;
// How often /proc is read for the rest, and after what time that is logged.
constexpr Duration kLookEvery = std::chrono::milliseconds(50);
constexpr Duration kLongWait = std::chrono::seconds(5);

std::vector<char*> pointers(std::vector<std::string>& words) {
  std::vector<char*> out;
  out.reserve(words.size() + 1);
  for (std::string& word : words) out.push_back(word.data());
  out.push_back(nullptr);
  return out;
}

int code_of(int status) { return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status); }

void block_all_signals() {
  sigset_t all;
  sigfillset(&all);
  ::sigprocmask(SIG_SETMASK, &all, nullptr);
}

/// Turns the forked child into a handler.
[[noreturn]] void become(std::vector<std::string> command, std::vector<std::string> environment,
                         pid_t guardian) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // In case the guardian is killed.
  if (::getppid() != guardian) ::_exit(kCannotRun);
  ::setpgid(0, 0);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing < 0 || ::dup2(nothing, STDIN_FILENO) < 0) ::_exit(kCannotRun);
  sigset_t none;
  sigemptyset(&none);
  ::sigprocmask(SIG_SETMASK, &none, nullptr);
  ::execvpe(command.front().c_str(), pointers(command).data(), pointers(environment).data());
  const int why = errno;
  fmt::print(stderr, "baton: cannot run {}: {}\n", command.front(), std::strerror(why));
  std::fflush(stderr);
  ::_exit(why == ENOENT ? kNotFound : kCannotRun);
}

class Guardian {
 public:
  explicit Guardian(const GuardianOptions& options)
      : options_(options),
        handlers_({.fenced = options.fenced,
                   .stop_margin = options.stop_margin,
                   .notice = options.notice,
                   .drain = options.drain}),
        channel_(options.channel) {
    for (char** each = environ; *each != nullptr; ++each) environment_.emplace_back(*each);
  }

  int run() {
    if (!prepare()) return kCannotRun;
    while (listen()) {
      reap();
      handlers_.tick(boot_time());
      perform();
    }
    end_everything();
    return 0;
  }

 private:
  bool prepare() {
    ::prctl(PR_SET_NAME, "baton-guard");
    // What a handler leaves behind becomes our child, so that we can end it.
    ::prctl(PR_SET_CHILD_SUBREAPER, 1);
    // We end when the runner does, and for no other reason.
    block_all_signals();
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    children_ = ::signalfd(-1, &child, SFD_CLOEXEC | SFD_NONBLOCK);
    timer_ = ::timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
    return children_ >= 0 && timer_ >= 0;
  }

  /// Waits until there is something to do, and takes the runner's commands. False: it is gone.
  bool listen() {
    arm_timer();
    std::array<pollfd, 3> wanted = {
        {{.fd = channel_.fd(), .events = channel_.events(), .revents = 0},
         {.fd = children_, .events = POLLIN, .revents = 0},
         {.fd = timer_, .events = POLLIN, .revents = 0}}};
    ::poll(wanted.data(), wanted.size(), emptying_.empty() ? -1 : kEmptyingPollMs);
    drain(children_);
    drain(timer_);
    if (!channel_.flush()) return false;
    std::vector<std::string> lines;
    const bool connected = channel_.receive(lines);
    for (const std::string& line : lines) {
      const auto command = parse_guard_command(line);
      if (!command.has_value()) return false;  // A runner that sends nonsense counts as gone.
      handlers_.on(*command, boot_time());
      perform();
    }
    return connected;
  }

  void arm_timer() const {
    const Instant at = handlers_.next_deadline();
    itimerspec when{};
    if (at != Instant::never()) {
      const std::int64_t ns = std::max<std::int64_t>(at.ns, 1);  // 0 would turn it off.
      when.it_value = {.tv_sec = ns / 1'000'000'000, .tv_nsec = ns % 1'000'000'000};
    }
    ::timerfd_settime(timer_, TFD_TIMER_ABSTIME, &when, nullptr);
  }

  static void drain(int fd) {
    std::array<char, 1024> ignored{};
    while (::read(fd, ignored.data(), ignored.size()) > 0) continue;
  }

  void perform() {
    while (true) {
      const auto actions = handlers_.take_actions();
      if (actions.empty()) return;
      for (const auto& action : actions)
        std::visit([this](const auto& known) { act(known); }, action);
    }
  }

  void act(const GuardedHandlers::Spawn& spawn) {
    std::fflush(nullptr);
    const pid_t guardian = ::getpid();
    const pid_t pid = ::fork();
    if (pid == 0) {
      become(expand_command(options_.command, spawn.task),
             handler_environment(environment_, options_.group, spawn.task), guardian);
    }
    if (pid < 0) {
      fmt::print(stderr, "baton: cannot start a handler: {}\n", std::strerror(errno));
      return handlers_.not_spawned(spawn.task, kCannotRun);
    }
    ::setpgid(pid, pid);  // Parent and child both call it: the first one counts.
    handlers_.spawned(spawn.task, pid);
  }
  static void act(const GuardedHandlers::Signal& signal) { ::kill(-signal.group, signal.number); }
  void act(const GuardReport& report) { channel_.send(encode(report)); }

  void reap() {
    while (const auto ended = peek_ended()) {
      // The rest of its group ends with it, while the zombie still keeps the number for us.
      const bool leader = handlers_.leads(*ended);
      if (leader) ::kill(-*ended, SIGKILL);
      int status = 0;
      ::waitpid(*ended, &status, 0);
      if (leader) {
        emptying_.emplace(*ended, Emptying{.code = code_of(status), .since = boot_time()});
      }
    }
    for (auto group = emptying_.begin(); group != emptying_.end();) {
      const bool empty = is_empty(group->first, group->second);
      if (empty) handlers_.ended(group->first, group->second.code);
      group = empty ? emptying_.erase(group) : std::next(group);
    }
  }

  /// A group whose leader has ended, and which was killed.
  struct Emptying {
    int code = 0;  // The leader's.
    Instant since;
    Instant look_at = since + kLookEvery;  // When to read /proc next.
    bool told = false;                     // It was logged that it takes long.
  };

  /// Dead members count as gone: a parent that has left the group may not reap them for hours.
  static bool is_empty(pid_t group, Emptying& emptying) {
    if (::kill(-group, 0) != 0 && errno == ESRCH) return true;
    const Instant now = boot_time();
    if (now < emptying.look_at) return false;
    emptying.look_at = now + kLookEvery;
    const GroupMembers members = members_of_group(group);
    if (members.alive.empty() && members.has_dead) return true;
    if (now - emptying.since >= kLongWait && !std::exchange(emptying.told, true)) {
      fmt::print(stderr,
                 "baton: a handler, process {}, has ended, and its partition waits for what it "
                 "has started and SIGKILL does not end: {}\n",
                 group, fmt::join(members.alive, ", "));
    }
    return false;
  }

  static std::optional<pid_t> peek_ended() {
    siginfo_t info{};
    if (::waitid(P_ALL, 0, &info, WEXITED | WNOHANG | WNOWAIT) != 0 || info.si_pid == 0) {
      return std::nullopt;
    }
    return info.si_pid;
  }

  /// Ends the handlers' groups, then every process that escaped from them and became our child.
  void end_everything() {
    handlers_.kill_all();
    perform();
    while (true) {
      std::ifstream children(fmt::format("/proc/self/task/{}/children", ::getpid()));
      for (pid_t child = 0; children >> child;) ::kill(child, SIGKILL);
      if (::waitpid(-1, nullptr, 0) < 0 && errno == ECHILD) return;
    }
  }

  const GuardianOptions& options_;
  GuardedHandlers handlers_;
  LineChannel channel_;
  std::vector<std::string> environment_;
  int children_ = -1;
  int timer_ = -1;
  std::map<pid_t, Emptying> emptying_;
};

}  // namespace

int run_guardian(const GuardianOptions& options) { return Guardian(options).run(); }

}  // namespace baton::worker
