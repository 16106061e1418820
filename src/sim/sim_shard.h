#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "server/shard/shard.h"
#include "sim/fake_disk.h"
#include "sim/fake_store.h"
#include "sim/mirror.h"
#include "sim/plan.h"
#include "sim/taps.h"
#include "sim/timeline.h"
#include "sim/trace.h"

namespace baton {

/// Takes the place of ShardRunner: drives one production Shard over a fake disk and store; each
/// step of each of its threads is a task at a random later time. Outlives the crashes of its
/// process; what a process has in memory is in `Life`.
class SimShard {
 public:
  /// What the shard asks of its broker.
  class Host {
   public:
    Host() = default;
    Host(const Host&) = delete;
    Host& operator=(const Host&) = delete;
    virtual ~Host() = default;

    /// Broker time.
    [[nodiscard]] virtual Instant broker_now() const = 0;
    /// A place where the process may die. Returns true when it did: the caller's life is over.
    /// `often` is for rare events: dying there is then as common as elsewhere.
    virtual bool crash_point(std::string_view where, std::uint64_t often) = 0;
    /// The process dies here.
    virtual void crash(std::string_view why) = 0;
    /// How many answers still reach the clients; nullopt = all of them.
    virtual std::optional<std::uint64_t> draw_last_answers(std::size_t answers) = 0;
    virtual void transfer(std::uint64_t from_shard, const QueueEffects::Transfer& transfer) = 0;
  };
  struct World {
    const Plan& plan;
    Timeline& timeline;
    Trace& trace;
    FakeDisk& disk;
    Host& host;
  };

  SimShard(World world, std::uint64_t number);

  /// Recovers from what the disk and the store hold. An error leaves the shard down.
  Result<Instant> start(Instant wall);
  /// Everything in memory is lost.
  void stop();
  void submit(std::unique_ptr<Call> call);
  /// The first round of a life: the work that recovery left.
  void kick(Instant now) {
    life_->shard->begin_serving(now);
    wake();
  }
  /// The store's share of a power loss.
  void crash_store() { media_->crash(); }
  void set_store_full(bool full) { media_->set_disk_full(full); }
  void request_checkpoint();

  [[nodiscard]] const Mirror& mirror() const { return mirror_; }
  /// Whether nothing is in progress, and the last checkpoint holds everything.
  [[nodiscard]] bool is_quiet() const;
  [[nodiscard]] std::vector<QueueDescription> describe() const {
    return queues_of(life_->shard->replica().machines()).list("");
  }
  /// Names the rows left in the store, other than those of queues and their memory of ids.
  [[nodiscard]] std::string leftover_rows() const;
  [[nodiscard]] ShardStats stats() const { return life_->shard->stats(); }
  [[nodiscard]] std::uint64_t spilled() const { return spilled_; }

 private:
  /// The memory of one process.
  struct Life {
    std::unique_ptr<ShardLog> log;
    std::unique_ptr<CheckpointStore> store;
    std::unique_ptr<Shard> shard;
    Position durable;
    std::deque<std::unique_ptr<Call>> calls;
    std::vector<StoreResult> results;
    std::optional<Position> checkpoint_written;
    std::deque<Held> held;   // Decided.
    std::deque<Held> batch;  // Being synced, then released.
    std::deque<StoreJob> jobs;
    std::optional<CheckpointJob> checkpoint;
    bool deciding = false;
    bool preparing = false;
    bool disk_full = false;
    Instant timer = Instant::never();
  };
  struct RecordedRound {
    Position position;
    Instant now;
    std::string facts;
  };
  using Step = void (SimShard::*)();

  void later(Duration delay, Step step);
  void soon(Duration longest, Step step);
  void wake();
  void decide();
  bool run_round();
  void check_round();
  void arm_timer();
  void start_checkpoint();
  void keep_room();
  void prepare();
  void begin_sync();
  void sync();
  void release();
  void run_job();
  void run_checkpoint();
  void give_up_checkpoint();
  void finish_checkpoint(Position position);
  void recall(Position next);

  World world_;
  Mirror mirror_;
  std::shared_ptr<FakeStoreMedia> media_;
  Random random_;
  std::uint64_t number_;
  std::uint64_t lives_ = 0;
  std::uint64_t spilled_ = 0;
  std::vector<RecordedRound> rounds_;  // All rounds that were appended and not lost.
  Position durable_{1};                // Rounds before this must survive.
  std::unique_ptr<Life> life_;
};

}  // namespace baton
