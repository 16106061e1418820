#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/growing.h"
#include "base/progress.h"
#include "base/result.h"
#include "base/rows.h"
#include "base/time.h"
#include "server/shard/broker.h"
#include "server/shard/held.h"
#include "server/shard/round_facts.h"
#include "server/shard/shard_facts.h"

namespace baton {

class ShardLog;
struct MachineOptions;

/// The bytes of a command besides its names, keys and values, for the bounds of what waits and of
/// what a round writes.
inline constexpr std::size_t kCommandBytes = 64;

/// The facts of the round being decided, in the order in which they were decided.
class RoundFacts {
 public:
  /// Adds one fact. `must_sync`: synced in every fsync mode.
  template <class Fact>
  void add(const Fact& fact, bool must_sync) {
    begin_facts(bytes_);
    Encoder out(bytes_);
    encode(out, fact);
    must_sync_ = must_sync_ || must_sync;
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }
  [[nodiscard]] bool must_sync() const { return must_sync_; }
  void clear() {
    bytes_.clear();
    must_sync_ = false;
  }

 private:
  std::string bytes_;
  bool must_sync_ = false;
};

/// The checkpoint's rows, for a machine that applies facts about rows that are not in memory.
class AppliedRows {
 public:
  AppliedRows() = default;
  AppliedRows(const AppliedRows&) = delete;
  AppliedRows& operator=(const AppliedRows&) = delete;
  virtual ~AppliedRows() = default;

  /// Fails with store_corrupt if the row does not exist.
  virtual Result<std::string> get(Table table, const std::string& key) = 0;
  /// Writes rows that memory has no room for.
  virtual Status spill(const RowBatch& rows) = 0;
};

/// What a command needs from the log before it can be decided.
struct Demand {
  enum class Room : std::uint8_t {
    none,      // Acks, leases and reads: room is always kept for them.
    reserve,   // May use the reserve, and waits if even that is short.
    addition,  // Adds data: waits, or is refused, if room is short.
  };
  Room room = Room::none;
  std::size_t bytes = 0;  // The most bytes that the command adds to its round.
};

/// One of the machines of a shard. All of them have this shape, and the shard knows nothing else of
/// them. Truth changes in apply() only. Owned by the shard and used on its thread; starts no thread
/// and reads no clock.
///
/// The list of machines (machine_list.h) needs more of its class than this interface:
///   - a constructor that takes (const MachineOptions&, ShardLog&);
///   - static std::string_view name_of(command): the name that determines the shard;
///   - static std::size_t bytes_of(command): about its bytes in memory or in the journal, never far
///     too few.
///
/// Life: load() for each row, loaded(), apply() for each fact of the log and applied() after each
/// round; then, if this node decides, start(), and everything else.
class ShardMachine {
 public:
  ShardMachine() = default;
  ShardMachine(const ShardMachine&) = delete;
  ShardMachine& operator=(const ShardMachine&) = delete;
  virtual ~ShardMachine() = default;

  // Truth.
  /// Its tables, in the order in which their rows are loaded.
  [[nodiscard]] virtual std::span<const Table> tables() const = 0;
  virtual Status load(Table table, const Row& row) = 0;
  virtual void loaded() {}
  /// Its facts; most machines have one set of them.
  [[nodiscard]] virtual std::span<const FactSet* const> facts() const = 0;
  /// Makes a fact of one of its sets true; the set names its kind.
  virtual Status apply(const FactFrame& frame, AppliedRows& rows, Instant now) = 0;
  /// The same for the next fact of `in`, in format 1. Machines that are newer than format 2 have
  /// none.
  virtual Status apply_1(FactOwner /*owner*/, Decoder& /*in*/, AppliedRows& /*rows*/,
                         Instant /*now*/) {
    return Error{Errc::store_too_new, "facts this version does not know"};
  }
  /// Called when a round of facts is applied.
  virtual Status applied(AppliedRows& /*rows*/) { return {}; }
  /// Called when everything in the log is applied; start() follows.
  virtual Status caught_up(AppliedRows& /*rows*/) { return {}; }
  /// Adds the rows that changed since the last call.
  virtual void seal(CheckpointJob& job) = 0;
  [[nodiscard]] virtual std::uint64_t changed_bytes() const = 0;

  // Deciding. `now` never goes back.
  /// Facts go to `facts` from now on, under this boot number.
  virtual Status start(std::uint64_t boot, RoundFacts& facts, Instant now) = 0;
  /// From `now` on clients can connect; the time that they have for it begins now.
  virtual void begin_serving(Instant /*now*/) {}
  [[nodiscard]] virtual Demand demand(const Command& command) const = 0;
  /// Fills in the outcome of a command that is refused.
  virtual void refuse(Command& command, const Error& error) const = 0;
  virtual Progress execute(Command& command, Instant now) = 0;
  /// Continues a command that needed rows, or waited.
  virtual Progress resume(Command& /*command*/, const std::vector<Row>& /*rows*/,
                          bool /*exhausted*/, Instant /*now*/) {
    return {};
  }
  /// Takes the rows that the machine itself asked for.
  virtual void take_rows(const ReadDone& /*read*/, Instant /*now*/) {}
  /// Does what is due, at most one round's share. True if there is more.
  virtual bool tick(Instant now) = 0;
  [[nodiscard]] virtual Instant next_deadline() const = 0;
  virtual void take_effects(Held& held) = 0;
  /// The last step before an orderly end; its facts are made durable.
  virtual Status finish() { return {}; }
  virtual void add_stats(ShardStats& stats) const = 0;
};

}  // namespace baton
