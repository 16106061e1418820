#pragma once

#include <string>
#include <string_view>

#include "api_base/counters.h"
#include "base/time.h"
#include "log/gate.h"
#include "log/log.h"

namespace baton {

/// Tells the log who has created, changed or deleted what, as
/// "event=delete_queue queue=orders peer=ipv4:127.0.0.1:4711". Rate-limited. Thread-safe.
class ChangeLog {
 public:
  ChangeLog();

  /// A call that succeeded; `fields` is what it was about. Calls that change no more than messages,
  /// records or keys are left out.
  void add(Method method, std::string_view fields, std::string_view peer, Instant now);
  /// Whether add() logs such calls.
  static bool takes(Method method);

 private:
  LogGate gate_;
};

/// What a command is about, as fields of a log line; empty when it has changed nothing.
template <class Wanted>
std::string subject_of(const Wanted& command) {
  if constexpr (requires { command.dry_run; }) {
    if (command.dry_run) return {};
  }
  if constexpr (requires { command.queue; }) return "queue=" + log_value(command.queue);
  if constexpr (requires { command.bucket; }) return "bucket=" + log_value(command.bucket);
  if constexpr (requires { command.stream; }) {
    std::string fields = "stream=" + log_value(command.stream);
    if constexpr (requires { command.group; }) fields += " group=" + log_value(command.group);
    return fields;
  }
  return {};
}

}  // namespace baton
