#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "server/shard/broker.h"
#include "server/shard/clock.h"
#include "server/shard/shard.h"
#include "server/shard/shard_log.h"
#include "server/shard/spill_buffer.h"
#include "server/shard/task_thread.h"
#include "storage/disk/checkpoint_store.h"

namespace baton {

/// Runs one Shard with real threads:
///
///   deciding     owns the Shard: takes what waits, decides a round, appends it
///   releasing    fsyncs what was appended, then releases the effects that depend on it
///   store        spills and reads rows, in order
///   spill        writes rows held in memory to the store, when the disk has room again
///   checkpoint   writes sealed deltas
///   keeper       prepares and trims journal segments
///
/// While one round is being fsynced the next is decided, and then waits for that fsync. So under
/// load rounds grow, and share fsyncs.
///
/// More than 20 members: each thread's are together, with what it leaves for the next thread.
class ShardRunner {
 public:
  struct Parts {
    std::unique_ptr<Shard> shard;
    ShardLog& log;
    CheckpointStore& store;
    const BrokerClock& clock;
    FsyncMode fsync;
    std::uint64_t small_round_bytes = Shard::kSmallRoundBytes;
    /// The log belongs to another node now: this runner decides nothing more, and must be stopped.
    /// Called by one of its threads.
    std::function<void()> deposed = {};
  };

  explicit ShardRunner(Parts parts);
  ShardRunner(const ShardRunner&) = delete;
  ShardRunner& operator=(const ShardRunner&) = delete;
  ~ShardRunner();

  /// Starts the threads. Calls may be submitted only after it.
  void start();
  /// False for a bounded call if there is too much to do, or if the log does not answer.
  bool submit(std::unique_ptr<Call>& call, Broker::Admission admission);
  /// Makes a checkpoint of everything submitted before, and waits for it.
  Status checkpoint();
  /// Takes no more calls; completes those it has, makes a last checkpoint, and ends its threads. A
  /// deposed runner drops its calls instead, and everything in memory. Idempotent.
  void stop();
  [[nodiscard]] ShardStats stats() const;
  [[nodiscard]] Position durable() const { return Position{durable_.load()}; }
  [[nodiscard]] Position checkpointed() const { return Position{checkpointed_.load()}; }

 private:
  /// The pause before the disk is tried again.
  static constexpr std::chrono::milliseconds kRetryAfter{200};

  // Deciding.
  void decide();
  void wait_for_work(std::unique_lock<std::mutex>& lock);
  [[nodiscard]] bool something_to_decide() const;
  void run_round(std::vector<StoreResult> results);
  void hold(Held held);
  std::uint64_t serve_checkpoints(std::uint64_t wanted);
  /// Called with the inbox's mutex held.
  void publish(std::uint64_t made);
  void start_checkpoint();
  void keep_room();

  // Releasing.
  void release();
  std::optional<std::deque<Held>> take_held(Duration patience);
  bool sync_needed(const std::deque<Held>& batch) const;
  /// False if the shard no longer belongs to this node.
  bool sync();
  Result<Position> sync_log();
  void sync_partitions(const std::deque<Held>& batch);
  void release_one(Held& held);

  // Working.
  void remove_partitions(const std::vector<PartitionName>& names);
  void run_job(const StoreJob& job);
  void hold_spill(const SpillJob& job, const Error& error);
  void retry_spills();
  void take_result(StoreResult result);
  void run_checkpoint(const std::shared_ptr<const CheckpointJob>& shared);
  void prepare();
  void note_store_full(bool full);
  bool give_up_when_stopping();
  void depose();
  void finish();

  Parts parts_;
  std::atomic<std::uint64_t> durable_;
  std::atomic<std::uint64_t> checkpointed_;

  // What other threads leave for the deciding thread.
  mutable std::mutex inbox_mutex_;
  std::condition_variable inbox_wake_;
  std::condition_variable checkpoint_wake_;
  std::deque<std::unique_ptr<Call>> inbox_;
  std::size_t inbox_bytes_ = 0;
  std::vector<StoreResult> results_;
  std::optional<Position> checkpoint_written_;
  std::shared_ptr<const CheckpointJob> checkpoint_given_up_;
  std::uint64_t checkpoints_wanted_ = 0;
  std::uint64_t checkpoints_made_ = 0;
  bool inbox_news_ = false;  // Something other than calls: durability, room, a checkpoint.
  bool stopping_ = false;
  bool deposed_ = false;
  // Why the journal's next segment cannot be created; and whether the disk has no room for the
  // checkpoint's rows.
  Shard::Shortage journal_shortage_ = Shard::Shortage::none;
  bool store_full_ = false;
  bool preparing_ = false;
  bool idle_ = false;
  bool gave_up_ = false;
  std::optional<std::uint64_t> last_checkpoint_;
  ShardStats published_;

  // What the deciding thread leaves for the releasing thread.
  std::mutex held_mutex_;
  std::condition_variable held_wake_;
  std::condition_variable held_taken_;
  std::deque<Held> held_;
  bool held_end_ = false;
  bool held_void_ = false;  // Held effects will not be released.
  std::atomic<std::uint64_t> syncs_{0};
  std::atomic<std::uint64_t> sync_ns_{0};
  LatencyHistogram journal_syncs_;
  LatencyHistogram partition_syncs_;
  std::atomic<std::uint64_t> checkpoint_failures_{0};
  Instant synced_at_;

  // Only for the deciding thread.
  std::deque<std::unique_ptr<Call>> calls_;
  std::uint64_t asked_ = 0;
  std::uint64_t asked_seal_ = 0;
  std::atomic<bool> checkpoint_waits_{false};

  std::atomic<bool> log_unknown_{false};  // The log does not answer.

  bool checkpoint_fails_ = false;  // Only for the checkpoint worker.

  // Spills that wait in the buffer for room on the disk, in bytes: for the thread that retries
  // them.
  SpillBuffer spills_;
  std::mutex held_spills_mutex_;
  std::vector<std::uint64_t> held_spills_;

  TaskThread store_thread_;
  TaskThread spill_thread_;
  TaskThread checkpoint_thread_;
  TaskThread keeper_;
  std::thread deciding_;
  std::thread releasing_;
};

}  // namespace baton
