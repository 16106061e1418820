#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

#include "base/result.h"

/// Where `queue send` and `stream append` get what they send.
namespace baton::cli {

struct PayloadFlags {
  std::vector<std::string> messages;
  std::string file;
  std::optional<std::uint64_t> size;
  std::uint64_t count = 1;
};

/// How a command speaks of its payloads.
struct PayloadWords {
  std::string_view verb;     // "send"
  std::string_view item;     // "message"
  std::string_view payload;  // "payload"
};

/// What is to be sent, and how many when that is known.
struct Payloads {
  /// Calls `send` for each payload in turn.
  std::function<void(const std::function<void(std::string)>& send)> each;
  std::optional<std::uint64_t> total;
};

/// MESSAGE, --file, --size and --count. `flags` must outlive the command.
void add_payload_flags(CLI::App& command, PayloadFlags& flags, const PayloadWords& words);

/// The content of a file, which may be as large as a payload.
Result<std::string> read_payload_file(const std::string& path, const PayloadWords& words);

/// Reads the file, if one is named. Exactly one source must be given.
Result<Payloads> payloads_of(const PayloadFlags& flags, const PayloadWords& words);

/// A line that is written over itself, on a terminal only.
class Progress {
 public:
  explicit Progress(bool json);

  void show(std::uint64_t sent, std::optional<std::uint64_t> total);
  void clear() const;

 private:
  using Clock = std::chrono::steady_clock;

  bool on_;
  bool shown_ = false;
  Clock::time_point last_ = Clock::now();
};

}  // namespace baton::cli
