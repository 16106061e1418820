#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <baton/client.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/limits.h"
#include "cli/base/parse.h"
#include "cli/base/terminal.h"
#include "cli/broker/commands.h"
#include "cli/broker/queue_flags.h"

namespace baton::cli {
namespace {

using client::Broker;
using client::QueueInfo;

constexpr std::string_view kQueueSettings = "Settings";

struct QueueSettingsFlags : QueueFlags {
  client::QueueSettings settings;
  bool any = false;  // Whether a setting was given.
};

struct QueueDeleteFlags : QueueFlags {
  bool yes = false;
};

struct QueueListFlags : ClientFlags {
  std::string prefix;
};

Result<std::uint64_t> read_payload_max(std::string_view text) {
  return parse_size_between(text, 1, limits::kPayloadBytesMax);
}
Result<std::uint64_t> read_attempts(std::string_view text) {
  return parse_number(text, 0, limits::kAttemptsMax);
}

/// Adds the flags of one setting after the other, each stored in its field.
class SettingsAdder {
 public:
  SettingsAdder(CLI::App& command, std::shared_ptr<QueueSettingsFlags> flags)
      : command_(command), flags_(std::move(flags)) {}

  template <class T, class Field>
  CLI::Option* add(const std::string& name, Result<T> (*parse)(std::string_view),
                   Field client::QueueSettings::* field, const std::string& help) {
    return add_parsed(
               command_, name, parse,
               [flags = flags_, field](T value) {
                 flags->settings.*field = static_cast<typename Field::value_type>(std::move(value));
                 flags->any = true;
               },
               help)
        ->group(std::string(kQueueSettings));
  }

  template <class T>
  void add_to_map(const std::string& name,
                  Result<std::pair<std::string, T>> (*parse)(std::string_view),
                  std::map<std::string, T> client::QueueSettings::* field,
                  const std::string& help) {
    add_parsed_many(
        command_, name, parse,
        [flags = flags_, field](std::pair<std::string, T> entry) {
          (flags->settings.*field).insert_or_assign(std::move(entry.first), entry.second);
          flags->any = true;
        },
        help)
        ->group(std::string(kQueueSettings));
  }

