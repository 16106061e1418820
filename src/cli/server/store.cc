#include <memory>
#include <string>
#include <vector>

#include <baton/broker.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/server/commands.h"
#include "cli/server/inspect.h"

namespace baton::cli {
namespace {

constexpr std::string_view kWhat = "store inspect";

struct InspectFlags : ClientFlags {
  std::string data;
};

ExitCode print(const Output& out, const std::vector<ShardInspection>& shards) {
  if (out.json()) {
    Output::object(to_json(shards));
  } else {
    Output::text(describe(shards));
  }
  return ExitCode::ok;
}

ShardInspection inspection_of(const client::ShardInfo& info) {
  ShardInspection shard{.tables = {},
                        .checkpoint_position = info.checkpoint_position,
                        .journal_first = info.journal_first,
                        .journal_next = info.journal_next,
                        .journal_durable = info.journal_durable,
                        .journal_bytes = info.journal_bytes,
                        .boot = info.boot,
                        .format_version = info.format_version};
  for (const client::TableInfo& table : info.tables) {
    shard.tables.push_back({.name = table.name, .rows = table.rows, .bytes = table.bytes});
  }
  return shard;
}

ExitCode inspect_live(const InspectFlags& flags) {
  const Output out = flags.output();
  const auto broker = client::Broker::open(flags.connection());
  if (!broker) return out.fail(kWhat, broker.error());
  // So that the tables show the present state.
  if (const auto made = broker->checkpoint(); !made) return out.fail(kWhat, made.error());
  const auto infos = broker->shards();
  if (!infos) return out.fail(kWhat, infos.error());
  std::vector<ShardInspection> shards;
  for (const client::ShardInfo& info : *infos) shards.push_back(inspection_of(info));
  return print(out, shards);
}

ExitCode run_inspect(const InspectFlags& flags) {
  if (flags.data.empty()) return inspect_live(flags);
  const auto shards = inspect_folder(flags.data);
  if (!shards) return flags.output().fail_here(kWhat, shards.error());
  return print(flags.output(), *shards);
}

}  // namespace

void add_store_commands(CLI::App& app, Action& action) {
  CLI::App* store = add_noun(app, {.name = "store",
                                   .help = "Look into the store of a broker.",
                                   .example = "baton store inspect --data /var/lib/baton"});
  const auto flags = std::make_shared<InspectFlags>();
  CLI::App* inspect = add_verb(
      *store,
      {.name = "inspect",
       .help = "Show the tables of each shard's checkpoint and the positions of its journal. With "
               "--data, those of a stopped broker's folder; otherwise those of the running broker "
               "at --address, which makes a checkpoint first.",
       .example = "baton store inspect --data /var/lib/baton\n"
                  "  baton store inspect --address 127.0.0.1:7470 --json"},
      flags, run_inspect, action);
  inspect->add_option("--data", flags->data, "The data folder of a stopped broker.")
      ->type_name("DIR");
  add_client_flags(*inspect, *flags);
}

}  // namespace baton::cli
