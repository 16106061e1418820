#pragma once

#include <string>
#include <string_view>

#include "base/logging/gate.h"
#include "base/time.h"
#include "server/session/operations.h"

namespace baton {

/// Logs which client created, changed or deleted what: "event=delete_queue queue=orders
/// peer=ipv4:127.0.0.1:4711". Rate-limited. Thread-safe.
class ChangeLog {
 public:
  ChangeLog();

  /// Logs a call that succeeded; `fields` says what it was about. Calls that change only messages,
  /// records or keys are not logged.
  void add(Operation operation, std::string_view fields, std::string_view peer, Instant now);
  /// Whether add() logs such calls.
  static bool takes(Operation operation);

 private:
  LogGate gate_;
};

/// "queue=orders", with the value quoted if necessary.
std::string change_field(std::string_view name, std::string_view value);

/// What a command was about, as fields of a log line; empty if it changed nothing.
template <class Wanted>
std::string subject_of(const Wanted& command) {
  if constexpr (requires { command.dry_run; }) {
    if (command.dry_run) return {};
  }
  if constexpr (requires { command.queue; }) return change_field("queue", command.queue);
  if constexpr (requires { command.bucket; }) return change_field("bucket", command.bucket);
  if constexpr (requires { command.stream; }) {
    std::string fields = change_field("stream", command.stream);
    if constexpr (requires { command.group; }) {
      fields += ' ' + change_field("group", command.group);
    }
    return fields;
  }
  return {};
}

}  // namespace baton
