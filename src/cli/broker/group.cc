#include <algorithm>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include <baton/client.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/base/terminal.h"
#include "cli/broker/commands.h"
#include "cli/broker/stream_flags.h"
#include "cli/broker/stream_output.h"

namespace baton::cli {
namespace {

using client::Broker;
using client::GroupInfo;

struct GroupFlags : StreamFlags {
  std::string group;
  bool yes = false;  // Of `delete`.
};

std::string about_group(std::string_view verb, const GroupFlags& flags) {
  return fmt::format("group {} {} {}", verb, printable(flags.stream.substr(0, 64)),
                     printable(flags.group.substr(0, 64)));
}

/// A report is one JSON document.
void print(const Output& out, const std::vector<GroupInfo>& partitions) {
  if (!out.json()) return Output::text(describe(partitions));
  Json document{{"partitions", Json::array()}};
  for (const GroupInfo& group : partitions) document["partitions"].push_back(to_json(group));
  Output::object(document);
}

ExitCode run_list_groups(const StreamFlags& flags) {
  return with_broker(flags, "group list", [&](const Broker& broker, const Output& out) {
    auto groups = broker.stream(flags.stream).groups();
    if (!groups) return out.fail("group list", groups.error());
    std::ranges::sort(*groups, {}, [](const GroupInfo& group) {
      return std::tie(group.stream, group.group, group.partition);
    });
    if (out.json()) {
      for (const GroupInfo& group : *groups) Output::object(to_json(group));
    } else {
      Output::text(list_text(*groups));
    }
    return ExitCode::ok;
  });
}

ExitCode run_describe_group(const GroupFlags& flags) {
  const std::string what = about_group("describe", flags);
  return with_broker(flags, what, [&](const Broker& broker, const Output& out) {
    const auto partitions = broker.stream(flags.stream).group(flags.group).describe();
    if (!partitions) return out.fail(what, partitions.error());
    print(out, *partitions);
    return ExitCode::ok;
  });
}

ExitCode run_evaluate(const GroupFlags& flags) {
  const std::string what = about_group("evaluate", flags);
  return with_broker(flags, what, [&](const Broker& broker, const Output& out) {
    const auto partitions = broker.stream(flags.stream).group(flags.group).evaluate();
    if (!partitions) return out.fail(what, partitions.error());
    print(out, *partitions);
    return ExitCode::ok;
  });
}

ExitCode run_delete_group(const GroupFlags& flags) {
  const std::string what = about_group("delete", flags);
  return with_broker(flags, what, [&](const Broker& broker, const Output& out) {
    if (!confirmed(flags.yes, fmt::format("Delete group {} of stream {} and its offsets?",
                                          printable(flags.group), printable(flags.stream)))) {
      return out.not_confirmed(what);
    }
    const auto status = broker.stream(flags.stream).group(flags.group).drop();
    if (!status) return out.fail(what, status.error());
    if (out.json()) {
      Output::object(Json{{"stream", flags.stream}, {"group", flags.group}, {"deleted", true}});
    } else {
      Output::text(fmt::format("deleted group {} of stream {}", flags.group, flags.stream));
    }
    return ExitCode::ok;
  });
}

void add_group_verb(CLI::App& group, const Verb& verb, ExitCode (*run_it)(const GroupFlags&),
                    Action& action) {
  const auto flags = std::make_shared<GroupFlags>();
  CLI::App* command = add_verb(group, verb, flags, run_it, action);
  command->add_option("STREAM", flags->stream, "The name of the stream.")
      ->required()
      ->type_name("");
  command->add_option("GROUP", flags->group, "The name of the group.")->required()->type_name("");
  add_client_flags(*command, *flags);
  if (verb.name == "delete") add_yes_flag(*command, flags->yes);
}

}  // namespace

void add_group_commands(CLI::App& app, Action& action) {
  CLI::App* group = add_noun(app, {.name = "group",
                                   .help = "Look after the consumer groups of streams.",
                                   .example = "baton group describe events billing"});

  const auto listed = std::make_shared<StreamFlags>();
  CLI::App* list = add_verb(*group,
                            {.name = "list",
                             .help = "List groups: the active consumer, how many wait, the lag.",
                             .example = "baton group list events"},
                            listed, run_list_groups, action);
  list->add_option("STREAM", listed->stream, "Only groups of this stream [all streams].")
      ->type_name("");
  add_client_flags(*list, *listed);

  add_group_verb(
      *group,
      {.name = "describe",
       .help = "Show a group: per partition the active consumer, since when and why, who "
               "waits, the offset, and how long the last hand-over took.",
       .example = "baton group describe events billing"},
      run_describe_group, action);
  add_group_verb(
      *group,
      {.name = "evaluate",
       .help = "Drop consumers that are not connected, and choose the active ones again.",
       .example = "baton group evaluate events billing"},
      run_evaluate, action);
  add_group_offset(*group, action);
  add_group_verb(*group,
                 {.name = "delete",
                  .help = "Delete a group that has no consumers, and its offsets. Asks first, on a "
                          "terminal.",
                  .example = "baton group delete events billing"},
                 run_delete_group, action);
}

}  // namespace baton::cli
