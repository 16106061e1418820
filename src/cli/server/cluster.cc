#include "cli/server/cluster.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <spdlog/spdlog.h>

#include "base/parse.h"
#include "cli/server/commands.h"
#include "cluster/engines/engines.h"
#include "cluster/node/loglet_log.h"
#include "server/shard/data_folder.h"

namespace baton::cli {
namespace {

constexpr std::chrono::seconds kEngineTimeout{30};
constexpr std::size_t kClusterShardsMax = 64;
constexpr std::string_view kNoStreams =
    "a node of a cluster takes no streams yet; run them on a broker without --cluster";

struct InitFlags {
  std::string cluster;
  std::string join = "baton";
  std::size_t shards = 0;
  std::uint32_t replicas = 3;
  bool json = false;
};

Result<std::uint64_t> parse_shards(std::string_view text) {
  return parse_number(text, 1, kClusterShardsMax);
}

Result<std::uint64_t> parse_replicas(std::string_view text) {
  BATON_TRY(const std::uint64_t replicas, parse_number(text, 1, 5));
  if (replicas % 2 == 1) return replicas;
  return Error{Errc::invalid_argument, fmt::format("'{}' is not 1, 3 or 5", text.substr(0, 64))};
}

ExitCode run_init(const InitFlags& flags) {
  const Output out(flags.json);
  const auto url = loglet::parse_engine_url(flags.cluster, flags.join);
  if (!url) return out.fail_here("cluster init", url.error());
  const auto made = url->engine->init(url->cluster, flags.shards, flags.replicas, kEngineTimeout);
  if (!made) return out.fail("cluster init", made.error());
  if (out.json()) {
    Output::object({{"cluster", flags.join},
                    {"id", made->id},
                    {"shards", made->shards},
                    {"replicas", flags.replicas}});
  } else {
    Output::text(
        fmt::format("The cluster '{}' is founded: {}, {} of each log.", flags.join,
                    counted(made->shards, "shard"),
                    flags.replicas == 1 ? "1 copy" : fmt::format("{} copies", flags.replicas)));
  }
  return ExitCode::ok;
}

Error wrong_setting(std::string text) { return {Errc::invalid_argument, std::move(text)}; }

}  // namespace

Status check_cluster(const ServerConfig& config) {
  if (config.cluster.empty()) {
    for (const char* const name : {"join", "node"}) {
      if (config.given.contains(name)) {
        return wrong_setting(
            fmt::format("--{} is for a node of a cluster: give --cluster too", name));
      }
    }
    return {};
  }
  BATON_TRY_STATUS(loglet::parse_engine_url(config.cluster, config.join));
  if (!loglet::is_cluster_name(config.node)) {
    return wrong_setting(config.node.empty()
                             ? std::string("--cluster needs --node NAME, the name of this node")
                             : fmt::format("--node '{}' is not 1 to 32 of a-z, 0-9 and '-'",
                                           config.node.substr(0, 100)));
  }
  if (config.shards != 0) {
    return wrong_setting(
        "--shards is for a broker without --cluster: 'baton cluster init' has "
        "fixed the number of shards");
  }
  if (config.fsync.kind != FsyncMode::Kind::always) {
    return wrong_setting(
        "--fsync is for a broker without --cluster: the disks of the NATS servers "
        "decide (sync_interval in their settings)");
  }
  return {};
}

Status join_cluster(const ServerConfig& config, BrokerOptions& options) {
  BATON_TRY(const loglet::EngineUrl url, loglet::parse_engine_url(config.cluster, config.join));
  BATON_TRY(const loglet::ClusterMeta meta, url.engine->find(url.cluster, kEngineTimeout));
  spdlog::info("event=joining cluster={} id={} node={} shards={}", config.join, meta.id,
               config.node, meta.shards);
  options.cluster = meta.id;
  options.shards = meta.shards;
  options.shard.streams.refusal = kNoStreams;
  options.open_log = [url, meta, data = config.data](
                         Disk& disk, std::size_t shard) -> Result<std::unique_ptr<ShardLog>> {
    BATON_TRY(std::unique_ptr<loglet::Loglet> engine,
              url.engine->open_log(url.cluster, meta, shard, kEngineTimeout));
    BATON_TRY(PartitionFolders partitions,
              PartitionFolders::open(disk, DataFolder::streams_of(data, shard)));
    cluster::LogletLogOptions log;
    log.mark_file = fmt::format("{}/shard-{}/LOG", data, shard);
    return std::unique_ptr<ShardLog>(std::make_unique<cluster::LogletLog>(
        std::move(log), std::move(engine), disk, std::move(partitions)));
  };
  return {};
}

void add_cluster_commands(CLI::App& app, Action& action) {
  const std::string example =
      "baton cluster init --cluster nats://a:4222,b:4222 --join prod --shards 4";
  CLI::App* cluster = add_noun(app, {.name = "cluster",
                                     .help = "Found a cluster, whose logs NATS JetStream keeps.",
                                     .example = example});
  const auto flags = std::make_shared<InitFlags>();
  CLI::App* init = add_verb(
      *cluster,
      {.name = "init",
       .help = "Create the logs of a new cluster, once. Nodes then join with 'baton server "
               "--cluster'. Needs nats-server 2.12.15, 2.14.9, 2.15.2 or newer.",
       .example = example},
      flags, run_init, action);
  init->add_option("--cluster", flags->cluster, "The NATS servers: nats://HOST:PORT,HOST:PORT.")
      ->type_name("URL")
      ->required();
  init->add_option("--join", flags->join, "The name of the cluster [baton].")->type_name("NAME");
  add_parsed(
      *init, "--shards", parse_shards, [flags](std::uint64_t shards) { flags->shards = shards; },
      "Shards, 1 to 64; each has a log. Cannot be changed later.")
      ->required();
  add_parsed(
      *init, "--replicas", parse_replicas,
      [flags](std::uint64_t replicas) { flags->replicas = static_cast<std::uint32_t>(replicas); },
      "Copies of each log: 3 [default], 5, or 1, which does not survive the loss of the NATS "
      "server.");
  add_json_flag(*init, flags->json);
}

}  // namespace baton::cli
