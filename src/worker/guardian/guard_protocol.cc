#include "worker/guardian/guard_protocol.h"

#include <signal.h>

#include <charconv>
#include <limits>

#include <fmt/format.h>

#include "core/workers/names.h"

namespace baton::worker {
namespace {

/// Reads a message word by word; remembers whether all words were valid.
class Words {
 public:
  explicit Words(std::string_view text) : rest_(text) {
    if (text.size() > kGuardMessageBytes) good_ = false;
  }

  std::string_view word() {
    const std::size_t end = rest_.find(' ');
    const std::string_view found = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    // A space must be followed by another word.
    if (found.empty() || (end != std::string_view::npos && rest_.empty())) good_ = false;
    return found;
  }

  template <class T>
  T number(T least, T most) {
    const std::string_view digits = word();
    T value{};
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc{} || end != digits.data() + digits.size() || value < least ||
        value > most) {
      good_ = false;
      return least;
    }
    return value;
  }
  std::uint32_t partition() { return number<std::uint32_t>(0, partition::kPartitionsMax - 1); }
  HandlerTask task() {
    const std::uint32_t part = partition();
    return {.partition = part,
            .epoch = number<std::uint64_t>(0, std::numeric_limits<std::uint64_t>::max())};
  }
  Instant instant() { return {number<std::int64_t>(0, std::numeric_limits<std::int64_t>::max())}; }

  template <class Message, class Parsed>
  Result<Message> finish(Parsed parsed) const {
    if (good_ && rest_.empty()) return Message{parsed};
    return Error{Errc::malformed, "a message between runner and guardian cannot be read"};
  }

 private:
  std::string_view rest_;
  bool good_ = true;
};

struct Encoder {
  std::string operator()(const NewDeadline& command) const {
    return fmt::format("deadline {}", command.deadline.ns);
  }
  std::string operator()(const StartHandler& command) const {
    return fmt::format("start {} {}", command.task.partition, command.task.epoch);
  }
  std::string operator()(const StopHandler& command) const {
    return fmt::format("stop {} {}", command.partition, command.kill_at.ns);
  }
  std::string operator()(const KillHandler& command) const {
    return fmt::format("kill {}", command.partition);
  }
  std::string operator()(const SignalHandlers& command) const {
    return fmt::format("signal {}", command.number);
  }
  std::string operator()(const HandlerStarted& report) const {
    return fmt::format("started {} {} {}", report.task.partition, report.task.epoch, report.pid);
  }
  std::string operator()(const HandlerEnded& report) const {
    return fmt::format("ended {} {} {} {:d}", report.task.partition, report.task.epoch, report.code,
                       report.lease_over);
  }
};

}  // namespace

bool is_forwarded(int signal) { return signal == SIGHUP || signal == SIGUSR1 || signal == SIGUSR2; }

std::string encode(const GuardCommand& command) { return std::visit(Encoder{}, command); }
std::string encode(const GuardReport& report) { return std::visit(Encoder{}, report); }

Result<GuardCommand> parse_guard_command(std::string_view text) {
  Words words(text);
  const std::string_view verb = words.word();
  if (verb == "deadline") {
    const NewDeadline command{words.instant()};
    return words.finish<GuardCommand>(command);
  }
  if (verb == "start") {
    const StartHandler command{words.task()};
    return words.finish<GuardCommand>(command);
  }
  if (verb == "stop") {
    StopHandler command{.partition = words.partition(), .kill_at = {}};
    command.kill_at = words.instant();
    return words.finish<GuardCommand>(command);
  }
  if (verb == "kill") {
    const KillHandler command{words.partition()};
    return words.finish<GuardCommand>(command);
  }
  const SignalHandlers command{words.number(1, 64)};
  if (verb == "signal" && is_forwarded(command.number)) return words.finish<GuardCommand>(command);
  return Error{Errc::malformed, "the guardian does not know this command"};
}

Result<GuardReport> parse_guard_report(std::string_view text) {
  Words words(text);
  const std::string_view verb = words.word();
  if (verb == "started") {
    HandlerStarted report{.task = words.task(), .pid = 0};
    report.pid = words.number<pid_t>(1, std::numeric_limits<pid_t>::max());
    return words.finish<GuardReport>(report);
  }
  HandlerEnded report{.task = words.task(), .code = 0};
  report.code = words.number(0, 255);
  report.lease_over = words.number(0, 1) == 1;
  if (verb == "ended") return words.finish<GuardReport>(report);
  return Error{Errc::malformed, "the runner does not know this report"};
}

}  // namespace baton::worker
