#pragma once

#include <cstdint>

#include "base/latency.h"
#include "core/group/machine.h"
#include "core/kv/machine.h"

namespace baton {

/// Numbers of a shard's streams since its start, for metrics.
struct StreamStats {
  std::uint64_t streams = 0;
  std::uint64_t batches = 0;
  std::uint64_t bytes = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t refused = 0;
  std::uint64_t partitions_read_only = 0;
  std::uint64_t damages = 0;  // Found by readers.
  CoordinatorTotals groups;
};

/// Numbers of a shard's buckets since its start, for metrics.
struct KvStats {
  KvTotals totals;
  std::uint64_t watches = 0;
};

/// Numbers of one shard since its start, for metrics. Read from any thread.
struct ShardStats {
  std::uint64_t rounds = 0;
  std::uint64_t journal_bytes = 0;         // Bytes written.
  std::uint64_t journal_bytes_behind = 0;  // What a recovery would read now.
  std::uint64_t syncs = 0;
  std::uint64_t sync_ns = 0;
  Latencies journal_syncs;
  Latencies partition_syncs;
  std::uint64_t checkpoints = 0;
  std::uint64_t checkpoint_failures = 0;
  std::uint64_t spilled_messages = 0;
  std::uint64_t refills = 0;
  std::uint64_t rows_missing = 0;  // Rows that are missing from the checkpoint: damage.
  std::uint64_t commands_waiting = 0;
  std::uint64_t payload_bytes = 0;  // In memory.
  std::uint64_t enqueued = 0;
  std::uint64_t delivered = 0;
  std::uint64_t acked = 0;
  std::uint64_t nacked = 0;
  std::uint64_t lease_expired = 0;
  std::uint64_t dead_lettered = 0;
  std::uint64_t dropped = 0;
  std::uint64_t deduplicated = 0;
  std::uint64_t lease_lost = 0;
  std::uint64_t boot = 0;
  StreamStats streams;
  KvStats kv;
};

}  // namespace baton
