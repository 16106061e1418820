#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <fstream>
#include <functional>
#include <iostream>
#include <iterator>
#include <limits>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <baton/client.h>

#include "base/limits.h"
#include "cli/commands.h"
#include "cli/parse.h"
#include "cli/queue_flags.h"

namespace baton::cli {
namespace {

using Clock = std::chrono::steady_clock;
using client::EnqueueResult;
using client::NewMessage;

constexpr std::uint64_t kIdsShown = 10;
constexpr std::size_t kErrorsShown = 10;
constexpr std::chrono::milliseconds kProgressEvery{500};

struct SendFlags : QueueFlags {
  std::vector<std::string> messages;
  std::string file;
  std::optional<std::uint64_t> size;
  std::uint64_t count = 1;
  bool quiet = false;
  NewMessage message;  // All but the payload.
};

/// Calls `send` for each payload in turn.
using Payloads = std::function<void(const std::function<void(std::string)>& send)>;

/// What is to be sent, and how many when that is known.
struct Work {
  Payloads payloads;
  std::optional<std::uint64_t> total;
};

Result<std::string> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  // One byte more than fits tells that it does not.
  std::string text(limits::kPayloadBytesMax + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (!file.is_open() || file.bad() || (file.fail() && !file.eof())) {
    return Error{Errc::invalid_argument, fmt::format("cannot read '{}'", path)};
  }
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > limits::kPayloadBytesMax) {
    return Error{Errc::invalid_argument, fmt::format("'{}' is larger than a payload may be ({})",
                                                     path, format_bytes(limits::kPayloadBytesMax))};
  }
  return text;
}

void send_lines(const std::function<void(std::string)>& send) {
  std::string line;
  while (std::getline(std::cin, line)) send(std::move(line));
}

Work repeated(std::vector<std::string> payloads, std::uint64_t count) {
  const std::uint64_t total = payloads.size() * count;
  return {.payloads =
              [payloads = std::move(payloads), count](const auto& send) {
                for (std::uint64_t i = 0; i < count; ++i) {
                  for (const std::string& payload : payloads) send(payload);
                }
              },
          .total = total};
}

Result<Work> work_of(const SendFlags& flags) {
  const int sources = static_cast<int>(!flags.messages.empty()) +
                      static_cast<int>(!flags.file.empty()) +
                      static_cast<int>(flags.size.has_value());
  if (sources != 1) {
    return Error{Errc::invalid_argument,
                 sources == 0 ? "nothing to send: give a MESSAGE, --file F, --size BYTES, or - to "
                                "read one message per line"
                              : "give only one of MESSAGE, --file and --size"};
  }
  if (flags.messages == std::vector<std::string>{"-"}) {
    if (flags.count != 1) {
      return Error{Errc::invalid_argument, "--count does not go with -: the lines are the count"};
    }
    return Work{.payloads = send_lines, .total = std::nullopt};
  }
  if (!flags.file.empty()) {
    BATON_TRY(std::string payload, read_file(flags.file));
    return repeated({std::move(payload)}, flags.count);
  }
  if (flags.size) return repeated({std::string(*flags.size, 'x')}, flags.count);
  return repeated(flags.messages, flags.count);
}

/// What became of the messages; written by the SDK's thread, one result after the other.
class Report {
 public:
  Report(const SendFlags& flags, bool many)
      : out_(flags.output()), what_(about("send", flags.queue)), quiet_(flags.quiet), many_(many) {}

  void add(const EnqueueResult& result) {
    result.ok() ? ++stored_ : ++failed_;
    if (result.duplicate) ++duplicates_;
    if (!result.ok() && !first_error_) first_error_ = result.error;
    if (out_.json()) {
      if (!quiet_) Output::object(to_json(result));
    } else if (result.error.has_value()) {
      complain(reason(result.error.value()));
    } else if (!many_ && !quiet_) {
      Output::text(result.id + (result.duplicate ? "  duplicate: nothing was stored" : ""));
    }
  }

