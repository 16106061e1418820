#include <algorithm>

#include "base/fsync_mode.h"
#include "server/grpc/status.h"
#include "server/grpc/stream_convert.h"
#include "server/grpc/times.h"

/// Converts outcomes of the Streams service to responses.
namespace baton {
namespace {

void fill(const BatchOutcome& in, v1::AppendResult& out) {
  out.set_partition(in.partition.value);
  out.set_offset(in.offset.value);
  out.set_duplicate(in.duplicate);
  if (in.error.has_value()) *out.mutable_error() = to_proto(*in.error);
}

void describe_fsync(const FsyncMode& in, v1::StreamSettings::Fsync& out) {
  using Wire = v1::StreamSettings::Fsync;
  switch (in.kind) {
    case FsyncMode::Kind::always: out.set_mode(Wire::MODE_ALWAYS); return;
    case FsyncMode::Kind::never: out.set_mode(Wire::MODE_NEVER); return;
    case FsyncMode::Kind::interval: break;
  }
  out.set_mode(Wire::MODE_INTERVAL);
  *out.mutable_interval() = to_proto(in.interval);
}

void describe_settings(const StreamSettings& in, v1::StreamSettings& out) {
  *out.mutable_retention() = to_proto(in.retention);
  out.set_retention_bytes(in.retention_bytes);
  out.set_segment_bytes(in.segment_bytes);
  describe_fsync(in.fsync, *out.mutable_fsync());
  out.set_batch_bytes_max(in.batch_bytes_max);
}

void describe_partition(const StreamDescription::Partition& in, v1::Partition& out) {
  out.set_first_offset(in.log.first.value);
  out.set_next_offset(in.log.next.value);
  out.set_bytes(in.log.bytes);
  out.set_segments(static_cast<std::uint32_t>(in.log.segments));
  out.set_read_only(in.log.read_only.value_or(""));
  out.set_damaged(in.log.damaged);
  for (const GroupProgress& progress : in.groups) {
    v1::Partition::GroupProgress& group = *out.add_groups();
    group.set_group(progress.group);
    if (progress.offset.has_value()) {
      group.set_offset(static_cast<std::int64_t>(progress.offset->value));
    }
    group.set_lag(progress.lag);
  }
}

v1::GroupMember::Connectivity to_proto(Connectivity connectivity) {
  switch (connectivity) {
    case Connectivity::connected: return v1::GroupMember::CONNECTIVITY_CONNECTED;
    case Connectivity::disconnected: return v1::GroupMember::CONNECTIVITY_DISCONNECTED;
    case Connectivity::forgotten: return v1::GroupMember::CONNECTIVITY_FORGOTTEN;
  }
  return v1::GroupMember::CONNECTIVITY_UNSPECIFIED;
}

v1::GroupMember::Activity to_proto(Activity activity) {
  switch (activity) {
    case Activity::waiting: return v1::GroupMember::ACTIVITY_WAITING;
    case Activity::active: return v1::GroupMember::ACTIVITY_ACTIVE;
    case Activity::deactivating: return v1::GroupMember::ACTIVITY_DEACTIVATING;
  }
  return v1::GroupMember::ACTIVITY_UNSPECIFIED;
}

}  // namespace

void reply(const AppendOutcomes& done, v1::AppendResponse& response) {
  for (const BatchOutcome& outcome : done.batches) fill(outcome, *response.add_batches());
  for (const BatchOutcome& outcome : done.records) fill(outcome, *response.add_records());
}

void describe(const StreamDescription& in, v1::Stream& out) {
  out.set_name(in.name);
  out.set_id(in.id.value);
  out.set_partitions(static_cast<std::uint32_t>(in.partitions.size()));
  *out.mutable_created_at() = to_proto(in.created_at);
  describe_settings(in.settings, *out.mutable_settings());
  std::uint32_t number = 0;
  for (const StreamDescription::Partition& partition : in.partitions) {
    v1::Partition& detail = *out.add_details();
    detail.set_partition(number++);
    describe_partition(partition, detail);
  }
}

void describe(const GroupReport& in, Instant now, v1::Group& out) {
  const GroupDescription& group = in.description;
  out.set_stream(group.group.stream);
  out.set_partition(group.group.partition);
  out.set_group(group.group.name);
  out.set_single_active(group.single_active);
  if (group.single_active) {
    out.set_handover(group.handover == Handover::strict ? v1::GROUP_HANDOVER_STRICT
                                                        : v1::GROUP_HANDOVER_AT_ONCE);
  }
  out.set_generation(group.generation.value);
  if (group.offset.has_value()) out.set_offset(static_cast<std::int64_t>(group.offset->value));
  out.set_lag(in.lag);
  out.set_reason(group.why);
  *out.mutable_changed_at() = to_proto(group.last_handover_at);
  *out.mutable_last_hand_over() = to_proto(std::max(Duration{0}, group.last_handover_took));
  for (const MemberDescription& in_member : group.members) {
    v1::GroupMember& member = *out.add_members();
    member.set_connection(in_member.member.connection.number.value);
    member.set_subscription(in_member.member.subscription.value);
    member.set_owner(in_member.owner);
    member.set_connectivity(to_proto(in_member.status.connectivity));
    member.set_activity(to_proto(in_member.status.activity));
    *member.mutable_since() = to_proto(in_member.since);
    member.set_ticket(in_member.ticket.value);
    if (in_member.lease_until.has_value()) {
      const Duration left = std::max(Duration{0}, *in_member.lease_until - now);
      *member.mutable_lease_left() = to_proto(left);
    }
  }
}

}  // namespace baton
