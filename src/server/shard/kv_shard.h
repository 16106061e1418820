#pragma once

#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/rows.h"
#include "base/time.h"
#include "core/kv/machine.h"
#include "server/shard/kv_commands.h"

namespace baton {

/// What a round has to tell watches once its facts are durable.
using KvEffects = std::vector<std::pair<std::shared_ptr<KvWatchSink>, KvWatchEffect>>;

/// Numbers since the start, for metrics.
struct KvStats {
  KvTotals totals;
  std::uint64_t watches = 0;
};

/// The buckets of one shard, and who listens to their watches. Owned by the Shard and on its
/// thread; starts no thread and reads no clock.
class KvShard {
 public:
  /// Takes each fact as it happens; every one is synced in every fsync mode.
  using Recorder = std::function<void(const std::function<void(Encoder&)>& fact)>;

  /// How many keys expire in one round at most: each is a fact with its key.
  static constexpr std::size_t kExpiriesPerRound = 1024;

  explicit KvShard(KvMachine::Options options);

  // Recovery, in this order.
  Status load(Table table, const Row& row) { return machine_.load(table, row); }
  void apply(KvFact fact) { machine_.apply(std::move(fact)); }
  void start(Recorder recorder);

  // Live. `now` never goes back.
  void execute(KvCommand& command, Instant now);
  /// Expires what is due; true when there is more.
  bool expire(Instant now);
  [[nodiscard]] Instant next_deadline() const { return machine_.next_deadline(); }
  KvEffects take_effects();

  /// Puts the rows that changed since the last call.
  void append_changed_rows(RowBatch& batch) { machine_.append_changed_rows(batch); }
  [[nodiscard]] std::size_t changed_bytes() const { return machine_.changed_bytes(); }

  [[nodiscard]] KvStats stats() const;

 private:
  void on(CreateBucketCommand& command, Instant now);
  void on(DeleteBucketCommand& command, Instant now);
  void on(DescribeBucketCommand& command, Instant now);
  void on(ListBucketsCommand& command, Instant now);
  void on(KvGetCommand& command, Instant now);
  void on(KvPutCommand& command, Instant now);
  void on(KvRemoveCommand& command, Instant now);
  void on(KvListCommand& command, Instant now);
  void on(KvWatchCommand& command, Instant now);
  void on(KvSnapshotCommand& command, Instant now);
  void on(KvGrantCommand& command, Instant now);
  void on(KvUnwatchCommand& command, Instant now);

  Status begin_watch(KvWatchCommand& command, Instant now);
  Result<KvPage> first_page(const KvWatchCommand& command, Instant now);

  KvMachine machine_;
  Recorder recorder_;
  std::map<KvWatchId, std::shared_ptr<KvWatchSink>> sinks_;
  KvTotals recovered_;                 // What replay has counted.
  std::uint64_t compacted_total_ = 0;  // Watches that came too late to resume.
};

}  // namespace baton