 private:
  CLI::App& command_;
  std::shared_ptr<QueueSettingsFlags> flags_;
};

Result<std::string> read_text(std::string_view text) { return std::string(text); }

void add_queue_settings(CLI::App& command, const std::shared_ptr<QueueSettingsFlags>& flags) {
  using S = client::QueueSettings;
  SettingsAdder adder(command, flags);
  adder.add("--visibility-timeout", parse_duration, &S::visibility_timeout,
            "How long a lease lasts without being extended [30s].");
  adder.add("--attempts-max", read_attempts, &S::attempts_max,
            "Failed attempts before a message is dead-lettered [16]; 0 = no limit.");
  adder.add("--dead-letter", read_text, &S::dead_letter_queue,
            "The dead-letter queue [QUEUE.dlq], created when first needed.");
  adder.add("--retry-delay", parse_duration, &S::retry_delay,
            "Wait this long before the second attempt; doubles each time [100ms].");
  adder.add("--retry-delay-max", parse_duration, &S::retry_delay_max,
            "The longest wait between two attempts [60s].");
  adder.add(
      "--release-on-disconnect", parse_bool, &S::release_on_disconnect,
      "true [default]: the messages of a consumer whose connection breaks go to others at once. "
      "false: they wait for their deadline.");
  adder
      .add("--payload-max", read_payload_max, &S::payload_bytes_max,
           "The largest payload, up to 16MiB [1MiB].")
      ->type_name("SIZE");
  adder.add("--messages-max", parse_whole, &S::messages_max,
            "The most messages the queue may hold; 0 = no limit [0].");
  adder
      .add("--bytes-max", parse_size, &S::bytes_max,
           "The most bytes the queue may hold; 0 = no limit [0].")
      ->type_name("SIZE");
  adder.add("--retention", parse_duration, &S::retention,
            "Drop messages older than this; 0 = never [0].");
  adder.add("--dedup-window", parse_duration, &S::dedup_window,
            "How long a dedup id is remembered [5m].");
  adder.add("--dedup-ids-max", parse_whole, &S::dedup_ids_max,
            "The most dedup ids remembered; at the limit, messages with a new one are refused "
            "[1000000].");
  adder.add("--fairness-cost", parse_fairness_cost, &S::fairness_cost,
            "What the turn of a fairness key is measured in: message [default] or byte.");
  adder.add_to_map(
      "--weight", parse_weight, &S::weights,
      "The share of a fairness key, 1 to 1000 [1]; 0 removes the setting. Repeatable.");
  adder.add_to_map(
      "--throttle", parse_throttle, &S::throttles,
      "The most messages a second of a throttle key; KEY=off removes the setting. Repeatable.");
}

void add_queue_name(CLI::App& command, QueueFlags& flags) {
  command.add_option("QUEUE", flags.queue, "The name of the queue.")->required()->type_name("");
}

void print(const Output& out, const QueueInfo& queue, std::string_view done) {
  if (out.json()) {
    Output::object(to_json(queue));
  } else {
    Output::text(fmt::format("{} queue {}", done, queue.name));
  }
}

ExitCode run_create_queue(const QueueSettingsFlags& flags) {
  return with_broker(flags, "queue create", [&](const Broker& broker, const Output& out) {
    // Only for the message: two processes that create it at the same time may both be told that
    // they did.
    const bool existed = broker.queue(flags.queue).describe().has_value();
    const auto queue = broker.queue(flags.queue).create(flags.settings);
    if (!queue) return out.fail(about("create", flags.queue), queue.error());
    if (existed && !out.json()) {
      Output::text(fmt::format("queue {} exists already, with these settings", queue->name));
    } else {
      print(out, *queue, "created");
    }
    return ExitCode::ok;
  });
}

ExitCode run_update_queue(const QueueSettingsFlags& flags) {
  if (!flags.any) {
    return flags.output().fail(about("update", flags.queue),
                               "nothing to change: give at least one setting", ExitCode::usage);
  }
  return with_broker(flags, "queue update", [&](const Broker& broker, const Output& out) {
    const auto queue = broker.queue(flags.queue).update(flags.settings);
    if (!queue) return out.fail(about("update", flags.queue), queue.error());
    print(out, *queue, "updated");
    return ExitCode::ok;
  });
}

std::uint64_t depth_of(const client::QueueStats& stats) {
  return stats.ready + stats.leased + stats.delayed;
}

ExitCode run_delete_queue(const QueueDeleteFlags& flags) {
  return with_broker(flags, "queue delete", [&](const Broker& broker, const Output& out) {
    const auto queue = broker.queue(flags.queue).describe();
    if (!queue) return out.fail(about("delete", flags.queue), queue.error());
    if (!confirmed(flags.yes, fmt::format("Delete queue {} and its {}?", queue->name,
                                          counted(depth_of(queue->stats), "message")))) {
      return out.not_confirmed(about("delete", flags.queue));
    }
    const auto status = broker.queue(flags.queue).drop();
    if (!status) return out.fail(about("delete", flags.queue), status.error());
    if (out.json()) {
      Output::object(Json{{"name", flags.queue}, {"deleted", true}});
    } else {
      Output::text(fmt::format("deleted queue {}", flags.queue));
    }
    return ExitCode::ok;
  });
}

ExitCode run_describe_queue(const QueueFlags& flags) {
  return with_broker(flags, "queue describe", [&](const Broker& broker, const Output& out) {
    const auto queue = broker.queue(flags.queue).describe();
    if (!queue) return out.fail(about("describe", flags.queue), queue.error());
    if (out.json()) {
      Output::object(to_json(*queue));
    } else {
      Output::text(describe(*queue));
    }
    return ExitCode::ok;
  });
}

ExitCode run_list_queues(const QueueListFlags& flags) {
  return with_broker(flags, "queue list", [&](const Broker& broker, const Output& out) {
    const auto queues = broker.queues(flags.prefix);
    if (!queues) return out.fail("queue list", queues.error());
    if (out.json()) {
      for (const QueueInfo& queue : *queues) Output::object(to_json(queue));
      return ExitCode::ok;
    }
    if (queues->empty()) {
      Output::text("no queues");
      return ExitCode::ok;
    }
    std::vector<std::vector<std::string>> rows{
        {"NAME", "READY", "LEASED", "DELAYED", "BYTES", "KEYS", "CONSUMERS"}};
    for (const QueueInfo& queue : *queues) {
      const auto& stats = queue.stats;
      rows.push_back({queue.name, format_count(stats.ready), format_count(stats.leased),
                      format_count(stats.delayed), format_bytes(stats.bytes),
                      format_count(stats.active_keys), format_count(stats.consumers)});
    }
    Output::text(format_table(rows));
    return ExitCode::ok;
  });
}

}  // namespace

std::string about(std::string_view verb, std::string_view queue) {
  return fmt::format("queue {} {}", verb,
                     queue.empty() ? std::string("''") : printable(queue.substr(0, 64)));
}

void add_queue_argument(CLI::App& command, QueueFlags& flags) {
  add_queue_name(command, flags);
  add_client_flags(command, flags);
}

void add_queue_commands(CLI::App& app, Action& action) {
  CLI::App* queue =
      add_noun(app, {.name = "queue",
                     .help = "Create queues, send messages, lease them, and look after them.",
                     .example = "baton queue create jobs --visibility-timeout 1m\n"
                                "  baton queue send jobs hello"});

  const auto created = std::make_shared<QueueSettingsFlags>();
  CLI::App* create = add_verb(
      *queue,
      {.name = "create",
       .help = "Create a queue. A queue that exists with the same settings is left as it is.",
       .example = "baton queue create jobs --visibility-timeout 1m --attempts-max 5 \\\n"
                  "    --weight vip=10"},
      created, run_create_queue, action);
  add_queue_name(*create, *created);
  add_queue_settings(*create, created);
  add_client_flags(*create, *created);

  const auto updated = std::make_shared<QueueSettingsFlags>();
  CLI::App* update =
      add_verb(*queue,
               {.name = "update",
                .help = "Change settings of a running queue. Settings that are not given stay.",
                .example = "baton queue update jobs --throttle smtp=100/20"},
               updated, run_update_queue, action);
  add_queue_name(*update, *updated);
  add_queue_settings(*update, updated);
  add_client_flags(*update, *updated);

  const auto deleted = std::make_shared<QueueDeleteFlags>();
  CLI::App* del = add_verb(*queue,
                           {.name = "delete",
                            .help = "Delete a queue and every message in it. Asks first, on a "
                                    "terminal.",
                            .example = "baton queue delete jobs"},
                           deleted, run_delete_queue, action);
  add_queue_argument(*del, *deleted);
  add_yes_flag(*del, deleted->yes);

  const auto listed = std::make_shared<QueueListFlags>();
  CLI::App* list = add_verb(*queue,
                            {.name = "list",
                             .help = "List queues.",
                             .example = "baton queue list --json | jq .stats.ready"},
                            listed, run_list_queues, action);
  list->add_option("PREFIX", listed->prefix, "Only queues whose names begin with this.")
      ->type_name("");
  add_client_flags(*list, *listed);

  const auto described = std::make_shared<QueueFlags>();
  add_queue_argument(*add_verb(*queue,
                               {.name = "describe",
                                .help = "Show the settings and counts of a queue.",
                                .example = "baton queue describe jobs"},
                               described, run_describe_queue, action),
                     *described);

  add_queue_send(*queue, action);
  add_queue_lease(*queue, action);
  add_queue_tools(*queue, action);
}

}  // namespace baton::cli
