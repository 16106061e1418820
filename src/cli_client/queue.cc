#include <limits>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <baton/client.h>

#include "base/limits.h"
#include "cli_base/parse.h"
#include "cli_client/commands.h"
#include "cli_client/queue_flags.h"

namespace baton::cli {
namespace {

using client::QueueClient;
using client::QueueInfo;

constexpr std::string_view kSettings = "Settings";

struct SettingsFlags : QueueFlags {
  client::QueueSettings settings;
};

struct ListFlags : ClientFlags {
  std::string prefix;
};

Result<Milliseconds> read_duration(std::string_view text) { return parse_milliseconds(text); }
Result<std::uint64_t> read_number(std::string_view text) {
  return parse_number(text, 0, std::numeric_limits<std::uint64_t>::max());
}
Result<std::uint64_t> read_attempts(std::string_view text) {
  return parse_number(text, 0, limits::kMaxAttemptsMax);
}

/// Adds the flags of one setting after the other, each kept in its place.
class SettingsAdder {
 public:
  SettingsAdder(CLI::App& command, std::shared_ptr<SettingsFlags> flags)
      : command_(command), flags_(std::move(flags)) {}

  template <class T, class Field>
  void add(const std::string& name, Result<T> (*parse)(std::string_view),
           Field client::QueueSettings::* field, const std::string& help) {
    add_parsed(
        command_, name, parse,
        [flags = flags_, field](T value) {
          flags->settings.*field = static_cast<typename Field::value_type>(std::move(value));
        },
        help)
        ->group(std::string(kSettings));
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
        },
        help)
        ->group(std::string(kSettings));
  }

 private:
  CLI::App& command_;
  std::shared_ptr<SettingsFlags> flags_;
};

Result<std::string> read_text(std::string_view text) { return std::string(text); }

void add_settings(CLI::App& command, const std::shared_ptr<SettingsFlags>& flags) {
  using S = client::QueueSettings;
  SettingsAdder adder(command, flags);
  adder.add("--visibility-timeout", read_duration, &S::visibility_timeout,
            "How long a lease lasts [30s].");
  adder.add("--max-attempts", read_attempts, &S::max_attempts,
            "Failed attempts before a message is dead-lettered [16]; 0 = no limit.");
  adder.add("--dead-letter", read_text, &S::dead_letter_queue,
            "The dead-letter queue [NAME.dlq], made when first needed.");
  adder.add("--retry-delay", read_duration, &S::retry_delay,
            "Before the second attempt; doubles each time [100ms].");
  adder.add("--retry-delay-max", read_duration, &S::retry_delay_max, "... up to this [60s].");
  adder.add("--release-on-disconnect", parse_bool, &S::release_on_disconnect,
            "true [default]: a lost consumer's messages go to others at once.");
  adder.add("--payload-max", parse_size, &S::payload_bytes_max, "The largest payload [1MiB].");
  adder.add("--messages-max", read_number, &S::messages_max, "The most messages [0 = no limit].");
  adder.add("--bytes-max", parse_size, &S::bytes_max, "The most bytes [0 = no limit].");
  adder.add("--retention", read_duration, &S::retention,
            "Drop messages older than this [0 = never].");
  adder.add("--dedup-window", read_duration, &S::dedup_window, "Remember dedup ids so long [5m].");
  adder.add("--dedup-ids-max", read_number, &S::dedup_ids_max,
            "Remember at most so many; beyond, messages with one are refused [1000000].");
  adder.add("--fairness-cost", parse_fairness_cost, &S::fairness_cost,
            "What a fairness key's turn is measured in: message [default] or byte.");
  adder.add_to_map("--weight", parse_weight, &S::weights,
                   "Turns of a fairness key, 1 to 1000 [1]; 0 removes. Repeatable.");
  adder.add_to_map("--throttle", parse_throttle, &S::throttles,
                   "Messages a second of a throttle key; KEY=off removes. Repeatable.");
}

void add_queue_name(CLI::App& command, QueueFlags& flags) {
  command.add_option("NAME", flags.queue, "The queue.")->required()->type_name("");
}

