#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <variant>
#include <vector>

#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "core/queue/machine.h"
#include "server/shard/broker.h"
#include "server/shard/kv_shard.h"
#include "server/shard/shard_facts.h"
#include "server/shard/stream_shard.h"
#include "storage/disk/checkpoint_store.h"
#include "storage/journal/journal.h"

namespace baton {

/// About how many bytes a command takes in memory, or adds to the journal; never too few by much.
std::size_t command_bytes(const Command& command);
std::size_t command_bytes(const QueueCommand& command);

/// Work on the checkpoint store, done away from the shard's thread, in the order it was given.
struct SpillJob {
  RowBatch rows;
};
struct RefillJob {
  QueueEffects::RefillRequest request;
};
/// Rows for a call that waits for them.
struct ReadJob {
  std::uint64_t waiting = 0;
  RowRange range;
};
using StoreJob = std::variant<SpillJob, RefillJob, ReadJob>;

/// How a job ended; goes back to the shard.
struct SpillDone {
  std::uint64_t bytes = 0;
};
/// The rows are held in memory, where readers and the next checkpoint find them. SpillBrought
/// follows.
struct SpillHeld {};
/// What was held has reached the store.
struct SpillBrought {
  std::uint64_t bytes = 0;
};
struct ReadDone {
  std::uint64_t waiting = 0;
  std::vector<Row> rows;
  bool exhausted = false;
};
using StoreResult = std::variant<SpillDone, SpillHeld, SpillBrought, Refill, ReadDone>;

/// Does `job`. A spill that fails can be done again; a read that fails cannot be replaced by
/// anything.
Result<StoreResult> run_store_job(CheckpointStore& store, const StoreJob& job);

/// A sealed delta on its way into the store.
struct CheckpointJob {
  RowBatch carried;  // Of one before it that was given up.
  QueueDelta delta;
  RowBatch rows;      // Of streams, groups and buckets.
  Position position;  // The first round that is not in it.
  std::uint64_t boot = 0;
  Instant now;
};
/// Writes it as one batch. Doing it again after a failure is right.
Status run_checkpoint_job(CheckpointStore& store, const CheckpointJob& job);

/// What a round wants to tell the world. Held back until `position` is durable.
struct Held {
  Position position;         // The last round these effects rest on.
  bool always_sync = false;  // Creates, deletes and keys wait for the disk in every fsync mode.
  std::vector<std::unique_ptr<Call>> calls;
  std::vector<std::pair<std::shared_ptr<ConsumerSink>, std::vector<Delivery>>> deliveries;
  std::vector<std::pair<std::shared_ptr<ConsumerSink>, Error>> closed;
  std::vector<QueueEffects::Transfer> transfers;
  std::vector<StoreJob> jobs;
  StreamEffects streams;
  KvEffects watches;

  [[nodiscard]] bool empty() const {
    return calls.empty() && deliveries.empty() && closed.empty() && transfers.empty() &&
           jobs.empty() && streams.empty() && watches.empty();
  }
  /// Lets the calls and deliveries out; the rest is for whoever runs jobs.
  void release();
};

/// The deterministic part of a shard: rounds of decisions over one journal, and the checkpoints
/// that bound its length. Owned by one thread, or by a simulation; starts no thread and reads no
/// clock.
///
/// Order: a round's facts are appended before round() returns; what it returns may be released once
/// the journal is durable up to Held::position; jobs run in the order they are released.
class Shard {
 public:
  /// A round of acks, leases and deadlines is never larger than this.
  static constexpr std::uint64_t kSmallRoundBytes = 4 * limits::kMiB;

  struct Options {
    QueueMachine::Options machine;
    std::uint64_t seed = 1;
    std::uint64_t checkpoint_journal_bytes = limits::kCheckpointJournalBytes;
    std::uint64_t checkpoint_delta_bytes = limits::kCheckpointDeltaBytes;
    Duration checkpoint_interval = limits::kCheckpointInterval;
    std::uint64_t journal_behind_bytes = limits::kJournalBehindBytes;
    std::uint64_t spill_behind_bytes = limits::kCommandBytesWaiting;
    std::size_t round_bytes = limits::kRoundBytes;
    std::size_t round_deliveries = limits::kRoundDeliveries;
    std::uint64_t small_round_bytes = kSmallRoundBytes;
    StreamShard::Options streams;
    KvMachine::Options kv;
  };

  /// What a shard stands on. All of it outlives the shard.
  struct Parts {
    Journal& journal;
    CheckpointStore& store;
    Disk& disk;
    std::string streams_folder;  // Its parent exists.
  };

  /// Rebuilds the state from the store and the journal, takes the next boot number and makes it
  /// durable. `now` is the wall clock; broker time begins there, or where it ended if that is
  /// later.
  static Result<std::unique_ptr<Shard>> recover(Options options, const Parts& parts, Instant now);

  /// Broker time at which recovery ended: the clock goes on from here.
  [[nodiscard]] Instant started_at() const { return started_at_; }
  /// The broker serves from `now` on, which its other shards may have put later than started_at():
  /// consumers of the former life have all of their time to return.
  void begin_serving(Instant now) { machine_.begin_serving(now); }
  [[nodiscard]] std::uint64_t boot() const { return boot_; }

  /// One round: every call that fits, then deadlines, then deliveries. Calls that wait for rows,
  /// for time or for room stay inside. Takes calls from the front of `calls`.
  Held round(std::deque<std::unique_ptr<Call>>& calls, std::vector<StoreResult> results,
             Instant now);
  /// True when a round would have something to do right now.
  [[nodiscard]] bool has_work() const { return more_ || !retries_.empty(); }
  [[nodiscard]] Instant next_deadline() const;

