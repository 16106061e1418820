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

/// The list of a shard's machines. To add a machine, add a line in make_machines(), an alternative
/// of Command (broker.h) for its commands, and a line in kShardTables (shard_facts.h) for its
/// tables.
namespace baton {

struct MachineOptions {
  QueueMachine::Options machine;
  std::uint64_t seed = 1;
  std::size_t round_deliveries = limits::kRoundDeliveries;
  /// Takes a message for another shard, once its departure is durable.
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
