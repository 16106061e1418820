#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "base/result.h"
#include "core/group/effects.h"
#include "core/group/machine.h"
#include "core/stream/catalog.h"
#include "server/shard/stream_partition.h"
#include "storage/log/partition_log.h"

/// What can be asked of the streams of a shard. The stream's name says which shard.
namespace baton {

/// How far a group is in one partition.
struct GroupProgress {
  std::string group;
  std::optional<GroupOffset> offset;
  std::uint64_t lag = 0;  // Records from there (or from the first) to the end.
};
struct StreamDescription {
  struct Partition {
    PartitionDescription log;
    std::vector<GroupProgress> groups;
  };
  std::string name;
  StreamId id;
  StreamSettings settings;
  Instant created_at;
  std::vector<Partition> partitions;
};

struct CreateStreamCommand {
  std::string stream;
  std::uint32_t partitions = 1;
  StreamSettingsPatch settings;
  std::optional<Error> error;
  StreamDescription description;
};
struct UpdateStreamCommand {
  std::string stream;
  StreamSettingsPatch settings;
  std::optional<Error> error;
  StreamDescription description;
};
struct DeleteStreamCommand {
  std::string stream;
  std::optional<Error> error;
};
struct DescribeStreamCommand {
  std::string stream;
  std::optional<Error> error;
  StreamDescription description;
};
/// Of one shard.
struct ListStreamsCommand {
  std::string stream;  // A prefix.
  std::string after;   // Only names behind this one.
  std::size_t streams_max = std::numeric_limits<std::size_t>::max();
  // No stream is begun when those before it have as many partitions.
  std::size_t partitions_max = std::numeric_limits<std::size_t>::max();
  std::vector<StreamDescription> descriptions;
  bool more = false;  // There are streams behind the last one described.
};

struct StartProducerCommand {
  std::string stream;
  std::string producer;
  std::optional<Error> error;
  StreamInfo::Producer started;
};

struct NewBatch {
  PartitionNumber partition;
  std::string bytes;  // One record batch.
};
/// A record without a batch: the shard puts one together.
struct NewRecord {
  std::optional<std::string> key;
  std::optional<std::string> value;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;
  std::optional<TimestampMs> timestamp;      // None: now.
  std::optional<PartitionNumber> partition;  // None: by the key, or without a key any.
};
struct BatchOutcome {
  PartitionNumber partition;
  Offset offset{-1};  // Of the first record; -1 for a duplicate too old to know.
  bool duplicate = false;
  std::optional<Error> error;
};
struct AppendCommand {
  std::string stream;
  std::vector<NewBatch> batches;
  std::vector<NewRecord> records;
  std::vector<BatchOutcome> outcomes;         // Of the batches.
  std::vector<BatchOutcome> record_outcomes;  // Of the records.
};

/// Gives readers what they read from.
struct OpenPartitionCommand {
  std::string stream;
  PartitionNumber partition;
  std::optional<Error> error;
  std::shared_ptr<StreamPartition> opened;
};

/// Where a connection hears of its seats. Called by the shard's releasing thread, in order, for
/// what is durable; must not block.
class SeatSink {
 public:
  SeatSink() = default;
  SeatSink(const SeatSink&) = delete;
  SeatSink& operator=(const SeatSink&) = delete;
  virtual ~SeatSink() = default;

  virtual void told(const CoordinatorEffects::Effect& effect) = 0;
  /// Until when its client may be at work, as far as the broker has heard; none: it has no lease.
  [[nodiscard]] virtual std::optional<Instant> lease_until() const { return std::nullopt; }
};

/// Adds a subscription to the group at each of its partitions. All of them, or none.
struct SubscribeCommand {
  struct Subscribed {
    PartitionNumber partition;
    std::shared_ptr<StreamPartition> opened;
    std::optional<GroupOffset> offset;  // That the group has stored.
  };
  std::string stream;
  std::vector<PartitionNumber> partitions;  // Empty = all.
  std::string group;
  bool single_active = false;
  MemberId member;
  Ticket ticket;
  std::string owner;
  std::optional<Handover> handover{};  // None: what the group has.
  bool has_lease = false;              // The connection sends heartbeats.
  std::shared_ptr<SeatSink> sink;
  std::optional<Error> error;
  std::vector<Subscribed> subscribed;
};
struct UnsubscribeCommand {
  std::string stream;
  std::vector<PartitionNumber> partitions;
  std::string group;
  MemberId member;
};
struct StepDownReplyCommand {
  std::string stream;
  PartitionNumber partition;
  std::string group;
  MemberId member;
  Generation generation;
};
/// Of every shard that the connection had subscriptions in.
struct ConnectionDownCommand {
  std::string stream;  // Any of that shard.
  ConnectionId connection;
  /// It broke, and its client may be at work until then; none: the client works no more, or has no
  /// lease.
  std::optional<Instant> lease_until{};
};

struct StoreOffsetCommand {
  std::string stream;
  OffsetToStore request;
  std::optional<Error> error;
  GroupOffset stored;
};
struct QueryOffsetCommand {
  std::string stream;
  PartitionNumber partition;
  std::string group;
  std::optional<Error> error;
  std::optional<GroupOffset> offset;
  Generation generation;
};

/// Moves a group without consumers: all of `moves`, or none.
struct SetGroupOffsetsCommand {
  struct Move {
    PartitionNumber partition;
    GroupOffset offset;
    std::optional<GroupOffset> before{};
  };
  std::string stream;
  std::string group;
  std::vector<Move> moves;
  bool dry_run = false;
  std::optional<Error> error;
};

struct GroupReport {
  GroupDescription description;
  std::uint64_t lag = 0;
  std::shared_ptr<StreamPartition> partition;  // Null when it was never used.
};
/// Of one shard.
struct ListGroupsCommand {
  std::string stream;  // Empty = all.
  std::optional<GroupId> after;
  std::size_t groups_max = std::numeric_limits<std::size_t>::max();
  std::vector<GroupReport> groups;
  bool more = false;  // There are groups behind the last one reported.
};
/// One group at all partitions of its stream.
struct GroupCommand {
  enum class What : std::uint8_t { describe, evaluate, forget };
  std::string stream;
  std::string group;
  What what = What::describe;
  std::optional<Error> error;
  std::vector<GroupReport> partitions;
};

using StreamCommand =
    std::variant<CreateStreamCommand, UpdateStreamCommand, DeleteStreamCommand,
                 DescribeStreamCommand, ListStreamsCommand, StartProducerCommand, AppendCommand,
                 OpenPartitionCommand, SubscribeCommand, UnsubscribeCommand, StepDownReplyCommand,
                 ConnectionDownCommand, StoreOffsetCommand, QueryOffsetCommand, ListGroupsCommand,
                 GroupCommand, SetGroupOffsetsCommand>;

}  // namespace baton