void print(const Output& out, const QueueInfo& queue, std::string_view done) {
  if (out.json()) {
    Output::object(to_json(queue));
  } else {
    Output::text(fmt::format("{} queue {}", done, queue.name));
  }
}

ExitCode run_create(const SettingsFlags& flags) {
  return with_client(flags, "queue create", [&](QueueClient& client, const Output& out) {
    const auto queue = client.create_queue(flags.queue, flags.settings);
    if (!queue) return out.fail(about("create", flags.queue), queue.error());
    print(out, *queue, "created");
    return ExitCode::ok;
  });
}

ExitCode run_update(const SettingsFlags& flags) {
  return with_client(flags, "queue update", [&](QueueClient& client, const Output& out) {
    const auto queue = client.update_queue(flags.queue, flags.settings);
    if (!queue) return out.fail(about("update", flags.queue), queue.error());
    print(out, *queue, "updated");
    return ExitCode::ok;
  });
}

ExitCode run_delete(const QueueFlags& flags) {
  return with_client(flags, "queue delete", [&](QueueClient& client, const Output& out) {
    const auto status = client.delete_queue(flags.queue);
    if (!status) return out.fail(about("delete", flags.queue), status.error());
    if (out.json()) {
      Output::object(Json{{"name", flags.queue}, {"deleted", true}});
    } else {
      Output::text(fmt::format("deleted queue {}", flags.queue));
    }
    return ExitCode::ok;
  });
}

ExitCode run_describe(const QueueFlags& flags) {
  return with_client(flags, "queue describe", [&](QueueClient& client, const Output& out) {
    const auto queue = client.describe_queue(flags.queue);
    if (!queue) return out.fail(about("describe", flags.queue), queue.error());
    if (out.json()) {
      Output::object(to_json(*queue));
    } else {
      Output::text(describe(*queue));
    }
    return ExitCode::ok;
  });
}

ExitCode run_list(const ListFlags& flags) {
  return with_client(flags, "queue list", [&](QueueClient& client, const Output& out) {
    const auto queues = client.list_queues(flags.prefix);
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
  CLI::App* queue = app.add_subcommand("queue", "Make queues, send, lease, and look after them.");
  queue->require_subcommand(1);
  queue->footer("Example:\n  baton queue create jobs --visibility-timeout 1m");

  const auto created = std::make_shared<SettingsFlags>();
  CLI::App* create = add_verb(
      *queue,
      {.name = "create",
       .help = "Make a queue.",
       .example =
           "baton queue create jobs --visibility-timeout 1m --max-attempts 5 --weight vip=10"},
      created, run_create, action);
  add_queue_name(*create, *created);
  add_settings(*create, created);
  add_client_flags(*create, *created);

  const auto updated = std::make_shared<SettingsFlags>();
  CLI::App* update = add_verb(*queue,
                              {.name = "update",
                               .help = "Change the settings given, live; the others stay.",
                               .example = "baton queue update jobs --throttle smtp=100/20"},
                              updated, run_update, action);
  add_queue_name(*update, *updated);
  add_settings(*update, updated);
  add_client_flags(*update, *updated);

  const auto deleted = std::make_shared<QueueFlags>();
  add_queue_argument(*add_verb(*queue,
                               {.name = "delete",
                                .help = "Remove a queue and every message in it.",
                                .example = "baton queue delete jobs"},
                               deleted, run_delete, action),
                     *deleted);

  const auto listed = std::make_shared<ListFlags>();
  CLI::App* list = add_verb(*queue,
                            {.name = "list",
                             .help = "List the queues.",
                             .example = "baton queue list --json | jq .stats.ready"},
                            listed, run_list, action);
  list->add_option("PREFIX", listed->prefix, "Only queues whose names begin so.")->type_name("");
  add_client_flags(*list, *listed);

  const auto described = std::make_shared<QueueFlags>();
  add_queue_argument(*add_verb(*queue,
                               {.name = "describe",
                                .help = "Show a queue's settings and numbers.",
                                .example = "baton queue describe jobs"},
                               described, run_describe, action),
                     *described);

  add_queue_send(*queue, action);
  add_queue_lease(*queue, action);
  add_queue_tools(*queue, action);
}

}  // namespace baton::cli
