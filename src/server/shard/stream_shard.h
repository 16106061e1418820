#pragma once

#include <atomic>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/result.h"
#include "base/rows.h"
#include "base/time.h"
#include "core/group/machine.h"
#include "core/stream/catalog.h"
#include "server/shard/shard_facts.h"
#include "server/shard/stream_commands.h"
#include "server/shard/stream_partition.h"
#include "storage/disk/disk.h"

namespace baton {

/// What a round wants done with streams once its facts are durable.
struct StreamEffects {
  /// To be synced before the round's calls are told.
  std::vector<std::shared_ptr<StreamPartition>> unsynced;
  std::vector<std::pair<std::shared_ptr<SeatSink>, CoordinatorEffects::Effect>> seats;
  /// Folders of deleted partitions: their files may go.
  std::vector<std::string> removed;

  [[nodiscard]] bool empty() const { return unsynced.empty() && seats.empty() && removed.empty(); }
};

/// Numbers since the start, for metrics.
struct StreamStats {
  std::uint64_t streams = 0;
  std::uint64_t batches = 0;
  std::uint64_t bytes = 0;
  std::uint64_t duplicates = 0;
  std::uint64_t refused = 0;
  std::uint64_t partitions_read_only = 0;
  std::uint64_t damages = 0;  // That readers met.
  CoordinatorTotals groups;
};

/// The streams of one shard: their catalog, their logs, and who has the seats of their groups.
/// Owned by the Shard and on its thread; starts no thread and reads no clock.
///
/// A partition's segments are its own journal: records never pass through the shard's. That holds
/// what the catalog and the coordinator say, and each partition's synced end, which is told late: a
/// log that ends before it is damaged, one that ends behind it is not.
class StreamShard {
 public:
  /// Takes the bytes of each fact, and whether it must be synced in every fsync mode.
  using Recorder = std::function<void(const std::function<void(Encoder&)>& fact, bool must_sync)>;
  struct Options {
    Duration retention_interval = std::chrono::seconds{10};
    Duration synced_note_interval = std::chrono::seconds{1};
  };

  /// `folder` holds a folder for each partition, and is made when there is something to put in it.
  StreamShard(Disk& disk, std::string folder, Options options);

  // Recovery, in this order.
  Status load(Table table, const Row& row);
  void apply(const StreamFact& fact) { catalog_.apply(fact); }
  void apply(const CoordinatorFact& fact) { coordinator_.apply(fact); }
  /// Opens the logs; removes what deleted streams left behind. Then the shard serves.
  Status start(std::uint64_t boot, Recorder recorder, Instant now);

  // Live. `now` never goes back.
  void execute(StreamCommand& command, Instant now);
  /// What is due: retention, synced ends, leases of nodes.
  void tick(Instant now);
  [[nodiscard]] Instant next_deadline() const;
  StreamEffects take_effects();

  /// The shard stops in order: makes every partition durable to its end, and notes that end, so
  /// that damage found by the next start is not taken for a torn tail.
  Status finish();

  /// Puts the rows that changed since the last call.
  void append_changed_rows(RowBatch& batch);
  [[nodiscard]] std::size_t changed_bytes() const;

  [[nodiscard]] StreamStats stats() const;

 private:
  using PartitionKey = std::pair<StreamId, PartitionNumber>;

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
  /// One partition's part of an AppendCommand: places in `batches`.
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
  [[nodiscard]] std::string folder_of(StreamId stream, PartitionNumber partition) const;

  Disk& disk_;
  std::string folder_;
  Options options_;
  Recorder recorder_;
  LeaderEpoch epoch_;
  StreamCatalog catalog_;
  Coordinator coordinator_;
  std::map<PartitionKey, std::shared_ptr<StreamPartition>> partitions_;
  std::map<ConnectionId, std::weak_ptr<SeatSink>> sinks_;
  StreamEffects effects_;
  // Written since their synced end was last noted.
  std::map<PartitionKey, std::shared_ptr<StreamPartition>> to_note_;
  Instant note_at_ = Instant::never();
  // Under `interval`: when each is to be synced.
  std::map<PartitionKey, Instant> sync_at_;
  Instant retention_at_ = Instant::never();
  std::uint32_t next_spread_ = 0;  // Where records go that may go anywhere.
  StreamStats stats_;
  // Readers count, and may outlive the shard.
  std::shared_ptr<std::atomic<std::uint64_t>> damages_ =
      std::make_shared<std::atomic<std::uint64_t>>(0);
};

}  // namespace baton
