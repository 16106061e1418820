#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/result.h"
#include "base/time.h"
#include "worker/guardian/handler_command.h"

/// The protocol between a runner and its guardian: words and numbers, one message per packet.
///   to the guardian   deadline NS | start P E | stop P NS | kill P | signal N
///   from it           started P E PID | ended P E CODE 0|1
/// Times are those of CLOCK_BOOTTIME.
namespace baton::worker {

/// Handlers may work until then.
struct NewDeadline {
  Instant deadline;
  bool operator==(const NewDeadline&) const = default;
};
struct StartHandler {
  HandlerTask task;
  bool operator==(const StartHandler&) const = default;
};
/// SIGTERM now; SIGKILL at `kill_at`.
struct StopHandler {
  std::uint32_t partition = 0;
  Instant kill_at;
  bool operator==(const StopHandler&) const = default;
};
struct KillHandler {
  std::uint32_t partition = 0;
  bool operator==(const KillHandler&) const = default;
};
/// To all handlers: SIGHUP, SIGUSR1 or SIGUSR2.
struct SignalHandlers {
  int number = 0;
  bool operator==(const SignalHandlers&) const = default;
};
using GuardCommand =
    std::variant<NewDeadline, StartHandler, StopHandler, KillHandler, SignalHandlers>;

struct HandlerStarted {
  HandlerTask task;
  pid_t pid = 0;
  bool operator==(const HandlerStarted&) const = default;
};
/// No process of the handler is left.
struct HandlerEnded {
  HandlerTask task;
  int code = 0;  // As a shell shows it: 128 plus the signal, if one ended it.
  /// The guardian has ended it, because the lease was about to run out.
  bool lease_over = false;
  bool operator==(const HandlerEnded&) const = default;
};
using GuardReport = std::variant<HandlerStarted, HandlerEnded>;

std::string encode(const GuardCommand& command);
std::string encode(const GuardReport& report);
Result<GuardCommand> parse_guard_command(std::string_view text);
Result<GuardReport> parse_guard_report(std::string_view text);

/// The maximum length of a message.
inline constexpr std::size_t kGuardMessageBytes = 128;
/// Whether a runner forwards this signal.
bool is_forwarded(int signal);

}  // namespace baton::worker
