#include <baton/stream_client.h>

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "sdk/base/channel.h"
#include "sdk/base/errors.h"
#include "sdk/stream/stream_call.h"
#include "sdk/stream/stream_convert.h"
#include "sdk/stream/stream_reader.h"

namespace baton::client {

struct StreamClient::State : StreamCalls {
  using StreamCalls::StreamCalls;
};

namespace {

using Stub = StreamsStub;

std::string text(std::string_view view) { return std::string(view); }

}  // namespace

StreamClient::StreamClient(std::unique_ptr<State> state) : state_(std::move(state)) {}
StreamClient::StreamClient(StreamClient&&) noexcept = default;
StreamClient& StreamClient::operator=(StreamClient&&) noexcept = default;
StreamClient::~StreamClient() = default;

Result<StreamClient> StreamClient::connect(ConnectionOptions options) {
  BATON_TRY(auto channel, make_channel(options));
  return StreamClient(std::make_unique<State>(std::move(options), std::move(channel)));
}

Status StreamClient::wait_until_ready(std::chrono::milliseconds timeout) {
  if (state_->channel->WaitForConnected(std::chrono::system_clock::now() + timeout)) return {};
  return Error{Errc::unavailable, fmt::format("cannot reach the broker at {} within {} ms",
                                              state_->options.address, timeout.count())};
}

Result<StreamInfo> StreamClient::create_stream(std::string_view name, std::uint32_t partitions,
                                               const StreamSettings& settings) {
  v1::CreateStreamRequest request;
  request.set_name(text(name));
  request.set_partitions(partitions);
  to_proto(settings, *request.mutable_settings());
  BATON_TRY(const auto response, state_->call(&Stub::CreateStream, request));
  return from_proto(response.stream());
}

Result<StreamInfo> StreamClient::update_stream(std::string_view name,
                                               const StreamSettings& settings) {
  v1::UpdateStreamRequest request;
  request.set_name(text(name));
  to_proto(settings, *request.mutable_settings());
  BATON_TRY(const auto response, state_->call(&Stub::UpdateStream, request));
  return from_proto(response.stream());
}

Status StreamClient::delete_stream(std::string_view name) {
  v1::DeleteStreamRequest request;
  request.set_name(text(name));
  BATON_TRY_STATUS(state_->call(&Stub::DeleteStream, request));
  return {};
}

Result<std::vector<StreamInfo>> StreamClient::list_streams(std::string_view prefix) {
  v1::ListStreamsRequest request;
  request.set_prefix(text(prefix));
  BATON_TRY(const auto response, state_->call(&Stub::ListStreams, request));
  std::vector<StreamInfo> streams;
  for (const v1::Stream& stream : response.streams()) streams.push_back(from_proto(stream));
  return streams;
}

Result<StreamInfo> StreamClient::describe_stream(std::string_view name) {
  v1::DescribeStreamRequest request;
  request.set_name(text(name));
  BATON_TRY(const auto response, state_->call(&Stub::DescribeStream, request));
  return from_proto(response.stream());
}

Result<std::vector<AppendResult>> StreamClient::append(std::string_view stream,
                                                       std::span<const NewRecord> records) {
  v1::AppendRequest request;
  request.set_stream(text(stream));
  for (const NewRecord& record : records) to_proto(record, *request.add_records());
  BATON_TRY(const auto response, state_->call(&Stub::Append, request));
  if (static_cast<std::size_t>(response.records_size()) != records.size()) {
    return Error{Errc::internal, fmt::format("the broker answered {} results to {} records",
                                             response.records_size(), records.size())};
  }
  std::vector<AppendResult> results;
  results.reserve(records.size());
  for (const v1::AppendResult& result : response.records()) results.push_back(from_proto(result));
  return results;
}

std::unique_ptr<StreamReader> StreamClient::read(ReadOptions options) {
  auto state =
      std::make_unique<StreamReader::State>(state_->options, state_->channel, std::move(options));
  return std::unique_ptr<StreamReader>(new StreamReader(std::move(state)));
}

Status StreamClient::store_offset(std::string_view stream, std::uint32_t partition,
                                  std::string_view group, std::int64_t offset) {
  v1::StoreOffsetRequest request;
  request.set_stream(text(stream));
  request.set_partition(partition);
  request.set_group(text(group));
  request.set_offset(offset);
  BATON_TRY_STATUS(state_->call(&Stub::StoreOffset, request));
  return {};
}

Result<StoredOffset> StreamClient::query_offset(std::string_view stream, std::uint32_t partition,
                                                std::string_view group) {
  v1::QueryOffsetRequest request;
  request.set_stream(text(stream));
  request.set_partition(partition);
  request.set_group(text(group));
  BATON_TRY(const auto response, state_->call(&Stub::QueryOffset, request));
  StoredOffset stored{.offset = std::nullopt, .generation = response.generation()};
  if (response.has_offset()) stored.offset = response.offset();
  return stored;
}

Result<std::vector<GroupInfo>> StreamClient::list_groups(std::string_view stream) {
  v1::ListGroupsRequest request;
  request.set_stream(text(stream));
  BATON_TRY(const auto response, state_->call(&Stub::ListGroups, request));
  return from_proto(response.groups());
}

Result<std::vector<GroupInfo>> StreamClient::describe_group(std::string_view stream,
                                                            std::string_view group) {
  v1::DescribeGroupRequest request;
  request.set_stream(text(stream));
  request.set_group(text(group));
  BATON_TRY(const auto response, state_->call(&Stub::DescribeGroup, request));
  return from_proto(response.partitions());
}

Result<std::vector<GroupInfo>> StreamClient::evaluate_group(std::string_view stream,
                                                            std::string_view group) {
  v1::EvaluateGroupRequest request;
  request.set_stream(text(stream));
  request.set_group(text(group));
  BATON_TRY(const auto response, state_->call(&Stub::EvaluateGroup, request));
  return from_proto(response.partitions());
}

Result<std::int64_t> StreamClient::place_in(std::string_view stream, const PartitionInfo& partition,
                                            const StartFrom& to) {
  switch (to.kind) {
    case StartFrom::Kind::first: return partition.first_offset;
    case StartFrom::Kind::next: return partition.next_offset;
    case StartFrom::Kind::last: return std::max(partition.first_offset, partition.next_offset - 1);
    case StartFrom::Kind::offset: return to.offset;
    case StartFrom::Kind::time: break;
  }
  const auto reader = read(
      {.stream = text(stream), .partition = partition.partition, .from = to, .records_max = 1});
  BATON_TRY(const auto records, reader->next());
  // All records may be older.
  return records && !records->empty() ? records->front().offset : partition.next_offset;
}

Result<std::vector<GroupOffsetChange>> StreamClient::set_group_offsets(
    std::string_view stream, std::string_view group, const SetOffsetOptions& options) {
  BATON_TRY(const StreamInfo info, describe_stream(stream));
  v1::SetGroupOffsetsRequest request;
  request.set_stream(text(stream));
  request.set_group(text(group));
  request.set_dry_run(options.dry_run);
  std::vector<std::uint32_t> wanted = options.partitions;
  if (wanted.empty()) {
    for (std::uint32_t number = 0; number < info.partitions; ++number) wanted.push_back(number);
  }
  for (const std::uint32_t number : wanted) {
    if (number >= info.details.size()) {
      return Error{Errc::partition_not_found,
                   fmt::format("stream {} has no partition {}: it has 0 to {}", info.name, number,
                               info.partitions - 1)};
    }
    BATON_TRY(const std::int64_t offset, place_in(stream, info.details[number], options.to));
    v1::NewGroupOffset& item = *request.add_offsets();
    item.set_partition(number);
    item.set_offset(offset);
  }
  BATON_TRY(const auto response, state_->call(&Stub::SetGroupOffsets, request));
  std::vector<GroupOffsetChange> changes;
  for (const v1::GroupOffsetChange& change : response.changes()) {
    changes.push_back({.partition = change.partition(), .after = change.after()});
    if (change.has_before()) changes.back().before = change.before();
  }
  return changes;
}

Status StreamClient::delete_group(std::string_view stream, std::string_view group) {
  v1::DeleteGroupRequest request;
  request.set_stream(text(stream));
  request.set_group(text(group));
  BATON_TRY_STATUS(state_->call(&Stub::DeleteGroup, request));
  return {};
}

}  // namespace baton::client
