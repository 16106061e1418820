#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/rows.h"
#include "base/time.h"
#include "core/group/machine.h"
#include "core/stream/catalog.h"
#include "server/shard/machine.h"
#include "server/shard/shard_facts.h"
#include "server/shard/shard_log.h"
#include "server/shard/stream_commands.h"
#include "server/shard/stream_partition.h"

namespace baton {

/// The streams of one shard: their catalog, their logs, and the seats of their groups.
///
/// A partition's segments are its own journal: records never pass through the shard's journal. The
/// shard's journal holds the facts of the catalog and of the coordinator, and each partition's
/// synced end, which is written late: a log that ends before it is damaged, a log that ends after
/// it is not.
class StreamShard final : public ShardMachine {
 public:
  struct Options {
    Duration retention_interval = std::chrono::seconds{10};
    Duration synced_note_interval = std::chrono::seconds{1};
    /// Why this broker takes no streams; empty if it does.
    std::string refusal{};
  };

  StreamShard(const MachineOptions& options, ShardLog& log);

  static std::string_view name_of(const StreamCommand& command);
  static std::size_t bytes_of(const StreamCommand& command);

  [[nodiscard]] std::span<const Table> tables() const override;
  Status load(Table table, const Row& row) override;
  [[nodiscard]] std::span<const FactSet* const> facts() const override;
  Status apply(const FactFrame& frame, AppliedRows& rows, Instant now) override;
  Status apply_1(FactOwner owner, Decoder& in, AppliedRows& rows, Instant now) override;
  void seal(CheckpointJob& job) override;
  [[nodiscard]] std::uint64_t changed_bytes() const override;

  /// Opens the logs, and removes what deleted streams left behind.
  Status start(std::uint64_t boot, RoundFacts& facts, Instant now) override;
  [[nodiscard]] Demand demand(const Command& /*command*/) const override { return {}; }
  void refuse(Command& /*command*/, const Error& /*error*/) const override {}
  Progress execute(Command& command, Instant now) override;
  /// Does what is due: retention, synced ends, leases of nodes.
  bool tick(Instant now) override;
  [[nodiscard]] Instant next_deadline() const override;
  void take_effects(Held& held) override;
  /// Makes every partition durable to its end, and notes that end, so that the next start does not
  /// take damage for a torn tail.
  Status finish() override;
  void add_stats(ShardStats& stats) const override;

 private:
  void on(CreateStreamCommand& command, Instant now);
  void on(UpdateStreamCommand& command, Instant now);
  void on(DeleteStreamCommand& command, Instant now);
  void on(DescribeStreamCommand& command, Instant now);
  void on(ListStreamsCommand& command, Instant now);
  void on(StartProducerCommand& command, Instant now);
  void on(AppendCommand& command, Instant now);
  void on(OpenPartitionCommand& command, Instant now);
  void on(SubscribeCommand& command, Instant now);
  void on(UnsubscribeCommand& command, Instant now);
  void on(StepDownReplyCommand& command, Instant now);
  void on(ConnectionDownCommand& command, Instant now);
  void on(StoreOffsetCommand& command, Instant now);
  void on(QueryOffsetCommand& command, Instant now);
  void on(ListGroupsCommand& command, Instant now);
  void on(GroupCommand& command, Instant now);
  void on(SetGroupOffsetsCommand& command, Instant now);

  void append_batches(const StreamInfo& stream, AppendCommand& command, Instant now);
  void append_records(const StreamInfo& stream, AppendCommand& command, Instant now);
  [[nodiscard]] static Status check_record(const StreamInfo& stream, PartitionNumber partition,
                                           TimestampMs timestamp, Instant now);
  /// One partition's part of an AppendCommand; `places` are indexes in `batches`.
  void append_to(const StreamInfo& stream, PartitionNumber number,
                 std::span<const std::size_t> places, AppendCommand& command, Instant now);
  Result<std::shared_ptr<StreamPartition>> open(const StreamInfo& stream, PartitionNumber number,
                                                Instant now);
  Status subscribe(SubscribeCommand& command, Instant now);
  void unsubscribe(const UnsubscribeCommand& command, Instant now);
  Status change(const std::vector<GroupId>& groups, GroupCommand::What what, Instant now);
  Status check_moves(SetGroupOffsetsCommand& command, Instant now);
  void clamp_offsets(Instant now);
  void remove_files(StreamId stream, std::uint32_t partitions);
  void note_synced(Instant now);
  void note_synced(const PartitionName& name, Offset end);
  Status store(const BatchAppended& fact, Instant now);
  void carry(const BatchAppended& fact);
  void sync_due(Instant now);
  void drop_old_segments(Instant now);
  void collect_seats();
  void mark_unsynced(const std::shared_ptr<StreamPartition>& partition, const StreamInfo& stream,
                     Instant now);

  [[nodiscard]] static Error no_such_partition(const StreamInfo& stream, PartitionNumber number);
  [[nodiscard]] StreamDescription describe(const StreamInfo& stream) const;
  [[nodiscard]] std::shared_ptr<StreamPartition> find_partition(const GroupId& group) const;
  [[nodiscard]] GroupReport report(GroupDescription group) const;
  [[nodiscard]] std::uint64_t lag_of(const GroupId& group, std::optional<GroupOffset> offset) const;

  ShardLog& log_;
  Options options_;
  RoundFacts* facts_ = nullptr;  // Set once this node decides.
  LeaderEpoch epoch_;
  StreamCatalog catalog_;
  Coordinator coordinator_;
  std::map<PartitionName, std::shared_ptr<StreamPartition>> partitions_;
  std::map<ConnectionId, std::weak_ptr<SeatSink>> sinks_;
  // Of the present round.
  std::vector<std::shared_ptr<StreamPartition>> unsynced_;
  std::vector<std::pair<std::shared_ptr<SeatSink>, CoordinatorEffects::Effect>> told_;
  std::vector<PartitionName> removed_;
  // Partitions written since their synced end was last noted.
  std::map<PartitionName, std::shared_ptr<StreamPartition>> to_note_;
  Instant note_at_ = Instant::never();
  // Under `interval`: when each partition must be synced.
  std::map<PartitionName, Instant> sync_at_;
  Instant retention_at_ = Instant::never();
  std::uint32_t next_spread_ = 0;  // The partition of the next record that may go to any.
  StreamStats stats_;
  // Counted by readers, which may outlive the shard.
  std::shared_ptr<std::atomic<std::uint64_t>> damages_ =
      std::make_shared<std::atomic<std::uint64_t>>(0);
};

}  // namespace baton
