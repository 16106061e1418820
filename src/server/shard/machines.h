#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

#include "base/limits.h"
#include "core/kv/machine.h"
#include "core/queue/machine.h"
#include "server/shard/machine.h"
#include "server/shard/machine_list.h"
#include "server/shard/shard_log.h"
#include "server/shard/stream_shard.h"

namespace baton {

/// The options of all machines; each machine takes its own.
struct MachineOptions {
  QueueMachine::Options machine;
  std::uint64_t seed = 1;
  std::size_t round_deliveries = limits::kRoundDeliveries;
  /// Takes a message for another shard, once its departure is durable.
  std::function<void(const QueueEffects::Transfer&)> transfer;
  StreamShard::Options streams;
  KvMachine::Options kv;
};

/// In the order of MachineList.
std::vector<std::unique_ptr<ShardMachine>> make_machines(const MachineOptions& options,
                                                         ShardLog& log);

/// The queues among them.
const QueueMachine& queues_of(const std::vector<std::unique_ptr<ShardMachine>>& machines);

/// The name that determines the shard of a command: of a queue, a stream or a bucket.
std::string_view name_of(const Command& command);
/// The approximate bytes of a command in memory or in the journal; never far too few.
std::size_t command_bytes(const Command& command);

}  // namespace baton
