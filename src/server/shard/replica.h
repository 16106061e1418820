#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "server/shard/held.h"
#include "server/shard/machine.h"
#include "server/shard/shard_log.h"
#include "storage/disk/checkpoint_store.h"
#include "storage/journal/journal.h"

namespace baton {

/// The half of a shard that follows: its machines, built from a checkpoint and the facts of the
/// log, and the checkpoints of what was applied. The other half, Shard, decides. Owned by one
/// thread, or by a simulation; starts no thread and reads no clock.
class Replica final : private AppliedRows {
 public:
  struct Options {
    std::uint64_t checkpoint_journal_bytes = limits::kCheckpointJournalBytes;
    std::uint64_t checkpoint_delta_bytes = limits::kCheckpointDeltaBytes;
    Duration checkpoint_interval = limits::kCheckpointInterval;
  };
  using Machines = std::vector<std::unique_ptr<ShardMachine>>;

  /// The store must outlive the replica.
  Replica(Options options, CheckpointStore& store, Machines machines);

  /// Rebuilds the state of the checkpoint. After it, apply() takes the round at position().
  Status load();
  /// Applies the round at position(); rounds must come without gaps.
  Status apply(const Round& round);
  /// Applies every round in the log.
  Status follow(const ShardLog& log);
  /// Called when everything in the log is applied and this node will decide what follows.
  Status caught_up();

  /// The first round that is not applied.
  [[nodiscard]] Position position() const { return position_; }
  /// Broker time of the last round.
  [[nodiscard]] Instant now() const { return now_; }
  [[nodiscard]] std::uint64_t boot() const { return boot_; }
  [[nodiscard]] const Machines& machines() const { return machines_; }

  // For the half that decides: it applies its rounds itself, while it decides them.
  void begin_boot(Instant now);
  void decided(Position next) { position_ = next; }
  void set_now(Instant now) { now_ = now; }
  /// Rows that recovery found no room for; they must be spilled before anything else is read.
  RowBatch take_unspilled();
  void spill_sent(std::uint64_t bytes);
  /// True if the result was about a spill.
  bool take_spill_result(const StoreResult& result);
  [[nodiscard]] std::uint64_t spill_bytes_behind() const { return spill_bytes_behind_; }

  // Checkpoints.
  /// The checkpoint that is due, once everything in it is durable (`durable` is the first position
  /// that is not). At most one is under way. `log_bytes`: how much of the log a recovery would
  /// read. `hurry`: the disk is full, and a checkpoint makes room.
  std::optional<CheckpointJob> next_checkpoint(Position durable, std::uint64_t log_bytes,
                                               bool hurry, Instant now);
  /// The checkpoint is in the store: the log before it can be trimmed.
  void checkpoint_done(Position position, Instant now);
  /// The checkpoint found no room: the next one includes its rows, and is due now. It may need less
  /// room, because of what was removed since.
  void checkpoint_given_up(const CheckpointJob& job);
  /// Makes the next checkpoint due now.
  void request_checkpoint() { checkpoint_requested_ = true; }
  /// When the next checkpoint is due if nothing else happens.
  [[nodiscard]] Instant checkpoint_deadline(bool hurry) const;
  /// The number of the last sealed checkpoint that is in the store.
  [[nodiscard]] std::uint64_t checkpoints_done() const { return checkpoints_done_; }
  [[nodiscard]] std::uint64_t checkpoints_sealed() const { return checkpoints_sealed_; }
  /// Whether a checkpoint is sealed and waits for the log or the store.
  [[nodiscard]] bool checkpoint_waits() const { return sealed_.has_value(); }
  /// The first position whose facts are in no finished checkpoint.
  [[nodiscard]] Position checkpointed() const { return checkpointed_; }

 private:
  Status load_state();
  Status apply_facts(std::string_view facts, Instant now);
  Status apply_facts_1(std::string_view facts, Instant now);
  Status apply_frame(const FactFrame& frame, Instant now);
  Result<std::string> get(Table table, const std::string& key) override;
  Status spill(const RowBatch& rows) override;
  [[nodiscard]] bool checkpoint_due(std::uint64_t log_bytes, bool hurry, Instant now) const;
  [[nodiscard]] Duration checkpoint_interval(bool hurry) const;
  [[nodiscard]] std::uint64_t changed_bytes() const;
  void seal();

  Options options_;
  CheckpointStore& store_;
  Machines machines_;
  struct Owner {
    ShardMachine* machine = nullptr;
    const FactSet* facts = nullptr;
  };
  std::array<Owner, 8> owners_{};  // Indexed by owner number.
  Position position_{1};
  Instant now_;
  std::uint64_t boot_ = 0;

  // Rows that found no room, by table and key.
  std::map<std::pair<std::uint8_t, std::string>, std::string> unspilled_;
  std::uint64_t spill_bytes_behind_ = 0;
  std::uint64_t spills_sent_ = 0;
  std::uint64_t spills_done_ = 0;

  std::optional<CheckpointJob> sealed_;
  RowBatch carried_;  // Rows of a checkpoint that was given up.
  bool writing_ = false;
  bool checkpoint_requested_ = false;
  bool converts_ = false;  // The checkpoint or the log has bytes of an older format.
  Position checkpointed_{1};
  Instant checkpointed_at_;
  std::uint64_t sealed_after_spill_ = 0;
  std::uint64_t checkpoints_done_ = 0;
  std::uint64_t checkpoints_sealed_ = 0;
};

}  // namespace baton
