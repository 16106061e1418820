#include "sdk/stream/stream_convert.h"

#include <chrono>
#include <cstdint>
#include <optional>

#include "base/fsync_mode.h"
#include "base/result.h"
#include "sdk/base/errors.h"
#include "sdk/base/limits.h"
#include "sdk/base/times.h"

namespace baton::client {
namespace {

BrokerTime instant(const google::protobuf::Timestamp& at) { return BrokerTime(since_1970(at)); }

google::protobuf::Timestamp time_of(RecordTime at) {
  // Milliseconds that have no nanoseconds in 64 bits have a Timestamp all the same.
  google::protobuf::Timestamp out;
  const auto whole = std::chrono::floor<std::chrono::seconds>(at.time_since_epoch());
  out.set_seconds(whole.count());
  const std::chrono::nanoseconds rest = at.time_since_epoch() - whole;
  out.set_nanos(static_cast<std::int32_t>(rest.count()));
  return out;
}

std::string text_of(const v1::StreamSettings::Fsync& in) {
  using Wire = v1::StreamSettings::Fsync;
  if (in.mode() == Wire::MODE_NEVER) return to_string(FsyncMode{.kind = FsyncMode::Kind::never});
  if (in.mode() != Wire::MODE_INTERVAL) return to_string(FsyncMode{});
  return to_string(
      FsyncMode{.kind = FsyncMode::Kind::interval, .interval = duration_of(in.interval())});
}

Status to_proto(const std::string& text, v1::StreamSettings::Fsync& out) {
  using Wire = v1::StreamSettings::Fsync;
  BATON_TRY(const FsyncMode mode, parse_fsync_mode(text));
  switch (mode.kind) {
    case FsyncMode::Kind::always: out.set_mode(Wire::MODE_ALWAYS); break;
    case FsyncMode::Kind::never: out.set_mode(Wire::MODE_NEVER); break;
    case FsyncMode::Kind::interval:
      out.set_mode(Wire::MODE_INTERVAL);
      *out.mutable_interval() =
          proto_duration(std::chrono::duration_cast<std::chrono::milliseconds>(mode.interval));
      break;
  }
  return {};
}

StreamSettings settings_of(const v1::StreamSettings& in) {
  StreamSettings out;
  if (in.has_retention()) {
    out.retention =
        std::chrono::duration_cast<std::chrono::milliseconds>(duration_of(in.retention()));
  }
  if (in.has_retention_bytes()) out.retention_bytes = in.retention_bytes();
  if (in.has_segment_bytes()) out.segment_bytes = in.segment_bytes();
  if (in.has_fsync()) out.fsync = text_of(in.fsync());
  if (in.has_batch_bytes_max()) out.batch_bytes_max = in.batch_bytes_max();
  return out;
}

PartitionInfo partition_of(const v1::Partition& in) {
  PartitionInfo out{.partition = PartitionNumber{in.partition()},
                    .first_offset = Offset{in.first_offset()},
                    .next_offset = Offset{in.next_offset()},
                    .bytes = in.bytes(),
                    .segments = in.segments(),
                    .read_only = in.read_only(),
                    .damaged = in.damaged()};
  for (const v1::Partition::GroupProgress& group : in.groups()) {
    out.groups.push_back({.group = group.group(), .offset = std::nullopt, .lag = group.lag()});
    if (group.has_offset()) out.groups.back().offset = Offset{group.offset()};
  }
  return out;
}

GroupMember member_of(const v1::GroupMember& in) {
  return {.connection = in.connection(),
          .subscription = in.subscription(),
          .owner = in.owner(),
          .connectivity = static_cast<Connectivity>(in.connectivity()),
          .activity = static_cast<Activity>(in.activity()),
          .since = instant(in.since()),
          .ticket = in.ticket(),
          .lease_left = in.has_lease_left()
                            ? std::optional(std::chrono::ceil<std::chrono::milliseconds>(
                                  duration_of(in.lease_left())))
                            : std::nullopt};
}

}  // namespace

std::size_t record_bytes(const NewRecord& record) {
  std::size_t bytes = limits::kRecordOverheadBytes;
  if (record.key) bytes += record.key->size();
  if (record.value) bytes += record.value->size();
  for (const RecordHeader& header : record.headers) {
    bytes += header.name.size() + (header.value ? header.value->size() : 0);
  }
  return bytes;
}

Status to_proto(const StreamSettings& in, v1::StreamSettings& out) {
  if (in.retention) *out.mutable_retention() = proto_duration(*in.retention);
  if (in.retention_bytes) out.set_retention_bytes(*in.retention_bytes);
  if (in.segment_bytes) out.set_segment_bytes(*in.segment_bytes);
  if (in.fsync) BATON_TRY_STATUS(to_proto(*in.fsync, *out.mutable_fsync()));
  if (in.batch_bytes_max) out.set_batch_bytes_max(*in.batch_bytes_max);
  return {};
}

void to_proto(const NewRecord& record, v1::NewRecord& out) {
  if (record.key) out.set_key(*record.key);
  if (record.value) out.set_value(*record.value);
  for (const RecordHeader& header : record.headers) {
    v1::RecordHeader& wire = *out.add_headers();
    wire.set_name(header.name);
    if (header.value) wire.set_value(*header.value);
  }
  if (record.timestamp) out.set_timestamp_ms(record.timestamp->time_since_epoch().count());
  if (record.partition) out.set_partition(record.partition->value);
}

void to_proto(const StartFrom& from, v1::ReadFrom& out) {
  switch (from.kind) {
    case StartFrom::Kind::first: out.set_place(v1::ReadFrom::PLACE_FIRST); break;
    case StartFrom::Kind::last: out.set_place(v1::ReadFrom::PLACE_LAST); break;
    case StartFrom::Kind::next: out.set_place(v1::ReadFrom::PLACE_NEXT); break;
    case StartFrom::Kind::offset: out.set_offset(from.offset.value); break;
    case StartFrom::Kind::time: *out.mutable_time() = time_of(from.time); break;
  }
}

StreamInfo from_proto(const v1::Stream& in) {
  StreamInfo out{.name = in.name(),
                 .id = in.id(),
                 .partitions = in.partitions(),
                 .settings = settings_of(in.settings()),
                 .created_at = instant(in.created_at())};
  for (const v1::Partition& partition : in.details())
    out.details.push_back(partition_of(partition));
  return out;
}

AppendResult from_proto(const v1::AppendResult& in) {
  AppendResult out{.partition = PartitionNumber{in.partition()},
                   .offset = Offset{in.offset()},
                   .duplicate = in.duplicate()};
  if (in.has_error()) {
    out.error = from_proto(in.error());
    out.offset = kNoOffset;
  }
  return out;
}

GroupInfo from_proto(const v1::Group& in) {
  GroupInfo out{.stream = in.stream(),
                .partition = PartitionNumber{in.partition()},
                .group = in.group(),
                .single_active = in.single_active(),
                .generation = in.generation(),
                .offset = std::nullopt,
                .lag = in.lag(),
                .members = {},
                .reason = in.reason(),
                .changed_at = instant(in.changed_at()),
                .last_hand_over = std::chrono::duration_cast<std::chrono::microseconds>(
                    duration_of(in.last_hand_over())),
                .handover = in.handover() == v1::GROUP_HANDOVER_STRICT ? Handover::strict
                                                                       : Handover::at_once};
  if (in.has_offset()) out.offset = Offset{in.offset()};
  for (const v1::GroupMember& member : in.members()) out.members.push_back(member_of(member));
  return out;
}

std::vector<GroupInfo> from_proto(const google::protobuf::RepeatedPtrField<v1::Group>& groups) {
  std::vector<GroupInfo> out;
  out.reserve(static_cast<std::size_t>(groups.size()));
  for (const v1::Group& group : groups) out.push_back(from_proto(group));
  return out;
}

}  // namespace baton::client
