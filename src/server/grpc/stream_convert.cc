#include "server/grpc/stream_convert.h"

#include <utility>

#include <fmt/format.h>

#include "server/grpc/record_wire.h"
#include "server/grpc/times.h"
#include "server/session/checks.h"
#include "server/session/limits.h"

namespace baton {
namespace {

Result<FsyncMode> convert_fsync(const v1::StreamSettings::Fsync& in) {
  using Wire = v1::StreamSettings::Fsync;
  if (in.has_interval() && in.mode() != Wire::MODE_INTERVAL) {
    return Error{Errc::invalid_argument, "fsync.interval is given, but fsync.mode is not INTERVAL"};
  }
  switch (in.mode()) {
    case Wire::MODE_ALWAYS: return FsyncMode{};
    case Wire::MODE_NEVER: return FsyncMode{.kind = FsyncMode::Kind::never, .interval = {}};
    case Wire::MODE_INTERVAL: break;
    default:
      return Error{Errc::invalid_argument,
                   fmt::format("fsync.mode is {}; it may be 1 (always), 2 (interval) or 3 (never)",
                               static_cast<int>(in.mode()))};
  }
  FsyncMode mode{.kind = FsyncMode::Kind::interval, .interval = {}};
  BATON_TRY(mode.interval,
            convert_duration("fsync.interval", in.interval(), limits::kRetentionMax));
  // The limits of the interval are those of its text form.
  return parse_fsync_mode(to_string(mode));
}

Result<StreamSettingsPatch> convert_settings(const v1::StreamSettings& in) {
  StreamSettingsPatch out;
  if (in.has_retention()) {
    BATON_TRY(out.retention, convert_duration("retention", in.retention(), limits::kRetentionMax));
  }
  if (in.has_retention_bytes()) out.retention_bytes = in.retention_bytes();
  if (in.has_segment_bytes()) out.segment_bytes = in.segment_bytes();
  if (in.has_fsync()) {
    BATON_TRY(out.fsync, convert_fsync(in.fsync()));
  }
  if (in.has_batch_bytes_max()) out.batch_bytes_max = in.batch_bytes_max();
  return out;
}

Result<ReadFrom::Place> convert_place(v1::ReadFrom::Place in, ReadFrom::Place otherwise) {
  switch (in) {
    case v1::ReadFrom::PLACE_UNSPECIFIED: return otherwise;
    case v1::ReadFrom::PLACE_FIRST: return ReadFrom::Place::first;
    case v1::ReadFrom::PLACE_LAST: return ReadFrom::Place::last;
    case v1::ReadFrom::PLACE_NEXT: return ReadFrom::Place::next;
    default:
      return Error{Errc::invalid_argument,
                   fmt::format("from.place is {}; it may be 1 (first), 2 (last) or 3 (next)",
                               static_cast<int>(in))};
  }
}

Result<ReadFrom> convert_from(const v1::ReadFrom& in, ReadFrom::Place otherwise) {
  ReadFrom out{.place = otherwise, .offset = {}, .time = {}};
  switch (in.from_case()) {
    case v1::ReadFrom::kPlace: {
      BATON_TRY(out.place, convert_place(in.place(), otherwise));
      break;
    }
    case v1::ReadFrom::kOffset:
      if (in.offset() < 0) {
        return Error{Errc::invalid_argument,
                     fmt::format("from.offset is {}; it must not be negative", in.offset())};
      }
      out.place = ReadFrom::Place::offset;
      out.offset = Offset{in.offset()};
      break;
    case v1::ReadFrom::kTime: {
      out.place = ReadFrom::Place::time;
      BATON_TRY(out.time, convert_time("from.time", in.time()));
      break;
    }
    case v1::ReadFrom::FROM_NOT_SET: break;
  }
  return out;
}

NewRecord convert_record(v1::NewRecord& in) {
  NewRecord out;
  if (in.has_key()) out.key = std::move(*in.mutable_key());
  if (in.has_value()) out.value = std::move(*in.mutable_value());
  for (v1::RecordHeader& header : *in.mutable_headers()) {
    std::optional<std::string> value;
    if (header.has_value()) value = std::move(*header.mutable_value());
    out.headers.emplace_back(std::move(*header.mutable_name()), std::move(value));
  }
  if (in.has_timestamp_ms()) out.timestamp = TimestampMs{in.timestamp_ms()};
  if (in.has_partition()) out.partition = PartitionNumber{in.partition()};
  return out;
}

}  // namespace

Result<CreateStreamCommand> convert(const v1::CreateStreamRequest& request) {
  CreateStreamCommand out;
  out.stream = request.name();
  BATON_TRY_STATUS(check(out));
  out.partitions = request.partitions() == 0 ? 1 : request.partitions();
  BATON_TRY(out.settings, convert_settings(request.settings()));
  return out;
}

Result<UpdateStreamCommand> convert(const v1::UpdateStreamRequest& request) {
  UpdateStreamCommand out;
  out.stream = request.name();
  BATON_TRY_STATUS(check(out));
  BATON_TRY(out.settings, convert_settings(request.settings()));
  return out;
}

Result<DeleteStreamCommand> convert(const v1::DeleteStreamRequest& request) {
  DeleteStreamCommand out{.stream = request.name(), .error = {}};
  BATON_TRY_STATUS(check(out));
  return out;
}

Result<DescribeStreamCommand> convert(const v1::DescribeStreamRequest& request) {
  DescribeStreamCommand out{.stream = request.name(), .error = {}, .description = {}};
  BATON_TRY_STATUS(check(out));
  return out;
}

Result<Paged<ListStreamsCommand>> convert(const v1::ListStreamsRequest& request) {
  Paged<ListStreamsCommand> out;
  out.wanted.stream = request.prefix();
  BATON_TRY_STATUS(check(out.wanted));
  BATON_TRY(out.page,
            read_page("streams " + request.prefix(), request.page_size(), request.page_token()));
  out.wanted.after = out.page.after;
  out.wanted.streams_max = out.page.items_max;
  out.wanted.partitions_max = limits::kPagePartitions;
  return out;
}

Result<Paged<ListGroupsCommand>> convert(const v1::ListGroupsRequest& request) {
  Paged<ListGroupsCommand> out;
  out.wanted.stream = request.stream();
  BATON_TRY_STATUS(check(out.wanted));
  BATON_TRY(out.page,
            read_page("groups " + request.stream(), request.page_size(), request.page_token()));
  BATON_TRY(out.wanted.after, group_after(out.page));
  out.wanted.groups_max = out.page.items_max;
  return out;
}

Result<StartProducerCommand> convert(const v1::InitProducerRequest& request) {
  StartProducerCommand out{
      .stream = request.stream(), .producer = request.producer(), .error = {}, .started = {}};
  BATON_TRY_STATUS(check(out));
  return out;
}

Result<StoreOffsetCommand> convert(const v1::StoreOffsetRequest& request) {
  if (request.offset() < 0) {
    return Error{Errc::invalid_argument,
                 fmt::format("offset is {}; it must not be negative", request.offset())};
  }
  StoreOffsetCommand out;
  out.stream = request.stream();
  out.request.group = {request.stream(), request.partition(), request.group()};
  out.request.offset = GroupOffset{static_cast<std::uint64_t>(request.offset())};
  out.request.may_rewind = true;
  BATON_TRY_STATUS(check(out));
  return out;
}

Result<QueryOffsetCommand> convert(const v1::QueryOffsetRequest& request) {
  QueryOffsetCommand out;
  out.stream = request.stream();
  out.partition = PartitionNumber{request.partition()};
  out.group = request.group();
  BATON_TRY_STATUS(check(out));
  return out;
}

Result<SetGroupOffsetsCommand> convert(const v1::SetGroupOffsetsRequest& request) {
  SetGroupOffsetsCommand out;
  out.stream = request.stream();
  out.group = request.group();
  out.dry_run = request.dry_run();
  for (const v1::NewGroupOffset& item : request.offsets()) {
    if (item.offset() < 0) {
      return Error{Errc::invalid_argument,
                   fmt::format("offset of partition {} is {}; it must not be negative",
                               item.partition(), item.offset())};
    }
    out.moves.push_back({.partition = PartitionNumber{item.partition()},
                         .offset = GroupOffset{static_cast<std::uint64_t>(item.offset())}});
  }
  BATON_TRY_STATUS(check(out));
  return out;
}

namespace {

Result<std::optional<Handover>> convert_handover(const v1::SubscribeRequest::Start& start) {
  if (start.handover() == v1::GROUP_HANDOVER_UNSPECIFIED) return std::nullopt;
  if (start.handover() == v1::GROUP_HANDOVER_AT_ONCE) return std::optional(Handover::at_once);
  if (start.handover() == v1::GROUP_HANDOVER_STRICT) return std::optional(Handover::strict);
  return Error{Errc::invalid_argument,
               fmt::format("handover is {}; it may be 0 to 2", int{start.handover()})};
}

}  // namespace

Result<subscription::Wanted> convert(const v1::SubscribeRequest::Start& start) {
  subscription::Wanted out;
  out.id = SubscriptionId{start.id()};
  out.command.stream = start.stream();
  out.command.group = start.group();
  out.command.single_active = start.single_active();
  out.command.owner = start.owner();
  BATON_TRY(out.command.handover, convert_handover(start));
  const std::set<std::uint32_t> numbers(start.partitions().begin(), start.partitions().end());
  for (const std::uint32_t number : numbers) out.command.partitions.emplace_back(number);
  BATON_TRY(out.from, convert_from(start.from(), ReadFrom::Place::next));
  out.credit = {.batches = start.credit().batches(), .bytes = start.credit().bytes()};
  if (start.format() == v1::RECORD_FORMAT_RECORDS) out.encode_record = append_batch_record;
  out.ask_offset = start.ask_offset();
  out.skip_gaps = start.on_gap() == v1::SubscribeRequest::ON_GAP_FIRST;
  BATON_TRY_STATUS(check(out));
  return out;
}

Result<ReadWanted> convert(const v1::ReadRequest& request) {
  ReadWanted out;
  out.open.stream = request.stream();
  BATON_TRY_STATUS(check(out.open));
  out.open.partition = PartitionNumber{request.partition()};
  BATON_TRY(out.wanted.from, convert_from(request.from(), ReadFrom::Place::first));
  out.wanted.records_max = request.records_max();
  out.wanted.follow = request.follow();
  if (request.format() == v1::RECORD_FORMAT_RECORDS) out.wanted.encode_record = append_read_record;
  return out;
}

Result<AppendCommand> convert(v1::AppendRequest& request) {
  AppendCommand out;
  out.stream = request.stream();
  out.batches.reserve(static_cast<std::size_t>(request.batches_size()));
  for (v1::NewBatch& batch : *request.mutable_batches()) {
    out.batches.push_back({PartitionNumber{batch.partition()}, std::move(*batch.mutable_batch())});
  }
  out.records.reserve(static_cast<std::size_t>(request.records_size()));
  for (v1::NewRecord& record : *request.mutable_records()) {
    out.records.push_back(convert_record(record));
  }
  BATON_TRY_STATUS(check(out));
  return out;
}

}  // namespace baton