  [[nodiscard]] ExitCode finish(Clock::duration took) const {
    const double seconds = std::chrono::duration<double>(took).count();
    const double rate = static_cast<double>(stored_) / std::max(seconds, 1e-9);
    if (out_.json() && quiet_) {
      Output::object(Json{{"stored", stored_ - duplicates_},
                          {"duplicates", duplicates_},
                          {"failed", failed_},
                          {"seconds", seconds},
                          {"messages_per_second", rate}});
    } else if (!out_.json() && many_) {
      Output::text(
          fmt::format("sent {} messages in {:.2f} s, {}/s{}{}", format_count(stored_), seconds,
                      format_count(static_cast<std::uint64_t>(rate)),
                      duplicates_ == 0 ? "" : fmt::format(", {} of them duplicates", duplicates_),
                      failed_ == 0 ? "" : fmt::format("; {} failed", format_count(failed_))));
    }
    if (!first_error_) return ExitCode::ok;
    return stored_ == 0 ? exit_code_of(first_error_->code) : ExitCode::partial;
  }

 private:
  /// A thousand messages fail for one reason: it is told once.
  void complain(const std::string& why) {
    if (reasons_.size() >= kErrorsShown || !reasons_.insert(why).second) return;
    fmt::print(stderr, "baton: {}: {}\n", what_, why);
  }

  Output out_;
  std::string what_;
  std::set<std::string> reasons_;
  bool quiet_;
  bool many_;
  std::uint64_t stored_ = 0;
  std::uint64_t duplicates_ = 0;
  std::uint64_t failed_ = 0;
  std::optional<client::Error> first_error_;
};

ExitCode send_one(const SendFlags& flags, std::string payload) {
  return with_client(flags, about("send", flags.queue),
                     [&](client::QueueClient& client, const Output& out) {
                       std::vector<NewMessage> messages(1, flags.message);
                       messages[0].payload = std::move(payload);
                       const auto results = client.enqueue(flags.queue, std::move(messages));
                       if (!results) return out.fail(about("send", flags.queue), results.error());
                       const EnqueueResult& result = results->at(0);
                       if (!result.ok()) return out.fail(about("send", flags.queue), *result.error);
                       Report report(flags, false);
                       report.add(result);
                       return report.finish({});
                     });
}

/// A line that is written over itself, on a terminal only.
class Progress {
 public:
  explicit Progress(bool json) : on_(!json && ::isatty(STDERR_FILENO) == 1) {}

  void show(std::uint64_t sent, std::optional<std::uint64_t> total) {
    if (!on_ || Clock::now() - last_ < kProgressEvery) return;
    last_ = Clock::now();
    shown_ = true;
    const std::string of = total ? fmt::format(" of {}", format_count(*total)) : std::string();
    fmt::print(stderr, "\r{}{} sent\x1b[K", format_count(sent), of);
  }
  void clear() const {
    if (shown_) fmt::print(stderr, "\r\x1b[K");
  }

