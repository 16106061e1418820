#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include <baton/client.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/time.h"
#include "cli/base/interrupt.h"
#include "cli/base/parse.h"
#include "cli/broker/commands.h"
#include "cli/broker/kv_flags.h"
#include "cli/broker/kv_output.h"

namespace baton::cli {
namespace {

using Clock = std::chrono::steady_clock;
using client::KvWatchEvent;

// Poll interval for interrupts while waiting.
constexpr Milliseconds kWatchSlice{50};
// A person is watching: reconnect soon after the broker is back.
constexpr Milliseconds kReconnectMax{1'000};

struct WatchFlags : BucketFlags {
  std::string prefix;
  client::KvWatchOptions options;
  std::uint64_t max = 0;
  std::optional<Milliseconds> wait;
};

/// Prints what a watch sees, until there is enough, nothing comes any more, or a signal arrives.
/// The events come from one thread of the SDK.
class Watching {
 public:
  explicit Watching(const WatchFlags& flags)
      : flags_(flags), out_(flags.output()), what_(about_kv("watch", flags.bucket)) {}

  ExitCode run(const client::Bucket& bucket) {
    client::KvWatchOptions options = flags_.options;
    options.prefix = flags_.prefix;
    auto watch = bucket.watch(options, [this](const KvWatchEvent& event) { take(event); });
    if (!watch) return out_.fail(what_, watch.error());
    wait_for_end();
    watch->close(Milliseconds{1000});
    const std::lock_guard lock(mutex_);
    if (error_) return out_.fail(what_, *error_);
    if (count_ > 0 || enough_ || is_interrupted()) return ExitCode::ok;
    return out_.fail(what_,
                     fmt::format("no change came within {}",
                                 format_duration(flags_.wait.value_or(Milliseconds{0}))),
                     ExitCode::nothing_to_lease);
  }

 private:
  void take(const KvWatchEvent& event) {
    const std::lock_guard lock(mutex_);
    last_ = Clock::now();
    if (event.kind == KvWatchEvent::Kind::ended) {
      error_ = event.error;
    } else if (!enough_) {
      print(event);
    }
    if (enough_ || error_) changed_.notify_all();
  }

  void print(const KvWatchEvent& event) {
    if (out_.json()) {
      Output::object(to_json(event));
    } else {
      Output::text(describe(event));
    }
    // The reader of our output handles each event as it comes.
    std::fflush(stdout);
    const bool counts =
        event.kind == KvWatchEvent::Kind::put || event.kind == KvWatchEvent::Kind::removed ||
        event.kind == KvWatchEvent::Kind::expired || event.kind == KvWatchEvent::Kind::session_lost;
    if (counts && ++count_ == flags_.max) enough_ = true;
  }

  void wait_for_end() {
    std::unique_lock lock(mutex_);
    last_ = Clock::now();
    while (!is_interrupted() && !enough_ && !error_ && !waited_long()) {
      changed_.wait_for(lock, kWatchSlice);
    }
  }
  [[nodiscard]] bool waited_long() const {
    return flags_.wait && Clock::now() - last_ >= *flags_.wait;
  }

  const WatchFlags& flags_;
  Output out_;
  std::string what_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Under mutex_.
  bool enough_ = false;
  std::uint64_t count_ = 0;
  Clock::time_point last_;
  std::optional<Error> error_;
};

ExitCode run_watch(const WatchFlags& flags) {
  const std::string what = about_kv("watch", flags.bucket);
  const Output out = flags.output();
  client::ConnectionOptions connection = flags.connection();
  connection.reconnect_max = kReconnectMax;
  const auto broker = client::Broker::open(connection);
  if (!broker) return out.fail(what, broker.error());
  const client::Bucket bucket = broker->bucket(flags.bucket);
  // A missing bucket, or a missing broker, is reported at once.
  const auto info = bucket.describe();
  if (!info) return out.fail(what, info.error());
  const std::uint64_t after = flags.options.resume_after.value_or(0);
  if (after > info->revision) {
    return out.fail(what,
                    fmt::format("--after is {}, ahead of the bucket, which is at revision {}",
                                after, info->revision),
                    ExitCode::usage);
  }
  watch_for_interrupt();
  return Watching(flags).run(bucket);
}

}  // namespace

void add_kv_watch(CLI::App& kv, Action& action) {
  const auto flags = std::make_shared<WatchFlags>();
  CLI::App* watch = add_verb(
      kv,
      {.name = "watch",
       .help = "Show the keys that exist, then every change as it happens, until interrupted. "
               "Reconnects after a broken connection, and leaves out no change.",
       .example = "baton kv watch leases worker.\n"
                  "  baton kv watch leases --after 120 --json"},
      flags, run_watch, action);
  add_bucket_argument(*watch, *flags);
  watch->add_option("PREFIX", flags->prefix, "Only keys that begin with this.")->type_name("");
  watch->add_option("--key", flags->options.key, "Only this key.")->type_name("KEY");
  add_parsed(
      *watch, "--after", read_revision,
      [flags = flags.get()](std::uint64_t value) { flags->options.resume_after = value; },
      "Show only the changes after this revision, and not the keys that exist.");
  watch
      ->add_option("--session", flags->options.session,
                   "The key that stands for this watch: when the watch breaks off, other watches "
                   "see that its session is lost.")
      ->type_name("KEY");
  add_parsed(
      *watch, "-n,--max", parse_count,
      [flags = flags.get()](std::uint64_t value) { flags->max = value; },
      "End after this many keys and changes [no limit].");
  add_parsed(
      *watch, "--wait", parse_duration,
      [flags = flags.get()](Milliseconds value) { flags->wait = value; },
      "End when no change came for this long [never].");
}

}  // namespace baton::cli
