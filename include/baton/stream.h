#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <baton/message.h>
#include <baton/numbers.h>
#include <baton/result.h>

namespace baton::client {

/// The time of a record: set by its producer, or by the broker when it has none.
using RecordTime = std::chrono::sys_time<std::chrono::milliseconds>;

/// Settings of a stream. Absent ones keep their value (or, for a new stream, the default in
/// brackets).
struct StreamSettings {
  std::optional<std::chrono::milliseconds> retention{};  // [0 = for ever] Of whole segments.
  std::optional<std::uint64_t> retention_bytes{};        // [0 = no limit] Per partition.
  std::optional<std::uint64_t> segment_bytes{};          // [256 MiB]
  std::optional<std::string> fsync{};                    // ["always"], "interval:MS" or "never".
  std::optional<std::uint64_t> batch_bytes_max{};        // [1 MiB]
};

/// How far one group has come in one partition.
struct PartitionGroup {
  std::string group{};
  std::optional<Offset> offset{};  // The next to read; absent when none was stored.
  std::uint64_t lag = 0;           // Records from there (or from the first one) to the end.
};

struct PartitionInfo {
  PartitionNumber partition{};
  Offset first_offset{};
  Offset next_offset{};  // Offset of the next record to be appended.
  std::uint64_t bytes = 0;
  std::uint32_t segments = 0;
  std::string read_only{};  // Why nothing can be appended; empty when all is well.
  std::string damaged{};    // Damaged records that a reader met; empty when there are none.
  std::vector<PartitionGroup> groups{};
};

/// A stream as the broker describes it: every setting is present.
struct StreamInfo {
  std::string name{};
  std::uint64_t id = 0;
  std::uint32_t partitions = 0;
  StreamSettings settings{};
  BrokerTime created_at{};
  std::vector<PartitionInfo> details{};
};

/// Unlike a message's, the headers of a record have an order, may repeat and may lack a value.
struct RecordHeader {
  std::string name{};
  std::optional<std::string> value{};

  bool operator==(const RecordHeader&) const = default;
};

/// A record on its way to a stream.
struct NewRecord {
  std::optional<std::string> key{};
  std::optional<std::string> value{};
  std::vector<RecordHeader> headers{};
  std::optional<RecordTime> timestamp{};  // [now]
  /// Absent: chosen by the key's murmur2 hash, as Kafka does; without a key, any partition.
  std::optional<PartitionNumber> partition{};
};

/// What became of one NewRecord.
struct AppendResult {
  PartitionNumber partition{};
  Offset offset = kNoOffset;  // Stays so when refused, or a duplicate too old to be remembered.
  bool duplicate = false;     // The record was stored before: nothing was stored now.
  std::optional<Error> error{};

  [[nodiscard]] bool ok() const { return !error.has_value(); }
};

/// A record as it is read.
struct Record {
  PartitionNumber partition{};
  Offset offset{};
  RecordTime timestamp{};
  std::optional<std::string> key{};
  std::optional<std::string> value{};
  std::vector<RecordHeader> headers{};

  bool operator==(const Record&) const = default;
};

/// Where to begin reading.
struct StartFrom {
  enum class Kind : std::uint8_t { first, last, next, offset, time };
  Kind kind = Kind::first;
  Offset offset{};    // For Kind::offset.
  RecordTime time{};  // For Kind::time.

  static StartFrom first() { return {}; }
  /// At the last record.
  static StartFrom last() { return {.kind = Kind::last}; }
  /// After the last record.
  static StartFrom next() { return {.kind = Kind::next}; }
  static StartFrom at(Offset offset) { return {.kind = Kind::offset, .offset = offset}; }
  /// At the first record that is not older than `time`.
  static StartFrom at_time(RecordTime time) { return {.kind = Kind::time, .time = time}; }

  bool operator==(const StartFrom&) const = default;
};

/// How a producer compresses its batches.
enum class RecordCompression : std::uint8_t { none, gzip, snappy, lz4, zstd };

/// What happens when the offset to continue from is no longer retained.
enum class OnGap : std::uint8_t {
  close,  // The subscription ends with offset_out_of_range: an operator must decide.
  first,  // It continues at the first offset retained; what lay between was not handled.
};

/// A group's position in one partition.
struct StoredOffset {
  std::optional<Offset> offset{};  // The next to read; absent when none was stored.
  std::uint64_t generation = 0;
};

enum class Connectivity : std::uint8_t { unspecified, connected, disconnected, forgotten };
enum class Activity : std::uint8_t { unspecified, waiting, active, deactivating };

/// When the seat of a consumer whose connection visibly broke is given to another.
enum class Handover : std::uint8_t {
  as_group,  // In a request: what the group has; for a new group, at_once.
  at_once,
  strict,  // Only when the lease of its connection has ended.
};

struct GroupMember {
  std::uint64_t connection = 0;
  std::uint64_t subscription = 0;
  std::string owner{};
  Connectivity connectivity = Connectivity::unspecified;
  Activity activity = Activity::unspecified;
  BrokerTime since{};
  std::uint64_t ticket = 0;
  /// How long the broker keeps the consumer's seat if it hears nothing more. Absent: the consumer
  /// sends no heartbeats, and has no lease.
  std::optional<std::chrono::milliseconds> lease_left{};
};

/// The seat of a group in one partition: who has it, who waits, how far the group has come.
struct GroupInfo {
  std::string stream{};
  PartitionNumber partition{};
  std::string group{};
  bool single_active = false;
  std::uint64_t generation = 0;
  std::optional<Offset> offset{};
  std::uint64_t lag = 0;
  std::vector<GroupMember> members{};
  std::string reason{};  // Of the last change of the seat.
  BrokerTime changed_at{};
  /// From the step-down, or the loss, to the next activation.
  std::chrono::microseconds last_hand_over{0};
  Handover handover = Handover::at_once;
};

}  // namespace baton::client