 private:
  bool on_;
  bool shown_ = false;
  Clock::time_point last_ = Clock::now();
};

ExitCode send_many(const SendFlags& flags, const Work& work) {
  const Output out = flags.output();
  const std::string what = about("send", flags.queue);
  auto producer = client::Producer::open({.connection = flags.connection(), .queue = flags.queue});
  if (!producer) return out.fail(what, producer.error());
  Report report(flags, !work.total || *work.total > kIdsShown);
  Progress progress(out.json());
  const auto began = Clock::now();
  std::uint64_t sent = 0;
  work.payloads([&](std::string payload) {
    NewMessage message = flags.message;
    message.payload = std::move(payload);
    // The callbacks run one at a time, and all of them before close() returns.
    (*producer)->send(std::move(message),
                      [&report](const EnqueueResult& result) { report.add(result); });
    progress.show(++sent, work.total);
  });
  // Failures of single messages are in the report already.
  static_cast<void>((*producer)->close(flags.timeout));
  progress.clear();
  return report.finish(Clock::now() - began);
}

ExitCode run_send(const SendFlags& flags) {
  const Output out = flags.output();
  const Result<Work> work = work_of(flags);
  if (!work) return out.fail(about("send", flags.queue), work.error());
  if (work->total == 1) {
    ExitCode code = ExitCode::ok;
    work->payloads([&](std::string payload) { code = send_one(flags, std::move(payload)); });
    return code;
  }
  // A queue that is not there, or no broker at all, shows at once; a producer would go on trying.
  const ExitCode there = with_client(
      flags, about("send", flags.queue), [&](client::QueueClient& client, const Output&) {
        const auto queue = client.describe_queue(flags.queue);
        return queue ? ExitCode::ok : out.fail(about("send", flags.queue), queue.error());
      });
  return there == ExitCode::ok ? send_many(flags, *work) : there;
}

Result<std::uint64_t> read_count(std::string_view text) {
  return parse_number(text, 1, std::numeric_limits<std::uint64_t>::max());
}
Result<std::uint64_t> read_payload_size(std::string_view text) {
  BATON_TRY(const std::uint64_t bytes, parse_size(text));
  if (bytes <= limits::kPayloadBytesMax) return bytes;
  return Error{Errc::invalid_argument,
               fmt::format("'{}' is more than {}", text, format_bytes(limits::kPayloadBytesMax))};
}
Result<Milliseconds> read_duration(std::string_view text) { return parse_milliseconds(text); }

void add_message_flags(CLI::App& command, SendFlags& flags) {
  NewMessage& message = flags.message;
  command.add_option("--key", message.fairness_key, "The fairness key: who shares with whom.");
  command.add_option("--throttle-key", message.throttle_keys, "A throttle key. Repeatable.")
      ->allow_extra_args(false);
  add_parsed_many(
      command, "--header", parse_header,
      [&message](std::pair<std::string, std::string> header) {
        message.headers.insert_or_assign(std::move(header.first), std::move(header.second));
      },
      "Repeatable.");
  add_parsed(
      command, "--delay", read_duration, [&message](Milliseconds value) { message.delay = value; },
      "Not visible before so long.");
  command.add_option("--dedup-id", message.dedup_id,
                     "A second message with this id within the window stores nothing.");
  add_parsed(
      command, "--expires-after", read_duration,
      [&message](Milliseconds value) { message.expires_after = value; },
      "Dropped when nobody took it so long.");
}

}  // namespace

void add_queue_send(CLI::App& queue, Action& action) {
  const auto flags = std::make_shared<SendFlags>();
  CLI::App* command =
      add_verb(queue,
               {.name = "send",
                .help = "Send messages. Prints their ids once they are stored; of more than 10, a "
                        "summary.",
                .example = "baton queue send jobs hello --key tenant-a --header type=greeting\n"
                           "  baton queue send jobs --count 100000 --size 1KiB\n"
                           "  seq 1000 | baton queue send jobs -"},
               flags, run_send, action);
  add_queue_argument(*command, *flags);
  command->add_option("MESSAGE", flags->messages, "Payloads; - reads one per line.")->type_name("");
  command->add_option("--file", flags->file, "Send the content of this file.");
  add_parsed(
      *command, "--size", read_payload_size,
      [flags = flags.get()](std::uint64_t bytes) { flags->size = bytes; },
      "Send a payload of so many bytes.");
  add_parsed(
      *command, "--count", read_count,
      [flags = flags.get()](std::uint64_t count) { flags->count = count; },
      "Send it so often [1].");
  command->add_flag("--quiet", flags->quiet, "Print no ids; with --json, print only the summary.");
  add_message_flags(*command, *flags);
}

}  // namespace baton::cli
