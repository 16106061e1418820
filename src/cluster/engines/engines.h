#pragma once

#include <string_view>

#include "base/result.h"
#include "cluster/loglet/engine.h"

/// The table of engines: what keeps the logs of a cluster.
namespace baton::loglet {

/// An engine, and a cluster on it.
struct EngineUrl {
  const EngineAdapter* engine = nullptr;
  ClusterAddress cluster{};
};

/// Reads "nats://host:port,host:port", and the cluster's name: 1 to 32 of a-z, 0-9 and "-". Fails
/// with invalid_argument, naming the part that is wrong.
Result<EngineUrl> parse_engine_url(std::string_view url, std::string_view name);

/// Whether it is 1 to 32 of a-z, 0-9 and "-", as names of clusters and nodes are.
bool is_cluster_name(std::string_view name);

}  // namespace baton::loglet
