#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <variant>

#include "base/rows.h"
#include "core/group/rows.h"
#include "core/kv/rows.h"
#include "core/queue/commands.h"
#include "core/queue/rows.h"
#include "core/stream/catalog.h"
#include "server/shard/kv_commands.h"
#include "server/shard/stream_commands.h"

/// The list of a shard's machines, and what follows from it for code that names none of them. To
/// add a machine, add a row to MachineList here, and the #include of its class to machines.cc.
namespace baton {

/// One machine: its class, which is a ShardMachine; its commands, a variant; the tables of its
/// rows, one array of TableName or several.
template <class TheMachine, class TheCommand, const auto&... Tables>
struct MachineRow {
  using Machine = TheMachine;
  using Command = TheCommand;
  static constexpr std::size_t kTables = (Tables.size() + ...);
  /// Copies the tables to `to`, and returns the end of the copy.
  static constexpr TableName* copy_tables(TableName* to) {
    ((to = std::ranges::copy(Tables, to).out), ...);
    return to;
  }
};

template <class... Rows>
struct MachineRows {
  using Command = std::variant<typename Rows::Command...>;
  static constexpr auto tables() {
    std::array<TableName, (Rows::kTables + ...)> all{};
    TableName* end = all.data();
    ((end = Rows::copy_tables(end)), ...);
    return all;
  }
};

using MachineList =
    MachineRows<MachineRow<class QueueShard, QueueCommand, tables::kAll>,
                MachineRow<class StreamShard, StreamCommand, tables::kCoordinator, tables::kStream>,
                MachineRow<class KvShard, KvCommand, tables::kKv>>;

/// What can be asked of a shard: the commands of one of its machines. Its index is that of the
/// machine in the list.
using Command = MachineList::Command;

/// The tables of a shard's checkpoint: those of all its machines.
inline constexpr auto kShardTables = MachineList::tables();
static_assert(std::ranges::all_of(kShardTables,
                                  [](const TableName& one) {
                                    return std::ranges::count(kShardTables, one.table,
                                                              &TableName::table) == 1 &&
                                           std::ranges::count(kShardTables, one.name,
                                                              &TableName::name) == 1;
                                  }),
              "each table has a number and a name of its own");

}  // namespace baton
