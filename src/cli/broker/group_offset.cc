#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <baton/client.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/broker/commands.h"
#include "cli/broker/stream_flags.h"
#include "cli/broker/stream_output.h"

namespace baton::cli {
namespace {

struct OffsetFlags : StreamFlags {
  std::string group;
  std::optional<PartitionNumber> partition;
  client::StartFrom to = client::StartFrom::first();
  bool dry_run = false;
};

std::string moves_text(const OffsetFlags& flags,
                       const std::vector<client::GroupOffsetChange>& changes) {
  std::vector<std::vector<std::string>> rows{{"PARTITION", "BEFORE", "AFTER"}};
  for (const client::GroupOffsetChange& change : changes) {
    rows.push_back({fmt::format("{}", change.partition.value), offset_text(change.before),
                    offset_text(change.after)});
  }
  return fmt::format("{} / {}{}\n{}", printable(flags.stream), printable(flags.group),
                     flags.dry_run ? "  dry run: nothing was changed" : "", format_table(rows));
}

Json moves_json(const OffsetFlags& flags, const std::vector<client::GroupOffsetChange>& changes) {
  Json document{{"stream", flags.stream},
                {"group", flags.group},
                {"dry_run", flags.dry_run},
                {"partitions", Json::array()}};
  for (const client::GroupOffsetChange& change : changes) {
    Json line{{"partition", change.partition.value}};
    if (change.before) line["before"] = change.before->value;
    line["after"] = change.after.value;
    document["partitions"].push_back(std::move(line));
  }
  return document;
}

ExitCode run_set(const OffsetFlags& flags) {
  const std::string what =
      fmt::format("group offset set {} {}", printable(flags.stream.substr(0, 64)),
                  printable(flags.group.substr(0, 64)));
  return with_broker(flags, what, [&](const client::Broker& broker, const Output& out) {
    client::SetOffsetOptions options{.to = flags.to, .partitions = {}, .dry_run = flags.dry_run};
    if (flags.partition) options.partitions = {*flags.partition};
    const auto changes = broker.stream(flags.stream).group(flags.group).set_offsets(options);
    if (!changes) return out.fail(what, changes.error());
    if (out.json()) {
      Output::object(moves_json(flags, *changes));
    } else {
      Output::text(moves_text(flags, *changes));
    }
    return ExitCode::ok;
  });
}

}  // namespace

void add_group_offset(CLI::App& group, Action& action) {
  CLI::App* offset =
      add_noun(group, {.name = "offset",
                       .help = "Move the stored offsets of a group.",
                       .example = "baton group offset set events billing --to first --dry-run"});
  const auto flags = std::make_shared<OffsetFlags>();
  CLI::App* command = add_verb(
      *offset,
      {.name = "set",
       .help = "Set where a group continues reading, in all partitions or in one. Refused while "
               "the group "
               "has consumers: stop them first. Shows the offsets before and after.",
       .example = "baton group offset set events billing --to 2026-01-31T08:30:00Z --dry-run"},
      flags, run_set, action);
  command->add_option("STREAM", flags->stream, "The stream.")->required()->type_name("");
  command->add_option("GROUP", flags->group, "The group.")->required()->type_name("");
  add_parsed(
      *command, "--partition", read_partition,
      [flags](PartitionNumber value) { flags->partition = value; }, "Only this one [all].");
  add_parsed(
      *command, "--to", read_from, [flags](const client::StartFrom& to) { flags->to = to; },
      "first, next (after the last record), last, an offset, a time (2026-01-31T08:30:00Z) or "
      "an age (15m).")
      ->required();
  command->add_flag("--dry-run", flags->dry_run, "Show what would change, and change nothing.");
  add_client_flags(*command, *flags);
}

}  // namespace baton::cli
