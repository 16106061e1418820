#include <algorithm>
#include <memory>
#include <utility>

#include <baton/stream_consumer.h>
#include <baton/stream_handle.h>
#include <fmt/format.h>

#include "base/result.h"
#include "sdk/base/connection.h"
#include "sdk/base/limits.h"
#include "sdk/stream/stream_consumer_runtime.h"
#include "sdk/stream/stream_convert.h"

namespace baton::client {
namespace {

Status check_single_active(const StreamConsumerOptions& options) {
  if (options.single_active) {
    if (options.group.empty()) return invalid_argument("a single-active consumer needs a group");
    return {};
  }
  if (options.on_active || options.on_step_down || options.on_losing || options.ask_offset) {
    return invalid_argument(
        "on_active, on_step_down, on_losing and ask_offset are for single-active consumers");
  }
  if (options.handover != Handover::as_group) {
    return invalid_argument("handover is for single-active consumers");
  }
  return {};
}

Status check(const std::string& stream, const StreamConsumerOptions& options,
             const StreamConsumer::Handler& handler) {
  if (stream.empty()) return invalid_argument("the stream has no name");
  if (!handler) return invalid_argument("the handler is empty");
  if (options.concurrency == 0 || options.concurrency > limits::kConcurrencyMax) {
    return invalid_argument(fmt::format("concurrency is not in 1..{}", limits::kConcurrencyMax));
  }
  if (options.credit_batches == 0 || options.credit_bytes == 0) {
    return invalid_argument("a consumer without credit would get nothing");
  }
  if (options.storing.interval.count() < 0) return invalid_argument("storing.interval is negative");
  return check_single_active(options);
}

/// Where the records that count begin in a partition. The broker starts at the group's offset if
/// there is one, else at `from`; "next" is resolved here, because records that come while the first
/// connection is broken would be missed otherwise.
ReadFloor floor_of(const PartitionInfo& info, const StreamConsumerOptions& options) {
  if (options.single_active) return {};  // The broker sends it with the seat.
  for (const PartitionGroup& group : info.groups) {
    if (group.group == options.group && group.offset) return {.offset = *group.offset};
  }
  switch (options.from.kind) {
    case StartFrom::Kind::next: return {.offset = info.next_offset};
    case StartFrom::Kind::offset: return {.offset = options.from.offset};
    case StartFrom::Kind::time: return {.offset = kNoOffset, .time = options.from.time};
    default: return {};
  }
}

Result<std::vector<PartitionStart>> plan(const StreamInfo& stream,
                                         const StreamConsumerOptions& options) {
  std::vector<PartitionStart> starts;
  for (const PartitionInfo& info : stream.details) {
    const bool wanted =
        options.partitions.empty() ||
        std::ranges::find(options.partitions, info.partition) != options.partitions.end();
    if (!wanted) continue;
    starts.push_back({.partition = info.partition, .floor = floor_of(info, options)});
  }
  for (const PartitionNumber partition : options.partitions) {
    if (partition.value < stream.details.size()) continue;
    return Error{Errc::partition_not_found,
                 fmt::format("stream {} has no partition {}: it has 0 to {}", stream.name,
                             partition.value, stream.partitions - 1)};
  }
  if (starts.empty()) {
    return Error{Errc::internal, "the broker described a stream without partitions"};
  }
  return starts;
}

}  // namespace

StreamConsumer::StreamConsumer(std::unique_ptr<StreamConsumerRuntime> runtime)
    : runtime_(std::move(runtime)) {}
StreamConsumer::StreamConsumer(StreamConsumer&&) noexcept = default;
StreamConsumer& StreamConsumer::operator=(StreamConsumer&&) noexcept = default;
StreamConsumer::~StreamConsumer() = default;

Result<StreamConsumer> Stream::consumer(StreamConsumerOptions options,
                                        StreamConsumer::Handler handler) const {
  BATON_TRY_STATUS(check(name_, options, handler));
  BATON_TRY(const auto connection, make_connection(connection_->options));
  v1::DescribeStreamRequest request;
  request.set_name(name_);
  BATON_TRY(const auto described,
            connection->call(*connection->streams, &v1::StreamService::Stub::DescribeStream,
                             request, {.patient = true}));
  BATON_TRY(const auto starts, plan(from_proto(described.stream()), options));
  return StreamConsumer(std::make_unique<StreamConsumerRuntime>(
      *connection, name_, std::move(options), std::move(handler), starts));
}

Status StreamConsumer::store_offset(const StreamPosition& position,
                                    std::chrono::milliseconds timeout) {
  return runtime_->store_offset(position, timeout);
}
Status StreamConsumer::close(std::chrono::milliseconds timeout) { return runtime_->close(timeout); }
std::optional<Status> StreamConsumer::wait(std::chrono::milliseconds timeout) {
  return runtime_->wait(timeout);
}
StreamConsumer::Stats StreamConsumer::stats() const { return runtime_->stats(); }
SessionLease StreamConsumer::lease() const { return runtime_->lease(); }

}  // namespace baton::client
