#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <baton/lease_stream.h>
#include <baton/message.h>
#include <baton/queue.h>
#include <baton/result.h>
#include <nlohmann/json_fwd.hpp>

#include "cli/base/exit_code.h"

namespace baton::cli {

using Json = nlohmann::ordered_json;

/// Where a command writes: text for people, or with --json objects for programs, one per line.
/// Errors go to standard error in the same form.
class Output {
 public:
  /// Replaces an error that a library words badly by its cause, if that can be found.
  using Explain = std::function<Error(const Error&)>;

  explicit Output(bool json, Explain explain = {}) : json_(json), explain_(std::move(explain)) {}

  [[nodiscard]] bool json() const { return json_; }
  /// Text for people; a newline is added.
  static void text(std::string_view line);
  /// One line of JSON.
  static void object(const Json& value);

  /// Writes "baton: WHAT: WHY (CODE)" to standard error. Returns the exit code that fits, so that
  /// a command ends with `return out.fail(...)`.
  [[nodiscard]] ExitCode fail(std::string_view what, const Error& error) const;
  /// The same for an error of this process: a flag, a file, a folder. Text for people leaves out
  /// the code's name.
  [[nodiscard]] ExitCode fail_here(std::string_view what, const Error& error) const;
  [[nodiscard]] ExitCode fail(std::string_view what, std::string_view why, ExitCode code) const;
  /// Ends a command whose question, before something is destroyed, was answered with no.
  [[nodiscard]] ExitCode not_confirmed(std::string_view what) const {
    return fail(what, "not confirmed: nothing was removed", ExitCode::failure);
  }

 private:
  struct Failure;
  void print(std::string_view what, const Failure& failure) const;

  bool json_;
  Explain explain_;
};

/// One line; bytes that are not valid UTF-8 are replaced.
std::string dump(const Json& value);

// Objects with the field names of the wire schema.

Json to_json(const client::QueueInfo& queue);
Json to_json(const client::LeasedMessage& message);
Json to_json(const client::PeekedMessage& message);
Json to_json(const client::EnqueueResult& result);
Json to_json(const Error& error);

// Text for people.

std::string describe(const client::QueueInfo& queue);
std::string describe(const client::LeasedMessage& message);
std::string describe(const client::PeekedMessage& message);
/// The lines of a payload, each indented and preceded by a newline; other bytes are only counted.
std::string describe_payload(std::string_view payload);
/// The error's text, with the stable name of the code.
std::string reason(const Error& error);

/// Columns as wide as they need to be, two spaces apart; the first row is the head. Columns whose
/// cells are all numbers are aligned to the right.
std::string format_table(const std::vector<std::vector<std::string>>& rows);
/// "1.5 MiB".
std::string format_bytes(std::uint64_t bytes);
/// "1 234 567".
std::string format_count(std::uint64_t count);
/// "1 message", "2 messages", "1 234 messages".
std::string counted(std::uint64_t count, std::string_view thing);

bool is_utf8(std::string_view bytes);
/// Adds the field "NAME"; or "NAME_base64" if the bytes are not text.
void put_bytes(Json& out, const std::string& name, std::string_view bytes);
/// For a terminal: control bytes, which could move its cursor, are shown as \x1b.
std::string printable(std::string_view text);

}  // namespace baton::cli
