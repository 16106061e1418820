#include "server/grpc/stream_calls.h"

#include <utility>
#include <variant>

#include <fmt/format.h>

#include "server/grpc/heartbeat.h"
#include "server/grpc/parse_request.h"
#include "server/grpc/status.h"
#include "server/grpc/stream_convert.h"
#include "server/grpc/wire_fields.h"
#include "server/session/limits.h"

namespace baton {
namespace {

/// What is wrong with all of a request is wrong with each of its items: the call lives on.
AppendSession::Output refused(const v1::AppendRequest& request, const Error& error) {
  AppendSession::Output outcomes;
  outcomes.batches.resize(static_cast<std::size_t>(request.batches_size()));
  outcomes.records.resize(static_cast<std::size_t>(request.records_size()));
  for (BatchOutcome& outcome : outcomes.batches) outcome.error = error;
  for (BatchOutcome& outcome : outcomes.records) outcome.error = error;
  return outcomes;
}

std::string encode_chunk(const Chunk& chunk) {
  std::string frame;
  frame.reserve(chunk.batches.size() + chunk.records.size() + 64);
  if (!chunk.batches.empty()) append_blob(frame, 1, chunk.batches);
  frame += chunk.records;
  append_number(frame, 3, static_cast<std::uint64_t>(chunk.next.value));
  append_number(frame, 4, static_cast<std::uint64_t>(chunk.end.value));
  return frame;
}

std::size_t count_items(const v1::SubscribeRequest& request) {
  std::size_t items = 0;
  for (const int count : {request.starts_size(), request.credits_size(), request.replies_size(),
                          request.offsets_size(), request.unsubscribes_size()}) {
    items += static_cast<std::size_t>(count);
  }
  return items;
}

SubscriptionSession::Request convert_request(const v1::SubscribeRequest& request) {
  SubscriptionSession::Request out;
  if (request.has_heartbeat()) out.heartbeat = request.heartbeat().number();
  for (const v1::Start& item : request.starts()) {
    out.starts.push_back({.id = SubscriptionId{item.id()}, .wanted = convert(item)});
  }
  for (const v1::Credit& item : request.credits()) {
    out.credits.push_back(
        {.id = SubscriptionId{item.id()}, .batches = item.batches(), .bytes = item.bytes()});
  }
  for (const v1::StoreSubscriptionOffset& item : request.offsets()) {
    out.offsets.push_back({.id = SubscriptionId{item.id()},
                           .partition = PartitionNumber{item.partition()},
                           .offset = item.offset(),
                           .epoch = Generation{item.epoch()}});
  }
  for (const v1::UpdateReply& item : request.replies()) {
    std::optional<GroupOffset> offset;
    if (item.has_offset() && item.offset() >= 0) {
      offset = GroupOffset{static_cast<std::uint64_t>(item.offset())};
    }
    out.replies.push_back({.id = SubscriptionId{item.id()},
                           .partition = PartitionNumber{item.partition()},
                           .generation = Generation{item.generation()},
                           .offset = offset});
  }
  for (const v1::Unsubscribe& item : request.unsubscribes()) {
    out.unsubscribes.push_back(SubscriptionId{item.id()});
  }
  return out;
}

// Fields of a SubscribeResponse, one after the other.

void append(std::string& frame, const SubscriptionSession::Started& said) {
  v1::Started started;
  started.set_id(said.id.value);
  started.set_ticket(said.ticket.value);
  for (const PartitionNumber partition : said.partitions) started.add_partitions(partition.value);
  append_blob(frame, 1, started.SerializeAsString());
}

void append(std::string& frame, const SubscriptionSession::Update& said) {
  v1::Update update;
  update.set_id(said.id.value);
  update.set_partition(said.partition.value);
  update.set_active(said.seat.active);
  update.set_stepping_down(said.seat.stepping_down);
  update.set_generation(said.seat.generation.value);
  if (said.offset.has_value()) update.set_offset(static_cast<std::int64_t>(said.offset->value));
  append_blob(frame, 2, update.SerializeAsString());
}

void append(std::string& frame, const SubscriptionSession::Batch& said) {
  const Chunk& chunk = said.chunk;
  std::string head;
  append_number(head, 1, said.id.value);
  append_number(head, 2, said.partition.value);
  append_number(head, 3, said.epoch.value);
  append_number(head, 6, static_cast<std::uint64_t>(chunk.next.value));
  append_number(head, 7, static_cast<std::uint64_t>(chunk.end.value));
  append_number(head, 8, chunk.batch_count);
  const std::size_t batches = chunk.batches.empty() ? 0 : blob_bytes(chunk.batches.size());
  const std::size_t size = head.size() + batches + chunk.records.size();
  frame.reserve(frame.size() + blob_bytes(size));
  frame.push_back(bytes_field(3));
  append_varint(frame, size);
  frame += head;
  if (!chunk.batches.empty()) append_blob(frame, 4, chunk.batches);
  frame += chunk.records;
}

void append(std::string& frame, const SubscriptionSession::OffsetStored& said) {
  v1::OffsetStored stored;
  stored.set_id(said.id.value);
  stored.set_partition(said.partition.value);
  stored.set_offset(said.offset);
  if (said.error.has_value()) *stored.mutable_error() = to_proto(*said.error);
  append_blob(frame, 4, stored.SerializeAsString());
}

void append(std::string& frame, const SubscriptionSession::Closed& said) {
  v1::Closed closed;
  closed.set_id(said.id.value);
  if (said.reason.has_value()) *closed.mutable_reason() = to_proto(*said.reason);
  append_blob(frame, 5, closed.SerializeAsString());
}

void append(std::string& frame, const HeartbeatAnswer& said) {
  append_blob(frame, 6, to_proto(said).SerializeAsString());
}

}  // namespace

Status AppendCall::take(grpc::ByteBuffer& request) {
  const std::size_t bytes = request.Length();
  v1::AppendRequest parsed;
  BATON_TRY_STATUS(parse_request(request, parsed));
  Result<AppendCommand> command = convert(parsed);
  if (command.has_value()) {
    session_.take(*std::move(command), bytes);
  } else {
    session_.refuse(refused(parsed, command.error()), bytes);
  }
  return {};
}

std::string AppendCall::next_frame(Lock& lock) {
  const AppendSession::Output outcomes = session_.take_output();
  lock.unlock();
  v1::AppendResponse response;
  reply(outcomes, response);
  return response.SerializeAsString();
}

std::string ReadCall::next_frame(Lock& lock) { return encode_chunk(session_.take_output(lock)); }

/// Damage of what is stored is no fault of the request.
grpc::Status ReadCall::to_grpc(const Status& status) const {
  grpc::Status made = StreamCall::to_grpc(status);
  if (status.has_value() || status.error().code != Errc::malformed) return made;
  return {grpc::StatusCode::DATA_LOSS, made.error_message(), made.error_details()};
}

Status SubscribeCall::take(grpc::ByteBuffer& request) {
  BATON_TRY_STATUS(parse_request(request, request_));
  if (const std::size_t items = count_items(request_); items > limits::kItemsPerRequest) {
    return Error{Errc::invalid_argument, fmt::format("the request has {} items; the limit is {}",
                                                     items, limits::kItemsPerRequest)};
  }
  session_.take(convert_request(request_));
  return {};
}

std::string SubscribeCall::next_frame(Lock& lock) {
  const SubscriptionSession::Output output = session_.take_output();
  lock.unlock();
  std::string frame;
  for (const SubscriptionSession::Said& said : output) {
    std::visit([&](const auto& part) { append(frame, part); }, said);
  }
  return frame;
}

}  // namespace baton
