#pragma once

#include "base/result.h"
#include "cli/server/config.h"
#include "server/shard/local_broker.h"

/// The part of `baton server` that makes it a node of a cluster.
namespace baton::cli {

/// Whether the settings of a cluster go together. Touches nothing.
Status check_cluster(const ServerConfig& config);

/// Finds the cluster, checks its logs, and makes `options` those of a node of it.
Status join_cluster(const ServerConfig& config, BrokerOptions& options);

}  // namespace baton::cli
