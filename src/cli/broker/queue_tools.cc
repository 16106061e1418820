#include <limits>
#include <memory>
#include <string>
#include <vector>

#include <baton/client.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "cli/base/parse.h"
#include "cli/base/terminal.h"
#include "cli/broker/commands.h"
#include "cli/broker/queue_flags.h"

/// The operators' verbs: peek, purge, cancel, redrive.
namespace baton::cli {
namespace {

using client::Broker;

struct PeekFlags : QueueFlags {
  std::uint32_t max = limits::kPeekDefault;
  std::string id;
};

struct PurgeFlags : QueueFlags {
  bool yes = false;
};

struct CancelFlags : QueueFlags {
  std::vector<std::string> ids;
};

struct RedriveFlags : QueueFlags {
  client::RedriveOptions options;
};

void print(const Output& out, const client::PeekedMessage& message) {
  if (out.json()) {
    Output::object(to_json(message));
  } else {
    Output::text(describe(message));
  }
}

ExitCode run_peek(const PeekFlags& flags) {
  const std::string what = about("peek", flags.queue);
  return with_broker(flags, what, [&](const Broker& broker, const Output& out) {
    if (!flags.id.empty()) {
      const auto message = broker.queue(flags.queue).peek_message(flags.id);
      if (!message) return out.fail(what, message.error());
      print(out, *message);
      return ExitCode::ok;
    }
    const auto messages = broker.queue(flags.queue).peek(flags.max);
    if (!messages) return out.fail(what, messages.error());
    for (const auto& message : *messages) print(out, message);
    if (messages->empty() && !out.json()) Output::text("no messages");
    return ExitCode::ok;
  });
}

ExitCode run_purge(const PurgeFlags& flags) {
  const std::string what = about("purge", flags.queue);
  return with_broker(flags, what, [&](const Broker& broker, const Output& out) {
    const auto queue = broker.queue(flags.queue).describe();
    if (!queue) return out.fail(what, queue.error());
    const std::uint64_t waiting = queue->stats.ready + queue->stats.delayed;
    if (!confirmed(flags.yes, fmt::format("Remove {} of queue {}?",
                                          counted(waiting, "waiting message"), queue->name))) {
      return out.not_confirmed(what);
    }
    const auto purged = broker.queue(flags.queue).purge();
    if (!purged) return out.fail(what, purged.error());
    if (out.json()) {
      Output::object(Json{{"purged", *purged}});
    } else {
      Output::text(fmt::format("purged {}", counted(*purged, "message")));
    }
    return ExitCode::ok;
  });
}

/// If all failed: the code of the first. If some failed: partial.
ExitCode cancel_code(const std::vector<Status>& results) {
  std::size_t failed = 0;
  ExitCode first = ExitCode::ok;
  for (const auto& result : results) {
    if (result) continue;
    if (failed == 0) first = exit_code_of(result.error().code);
    ++failed;
  }
  return failed == 0 || failed == results.size() ? first : ExitCode::partial;
}

ExitCode run_cancel(const CancelFlags& flags) {
  const std::string what = about("cancel", flags.queue);
  return with_broker(flags, what, [&](const Broker& broker, const Output& out) {
    const auto results = broker.queue(flags.queue).cancel(flags.ids);
    if (!results) return out.fail(what, results.error());
    for (std::size_t i = 0; i < results->size(); ++i) {
      const auto& result = results->at(i);
      const std::string& id = flags.ids.at(i);
      if (out.json()) {
        Json line{{"id", id}};
        if (!result) line["error"] = to_json(result.error());
        Output::object(line);
      } else if (result) {
        Output::text(fmt::format("cancelled {}", id));
      } else {
        fmt::print(stderr, "baton: {}: {}: {}\n", what, printable(id), reason(result.error()));
      }
    }
    return cancel_code(*results);
  });
}

std::string why_skipped(const RedriveFlags& flags) {
  if (!flags.options.to.empty()) return fmt::format("there is no queue '{}'", flags.options.to);
  return "the queue that they came from does not exist, or they are no dead letters; give --to "
         "QUEUE";
}

ExitCode run_redrive(const RedriveFlags& flags) {
  const std::string what = about("redrive", flags.queue);
  return with_broker(flags, what, [&](const Broker& broker, const Output& out) {
    const auto report = broker.queue(flags.queue).redrive(flags.options);
    if (!report) return out.fail(what, report.error());
    if (out.json()) {
      Output::object(Json{
          {"matched", report->matched}, {"moved", report->moved}, {"skipped", report->skipped}});
    } else if (flags.options.dry_run) {
      Output::text(fmt::format("would move {}", counted(report->matched, "message")));
    } else {
      Output::text(fmt::format("moved {}", counted(report->moved, "message")));
    }
    if (report->skipped == 0) return ExitCode::ok;
    return out.fail(
        what,
        fmt::format("skipped {}: {}", counted(report->skipped, "message"), why_skipped(flags)),
        ExitCode::partial);
  });
}

Result<std::uint64_t> read_peek_max(std::string_view text) {
  return parse_number(text, 1, limits::kPeekMax);
}

void add_redrive(CLI::App& queue, Action& action) {
  const auto flags = std::make_shared<RedriveFlags>();
  CLI::App* command =
      add_verb(queue,
               {.name = "redrive",
                .help = "Move dead letters back to the queues they came from. QUEUE is the "
                        "dead-letter queue.",
                .example = "baton queue redrive jobs.dlq --reason-contains timeout --rate 100\n"
                           "  baton queue redrive jobs.dlq --dry-run"},
               flags, run_redrive, action);
  add_queue_argument(*command, *flags);
  client::RedriveOptions& options = flags->options;
  command->add_option("--to", options.to, "Move them to this queue instead.")->type_name("QUEUE");
  add_parsed(
      *command, "--max", parse_whole,
      [&options](std::uint64_t value) { options.messages_max = value; },
      "The most messages to move; 0 = all [0].");
  command->add_option("--source", options.source_queue, "Only messages that came from this queue.")
      ->type_name("QUEUE");
  command
      ->add_option("--reason-contains", options.reason_contains,
                   "Only messages whose last error contains this text.")
      ->type_name("REASON");
  add_parsed(
      *command, "--rate", parse_rate, [&options](double value) { options.rate = value; },
      "The most messages a second, 0.001 or more; 0 = no limit [0].");
  command->add_flag("--dry-run", options.dry_run, "Count the messages, but move none.");
}

}  // namespace

void add_queue_tools(CLI::App& queue, Action& action) {
  const auto peeked = std::make_shared<PeekFlags>();
  CLI::App* peek = add_verb(queue,
                            {.name = "peek",
                             .help = "Show messages without leasing them.",
                             .example = "baton queue peek jobs --max 3"},
                            peeked, run_peek, action);
  add_queue_argument(*peek, *peeked);
  add_parsed(
      *peek, "-n,--max", read_peek_max,
      [flags = peeked.get()](std::uint64_t value) {
        flags->max = static_cast<std::uint32_t>(value);
      },
      "The most messages to show, 1 to 1000 [10].");
  peek->add_option("--id", peeked->id, "Show only this message.")->type_name("ID");

  const auto purged = std::make_shared<PurgeFlags>();
  CLI::App* purge = add_verb(
      queue,
      {.name = "purge",
       .help = "Remove every waiting message; leased messages stay. Asks first, on a terminal.",
       .example = "baton queue purge jobs --yes"},
      purged, run_purge, action);
  add_queue_argument(*purge, *purged);
  add_yes_flag(*purge, purged->yes);

  const auto cancelled = std::make_shared<CancelFlags>();
  CLI::App* cancel =
      add_verb(queue,
               {.name = "cancel",
                .help = "Remove messages by id, leased or not.",
                .example = "baton queue cancel jobs 0190a5e2-7b1c-7def-8a3b-0123456789ab"},
               cancelled, run_cancel, action);
  add_queue_argument(*cancel, *cancelled);
  cancel->add_option("ID", cancelled->ids, "The ids of the messages.")->required()->type_name("");

  add_redrive(queue, action);
}

}  // namespace baton::cli
