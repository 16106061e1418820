#include "cli/payloads.h"

#include <unistd.h>

#include <fstream>
#include <iostream>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "cli/commands.h"
#include "cli/output.h"
#include "cli/parse.h"
#include "stream/limits.h"

namespace baton::cli {
namespace {

constexpr std::chrono::milliseconds kProgressEvery{500};
// What the broker takes at most, of either kind.
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

Result<std::uint64_t> read_count(std::string_view text) {
  return parse_number(text, 1, std::numeric_limits<std::uint64_t>::max());
}

}  // namespace

Result<std::string> read_payload_file(const std::string& path, const PayloadWords& words) {
  std::ifstream file(path, std::ios::binary);
  // One byte more than fits tells that it does not.
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
                  fmt::format("A {}; - reads one per line.", words.payload))
      ->type_name("");
  command.add_option("--file", flags.file, "The content of this file.");
  add_parsed(
      command, "--size", read_bytes, [&flags](std::uint64_t bytes) { flags.size = bytes; },
      fmt::format("A {} of so many bytes.", words.payload));
  add_parsed(
      command, "--count", read_count, [&flags](std::uint64_t count) { flags.count = count; },
      "So often [1].");
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

Progress::Progress(bool json) : on_(!json && ::isatty(STDERR_FILENO) == 1) {}

void Progress::show(std::uint64_t sent, std::optional<std::uint64_t> total) {
  if (!on_ || Clock::now() - last_ < kProgressEvery) return;
  last_ = Clock::now();
  shown_ = true;
  const std::string of = total ? fmt::format(" of {}", format_count(*total)) : std::string();
  fmt::print(stderr, "\r{}{} sent\x1b[K", format_count(sent), of);
}

void Progress::clear() const {
  if (shown_) fmt::print(stderr, "\r\x1b[K");
}

}  // namespace baton::cli
