#include <chrono>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cluster/loglet_nats/kind.h"
#include "cluster/loglet_nats/log_stream.h"
#include "cluster/loglet_nats/nats_loglet.h"
#include "worker/nats/kind.h"
#include "worker/nats/nats_link.h"
#include "worker/stores/deadline.h"
#include "worker/stores/kv_store.h"
#include "worker/stores/store_url.h"

/// Clusters on NATS. The bucket baton-<name> has the key c.meta:
///   {"id": "...", "shards": N, "replicas": R, "founded": true}
/// It is false until all logs exist.
namespace baton::loglet {
namespace {

using coord::Deadline;
using nlohmann::json;

constexpr std::string_view kMetaKey = "c.meta";

/// What c.meta says, and at which revision.
struct Founding {
  ClusterMeta meta{};
  std::uint32_t replicas = 3;
  bool founded = false;
  coord::KvRevision revision = 0;
};

std::string to_text(const Founding& founding) {
  return json{{"id", founding.meta.id},
              {"shards", founding.meta.shards},
              {"replicas", founding.replicas},
              {"founded", founding.founded}}
      .dump();
}

std::string draw_id() {
  std::random_device random;
  std::string id;
  for (int i = 0; i < 4; ++i) id += fmt::format("{:08x}", random());
  return id;
}

coord::StoreUrl bucket_of(const ClusterAddress& cluster, std::optional<std::uint32_t> replicas) {
  return {.kind = &coord::kNatsKind,
          .tls = false,
          .endpoints = cluster.servers,
          .bucket = "baton-" + cluster.name,
          .replicas = replicas};
}

Result<std::optional<Founding>> read_meta(coord::KvStore& store, const Deadline& deadline) {
  BATON_TRY(const std::optional<coord::StoredEntry> entry, store.get(kMetaKey, deadline.left()));
  if (!entry.has_value()) return std::nullopt;
  const json read = json::parse(entry->value, nullptr, false);
  Founding founding{.revision = entry->revision};
  const bool sound = read.is_object() && read.contains("id") && read["id"].is_string() &&
                     read.contains("shards") && read["shards"].is_number_unsigned();
  if (!sound) {
    return Error{Errc::failed_precondition,
                 fmt::format("the key {} of {} is not what baton wrote", kMetaKey, store.name())};
  }
  founding.meta = {.id = read["id"].get<std::string>(),
                   .shards = read["shards"].get<std::size_t>()};
  founding.replicas = read.value("replicas", 3U);
  founding.founded = read.value("founded", false);
  return founding;
}

LogName log_name(const ClusterAddress& cluster, const ClusterMeta& meta, std::size_t shard) {
  return {.cluster = cluster.name,
          .cluster_id = meta.id,
          .shard = static_cast<std::uint32_t>(shard),
          .generation = 1};
}

Error no_such_cluster(const ClusterAddress& cluster) {
  return {Errc::not_found,
          fmt::format("there is no cluster '{}' on that NATS; found it with 'baton cluster init'",
                      cluster.name)};
}

/// Writes the founding if nobody did since it was read.
Status write_meta(coord::KvStore& store, Founding& founding, const Deadline& deadline) {
  BATON_TRY(
      const coord::CasOutcome written,
      store.cas(kMetaKey, founding.revision, to_text(founding), std::nullopt, deadline.left()));
  if (!written.done) {
    return Error{Errc::already_exists, "somebody else founds a cluster of that name just now"};
  }
  founding.revision = written.revision;
  return {};
}

Result<ClusterMeta> init(const ClusterAddress& cluster, std::size_t shards, std::uint32_t replicas,
                         Duration timeout) {
  const Deadline deadline(timeout);
  BATON_TRY(const auto link, coord::NatsLink::connect(cluster.servers, deadline));
  BATON_TRY_STATUS(check_log_versions(*link, deadline));
  BATON_TRY(const auto store, coord::kNatsAdapter.open(bucket_of(cluster, replicas), {}, deadline));
  BATON_TRY(const std::optional<Founding> found, read_meta(*store, deadline));
  Founding founding{.meta = {.id = draw_id(), .shards = shards}, .replicas = replicas};
  if (found.has_value()) founding = *found;
  if (founding.founded) {
    return Error{Errc::already_exists, fmt::format("the cluster '{}' exists, with {} shards",
                                                   cluster.name, founding.meta.shards)};
  }
  if (founding.meta.shards != shards || founding.replicas != replicas) {
    return Error{Errc::failed_precondition,
                 fmt::format("an earlier init of '{}' was interrupted: complete it with --shards "
                             "{} --replicas {}",
                             cluster.name, founding.meta.shards, founding.replicas)};
  }
  if (!found.has_value()) BATON_TRY_STATUS(write_meta(*store, founding, deadline));
  for (std::size_t shard = 0; shard < shards; ++shard) {
    BATON_TRY_STATUS(
        create_log_stream(*link, log_name(cluster, founding.meta, shard), replicas, deadline));
  }
  founding.founded = true;
  BATON_TRY_STATUS(write_meta(*store, founding, deadline));
  return founding.meta;
}

Result<ClusterMeta> find(const ClusterAddress& cluster, Duration timeout) {
  const Deadline deadline(timeout);
  BATON_TRY(const auto link, coord::NatsLink::connect(cluster.servers, deadline));
  BATON_TRY_STATUS(check_log_versions(*link, deadline));
  coord::StoreOptions options;
  options.to_read = true;
  auto store = coord::kNatsAdapter.open(bucket_of(cluster, std::nullopt), options, deadline);
  if (!store.has_value() && store.error().code == Errc::bucket_not_found) {
    return no_such_cluster(cluster);
  }
  if (!store.has_value()) return std::move(store).error();
  BATON_TRY(const std::optional<Founding> found, read_meta(**store, deadline));
  if (!found.has_value()) return no_such_cluster(cluster);
  if (!found->founded) {
    return Error{Errc::failed_precondition,
                 fmt::format("the init of the cluster '{}' was interrupted: run 'baton cluster "
                             "init' again, with --shards {} --replicas {}",
                             cluster.name, found->meta.shards, found->replicas)};
  }
  for (std::size_t shard = 0; shard < found->meta.shards; ++shard) {
    BATON_TRY_STATUS(check_log_stream(*link, log_name(cluster, found->meta, shard), deadline));
  }
  return found->meta;
}

Result<std::unique_ptr<Loglet>> open_log(const ClusterAddress& cluster, const ClusterMeta& meta,
                                         std::size_t shard, Duration patience) {
  return open_nats_loglet({.addresses = cluster.servers,
                           .stream = log_stream(log_name(cluster, meta, shard)),
                           .security = {}},
                          patience);
}

}  // namespace

const EngineAdapter kNatsEngine{.init = init, .find = find, .open_log = open_log};

}  // namespace baton::loglet
