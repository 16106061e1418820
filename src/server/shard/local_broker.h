#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/result.h"
#include "server/shard/broker.h"
#include "server/shard/clock.h"
#include "server/shard/data_folder.h"
#include "server/shard/shard.h"
#include "server/shard/shard_log.h"
#include "server/shard/shard_runner.h"
#include "storage/disk/checkpoint_store.h"
#include "storage/disk/disk.h"
#include "storage/journal/journal.h"

namespace baton {

struct BrokerOptions {
  std::string data;  // The data folder; created if it does not exist.
  FsyncMode fsync;
  std::size_t shards = 0;  // For a new data folder; 0 = half the cores, at least one.
  Shard::Options shard;
  JournalOptions journal;
  bool fits_disk = false;  // Derives the sizes of journal and checkpoints from the disk's size.
  /// For a node of a cluster: its id, and what opens the log of a shard. Without it each shard has
  /// a journal in the data folder.
  std::string cluster{};
  std::function<Result<std::unique_ptr<ShardLog>>(Disk& disk, std::size_t shard)> open_log{};
  /// Another node has taken the shard over: the shard takes no more calls. Called by one of its
  /// threads.
  std::function<void(std::size_t shard)> deposed{};
  /// How long an opening tries again while another node's rounds come in, or the log is away.
  Duration take_over_patience = std::chrono::seconds{30};
  /// Opens the checkpoint store in a folder. A function, so that this layer does not see RocksDB.
  std::function<Result<std::unique_ptr<CheckpointStore>>(const std::string& folder)> open_store;
};

/// Counts every row of every table, in a running broker's store or in one opened for reading.
Result<std::vector<TableInspection>> inspect_tables(const CheckpointStore& store);

/// The broker of one process: a data folder, and a running shard for each part of it.
class LocalBroker final : public Broker {
 public:
  /// Opens or creates the data folder, recovers every shard, and starts them. Fails with
  /// folder_in_use if another process has it.
  static Result<std::unique_ptr<LocalBroker>> open(BrokerOptions options);
  LocalBroker(const LocalBroker&) = delete;
  LocalBroker& operator=(const LocalBroker&) = delete;
  ~LocalBroker() override;

  /// Takes no more calls, finishes the rounds under way, makes a last checkpoint, and ends the
  /// threads. Waiting calls are completed or dropped. Idempotent.
  Status stop();

  /// Stops one shard and releases its files, while the others go on; calls to it are refused. Its
  /// clients are not told: the caller must end their sessions. Idempotent.
  void close_shard(std::size_t number);
  /// Recovers a closed shard, and serves it again.
  Status open_shard(std::size_t number);

  bool submit(std::unique_ptr<Call>& call, Admission admission) override;
  bool submit_to(std::size_t shard, std::unique_ptr<Call>& call, Admission admission) override;
  [[nodiscard]] std::size_t shards() const override { return places_.size(); }
  ConsumerNumber next_consumer_number() override;
  Ticket next_ticket() override;
  [[nodiscard]] ShardStats stats(std::size_t shard) const override;
  Status checkpoint() override;
  std::vector<ShardInspection> inspect() override;
  [[nodiscard]] TokenSeal token_seal() const override {
    return {.key = token_key_, .shards = folder_.shards()};
  }
  [[nodiscard]] Instant now() const override;

 private:
  /// One shard's log, store, and threads.
  struct Place {
    std::unique_ptr<ShardLog> log;
    std::unique_ptr<CheckpointStore> store;
    std::unique_ptr<ShardRunner> runner;
    std::atomic<ShardRunner*> serving = nullptr;  // The runner, for use without a lock.
  };

  explicit LocalBroker(BrokerOptions options);
  Result<std::unique_ptr<Shard>> recover(std::size_t number, Place& place, Instant start);
  Result<std::unique_ptr<Shard>> recover_once(std::size_t number, Place& place, Instant start);
  Result<std::unique_ptr<ShardLog>> open_log(std::size_t number);
  void run(std::size_t number, std::unique_ptr<Shard> shard);
  void transfer(std::size_t from_shard, const QueueEffects::Transfer& transfer);
  void retry_transfer(std::size_t from_shard, QueueEffects::Transfer again);

  BrokerOptions options_;
  std::unique_ptr<Disk> disk_;
  DataFolder folder_;
  SipKey token_key_{};
  std::unique_ptr<BrokerClock> clock_;
  std::mutex places_mutex_;  // For opening, closing and inspecting shards.
  std::deque<Place> places_;
  // Runners of closed shards: a thread may be about to submit to one, and is refused.
  std::vector<std::unique_ptr<ShardRunner>> closed_;
  std::atomic<std::uint64_t> next_consumer_{1};
  std::atomic<std::uint64_t> next_ticket_{1};
  std::atomic<bool> running_{false};
  TaskThread retries_;
};

}  // namespace baton
