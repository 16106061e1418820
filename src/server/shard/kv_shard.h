#pragma once

#include <map>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/rows.h"
#include "base/time.h"
#include "core/kv/machine.h"
#include "server/shard/kv_commands.h"
#include "server/shard/machine.h"

namespace baton {

/// The buckets of one shard, and the sinks of their watches.
class KvShard final : public ShardMachine {
 public:
  /// The most keys that expire in one round: each expiry is a fact with its key.
  static constexpr std::size_t kExpiriesPerRound = 1024;

  KvShard(const MachineOptions& options, ShardLog& log);

  static std::string_view name_of(const KvCommand& command);
  static std::size_t bytes_of(const KvCommand& command);

  [[nodiscard]] std::span<const Table> tables() const override;
  Status load(Table table, const Row& row) override { return machine_.load(table, row); }
  [[nodiscard]] std::span<const FactSet* const> facts() const override;
  Status apply(const FactFrame& frame, AppliedRows& rows, Instant now) override;
  Status apply_1(FactOwner owner, Decoder& in, AppliedRows& rows, Instant now) override;
  void seal(CheckpointJob& job) override { machine_.append_changed_rows(job.rows); }
  [[nodiscard]] std::uint64_t changed_bytes() const override { return machine_.changed_bytes(); }

  Status start(std::uint64_t boot, RoundFacts& facts, Instant now) override;
  [[nodiscard]] Demand demand(const Command& command) const override;
  void refuse(Command& command, const Error& error) const override;
  Progress execute(Command& command, Instant now) override;
  bool tick(Instant now) override;
  [[nodiscard]] Instant next_deadline() const override { return machine_.next_deadline(); }
  void take_effects(Held& held) override;
  void add_stats(ShardStats& stats) const override;

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
  RoundFacts* facts_ = nullptr;  // Set once this node decides.
  std::map<KvWatchId, std::shared_ptr<KvWatchSink>> sinks_;
  KvTotals recovered_;                 // Counted during replay.
  std::uint64_t compacted_total_ = 0;  // Watches that came too late to resume.
};

}  // namespace baton
