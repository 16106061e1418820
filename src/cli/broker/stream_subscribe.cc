#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <baton/client.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/names.h"
#include "base/time.h"
#include "cli/base/interrupt.h"
#include "cli/broker/commands.h"
#include "cli/broker/stream_flags.h"
#include "cli/broker/stream_output.h"

namespace baton::cli {
namespace {

using Clock = std::chrono::steady_clock;
using client::RecordBatch;
using client::StreamConsumer;
using client::StreamPosition;

// Poll interval for interrupts while waiting.
constexpr Milliseconds kSubscribeSlice{50};

struct SubscribeFlags : StreamFlags {
  std::string group;
  bool single_active = false;
  client::Handover handover = client::Handover::as_group;
  std::optional<PartitionNumber> partition;
  std::uint64_t store_every = 0;
  client::StartFrom from = client::StartFrom::next();
  std::string owner;
  std::uint64_t max = 0;
  std::optional<Milliseconds> wait;
};

/// Prints what a consumer gets, until there is enough, nothing comes any more, or a signal arrives.
/// The callbacks come from the consumer's one thread, errors from another.
class Subscribing {
 public:
  explicit Subscribing(const SubscribeFlags& flags)
      : flags_(flags), out_(flags.output()), what_(about_stream("subscribe", flags.stream)) {}

  ExitCode run() {
    const auto broker = client::Broker::open(flags_.connection());
    if (!broker) return out_.fail(what_, broker.error());
    auto consumer = broker->stream(flags_.stream).consumer(options(), [this](RecordBatch& batch) {
      take(batch);
    });
    if (!consumer) return out_.fail(what_, consumer.error());
    last_ = Clock::now().time_since_epoch();
    while (!is_interrupted() && !enough_ && !waited_long()) {
      if (const auto ended = consumer->wait(kSubscribeSlice); ended && !ended->has_value()) break;
    }
    const auto closed = consumer->close(flags_.timeout);
    if (!closed) return end_with(closed.error());
    if (count_ > 0 || is_interrupted() || enough_) return ExitCode::ok;
    return out_.fail(what_,
                     fmt::format("no record came within {}",
                                 format_duration(flags_.wait.value_or(Milliseconds{0}))),
                     ExitCode::nothing_to_lease);
  }

 private:
  client::StreamConsumerOptions options() {
    client::StreamConsumerOptions options;
    if (flags_.partition) options.partitions = {*flags_.partition};
    options.group = flags_.group;
    options.single_active = flags_.single_active;
    options.handover = flags_.handover;
    options.from = flags_.from;
    options.owner = flags_.owner;
    options.storing.records = flags_.store_every;
    options.on_error = [this](const Error& error) { complain(error); };
    if (!flags_.single_active) return options;
    options.on_active = [this](const StreamPosition& position) { tell_active(position); };
    options.on_step_down = [this](PartitionNumber partition) { tell_step_down(partition); };
    return options;
  }

  [[nodiscard]] bool waited_long() const {
    return flags_.wait && Clock::now().time_since_epoch() - last_.load() >= *flags_.wait;
  }

  void take(RecordBatch& batch) {
    Offset next = batch.records.front().offset;
    for (const client::Record& record : batch.records) {
      if (enough_) break;
      print(record, batch.epoch);
      next = Offset{record.offset.value + 1};
      if (++count_ == flags_.max) enough_ = true;
    }
    // Records that were not printed are left to the next consumer.
    if (enough_) batch.next_offset = next;
    std::fflush(stdout);
    last_ = Clock::now().time_since_epoch();
  }

  void print(const client::Record& record, Epoch epoch) {
    if (!out_.json()) return Output::text(describe(record));
    Json line{{"event", "record"}};
    if (flags_.single_active) line["epoch"] = epoch.value;
    line.update(to_json(record));
    Output::object(line);
  }

  void tell_active(const StreamPosition& position) {
    if (out_.json()) {
      Json line{{"event", "active"},
                {"partition", position.partition.value},
                {"active", true},
                {"generation", position.epoch.value}};
      if (position.offset.value >= 0) line["offset"] = position.offset.value;
      Output::object(line);
    } else {
      const std::string from =
          position.offset.value < 0 ? "" : fmt::format(", from offset {}", position.offset.value);
      Output::text(fmt::format("partition {}: active, epoch {}{}", position.partition.value,
                               position.epoch.value, from));
    }
    std::fflush(stdout);
  }

  void tell_step_down(PartitionNumber partition) {
    if (out_.json()) {
      Output::object(
          Json{{"event", "step_down"}, {"partition", partition.value}, {"active", false}});
    } else {
      Output::text(fmt::format("partition {}: stepping down", partition.value));
    }
    std::fflush(stdout);
  }

