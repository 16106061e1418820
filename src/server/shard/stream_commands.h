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

/// What can be asked of the streams of a shard. The stream's name determines the shard.
namespace baton {

/// A group's progress in one partition.
struct GroupProgress {
  std::string group;
  std::optional<GroupOffset> offset;
  std::uint64_t lag = 0;  // Records from that offset (or from the first) to the end.
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
/// Lists the streams of one shard.
struct ListStreamsCommand {
  std::string stream;  // A prefix.
  std::string after;   // Only names after this one.
  std::size_t streams_max = std::numeric_limits<std::size_t>::max();
  // No further stream is added once those before it have this many partitions.
  std::size_t partitions_max = std::numeric_limits<std::size_t>::max();
  std::vector<StreamDescription> descriptions;
  bool more = false;  // There are streams after the last one described.
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
/// A record without a batch: the shard puts records together into batches.
struct NewRecord {
  std::optional<std::string> key;
  std::optional<std::string> value;
  std::vector<std::pair<std::string, std::optional<std::string>>> headers;
  std::optional<TimestampMs> timestamp;      // nullopt: now.
  std::optional<PartitionNumber> partition;  // nullopt: by the key; without a key, any.
};
struct BatchOutcome {
  PartitionNumber partition;
  Offset offset{-1};  // Of the first record; -1 for a duplicate that is too old to know.
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

/// Gives readers access to a partition.
struct OpenPartitionCommand {
  std::string stream;
  PartitionNumber partition;
  std::optional<Error> error;
  std::shared_ptr<StreamPartition> opened;
};

/// Receives a connection's seats. Called by the shard's releasing thread, in order, for durable
/// changes; must not block.
class SeatSink {
 public:
  SeatSink() = default;
  SeatSink(const SeatSink&) = delete;
  SeatSink& operator=(const SeatSink&) = delete;
  virtual ~SeatSink() = default;

  virtual void told(const CoordinatorEffects::Effect& effect) = 0;
  /// Until when its client may be working, as far as the broker knows; nullopt if it has no lease.
  [[nodiscard]] virtual std::optional<Instant> lease_until() const { return std::nullopt; }
};

/// Adds a subscription to the group at each of its partitions: at all of them, or at none.
struct SubscribeCommand {
  struct Subscribed {
    PartitionNumber partition;
    std::shared_ptr<StreamPartition> opened;
    std::optional<GroupOffset> offset;  // The offset that the group has stored.
  };
  std::string stream;
  std::vector<PartitionNumber> partitions;  // Empty = all.
  std::string group;
  bool single_active = false;
  MemberId member;
  Ticket ticket;
  std::string owner;
  std::optional<Handover> handover{};  // nullopt: the group's.
  bool has_lease = false;              // Whether the connection sends heartbeats.
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
/// Sent to every shard in which the connection had subscriptions.
struct ConnectionDownCommand {
  std::string stream;  // Any stream of that shard.
  ConnectionId connection;
  /// Set if the connection broke and its client may be working until then; nullopt if the client
  /// has stopped, or has no lease.
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

/// Sets the offsets of a group without consumers: all of `moves`, or none.
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
  std::shared_ptr<StreamPartition> partition;  // Null if the partition was never used.
};
/// Lists the groups of one shard.
struct ListGroupsCommand {
  std::string stream;  // Empty = all.
  std::optional<GroupId> after;
  std::size_t groups_max = std::numeric_limits<std::size_t>::max();
  std::vector<GroupReport> groups;
  bool more = false;  // There are groups after the last one reported.
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
