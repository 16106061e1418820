#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <baton/client.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "cli/base/parse.h"
#include "cli/broker/commands.h"
#include "cli/broker/queue_flags.h"

namespace baton::cli {
namespace {

using Clock = std::chrono::steady_clock;
using client::LeasedMessage;
using client::LeaseStream;

// Poll interval for interrupts while waiting.
constexpr Milliseconds kLeaseSlice{50};
constexpr Milliseconds kRegisterTimeout{10'000};
constexpr Milliseconds kInterruptedTimeout{1'000};

struct LeaseFlags : QueueFlags {
  std::uint64_t max = 1;
  bool ack = false;
  bool nack = false;
  bool hold = false;
  std::optional<Milliseconds> nack_delay;
  std::string nack_reason;
  Milliseconds wait{5'000};
  Milliseconds hold_for{0};
  std::string consumer;
  std::optional<std::uint32_t> in_flight_max;

  /// Messages stay leased until the end: if they were given back at once, they would only come
  /// again.
  [[nodiscard]] bool keeps() const { return !ack && !nack; }
};

volatile std::sig_atomic_t g_interrupted = 0;  // NOLINT: a signal handler has nothing else.

void on_signal(int signal) {
  g_interrupted = 1;
  // A user who interrupts twice does not want to wait for the broker.
  std::signal(signal, SIG_DFL);  // NOLINT(cert-err33-c)
}

/// Takes messages from one queue until there are enough, none comes any more, or a signal arrives.
class Leasing {
 public:
  Leasing(const LeaseFlags& flags, LeaseStream stream)
      : flags_(flags),
        out_(flags.output()),
        what_(about("lease", flags.queue)),
        stream_(std::move(stream)) {}

  ExitCode run() {
    const auto registration =
        stream_.wait_until_registered(std::min(flags_.timeout, kRegisterTimeout));
    if (!registration) return out_.fail(what_, registration.error());
    extend_every_ = std::max(registration->visibility_timeout / 2, Milliseconds{1});
    next_extension_ = Clock::now() + extend_every_;
    if (flags_.max > 0) stream_.add_credit(credit());
    if (const auto taken = take(); !taken) return out_.fail(what_, taken.error());
    if (flags_.hold && !held_.empty()) hold();
    return finish();
  }

 private:
  [[nodiscard]] std::uint32_t credit() const {
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(flags_.max, std::numeric_limits<std::uint32_t>::max()));
  }

  Status take() {
    auto deadline = Clock::now() + flags_.wait;
    while (g_interrupted == 0 && (flags_.max == 0 || count_ < flags_.max)) {
      BATON_TRY(std::optional<LeasedMessage> message, stream_.next(slice_until(deadline)));
      extend_held();
      if (message.has_value()) {
        handle(std::move(message).value());
        deadline = Clock::now() + flags_.wait;
      } else if (Clock::now() >= deadline) {
        break;
      }
    }
    return {};
  }

  static Milliseconds slice_until(Clock::time_point deadline) {
    const auto left = std::chrono::duration_cast<Milliseconds>(deadline - Clock::now());
    return std::clamp(left, Milliseconds{0}, kLeaseSlice);
  }

  void handle(LeasedMessage message) {
    ++count_;
    if (out_.json()) {
      Output::object(to_json(message));
    } else {
      Output::text(describe(message));
    }
    // The reader of our output handles each message as it comes.
    std::fflush(stdout);
    if (flags_.ack) {
      stream_.ack(std::move(message.token), [this](const auto& results) { note(results); });
    } else if (flags_.nack) {
      const auto retry = flags_.nack_delay ? client::Retry::after(*flags_.nack_delay)
                                           : client::Retry::by_backoff();
      stream_.nack(client::Nack{std::move(message.token), retry, flags_.nack_reason},
                   [this](const auto& results) { note(results); });
    } else {
      held_.push_back(std::move(message.token));
    }
  }

  void extend_held() {
    if (held_.empty() || Clock::now() < next_extension_) return;
    next_extension_ = Clock::now() + extend_every_;
    std::vector<client::Extension> items;
    items.reserve(held_.size());
    for (const auto& token : held_) items.push_back({.token = token});
    // A lost lease is reported once, when the message is given back.
    stream_.extend(std::move(items), [](const auto&) {});
  }

  void hold() {
    if (!out_.json()) {
      const std::string time = flags_.hold_for.count() > 0
                                   ? "for " + format_duration(flags_.hold_for)
                                   : std::string("until interrupted");
      fmt::print(stderr, "holding {} {}\n", counted(held_.size(), "message"), time);
    }
    const auto forever = flags_.hold_for.count() == 0;
    const auto end = Clock::now() + flags_.hold_for;
    while (g_interrupted == 0 && (forever || Clock::now() < end)) {
      // Nothing comes, because there is no credit left; a broken stream shows here.
      const auto message = stream_.next(forever ? kLeaseSlice : slice_until(end));
      if (!message) return;
      extend_held();
    }
  }

  ExitCode finish() {
    std::vector<client::Nack> releases;
    releases.reserve(held_.size());
    for (auto& token : held_) {
      releases.push_back({.token = std::move(token), .retry = client::Retry::release()});
    }
    if (!releases.empty()) {
      stream_.nack(std::move(releases), [this](const auto& results) { note(results); });
    }
    // Without us the broker releases by itself, so an interrupted command does not wait for long.
    const auto closed = stream_.close(
        g_interrupted != 0 ? std::min(flags_.timeout, kInterruptedTimeout) : flags_.timeout);
    tell_released(closed.has_value());
    if (g_interrupted != 0) return ExitCode::ok;
    // Failures are reported per item; this is for a broker that did not answer at all.
    if (!closed && failed_ == 0) return out_.fail(what_, closed.error());
    if (failed_ > 0) {
      const auto why = fmt::format("{} of {} leases: {}", failed_, count_, reason(first_failure_));
      return out_.fail(what_, why, ExitCode::partial);
    }
    if (count_ > 0) return ExitCode::ok;
    return out_.fail(what_, fmt::format("no message came within {}", format_duration(flags_.wait)),
                     ExitCode::nothing_to_lease);
  }

  /// Messages that --hold reported as held are reported as released.
  void tell_released(bool confirmed) const {
    if (!flags_.hold || held_.empty() || out_.json()) return;
    const std::size_t released = held_.size() - std::min<std::size_t>(failed_, held_.size());
    fmt::print(stderr, "{} {}\n", confirmed ? "released" : "the broker will release",
               counted(released, "message"));
  }

  /// Runs on the SDK's thread; read only after close().
  void note(const client::ItemResults& results) {
    if (results.ok()) return;
    if (failed_ == 0) first_failure_ = results.failures.front().error;
    failed_ += results.failures.size();
  }

  const LeaseFlags& flags_;
  Output out_;
  std::string what_;
  std::uint64_t count_ = 0;
  std::vector<client::LeaseToken> held_;
  Milliseconds extend_every_{1};
  Clock::time_point next_extension_;
  std::uint64_t failed_ = 0;
  Error first_failure_;
  LeaseStream stream_;  // Last: its callbacks use the others.
};

Status check(const LeaseFlags& flags) {
  const int modes =
      static_cast<int>(flags.ack) + static_cast<int>(flags.nack) + static_cast<int>(flags.hold);
  if (modes > 1) return Error{Errc::invalid_argument, "give only one of --ack, --nack and --hold"};
  if (!flags.nack && (flags.nack_delay || !flags.nack_reason.empty())) {
    return Error{Errc::invalid_argument, "--delay and --reason go with --nack"};
  }
  if (!flags.hold && flags.hold_for.count() > 0) {
    return Error{Errc::invalid_argument, "--hold-for goes with --hold"};
  }
  if (flags.max == 0 && flags.keeps()) {
    return Error{Errc::invalid_argument, "--max 0 (no limit) needs --ack or --nack"};
  }
  if (flags.keeps() && flags.max > limits::kInFlightMax) {
    return Error{Errc::invalid_argument,
                 fmt::format("--max is {}; without --ack or --nack it may be at most {}", flags.max,
                             limits::kInFlightMax)};
  }
  return {};
}

ExitCode run_lease(const LeaseFlags& flags) {
  const Output out = flags.output();
  const std::string what = about("lease", flags.queue);
  if (const Status status = check(flags); !status) return out.fail_here(what, status.error());
  const auto broker = client::Broker::open(flags.connection());
  if (!broker) return out.fail(what, broker.error());
  const client::Queue queue = broker->queue(flags.queue);
  // A missing queue, or a missing broker, is reported at once.
  if (const auto there = queue.describe(); !there) return out.fail(what, there.error());
  client::LeaseStreamOptions options{.consumer_id = flags.consumer};
  options.manual_credit = flags.max > 0;
  options.in_flight_max = flags.in_flight_max.value_or(
      flags.keeps() ? static_cast<std::uint32_t>(flags.max) : limits::kInFlightDefault);
  // Messages kept until the end must not stop at the limit meant for consumers that ack one by one.
  if (flags.keeps()) options.in_flight_bytes_max = limits::kInFlightBytesMax;
  auto stream = queue.lease(std::move(options));
  if (!stream) return out.fail(what, stream.error());
  std::signal(SIGINT, on_signal);   // NOLINT(cert-err33-c)
  std::signal(SIGTERM, on_signal);  // NOLINT(cert-err33-c)
  return Leasing(flags, *std::move(stream)).run();
}

Result<std::uint64_t> read_lease_max(std::string_view text) {
  return parse_number(text, 0, std::numeric_limits<std::uint32_t>::max());
}
Result<std::uint64_t> read_in_flight(std::string_view text) {
  return parse_number(text, 1, limits::kInFlightMax);
}

void add_lease_flags(CLI::App& command, LeaseFlags& flags) {
  add_parsed(
      command, "-n,--max", read_lease_max, [&flags](std::uint64_t value) { flags.max = value; },
      "Lease this many messages [1]; 0 = all that come (with --ack or --nack).");
  command.add_flag("--ack", flags.ack,
                   "Ack each message after printing it, which removes it from the queue.");
  command.add_flag(
      "--nack", flags.nack,
      "Nack each message after printing it: a failed attempt, which the queue retries.");
  command.add_flag(
      "--hold", flags.hold,
      "Keep the leases, extending them, until interrupted or for --hold-for; then release them.");
  add_parsed(
      command, "--hold-for", parse_duration,
      [&flags](Milliseconds value) { flags.hold_for = value; },
      "With --hold: release the messages after this long.");
  add_parsed(
      command, "--delay", parse_duration,
      [&flags](Milliseconds value) { flags.nack_delay = value; },
      "With --nack: retry after this long, instead of the queue's backoff.");
  command
      .add_option("--reason", flags.nack_reason,
                  "With --nack: stored as the last error of the message.")
      ->type_name("REASON");
  add_parsed(
      command, "--wait", parse_duration, [&flags](Milliseconds value) { flags.wait = value; },
      "End when no message came for this long [5s].");
  command.add_option("--consumer", flags.consumer, "The consumer id [chosen by the broker].")
      ->type_name("ID");
  add_parsed(
      command, "--in-flight-max", read_in_flight,
      [&flags](std::uint64_t value) { flags.in_flight_max = static_cast<std::uint32_t>(value); },
      "The most messages held at once, 1 to 100000.");
}

}  // namespace

void add_queue_lease(CLI::App& queue, Action& action) {
  const auto flags = std::make_shared<LeaseFlags>();
  CLI::App* command =
      add_verb(queue,
               {.name = "lease",
                .help = "Lease messages and print them. Without --ack, --nack or --hold they are "
                        "released at the end, as if they had never been leased: no attempt counts.",
                .example = "baton queue lease jobs                      (look at one)\n"
                           "  baton queue lease jobs --max 10 --ack       (take ten)\n"
                           "  baton queue lease jobs --max 0 --ack --json (drain)"},
               flags, run_lease, action);
  add_queue_argument(*command, *flags);
  add_lease_flags(*command, *flags);
}

}  // namespace baton::cli
