#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/fsync_mode.h"
#include "base/result.h"
#include "base/time.h"
#include "core/queue/commands.h"
#include "core/queue/token.h"
#include "server/shard/machine_list.h"
#include "server/shard/shard_stats.h"

namespace baton {

/// A command on its way through a shard and back. server/session derives from it. The shard
/// fills in the command's outcomes, and calls complete() when everything that the outcomes depend
/// on is durable.
class Call {
 public:
  explicit Call(Command wanted) : command(std::move(wanted)) {}
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;
  virtual ~Call() = default;

  /// Called once, by the shard's releasing thread; must not block. The call is destroyed after it.
  virtual void complete() = 0;

  Command command;
};

/// A table of a shard's checkpoint, for `baton store inspect`.
struct TableInspection {
  std::string name;
  std::uint64_t rows = 0;
  std::uint64_t bytes = 0;  // Keys and values.
};

/// The contents of one shard's store. Positions are those of rounds in its journal.
struct ShardInspection {
  std::vector<TableInspection> tables;
  std::uint64_t checkpoint_position = 0;  // The tables are the state before this round.
  std::uint64_t journal_first = 0;        // The oldest round.
  std::uint64_t journal_next = 0;         // The next round to be written.
  std::uint64_t journal_durable = 0;      // Rounds before this one are on the disk.
  std::uint64_t journal_bytes = 0;
  std::uint64_t boot = 0;
  std::uint32_t format_version = 0;
};

/// The shards of a broker, and the routing of commands to them. Thread-safe.
class Broker {
 public:
  Broker() = default;
  Broker(const Broker&) = delete;
  Broker& operator=(const Broker&) = delete;
  virtual ~Broker() = default;

  /// Whether a shard with too much to do may refuse a call. Streams use `reserved`: each bounds its
  /// own calls under way, and is not read meanwhile. So do acks, credits and detaches.
  enum class Admission : std::uint8_t { bounded, reserved };

  /// Gives the call to the shard of its queue, stream or bucket. False if a bounded call finds the
  /// shard full, or if the broker is stopping: the caller then keeps the call.
  virtual bool submit(std::unique_ptr<Call>& call, Admission admission) = 0;
  /// Like submit(), to the shard with that number: for lists.
  virtual bool submit_to(std::size_t shard, std::unique_ptr<Call>& call, Admission admission) = 0;
  [[nodiscard]] virtual std::size_t shards() const = 0;
  /// A number that no other consumer of this process has.
  virtual ConsumerNumber next_consumer_number() = 0;
  /// The next value of the counter that orders the consumers of all groups.
  virtual Ticket next_ticket() = 0;
  [[nodiscard]] virtual ShardStats stats(std::size_t shard) const = 0;
  /// Makes a checkpoint of every shard and waits for it: for `baton store inspect` and tests.
  virtual Status checkpoint() = 0;
  /// The contents of each shard's store, in the order of the shards' numbers. May read the disk, so
  /// no thread of a shard or of a stream may call it.
  virtual std::vector<ShardInspection> inspect() { return {}; }
  /// Makes and checks lease tokens.
  [[nodiscard]] virtual TokenSeal token_seal() const { return {}; }
  /// Broker time now.
  [[nodiscard]] virtual Instant now() const = 0;
};

}  // namespace baton
