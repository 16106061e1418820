#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <baton/result.h>

#include "base/result.h"
#include "cli/base/exit_code.h"
#include "cli/base/output.h"
#include "cli/base/progress.h"

/// Where `queue send` and `stream append` get their payloads from.
namespace baton::cli {

struct PayloadFlags {
  std::vector<std::string> messages;
  std::string file;
  std::optional<std::uint64_t> size;
  std::uint64_t count = 1;
};

/// The words that a command uses for its payloads.
struct PayloadWords {
  std::string_view verb;     // "send"
  std::string_view item;     // "message"
  std::string_view payload;  // "payload"
  std::string_view done;     // "sent"
};

/// The payloads to send, and their number if known.
struct Payloads {
  /// Calls `send` for each payload in turn.
  std::function<void(const std::function<void(std::string)>& send)> each;
  std::optional<std::uint64_t> total;

  /// Whether there may be more of them than a report shows.
  [[nodiscard]] bool are_many() const;
};

/// MESSAGE, --file, --size and --count. `flags` must outlive the command.
void add_payload_flags(CLI::App& command, PayloadFlags& flags, const PayloadWords& words);

/// The content of a file, which may be as large as a payload.
Result<std::string> read_payload_file(const std::string& path, const PayloadWords& words);

/// Reads the file, if one is named. Exactly one source must be given.
Result<Payloads> payloads_of(const PayloadFlags& flags, const PayloadWords& words);

/// What became of the payloads; called by the SDK's thread, one result after the other.
class PayloadReport {
 public:
  /// For more results than this only a summary is shown.
  static constexpr std::uint64_t kResultsShown = 10;

  struct Options {
    Output out;
    std::string what;  // The command and its object, for messages.
    PayloadWords words;
    bool quiet = false;  // No results, only the summary.
    bool many = false;
    bool has_duplicates = false;  // Whether duplicates are possible.
    std::optional<std::uint64_t> total{};
  };

  explicit PayloadReport(Options options);

  /// A payload was stored: its result as JSON, and for people.
  void stored(const Json& result, const std::string& line);
  /// A payload was stored long before, under the same id.
  void duplicate(const Json& result, const std::string& line);
  void failed(const Json& result, const Error& error);
  /// Prints the summary, and returns the exit code.
  [[nodiscard]] ExitCode finish(std::chrono::steady_clock::duration took) const;

 private:
  void show(const Json& result, const std::string& line) const;

  Options options_;
  Progress progress_;  // Of confirmed payloads: one handed to the SDK is not sent yet.
  std::set<std::string> reasons_;
  std::uint64_t stored_ = 0;
  std::uint64_t duplicates_ = 0;
  std::uint64_t failed_ = 0;
  std::optional<Error> first_error_;
};

/// Sends all payloads with `send`, which uses `producer`, and reports once all are confirmed.
template <class Producer, class Send>
ExitCode send_all(const Payloads& work, const Send& send, Producer& producer,
                  std::chrono::milliseconds timeout, const PayloadReport& report) {
  const auto began = std::chrono::steady_clock::now();
  work.each(send);
  // Failures of single payloads are in the report already.
  static_cast<void>(producer.close(timeout));
  return report.finish(std::chrono::steady_clock::now() - began);
}

}  // namespace baton::cli
