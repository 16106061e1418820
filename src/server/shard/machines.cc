#include "server/shard/machines.h"

#include "server/shard/kv_shard.h"
#include "server/shard/queue_shard.h"

namespace baton {

std::vector<std::unique_ptr<ShardMachine>> make_machines(const MachineOptions& options,
                                                         ShardLog& log) {
  std::vector<std::unique_ptr<ShardMachine>> machines;
  machines.push_back(
      std::make_unique<QueueShard>(QueueShard::Options{.machine = options.machine,
                                                       .seed = options.seed,
                                                       .round_deliveries = options.round_deliveries,
                                                       .transfer = options.transfer}));
  machines.push_back(std::make_unique<StreamShard>(log, options.streams));
  machines.push_back(std::make_unique<KvShard>(options.kv));
  return machines;
}

const QueueMachine& queues_of(const std::vector<std::unique_ptr<ShardMachine>>& machines) {
  return dynamic_cast<const QueueShard&>(*machines.front()).machine();
}

}  // namespace baton