  /// The checkpoint that is due, once everything it holds is durable (`durable` is the first
  /// position that is not). At most one is under way.
  std::optional<CheckpointJob> next_checkpoint(Position durable, Instant now);
  /// It is in the store: the journal before it can go.
  void checkpoint_done(Position position, Instant now);
  /// It found no room: the next one takes its rows along, and is due now. It may need less, because
  /// of what was removed since.
  void checkpoint_given_up(const CheckpointJob& job);
  /// Why there is no more room for additions: none, a full disk, or too many open files.
  enum class Shortage : std::uint8_t { none, disk, files };
  /// Additions are refused while there is a shortage and room is short; while room is short for
  /// another reason they wait.
  void set_shortage(Shortage shortage) { shortage_ = shortage; }
  /// Makes the next checkpoint due now.
  void request_checkpoint() { checkpoint_requested_ = true; }
  /// The number of the last sealed checkpoint that is in the store.
  [[nodiscard]] std::uint64_t checkpoints_done() const { return checkpoints_done_; }
  [[nodiscard]] std::uint64_t checkpoints_sealed() const { return checkpoints_sealed_; }
  [[nodiscard]] bool checkpoint_under_way() const { return sealed_.has_value() || writing_; }
  /// A checkpoint is sealed and waits for the journal or the store.
  [[nodiscard]] bool checkpoint_waits() const { return sealed_.has_value(); }
  /// The first position whose facts are in no checkpoint that is done.
  [[nodiscard]] Position checkpointed() const { return checkpointed_; }

  /// Drops the calls that wait inside: the shard will run no more rounds.
  void drop_waiting();
  /// The last act of a shard that stops in order: partitions are synced, and the journal learns
  /// where they end.
  Status finish(Instant now);

  [[nodiscard]] ShardStats stats() const;
  [[nodiscard]] const QueueMachine& machine() const { return machine_; }

 private:
  struct Waiting {
    std::unique_ptr<Call> call;
    Instant until = Instant::never();
  };

  Shard(Options options, const Parts& parts);
  Status load(CheckpointStore& store);
  Status load_state(CheckpointStore& store);
  Status replay(CheckpointStore& store);
  Status apply_round(CheckpointStore& store, const Round& round);
  Status apply_fact(CheckpointStore& store, const ShardFact& fact, Instant now);
  Status apply_fact(CheckpointStore& store, const QueueFact& fact, Instant now);
  Status apply_fact(CheckpointStore& store, const StreamFact& fact, Instant now);
  Status apply_fact(CheckpointStore& store, const CoordinatorFact& fact, Instant now);
  Status apply_fact(CheckpointStore& store, KvFact& fact, Instant now);
  Status spill_again(CheckpointStore& store);
  Status fetch(CheckpointStore& store, Table table, const std::string& key);
  Status boot_up(Instant now);

  void send_unspilled(Held& held);
  void send_spill(RowBatch rows, Held& held);
  void take_result(StoreResult& result, Held& held, Instant now);
  void run_call(std::unique_ptr<Call> call, Held& held, Instant now);
  void run_kv_call(std::unique_ptr<Call> call, Held& held, Instant now);
  void run_queue_call(std::unique_ptr<Call> call, Held& held, Instant now);
  void proceed(std::unique_ptr<Call> call, Progress progress, Held& held);
  void resume_waiting(Held& held, Instant now);
  [[nodiscard]] bool store_is_behind() const;
  [[nodiscard]] std::uint64_t delta_bytes() const {
    return machine_.delta_bytes() + streams_.changed_bytes() + kv_.changed_bytes();
  }
  [[nodiscard]] Duration checkpoint_interval() const;
  [[nodiscard]] bool round_takes(const Command& command) const;
  [[nodiscard]] std::uint64_t addition_bytes_max() const;
  [[nodiscard]] bool room_for(std::size_t bytes) const;
  void turn_away(std::unique_ptr<Call> call, Held& held);
  void collect_effects(Held& held);
  void append(Held& held, Instant now);
  void record(const QueueFact& fact);
  void record(const std::function<void(Encoder&)>& fact, bool must_sync);

  Options options_;
  Journal& journal_;
  QueueMachine machine_;
  StreamShard streams_;
  KvShard kv_;
  std::uint64_t boot_ = 0;
  Instant started_at_;
  Instant now_;

  std::string facts_;         // Of the round being decided.
  bool always_sync_ = false;  // It holds what is synced in every fsync mode.
  bool more_ = false;
  std::unordered_map<ConsumerNumber, std::shared_ptr<ConsumerSink>> sinks_;
  std::map<std::uint64_t, Waiting> waiting_;  // Calls that wait for rows or for time.
  std::uint64_t next_waiting_ = 1;
  std::deque<std::unique_ptr<Call>> deferred_;  // Additions that wait for the store to catch up.
  std::deque<std::unique_ptr<Call>> retries_;

  // What recovery found no room for, by table and key; the first round sends it.
  std::map<std::pair<std::uint8_t, std::string>, std::string> unspilled_;
  std::optional<CheckpointJob> sealed_;
  RowBatch carried_;  // Of a checkpoint that was given up.
  bool writing_ = false;
  bool checkpoint_requested_ = false;
  bool converts_ = false;  // Recovery found rows or rounds of an older format.
  Position checkpointed_{1};
  Instant checkpointed_at_;
  std::uint64_t spill_bytes_behind_ = 0;
  std::uint64_t spills_sent_ = 0;
  std::uint64_t spills_done_ = 0;
  std::uint64_t sealed_after_spill_ = 0;
  std::uint64_t checkpoints_done_ = 0;
  std::uint64_t checkpoints_sealed_ = 0;
  Shortage shortage_ = Shortage::none;
  ShardStats stats_;
};

}  // namespace baton
