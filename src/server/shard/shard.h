#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/limits.h"
#include "base/result.h"
#include "base/time.h"
#include "server/shard/broker.h"
#include "server/shard/held.h"
#include "server/shard/machines.h"
#include "server/shard/replica.h"
#include "server/shard/shard_log.h"
#include "storage/disk/checkpoint_store.h"

namespace baton {

/// The half of a shard that decides: rounds of decisions over one journal. The other half, Replica,
/// follows. Owned by one thread, or by a simulation; starts no thread and reads no clock.
///
/// Order: a round's facts are appended before round() returns; its result may be released once the
/// journal is durable up to Held::position; jobs run in the order in which they are released.
class Shard {
 public:
  /// A round of acks, leases and deadlines is never larger than this.
  static constexpr std::uint64_t kSmallRoundBytes = 4 * limits::kMiB;

  struct Options : MachineOptions {
    std::uint64_t checkpoint_journal_bytes = limits::kCheckpointJournalBytes;
    std::uint64_t checkpoint_delta_bytes = limits::kCheckpointDeltaBytes;
    Duration checkpoint_interval = limits::kCheckpointInterval;
    std::uint64_t journal_behind_bytes = limits::kJournalBehindBytes;
    std::uint64_t spill_behind_bytes = limits::kCommandBytesWaiting;
    std::size_t round_bytes = limits::kRoundBytes;
    std::uint64_t small_round_bytes = kSmallRoundBytes;
  };

  /// What a shard needs. All of it must outlive the shard.
  struct Parts {
    ShardLog& log;
    CheckpointStore& store;
  };

  /// Makes the replica of a shard with these options; it is not loaded yet.
  static std::unique_ptr<Replica> make_replica(const Options& options, const Parts& parts);

  /// Rebuilds the state from the store and the journal, takes the next boot number and makes it
  /// durable. `now` is the wall clock; broker time begins there, or where it ended if that is
  /// later.
  static Result<std::unique_ptr<Shard>> recover(const Options& options, const Parts& parts,
                                                Instant now);
  /// The same for a replica that already follows the log. Fails with position_taken if another node
  /// was faster.
  static Result<std::unique_ptr<Shard>> lead(const Options& options, ShardLog& log,
                                             std::unique_ptr<Replica> replica, Instant now);

  /// True if the shard no longer belongs to this node: it decides nothing, and decisions that were
  /// not durable are void.
  [[nodiscard]] bool fenced() const { return fenced_; }
  /// Broker time at the end of recovery: the clock continues from here.
  [[nodiscard]] Instant started_at() const { return started_at_; }
  /// The broker serves from `now` on, which may be later than started_at() because of its other
  /// shards: consumers of the earlier process have their full time to return.
  void begin_serving(Instant now);
  [[nodiscard]] std::uint64_t boot() const { return replica_->boot(); }

  /// One round: every call that fits, then deadlines, then deliveries. Calls that wait for rows,
  /// for time or for room stay inside. Takes calls from the front of `calls`.
  Held round(std::deque<std::unique_ptr<Call>>& calls, std::vector<StoreResult> results,
             Instant now);
  /// True if a round would have something to do now.
  [[nodiscard]] bool has_work() const { return more_ || !retries_.empty(); }
  [[nodiscard]] Instant next_deadline() const;

  /// See Replica.
  std::optional<CheckpointJob> next_checkpoint(Position durable, Instant now);
  void checkpoint_done(Position position, Instant now);
  void checkpoint_given_up(const CheckpointJob& job) { replica_->checkpoint_given_up(job); }
  void request_checkpoint() { replica_->request_checkpoint(); }
  [[nodiscard]] const Replica& replica() const { return *replica_; }
  /// Why there is no more room for additions: none, a full disk, too many open files, or a log
  /// outside of this machine that takes no more.
  enum class Shortage : std::uint8_t { none, disk, files, log };
  /// During a shortage, additions that find no room are refused; without a shortage they wait.
  void set_shortage(Shortage shortage) { shortage_ = shortage; }

  /// Drops the calls that wait inside: the shard will run no more rounds.
  void drop_waiting();
  /// The last step of an orderly stop: partitions are synced, and the journal gets their ends.
  Status finish(Instant now);

  [[nodiscard]] ShardStats stats() const;

 private:
  struct Waiting {
    std::unique_ptr<Call> call;
    Instant until = Instant::never();
  };

  Shard(const Options& options, ShardLog& log, std::unique_ptr<Replica> replica);
  Status boot_up(Instant now);
  Status append_facts(Instant now);
  Status append_and_sync(Instant now);
  [[nodiscard]] ShardMachine& machine_of(const Command& command) const;

  void take_result(StoreResult& result, Held& held, Instant now);
  void run_call(std::unique_ptr<Call> call, Held& held, Instant now);
  void proceed(std::unique_ptr<Call> call, Progress progress, Held& held);
  void resume(std::uint64_t number, const std::vector<Row>& rows, bool exhausted, Held& held,
              Instant now);
  void resume_waiting(Held& held, Instant now);
  [[nodiscard]] bool store_is_behind() const;
  [[nodiscard]] bool has_room(const Demand& demand) const;
  [[nodiscard]] bool round_takes(const Command& command) const;
  [[nodiscard]] std::uint64_t addition_bytes_max() const;
  [[nodiscard]] bool hurries() const { return shortage_ == Shortage::disk; }
  void turn_away(std::unique_ptr<Call> call, const Demand& demand, Held& held);
  void count_spills(const Held& held);
  void append(Held& held, Instant now);

  Options options_;
  ShardLog& log_;
  std::unique_ptr<Replica> replica_;
  Instant started_at_;

  RoundFacts facts_;  // Of the present round.
  bool more_ = false;
  bool fenced_ = false;
  std::map<std::uint64_t, Waiting> waiting_;  // Calls that wait for rows or for time.
  std::uint64_t next_waiting_ = 1;
  std::deque<std::unique_ptr<Call>> deferred_;  // Additions that wait for the store to catch up.
  std::deque<std::unique_ptr<Call>> retries_;
  Shortage shortage_ = Shortage::none;
  ShardStats stats_;
};

}  // namespace baton