  /// Reports a failure that is repaired by itself: people see it, the exit code does not show it.
  void complain(const Error& error) {
    if (out_.json() || is_interrupted()) return;
    // Every partition of a stream fails for the same reason: it is reported once.
    const std::lock_guard lock(mutex_);
    const std::string why = reason(error);
    if (why == told_) return;
    told_ = why;
    fmt::print(stderr, "baton: {}: {}\n", what_, why);
  }
  ExitCode end_with(const Error& error) {
    const std::lock_guard lock(mutex_);
    return reason(error) == told_ ? exit_code_of(error.code) : out_.fail(what_, error);
  }

  const SubscribeFlags& flags_;
  Output out_;
  std::string what_;
  std::atomic<bool> enough_ = false;
  std::atomic<std::uint64_t> count_ = 0;
  std::atomic<Clock::duration> last_{};
  std::mutex mutex_;
  std::string told_;  // Under mutex_: the last complaint.
};

ExitCode run_subscribe(const SubscribeFlags& flags) {
  const std::string what = about_stream("subscribe", flags.stream);
  // An empty name would mean no group: nothing stored, though a group was asked for.
  const Status named = validate_name("--group", flags.group, flags.group.size());
  if (!named) return flags.output().fail_here(what, named.error());
  // A missing stream, partition or broker is reported at once.
  const ExitCode there =
      with_broker(flags, what, [&](const client::Broker& broker, const Output& out) {
        const auto stream = broker.stream(flags.stream).describe();
        if (!stream) return out.fail(what, stream.error());
        if (!flags.partition) return ExitCode::ok;
        const Status status = check_partition(*stream, *flags.partition);
        return status ? ExitCode::ok : out.fail_here(what, status.error());
      });
  if (there != ExitCode::ok) return there;
  watch_for_interrupt();
  return Subscribing(flags).run();
}

Result<client::Handover> read_handover(std::string_view text) {
  if (text == "at-once") return client::Handover::at_once;
  if (text == "strict") return client::Handover::strict;
  return Error{Errc::invalid_argument, fmt::format("'{}' is not at-once or strict", text)};
}

void add_subscribe_flags(CLI::App& command, SubscribeFlags& flags) {
  command.add_option("-g,--group", flags.group, "The consumer group, whose offsets are stored.")
      ->type_name("GROUP")
      ->required();
  command.add_flag("--single-active", flags.single_active,
                   "Give the records of a partition to one consumer of the group at a time.");
  add_parsed(
      command, "--handover", read_handover,
      [&flags](client::Handover handover) { flags.handover = handover; },
      "When a seat moves whose consumer's connection broke: at-once, or strict (when its lease is "
      "over). All consumers of a group must agree [what the group has].");
  add_parsed(
      command, "--partition", read_partition,
      [&flags](PartitionNumber value) { flags.partition = value; }, "Only this partition [all].");
  add_parsed(
      command, "--store-every", parse_count,
      [&flags](std::uint64_t value) { flags.store_every = value; },
      "Store the offset after this many records, besides every second and at the end.");
  add_parsed(
      command, "--from", read_from, [&flags](const client::StartFrom& from) { flags.from = from; },
      "Where a group without a stored offset begins: next [default], first, last, an offset, a "
      "time (2026-01-31T08:30:00Z) or an age (15m).");
  command
      .add_option("--owner", flags.owner,
                  "A label for this consumer, shown by 'baton group describe'.")
      ->type_name("NAME");
  add_parsed(
      command, "-n,--max", parse_count, [&flags](std::uint64_t value) { flags.max = value; },
      "End after this many records [no limit].");
  add_parsed(
      command, "--wait", parse_duration, [&flags](Milliseconds value) { flags.wait = value; },
      "End when no record came for this long [never].");
}

}  // namespace

void add_stream_subscribe(CLI::App& stream, Action& action) {
  const auto flags = std::make_shared<SubscribeFlags>();
  CLI::App* command = add_verb(
      stream,
      {.name = "subscribe",
       .help = "Read as a consumer of a group. Prints the records, and with --single-active when "
               "the consumer becomes active and when it steps down. When interrupted, the consumer "
               "stores its offsets and leaves the group.",
       .example = "baton stream subscribe events --group billing --single-active \\\n"
                  "    --from first --owner $HOSTNAME\n"
                  "  baton stream subscribe events --group audit --max 100 --wait 5s --json"},
      flags, run_subscribe, action);
  add_stream_argument(*command, *flags);
  add_subscribe_flags(*command, *flags);
}

}  // namespace baton::cli
