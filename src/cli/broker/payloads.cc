#include "cli/broker/payloads.h"

#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <iostream>
#include <limits>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/base/command.h"
#include "cli/base/output.h"
#include "cli/base/parse.h"
#include "cli/base/terminal.h"
#include "core/stream/limits.h"

namespace baton::cli {
namespace {

constexpr std::size_t kErrorsShown = 10;
// The largest payload that the broker accepts, of either kind.
constexpr std::uint64_t kBytesMax = limits::kPayloadBytesMax;
static_assert(kBytesMax == limits::kStreamBatchBytesMax);

void send_lines(const std::function<void(std::string)>& send) {
  std::string line;
  while (std::getline(std::cin, line)) send(std::move(line));
}

Payloads repeated(std::vector<std::string> payloads, std::uint64_t count) {
  const std::uint64_t total = payloads.size() * count;
  return {.each =
              [payloads = std::move(payloads), count](const auto& send) {
                for (std::uint64_t i = 0; i < count; ++i) {
                  for (const std::string& payload : payloads) send(payload);
                }
              },
          .total = total};
}

Result<std::uint64_t> read_bytes(std::string_view text) {
  BATON_TRY(const std::uint64_t bytes, parse_size(text));
  if (bytes <= kBytesMax) return bytes;
  return Error{Errc::invalid_argument,
               fmt::format("'{}' is more than {}", text, format_bytes(kBytesMax))};
}

}  // namespace

Result<std::string> read_payload_file(const std::string& path, const PayloadWords& words) {
  std::ifstream file(path, std::ios::binary);
  // Reading one byte more than fits shows that the file is too large.
  std::string text(kBytesMax + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad() || (file.fail() && !file.eof())) {
    return Error{Errc::invalid_argument, fmt::format("--file: cannot read '{}'", path)};
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > kBytesMax) {
    return Error{Errc::invalid_argument, fmt::format("--file: '{}' is larger than a {} may be ({})",
                                                     path, words.payload, format_bytes(kBytesMax))};
  }
  return text;
}

void add_payload_flags(CLI::App& command, PayloadFlags& flags, const PayloadWords& words) {
  command
      .add_option("MESSAGE", flags.messages,
                  fmt::format("A {}; - reads one per line from standard input.", words.payload))
      ->type_name("");
  command
      .add_option("--file", flags.file, fmt::format("Take the {} from this file.", words.payload))
      ->type_name("FILE");
  add_parsed(
      command, "--size", read_bytes, [&flags](std::uint64_t bytes) { flags.size = bytes; },
      fmt::format("Generate a {} of this size.", words.payload))
      ->type_name("SIZE");
  add_parsed(
      command, "--count", parse_count, [&flags](std::uint64_t count) { flags.count = count; },
      fmt::format("Times to {} [1].", words.verb));
}

Result<Payloads> payloads_of(const PayloadFlags& flags, const PayloadWords& words) {
  const int sources = static_cast<int>(!flags.messages.empty()) +
                      static_cast<int>(!flags.file.empty()) +
                      static_cast<int>(flags.size.has_value());
  if (sources == 0) {
    return Error{Errc::invalid_argument,
                 fmt::format("nothing to {}: give a MESSAGE, --file F, --size BYTES, or - to read "
                             "one {} per line",
                             words.verb, words.item)};
  }
  if (sources > 1) {
    return Error{Errc::invalid_argument, "give only one of MESSAGE, --file and --size"};
  }
  if (flags.messages == std::vector<std::string>{"-"}) {
    if (flags.count != 1) {
      return Error{Errc::invalid_argument, "--count does not go with -: the lines are the count"};
    }
    return Payloads{.each = send_lines, .total = std::nullopt};
  }
  if (!flags.file.empty()) {
    BATON_TRY(std::string payload, read_payload_file(flags.file, words));
    return repeated({std::move(payload)}, flags.count);
  }
  if (flags.size) return repeated({std::string(*flags.size, 'x')}, flags.count);
  return repeated(flags.messages, flags.count);
}

bool Payloads::are_many() const { return !total || *total > PayloadReport::kResultsShown; }

PayloadReport::PayloadReport(Options options)
    : options_(std::move(options)),
      progress_(options_.many && !options_.out.json() && is_terminal(STDERR_FILENO),
                options_.total) {}

void PayloadReport::show(const Json& result, const std::string& line) const {
  if (options_.quiet) return;
  if (options_.out.json()) {
    Output::object(result);
  } else if (!options_.many) {
    Output::text(line);
  }
}

void PayloadReport::stored(const Json& result, const std::string& line) {
  ++stored_;
  progress_.show(options_.words.done);
  show(result, line);
}

void PayloadReport::duplicate(const Json& result, const std::string& line) {
  ++duplicates_;
  progress_.show(options_.words.done);
  show(result, line);
}

void PayloadReport::failed(const Json& result, const Error& error) {
  ++failed_;
  if (!first_error_) first_error_ = error;
  if (options_.out.json()) return show(result, {});
  // If a thousand fail for one reason, it is reported once.
  const std::string why = reason(error);
  if (reasons_.size() >= kErrorsShown || !reasons_.insert(why).second) return;
  progress_.clear();
  fmt::print(stderr, "baton: {}: {}\n", options_.what, why);
}

ExitCode PayloadReport::finish(std::chrono::steady_clock::duration took) const {
  progress_.clear();
  const double seconds = std::chrono::duration<double>(took).count();
  const std::uint64_t sent = stored_ + duplicates_;
  const double rate = static_cast<double>(sent) / std::max(seconds, 1e-9);
  if (options_.out.json() && options_.quiet) {
    Json summary{{"stored", stored_}, {"failed", failed_}, {"seconds", seconds}};
    if (options_.has_duplicates) summary["duplicates"] = duplicates_;
    summary[fmt::format("{}s_per_second", options_.words.item)] = rate;
    Output::object(summary);
  } else if (!options_.out.json() && options_.many) {
    Output::text(
        fmt::format("{} {} {}s in {:.2f} s, {}/s{}{}", options_.words.done, format_count(sent),
                    options_.words.item, seconds, format_count(static_cast<std::uint64_t>(rate)),
                    duplicates_ == 0 ? "" : fmt::format(", {} of them duplicates", duplicates_),
                    failed_ == 0 ? "" : fmt::format("; {} failed", format_count(failed_))));
  }
  if (!first_error_) return ExitCode::ok;
  return sent == 0 ? exit_code_of(first_error_->code) : ExitCode::partial;
}

}  // namespace baton::cli
