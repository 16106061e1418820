#include "sdk/stream/stream_convert.h"

#include <chrono>
#include <cstdint>
#include <optional>

#include "sdk/base/errors.h"
#include "sdk/base/limits.h"

namespace baton::client {
namespace {

BrokerTime instant(std::int64_t ns) { return BrokerTime(std::chrono::nanoseconds(ns)); }

StreamSettings from_proto(const v1::StreamSettings& in) {
  StreamSettings out;
  if (in.has_retention_ms()) {
    out.retention = std::chrono::milliseconds(static_cast<std::int64_t>(in.retention_ms()));
  }
  if (in.has_retention_bytes()) out.retention_bytes = in.retention_bytes();
  if (in.has_segment_bytes()) out.segment_bytes = in.segment_bytes();
  if (in.has_fsync()) out.fsync = in.fsync();
  if (in.has_batch_bytes_max()) out.batch_bytes_max = in.batch_bytes_max();
  return out;
}

PartitionInfo from_proto(const v1::Partition& in) {
  PartitionInfo out{.partition = in.partition(),
                    .first_offset = in.first_offset(),
                    .next_offset = in.next_offset(),
                    .bytes = in.bytes(),
                    .segments = in.segments(),
                    .read_only = in.read_only(),
                    .damaged = in.damaged()};
  for (const v1::PartitionGroup& group : in.groups()) {
    out.groups.push_back({.group = group.group(), .offset = std::nullopt, .lag = group.lag()});
    if (group.has_offset()) out.groups.back().offset = group.offset();
  }
  return out;
}

GroupMember from_proto(const v1::GroupMember& in) {
  return {.connection = in.connection(),
          .subscription = in.subscription(),
          .owner = in.owner(),
          .connectivity = static_cast<Connectivity>(in.connectivity()),
          .activity = static_cast<Activity>(in.activity()),
          .since = instant(in.since_ns()),
          .ticket = in.ticket(),
          .lease_left = in.has_lease_left_ms()
                            ? std::optional(std::chrono::milliseconds{in.lease_left_ms()})
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

void to_proto(const StreamSettings& in, v1::StreamSettings& out) {
  // A negative duration becomes an absurd one, which the broker refuses with the field's name.
  if (in.retention) out.set_retention_ms(static_cast<std::uint64_t>(in.retention->count()));
  if (in.retention_bytes) out.set_retention_bytes(*in.retention_bytes);
  if (in.segment_bytes) out.set_segment_bytes(*in.segment_bytes);
  if (in.fsync) out.set_fsync(*in.fsync);
  if (in.batch_bytes_max) out.set_batch_bytes_max(*in.batch_bytes_max);
}

void to_proto(const NewRecord& record, v1::Record& out) {
  if (record.key) out.set_key(*record.key);
  if (record.value) out.set_value(*record.value);
  for (const RecordHeader& header : record.headers) {
    v1::RecordHeader& wire = *out.add_headers();
    wire.set_name(header.name);
    if (header.value) wire.set_value(*header.value);
  }
  if (record.timestamp) out.set_timestamp_ms(record.timestamp->time_since_epoch().count());
  if (record.partition) out.set_partition(*record.partition);
}

void to_proto(const StartFrom& from, v1::From& out) {
  switch (from.kind) {
    case StartFrom::Kind::first: out.set_first(true); break;
    case StartFrom::Kind::last: out.set_last(true); break;
    case StartFrom::Kind::next: out.set_next(true); break;
    case StartFrom::Kind::offset: out.set_offset(from.offset); break;
    case StartFrom::Kind::time: out.set_timestamp_ms(from.time.time_since_epoch().count()); break;
  }
}

StreamInfo from_proto(const v1::Stream& in) {
  StreamInfo out{.name = in.name(),
                 .id = in.id(),
                 .partitions = in.partitions(),
                 .settings = from_proto(in.settings()),
                 .created_at = instant(in.created_at_ns())};
  for (const v1::Partition& partition : in.details()) out.details.push_back(from_proto(partition));
  return out;
}

AppendResult from_proto(const v1::AppendResult& in) {
  AppendResult out{.partition = in.partition(), .offset = in.offset(), .duplicate = in.duplicate()};
  if (in.has_error()) {
    out.error = from_proto(in.error());
    out.offset = -1;
  }
  return out;
}

GroupInfo from_proto(const v1::Group& in) {
  GroupInfo out{
      .stream = in.stream(),
      .partition = in.partition(),
      .group = in.group(),
      .single_active = in.single_active(),
      .generation = in.generation(),
      .offset = std::nullopt,
      .lag = in.lag(),
      .members = {},
      .reason = in.reason(),
      .changed_at = instant(in.changed_at_ns()),
      .last_hand_over =
          std::chrono::microseconds(static_cast<std::int64_t>(in.last_hand_over_us())),
      .handover = in.handover() == v1::HANDOVER_STRICT ? Handover::strict : Handover::at_once};
  if (in.has_offset()) out.offset = in.offset();
  for (const v1::GroupMember& member : in.members()) out.members.push_back(from_proto(member));
  return out;
}

std::vector<GroupInfo> from_proto(const google::protobuf::RepeatedPtrField<v1::Group>& groups) {
  std::vector<GroupInfo> out;
  out.reserve(static_cast<std::size_t>(groups.size()));
  for (const v1::Group& group : groups) out.push_back(from_proto(group));
  return out;
}

}  // namespace baton::client
