#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "base/rows.h"
#include "base/time.h"
#include "server/shard/broker.h"
#include "server/shard/shard_log.h"
#include "server/shard/stream_partition.h"
#include "storage/disk/checkpoint_store.h"
#include "storage/journal/journal.h"

/// What a shard hands to its runner: work on the store, and effects that wait for the disk.
namespace baton {

class ShardMachine;

/// Work on the checkpoint store, done outside the shard's thread, in the order in which it was
/// given.
struct SpillJob {
  RowBatch rows;
};
/// Reads rows for the machine that asked for them under this number, or, without a machine, for the
/// call that waits under it.
struct ReadJob {
  ShardMachine* machine = nullptr;
  std::uint64_t number = 0;
  RowRange range;
};
using StoreJob = std::variant<SpillJob, ReadJob>;

/// The result of a job, which goes back to the shard.
struct SpillDone {
  std::uint64_t bytes = 0;
};
/// The rows are held in memory, where readers and the next checkpoint find them. SpillBrought
/// follows.
struct SpillHeld {};
/// Held rows have reached the store.
struct SpillBrought {
  std::uint64_t bytes = 0;
};
struct ReadDone {
  ShardMachine* machine = nullptr;
  std::uint64_t number = 0;
  std::vector<Row> rows;
  bool exhausted = false;  // The range has no further rows.
};
using StoreResult = std::variant<SpillDone, SpillHeld, SpillBrought, ReadDone>;

/// Runs `job`. A failed spill can be repeated; a failed read cannot be replaced by anything.
Result<StoreResult> run_store_job(CheckpointStore& store, const StoreJob& job);

/// A sealed delta on its way into the store.
struct CheckpointJob {
  RowBatch carried;  // Rows of an earlier checkpoint that was given up.
  RowBatch rows;
  /// Functions that append more rows to the batch: the thread that writes the batch calls them.
  std::vector<std::function<void(RowBatch&)>> deltas;
  Position position;  // The first round that is not in the checkpoint.
  std::uint64_t boot = 0;
  Instant now;
};
/// All changes of a checkpoint except its position, each row at most once.
RowBatch rows_of(const CheckpointJob& job);
/// Writes the checkpoint as one batch. May be repeated after a failure.
Status run_checkpoint_job(CheckpointStore& store, const CheckpointJob& job);

/// What one machine tells its clients once the round is durable.
class HeldEffects {
 public:
  HeldEffects() = default;
  HeldEffects(const HeldEffects&) = delete;
  HeldEffects& operator=(const HeldEffects&) = delete;
  virtual ~HeldEffects() = default;

  /// Tells the clients. Called once; must not block.
  virtual void release() = 0;
  /// The number of clients that are told.
  [[nodiscard]] virtual std::size_t answers() const = 0;
};

/// The effects of a round, held back until `position` is durable.
struct Held {
  Position position;         // The last round that these effects depend on.
  bool always_sync = false;  // Creates, deletes and keys wait for the disk in every fsync mode.
  std::vector<std::unique_ptr<Call>> calls;
  std::vector<std::unique_ptr<HeldEffects>> effects;
  std::vector<StoreJob> jobs;
  /// Partitions to be synced before any effect is released.
  std::vector<std::shared_ptr<StreamPartition>> unsynced;
  /// Deleted partitions, whose files may be removed.
  std::vector<PartitionName> removed;

  [[nodiscard]] bool empty() const {
    return calls.empty() && effects.empty() && jobs.empty() && unsynced.empty() && removed.empty();
  }
  [[nodiscard]] std::size_t answers() const;
  /// Releases calls and effects; the runner does the rest.
  void release();
};

/// Holds the effects for each sink, if there are any.
template <class Sink, class Effect>
void hold_told(std::vector<std::pair<std::shared_ptr<Sink>, Effect>> told, Held& held) {
  class Told final : public HeldEffects {
   public:
    explicit Told(std::vector<std::pair<std::shared_ptr<Sink>, Effect>> all)
        : all_(std::move(all)) {}
    void release() override {
      for (auto& [sink, effect] : all_) sink->told(effect);
    }
    [[nodiscard]] std::size_t answers() const override { return all_.size(); }

   private:
    std::vector<std::pair<std::shared_ptr<Sink>, Effect>> all_;
  };
  if (!told.empty()) held.effects.push_back(std::make_unique<Told>(std::move(told)));
}

}  // namespace baton
