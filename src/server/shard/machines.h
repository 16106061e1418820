#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/limits.h"
#include "core/kv/machine.h"
#include "core/queue/machine.h"
#include "server/shard/machine.h"
#include "server/shard/shard_log.h"
#include "server/shard/stream_shard.h"

/// The list of a shard's machines. A new machine is a line in make_machines(), its commands an
/// alternative of Command (broker.h), its tables a line in kShardTables (shard_facts.h).
namespace baton {

struct MachineOptions {
  QueueMachine::Options machine;
  std::uint64_t seed = 1;
  std::size_t round_deliveries = limits::kRoundDeliveries;
  /// Takes a message for another shard, once its leaving is durable.
  std::function<void(const QueueEffects::Transfer&)> transfer;
  StreamShard::Options streams;
  KvMachine::Options kv;
};

/// In the order of Command's alternatives.
std::vector<std::unique_ptr<ShardMachine>> make_machines(const MachineOptions& options,
                                                         ShardLog& log);

/// The queues among them.
const QueueMachine& queues_of(const std::vector<std::unique_ptr<ShardMachine>>& machines);

}  // namespace baton
