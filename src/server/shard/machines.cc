#include "server/shard/machines.h"

#include "server/shard/kv_shard.h"
#include "server/shard/queue_shard.h"

namespace baton {
namespace {

template <class... Functions>
struct Overloaded : Functions... {
  using Functions::operator()...;
};

/// Calls `use` with the command of the machine that `command` is for; its template argument is the
/// class of the machine.
template <class... Rows, class Use>
auto with_machine(MachineRows<Rows...> /*list*/, const Command& command, const Use& use) {
  return std::visit(Overloaded{[&](const typename Rows::Command& wanted) {
                      return use.template operator()<typename Rows::Machine>(wanted);
                    }...},
                    command);
}

template <class... Rows>
std::vector<std::unique_ptr<ShardMachine>> make_all(MachineRows<Rows...> /*list*/,
                                                    const MachineOptions& options, ShardLog& log) {
  std::vector<std::unique_ptr<ShardMachine>> machines;
  (machines.push_back(std::make_unique<typename Rows::Machine>(options, log)), ...);
  return machines;
}

}  // namespace

std::vector<std::unique_ptr<ShardMachine>> make_machines(const MachineOptions& options,
                                                         ShardLog& log) {
  return make_all(MachineList{}, options, log);
}

const QueueMachine& queues_of(const std::vector<std::unique_ptr<ShardMachine>>& machines) {
  return dynamic_cast<const QueueShard&>(*machines.front()).machine();
}

std::string_view name_of(const Command& command) {
  return with_machine(MachineList{}, command,
                      []<class Machine>(const auto& wanted) { return Machine::name_of(wanted); });
}

std::size_t command_bytes(const Command& command) {
  return with_machine(MachineList{}, command,
                      []<class Machine>(const auto& wanted) { return Machine::bytes_of(wanted); });
}

}  // namespace baton
