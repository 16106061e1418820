#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <baton/client.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/base/parse.h"
#include "cli/broker/commands.h"
#include "cli/broker/payloads.h"
#include "cli/broker/queue_flags.h"

namespace baton::cli {
namespace {

using client::EnqueueResult;
using client::NewMessage;

constexpr PayloadWords kSendWords{
    .verb = "send", .item = "message", .payload = "payload", .done = "sent"};

struct SendFlags : QueueFlags {
  PayloadFlags payloads;
  bool quiet = false;
  NewMessage message;  // Everything except the payload.
};

PayloadReport new_report(const SendFlags& flags, bool many, std::optional<std::uint64_t> total) {
  return PayloadReport({.out = flags.output(),
                        .what = about("send", flags.queue),
                        .words = kSendWords,
                        .quiet = flags.quiet,
                        .many = many,
                        .has_duplicates = true,
                        .total = total});
}

void add(PayloadReport& report, const EnqueueResult& result) {
  if (result.error.has_value()) return report.failed(to_json(result), *result.error);
  if (result.duplicate) {
    return report.duplicate(to_json(result), result.id + "  duplicate: nothing was stored");
  }
  report.stored(to_json(result), result.id);
}

ExitCode send_one(const SendFlags& flags, std::string payload) {
  return with_broker(flags, about("send", flags.queue),
                     [&](const client::Broker& broker, const Output& out) {
                       std::vector<NewMessage> messages(1, flags.message);
                       messages[0].payload = std::move(payload);
                       const auto results = broker.queue(flags.queue).enqueue(std::move(messages));
                       if (!results) return out.fail(about("send", flags.queue), results.error());
                       const EnqueueResult& result = results->at(0);
                       if (!result.ok()) return out.fail(about("send", flags.queue), *result.error);
                       PayloadReport report = new_report(flags, false, 1);
                       add(report, result);
                       return report.finish({});
                     });
}

ExitCode send_many(const SendFlags& flags, const Payloads& work) {
  const Output out = flags.output();
  const std::string what = about("send", flags.queue);
  const auto broker = client::Broker::open(flags.connection());
  if (!broker) return out.fail(what, broker.error());
  auto producer = broker->queue(flags.queue).producer();
  if (!producer) return out.fail(what, producer.error());
  PayloadReport report = new_report(flags, work.are_many(), work.total);
  const auto send = [&](std::string payload) {
    NewMessage message = flags.message;
    message.payload = std::move(payload);
    // The callbacks run one at a time, and all of them before close() returns.
    producer->send(std::move(message),
                   [&report](const EnqueueResult& result) { add(report, result); });
  };
  return send_all(work, send, *producer, flags.timeout, report);
}

ExitCode run_send(const SendFlags& flags) {
  const Output out = flags.output();
  const Result<Payloads> work = payloads_of(flags.payloads, kSendWords);
  if (!work) return out.fail_here(about("send", flags.queue), work.error());
  if (work->total == 1) {
    ExitCode code = ExitCode::ok;
    work->each([&](std::string payload) { code = send_one(flags, std::move(payload)); });
    return code;
  }
  // A missing queue, or a missing broker, is reported at once; a producer would keep trying.
  const ExitCode there = with_broker(
      flags, about("send", flags.queue), [&](const client::Broker& broker, const Output&) {
        const auto queue = broker.queue(flags.queue).describe();
        return queue ? ExitCode::ok : out.fail(about("send", flags.queue), queue.error());
      });
  return there == ExitCode::ok ? send_many(flags, *work) : there;
}

void add_message_flags(CLI::App& command, SendFlags& flags) {
  NewMessage& message = flags.message;
  command
      .add_option("--key", message.fairness_key,
                  "The fairness key: messages of one key wait in line behind each other only.")
      ->type_name("KEY");
  command.add_option("--throttle-key", message.throttle_keys, "A throttle key. Repeatable.")
      ->type_name("KEY")
      ->allow_extra_args(false);
  add_parsed_many(
      command, "--header", parse_header,
      [&message](std::pair<std::string, std::string> header) {
        message.headers.insert_or_assign(std::move(header.first), std::move(header.second));
      },
      "A header of the message. Repeatable.");
  add_parsed(
      command, "--delay", parse_duration, [&message](Milliseconds value) { message.delay = value; },
      "Hide the message for this long after sending it.");
  command
      .add_option("--dedup-id", message.dedup_id,
                  "Within the dedup window, a second message with this id is not stored.")
      ->type_name("ID");
  add_parsed(
      command, "--expires-after", parse_duration,
      [&message](Milliseconds value) { message.expires_after = value; },
      "Drop the message when nobody leased it within this time.");
}

}  // namespace

void add_queue_send(CLI::App& queue, Action& action) {
  const auto flags = std::make_shared<SendFlags>();
  CLI::App* command = add_verb(
      queue,
      {.name = "send",
       .help = "Send messages. Prints the id of each message once it is stored; for more than 10 "
               "messages, a summary.",
       .example = "baton queue send jobs hello --key tenant-a --header type=greeting\n"
                  "  baton queue send jobs --count 100000 --size 1KiB\n"
                  "  seq 1000 | baton queue send jobs -"},
      flags, run_send, action);
  add_queue_argument(*command, *flags);
  add_payload_flags(*command, flags->payloads, kSendWords);
  command->add_flag("-q,--quiet", flags->quiet,
                    "Print no ids; with --json, print only the summary.");
  add_message_flags(*command, *flags);
}

}  // namespace baton::cli
