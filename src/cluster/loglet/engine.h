#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "cluster/loglet/loglet.h"

namespace baton::loglet {

/// Where a cluster's logs are: an engine's servers, and the cluster's name there.
struct ClusterAddress {
  std::vector<std::string> servers{};  // "host:port"; the first one is tried first.
  std::string name{};
};

/// What a cluster was founded with; kept by the engine.
struct ClusterMeta {
  std::string id{};  // Drawn once: a name can come back.
  std::size_t shards = 0;

  friend bool operator==(const ClusterMeta&, const ClusterMeta&) = default;
};

/// A kind of engine.
struct EngineAdapter {
  /// Founds the cluster: creates a log for each shard, with `replicas` copies. An interrupted
  /// founding is completed. Fails with already_exists if there is a cluster of that name, and with
  /// failed_precondition if the engine is not fit for it.
  Result<ClusterMeta> (*init)(const ClusterAddress& cluster, std::size_t shards,
                              std::uint32_t replicas, Duration timeout) = nullptr;
  /// Fails with not_found if there is no such cluster or a log is missing, and with
  /// failed_precondition if the engine or a log is not as it must be.
  Result<ClusterMeta> (*find)(const ClusterAddress& cluster, Duration timeout) = nullptr;
  /// A client of the log of one shard.
  Result<std::unique_ptr<Loglet>> (*open_log)(const ClusterAddress& cluster,
                                              const ClusterMeta& meta, std::size_t shard,
                                              Duration patience) = nullptr;
};

/// A row of the table of engines.
struct EngineRow {
  std::string_view scheme{};               // Of its URLs.
  std::string_view option{};               // The CMake option that switches it on.
  const EngineAdapter* adapter = nullptr;  // Null if switched off in this build.
};

}  // namespace baton::loglet
