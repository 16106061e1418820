#include <limits>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <baton/client.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/base/parse.h"
#include "cli/base/terminal.h"
#include "cli/broker/commands.h"
#include "cli/broker/stream_flags.h"
#include "cli/broker/stream_output.h"
#include "core/stream/limits.h"

namespace baton::cli {
namespace {

using client::Broker;
using client::StreamInfo;

constexpr std::uint64_t kPartitionsMax = 1'024;

struct StreamSettingsFlags : StreamFlags {
  std::uint32_t partitions = 1;
  client::StreamSettings settings;

  [[nodiscard]] bool any() const {
    return settings.retention || settings.retention_bytes || settings.segment_bytes ||
           settings.fsync || settings.batch_bytes_max;
  }
};

struct StreamDeleteFlags : StreamFlags {
  bool yes = false;
};

struct StreamListFlags : ClientFlags {
  std::string prefix;
};

Result<std::uint64_t> read_partitions(std::string_view text) {
  return parse_number(text, 1, kPartitionsMax);
}
Result<std::uint64_t> read_segment_size(std::string_view text) {
  return parse_size_between(text, limits::kSegmentBytesMin, limits::kSegmentBytesMax);
}
Result<std::uint64_t> read_batch_size(std::string_view text) {
  return parse_size_between(text, 1, limits::kStreamBatchBytesMax);
}

void add_stream_settings(CLI::App& command, const std::shared_ptr<StreamSettingsFlags>& flags) {
  constexpr const char* kStreamSettings = "Settings";
  client::StreamSettings& settings = flags->settings;
  add_parsed_many(
      command, "--retention", parse_retention,
      [&settings](const Retention& retention) {
        if (retention.age) settings.retention = retention.age;
        if (retention.bytes) settings.retention_bytes = retention.bytes;
      },
      "Delete old records by age (7d) or when a partition is larger than this (100GB); give it "
      "twice for both; 0 = keep everything [0].")
      ->group(kStreamSettings);
  add_parsed(
      command, "--segment-size", read_segment_size,
      [&settings](std::uint64_t bytes) { settings.segment_bytes = bytes; },
      "The size of the files of a partition [256MiB].")
      ->type_name("SIZE")
      ->group(kStreamSettings);
  add_parsed(
      command, "--fsync", parse_fsync,
      [&settings](std::string mode) { settings.fsync = std::move(mode); },
      "When records reach the disk: always (before each is confirmed) [default], interval:MS or "
      "never.")
      ->type_name("MODE")
      ->group(kStreamSettings);
  add_parsed(
      command, "--batch-max", read_batch_size,
      [&settings](std::uint64_t bytes) { settings.batch_bytes_max = bytes; },
      "The largest batch of records, up to 16MiB [1MiB].")
      ->type_name("SIZE")
      ->group(kStreamSettings);
}

void add_stream_name(CLI::App& command, StreamFlags& flags) {
  command.add_option("STREAM", flags.stream, "The name of the stream.")->required()->type_name("");
}

void print(const Output& out, const StreamInfo& stream, std::string_view done) {
  if (out.json()) {
    Output::object(to_json(stream));
  } else {
    Output::text(fmt::format("{} stream {} with {} partition{}", done, stream.name,
                             stream.partitions, stream.partitions == 1 ? "" : "s"));
  }
}

ExitCode run_create_stream(const StreamSettingsFlags& flags) {
  const std::string what = about_stream("create", flags.stream);
  return with_broker(flags, what, [&](const Broker& broker, const Output& out) {
    // Only for the message: two processes that create it at the same time may both be told that
    // they did.
    const bool existed = broker.stream(flags.stream).describe().has_value();
    const auto stream = broker.stream(flags.stream).create(flags.partitions, flags.settings);
    if (!stream) return out.fail(what, stream.error());
    if (existed && !out.json()) {
      Output::text(fmt::format("stream {} exists already, with these settings", stream->name));
    } else {
      print(out, *stream, "created");
    }
    return ExitCode::ok;
  });
}

ExitCode run_update_stream(const StreamSettingsFlags& flags) {
  const std::string what = about_stream("update", flags.stream);
  if (!flags.any()) {
    return flags.output().fail(what, "nothing to change: give at least one setting",
                               ExitCode::usage);
  }
  return with_broker(flags, what, [&](const Broker& broker, const Output& out) {
    const auto stream = broker.stream(flags.stream).update(flags.settings);
    if (!stream) return out.fail(what, stream.error());
    print(out, *stream, "updated");
    return ExitCode::ok;
  });
}

ExitCode run_delete_stream(const StreamDeleteFlags& flags) {
  const std::string what = about_stream("delete", flags.stream);
  return with_broker(flags, what, [&](const Broker& broker, const Output& out) {
    const auto stream = broker.stream(flags.stream).describe();
    if (!stream) return out.fail(what, stream.error());
    if (!confirmed(flags.yes, fmt::format("Delete stream {}, its groups and its {}?", stream->name,
                                          counted(records_of(*stream), "record")))) {
      return out.not_confirmed(what);
    }
    const auto status = broker.stream(flags.stream).drop();
    if (!status) return out.fail(what, status.error());
    if (out.json()) {
      Output::object(Json{{"name", flags.stream}, {"deleted", true}});
    } else {
      Output::text(fmt::format("deleted stream {}", flags.stream));
    }
    return ExitCode::ok;
  });
}

ExitCode run_describe_stream(const StreamFlags& flags) {
  const std::string what = about_stream("describe", flags.stream);
  return with_broker(flags, what, [&](const Broker& broker, const Output& out) {
    const auto stream = broker.stream(flags.stream).describe();
    if (!stream) return out.fail(what, stream.error());
    if (out.json()) {
      Output::object(to_json(*stream));
    } else {
      Output::text(describe(*stream));
    }
    return ExitCode::ok;
  });
}

ExitCode run_list_streams(const StreamListFlags& flags) {
  return with_broker(flags, "stream list", [&](const Broker& broker, const Output& out) {
    const auto streams = broker.streams(flags.prefix);
    if (!streams) return out.fail("stream list", streams.error());
    if (out.json()) {
      for (const StreamInfo& stream : *streams) Output::object(to_json(stream));
    } else {
      Output::text(list_text(*streams));
    }
    return ExitCode::ok;
  });
}

void add_create(CLI::App& stream, Action& action) {
  const auto flags = std::make_shared<StreamSettingsFlags>();
  CLI::App* create = add_verb(
      stream,
      {.name = "create",
       .help = "Create a stream. A stream that exists with the same settings is left as it is.",
       .example = "baton stream create events --partitions 3 --retention 7d \\\n"
                  "    --retention 100GB"},
      flags, run_create_stream, action);
  add_stream_name(*create, *flags);
  add_parsed(
      *create, "--partitions", read_partitions,
      [flags = flags.get()](std::uint64_t count) {
        flags->partitions = static_cast<std::uint32_t>(count);
      },
      "The number of partitions, 1 to 1024 [1]. It cannot be changed later.");
  add_stream_settings(*create, flags);
  add_client_flags(*create, *flags);
}

void add_update(CLI::App& stream, Action& action) {
  const auto flags = std::make_shared<StreamSettingsFlags>();
  CLI::App* update =
      add_verb(stream,
               {.name = "update",
                .help = "Change settings of a running stream. Settings that are not given stay.",
                .example = "baton stream update events --retention 30d"},
               flags, run_update_stream, action);
  add_stream_name(*update, *flags);
  add_stream_settings(*update, flags);
  add_client_flags(*update, *flags);
}

}  // namespace

std::string about_stream(std::string_view verb, std::string_view stream) {
  return fmt::format("stream {} {}", verb,
                     stream.empty() ? std::string("''") : printable(stream.substr(0, 64)));
}

void add_stream_argument(CLI::App& command, StreamFlags& flags) {
  add_stream_name(command, flags);
  add_client_flags(command, flags);
}

Result<PartitionNumber> read_partition(std::string_view text) {
  BATON_TRY(const std::uint64_t number, parse_number(text, 0, kPartitionsMax - 1));
  return PartitionNumber{static_cast<std::uint32_t>(number)};
}
Result<client::StartFrom> read_from(std::string_view text) {
  return parse_from(
      text, std::chrono::floor<std::chrono::milliseconds>(std::chrono::system_clock::now()));
}
Status check_partition(const StreamInfo& stream, PartitionNumber partition) {
  if (partition.value < stream.partitions) return {};
  return Error{Errc::not_found, fmt::format("--partition is {}; stream {} has 0 to {}",
                                            partition.value, stream.name, stream.partitions - 1)};
}

void add_stream_commands(CLI::App& app, Action& action) {
  CLI::App* stream =
      add_noun(app, {.name = "stream",
                     .help = "Create streams, append records to them, and read them.",
                     .example = "baton stream create events --partitions 3\n"
                                "  baton stream append events hello"});
  add_create(*stream, action);
  add_update(*stream, action);

  const auto deleted = std::make_shared<StreamDeleteFlags>();
  CLI::App* del = add_verb(*stream,
                           {.name = "delete",
                            .help = "Delete a stream, its groups and every record in it. Asks "
                                    "first, on a terminal.",
                            .example = "baton stream delete events"},
                           deleted, run_delete_stream, action);
  add_stream_argument(*del, *deleted);
  add_yes_flag(*del, deleted->yes);

  const auto listed = std::make_shared<StreamListFlags>();
  CLI::App* list = add_verb(*stream,
                            {.name = "list",
                             .help = "List streams.",
                             .example = "baton stream list --json | jq .details[].next_offset"},
                            listed, run_list_streams, action);
  list->add_option("PREFIX", listed->prefix, "Only streams whose names begin with this.")
      ->type_name("");
  add_client_flags(*list, *listed);

  const auto described = std::make_shared<StreamFlags>();
  add_stream_argument(
      *add_verb(*stream,
                {.name = "describe",
                 .help = "Show the settings of a stream, and each partition with its groups.",
                 .example = "baton stream describe events"},
                described, run_describe_stream, action),
      *described);

  add_stream_append(*stream, action);
  add_stream_read(*stream, action);
  add_stream_subscribe(*stream, action);
}

}  // namespace baton::cli
