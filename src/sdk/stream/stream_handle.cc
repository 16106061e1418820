#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include <baton/stream_handle.h>
#include <fmt/format.h>

#include "base/result.h"
#include "sdk/base/connection.h"
#include "sdk/base/pages.h"
#include "sdk/stream/stream_convert.h"
#include "sdk/stream/stream_reader.h"

namespace baton::client {

namespace {

using Stub = v1::StreamService::Stub;

template <class Method, class Request>
auto call(const Connection& connection, Method method, const Request& request) {
  return connection.call(*connection.streams, method, request);
}

}  // namespace

Result<StreamInfo> Stream::create(std::uint32_t partitions, const StreamSettings& settings) const {
  v1::CreateStreamRequest request;
  request.set_name(name_);
  request.set_partitions(partitions);
  BATON_TRY_STATUS(to_proto(settings, *request.mutable_settings()));
  BATON_TRY(const auto response, call(*connection_, &Stub::CreateStream, request));
  return from_proto(response.stream());
}

Result<StreamInfo> Stream::update(const StreamSettings& settings) const {
  v1::UpdateStreamRequest request;
  request.set_name(name_);
  BATON_TRY_STATUS(to_proto(settings, *request.mutable_settings()));
  BATON_TRY(const auto response, call(*connection_, &Stub::UpdateStream, request));
  return from_proto(response.stream());
}

Status Stream::drop() const {
  v1::DeleteStreamRequest request;
  request.set_name(name_);
  BATON_TRY_STATUS(call(*connection_, &Stub::DeleteStream, request));
  return {};
}

Result<std::vector<StreamInfo>> Stream::list(const ConnectionPointer& connection,
                                             std::string_view prefix) {
  v1::ListStreamsRequest request;
  request.set_prefix(std::string(prefix));
  std::vector<StreamInfo> streams;
  BATON_TRY_STATUS(walk_pages(
      request, [&](const auto& page) { return call(*connection, &Stub::ListStreams, page); },
      [&](const v1::ListStreamsResponse& page) {
        for (const v1::Stream& stream : page.streams()) streams.push_back(from_proto(stream));
      }));
  return streams;
}

Result<StreamInfo> Stream::describe() const {
  v1::DescribeStreamRequest request;
  request.set_name(name_);
  BATON_TRY(const auto response, call(*connection_, &Stub::DescribeStream, request));
  return from_proto(response.stream());
}

Result<std::vector<AppendResult>> Stream::append(std::span<const NewRecord> records) const {
  v1::AppendRequest request;
  request.set_stream(name_);
  for (const NewRecord& record : records) to_proto(record, *request.add_records());
  BATON_TRY(const auto response, call(*connection_, &Stub::Append, request));
  if (static_cast<std::size_t>(response.records_size()) != records.size()) {
    return Error{Errc::internal, fmt::format("the broker answered {} results to {} records",
                                             response.records_size(), records.size())};
  }
  std::vector<AppendResult> results;
  results.reserve(records.size());
  for (const v1::AppendResult& result : response.records()) results.push_back(from_proto(result));
  return results;
}

StreamReader Stream::read(ReadOptions options) const {
  return StreamReader(std::make_unique<StreamReader::State>(connection_, name_, options));
}

Status Group::store_offset(PartitionNumber partition, Offset offset) const {
  v1::StoreOffsetRequest request;
  request.set_stream(stream_);
  request.set_partition(partition.value);
  request.set_group(name_);
  request.set_offset(offset.value);
  BATON_TRY_STATUS(call(*connection_, &Stub::StoreOffset, request));
  return {};
}

Result<StoredOffset> Group::offset(PartitionNumber partition) const {
  v1::QueryOffsetRequest request;
  request.set_stream(stream_);
  request.set_partition(partition.value);
  request.set_group(name_);
  BATON_TRY(const auto response, call(*connection_, &Stub::QueryOffset, request));
  StoredOffset stored{.offset = std::nullopt, .generation = response.generation()};
  if (response.has_offset()) stored.offset = Offset{response.offset()};
  return stored;
}

Result<std::vector<GroupInfo>> Stream::list_groups(const ConnectionPointer& connection,
                                                   std::string_view stream) {
  v1::ListGroupsRequest request;
  request.set_stream(std::string(stream));
  std::vector<GroupInfo> groups;
  BATON_TRY_STATUS(walk_pages(
      request, [&](const auto& page) { return call(*connection, &Stub::ListGroups, page); },
      [&](const v1::ListGroupsResponse& page) {
        for (const v1::Group& group : page.groups()) groups.push_back(from_proto(group));
      }));
  return groups;
}

Result<std::vector<GroupInfo>> Group::describe() const {
  v1::DescribeGroupRequest request;
  request.set_stream(stream_);
  request.set_group(name_);
  BATON_TRY(const auto response, call(*connection_, &Stub::DescribeGroup, request));
  return from_proto(response.partitions());
}

Result<std::vector<GroupInfo>> Group::evaluate() const {
  v1::EvaluateGroupRequest request;
  request.set_stream(stream_);
  request.set_group(name_);
  BATON_TRY(const auto response, call(*connection_, &Stub::EvaluateGroup, request));
  return from_proto(response.partitions());
}

Result<Offset> Stream::place_in(const PartitionInfo& partition, const StartFrom& to) const {
  switch (to.kind) {
    case StartFrom::Kind::first: return partition.first_offset;
    case StartFrom::Kind::next: return partition.next_offset;
    case StartFrom::Kind::last:
      return std::max(partition.first_offset, Offset{partition.next_offset.value - 1});
    case StartFrom::Kind::offset: return to.offset;
    case StartFrom::Kind::time: break;
  }
  StreamReader reader = read({.partition = partition.partition, .from = to, .records_max = 1});
  BATON_TRY(const auto records, reader.next());
  // All records may be older.
  return records && !records->empty() ? records->front().offset : partition.next_offset;
}

Result<std::vector<GroupOffsetChange>> Group::set_offsets(const SetOffsetOptions& options) const {
  const Stream stream(connection_, stream_);
  BATON_TRY(const StreamInfo info, stream.describe());
  v1::SetGroupOffsetsRequest request;
  request.set_stream(stream_);
  request.set_group(name_);
  request.set_dry_run(options.dry_run);
  std::vector<PartitionNumber> wanted = options.partitions;
  if (wanted.empty()) {
    for (std::uint32_t i = 0; i < info.partitions; ++i) wanted.emplace_back(i);
  }
  for (const PartitionNumber number : wanted) {
    if (number.value >= info.details.size()) {
      return Error{Errc::partition_not_found,
                   fmt::format("stream {} has no partition {}: it has 0 to {}", info.name,
                               number.value, info.partitions - 1)};
    }
    BATON_TRY(const Offset offset, stream.place_in(info.details[number.value], options.to));
    v1::NewGroupOffset& item = *request.add_offsets();
    item.set_partition(number.value);
    item.set_offset(offset.value);
  }
  BATON_TRY(const auto response, call(*connection_, &Stub::SetGroupOffsets, request));
  std::vector<GroupOffsetChange> changes;
  for (const v1::GroupOffsetChange& change : response.changes()) {
    changes.push_back(
        {.partition = PartitionNumber{change.partition()}, .after = Offset{change.after()}});
    if (change.has_before()) changes.back().before = Offset{change.before()};
  }
  return changes;
}

Status Group::drop() const {
  v1::DeleteGroupRequest request;
  request.set_stream(stream_);
  request.set_group(name_);
  BATON_TRY_STATUS(call(*connection_, &Stub::DeleteGroup, request));
  return {};
}

}  // namespace baton::client
