#include "server/grpc/stream_calls.h"

#include <utility>
#include <variant>

#include "base/assert.h"
#include "server/grpc/heartbeat.h"
#include "server/grpc/parse_request.h"
#include "server/grpc/status.h"
#include "server/grpc/stream_convert.h"
#include "server/grpc/wire_fields.h"

namespace baton {
namespace {

std::uint64_t to_unsigned(Offset offset) { return static_cast<std::uint64_t>(offset.value); }

/// An error of the whole request becomes the error of each item: the call continues.
AppendOutcomes refused(const v1::AppendRequest& request, const Error& error) {
  AppendOutcomes outcomes;
  outcomes.batches.resize(static_cast<std::size_t>(request.batches_size()));
  outcomes.records.resize(static_cast<std::size_t>(request.records_size()));
  for (BatchOutcome& outcome : outcomes.batches) outcome.error = error;
  for (BatchOutcome& outcome : outcomes.records) outcome.error = error;
  return outcomes;
}

std::string encode_chunk(const Chunk& chunk) {
  using Fields = v1::ReadResponse;
  std::string frame;
  frame.reserve(chunk.batches.size() + chunk.records.size() + 64);
  if (!chunk.batches.empty()) append_blob(frame, Fields::kBatchesFieldNumber, chunk.batches);
  frame += chunk.records;
  append_number(frame, Fields::kNextOffsetFieldNumber, to_unsigned(chunk.next));
  append_number(frame, Fields::kEndOffsetFieldNumber, to_unsigned(chunk.end));
  return frame;
}

/// Replaces the contents of `out`; its parts keep their memory.
void fill(subscription::Request& out, const v1::SubscribeRequest& request) {
  out.clear();
  if (request.has_heartbeat()) out.heartbeat = request.heartbeat().number();
  for (const v1::SubscribeRequest::Start& item : request.starts()) {
    out.starts.push_back({.id = SubscriptionId{item.id()}, .wanted = convert(item)});
  }
  for (const v1::SubscribeRequest::Credit& item : request.credits()) {
    out.credits.push_back({.id = SubscriptionId{item.id()},
                           .credit = {.batches = item.batches(), .bytes = item.bytes()}});
  }
  for (const v1::SubscribeRequest::StoreOffset& item : request.offsets()) {
    out.offsets.push_back({.id = SubscriptionId{item.id()},
                           .partition = PartitionNumber{item.partition()},
                           .offset = item.offset(),
                           .epoch = Generation{item.epoch()}});
  }
  for (const v1::SubscribeRequest::UpdateReply& item : request.replies()) {
    std::optional<GroupOffset> offset;
    if (item.has_offset() && item.offset() >= 0) {
      offset = GroupOffset{static_cast<std::uint64_t>(item.offset())};
    }
    out.replies.push_back({.id = SubscriptionId{item.id()},
                           .partition = PartitionNumber{item.partition()},
                           .generation = Generation{item.generation()},
                           .offset = offset});
  }
  for (const v1::SubscribeRequest::Unsubscribe& item : request.unsubscribes()) {
    out.unsubscribes.push_back(SubscriptionId{item.id()});
  }
}

// Fields of a SubscribeResponse, one after the other. A client that parses a response takes its
// fields in the order of their numbers, which is the order of the kinds in subscription::Said.
using Response = v1::SubscribeResponse;
static_assert(int{Response::kStartedFieldNumber} < int{Response::kUpdatesFieldNumber} &&
              int{Response::kUpdatesFieldNumber} < int{Response::kBatchesFieldNumber} &&
              int{Response::kBatchesFieldNumber} < int{Response::kStoredFieldNumber} &&
              int{Response::kStoredFieldNumber} < int{Response::kClosedFieldNumber} &&
              int{Response::kClosedFieldNumber} < int{Response::kHeartbeatFieldNumber});

void append(std::string& frame, const subscription::Started& said) {
  v1::SubscribeResponse::Started started;
  started.set_id(said.id.value);
  started.set_ticket(said.ticket.value);
  for (const PartitionNumber partition : said.partitions) started.add_partitions(partition.value);
  append_blob(frame, Response::kStartedFieldNumber, started.SerializeAsString());
}

void append(std::string& frame, const subscription::Update& said) {
  v1::SubscribeResponse::Update update;
  update.set_id(said.id.value);
  update.set_partition(said.partition.value);
  update.set_active(said.seat.active);
  update.set_stepping_down(said.seat.stepping_down);
  update.set_generation(said.seat.generation.value);
  if (said.offset.has_value()) update.set_offset(static_cast<std::int64_t>(said.offset->value));
  append_blob(frame, Response::kUpdatesFieldNumber, update.SerializeAsString());
}

/// Encoded by hand: the bytes of the batches are copied once, into the frame, and nothing else is
/// allocated.
void append(std::string& frame, const subscription::Batches& said) {
  using Fields = v1::SubscribeResponse::Batches;
  const Chunk& chunk = said.chunk;
  const std::size_t size = number_bytes(said.id.value) + number_bytes(said.partition.value) +
                           number_bytes(said.epoch.value) +
                           (chunk.batches.empty() ? 0 : blob_bytes(chunk.batches.size())) +
                           chunk.records.size() + number_bytes(to_unsigned(chunk.next)) +
                           number_bytes(to_unsigned(chunk.end)) + number_bytes(chunk.batch_count);
  frame.reserve(frame.size() + blob_bytes(size));
  frame.push_back(bytes_field(Response::kBatchesFieldNumber));
  append_varint(frame, size);
  const std::size_t begin = frame.size();
  append_number(frame, Fields::kIdFieldNumber, said.id.value);
  append_number(frame, Fields::kPartitionFieldNumber, said.partition.value);
  append_number(frame, Fields::kEpochFieldNumber, said.epoch.value);
  if (!chunk.batches.empty()) append_blob(frame, Fields::kBatchesFieldNumber, chunk.batches);
  frame += chunk.records;
  append_number(frame, Fields::kNextOffsetFieldNumber, to_unsigned(chunk.next));
  append_number(frame, Fields::kEndOffsetFieldNumber, to_unsigned(chunk.end));
  append_number(frame, Fields::kBatchCountFieldNumber, chunk.batch_count);
  // A wrong length would make the client read one field's bytes as another's.
  BATON_ASSERT(frame.size() - begin == size);
}

void append(std::string& frame, const subscription::OffsetStored& said) {
  v1::SubscribeResponse::OffsetStored stored;
  stored.set_id(said.id.value);
  stored.set_partition(said.partition.value);
  stored.set_offset(said.offset);
  if (said.error.has_value()) *stored.mutable_error() = to_proto(*said.error);
  append_blob(frame, Response::kStoredFieldNumber, stored.SerializeAsString());
}

void append(std::string& frame, const subscription::Closed& said) {
  v1::SubscribeResponse::Closed closed;
  closed.set_id(said.id.value);
  if (said.reason.has_value()) *closed.mutable_reason() = to_proto(*said.reason);
  append_blob(frame, Response::kClosedFieldNumber, closed.SerializeAsString());
}

void append(std::string& frame, const HeartbeatAnswer& said) {
  append_blob(frame, Response::kHeartbeatFieldNumber, to_proto(said).SerializeAsString());
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
  const AppendOutcomes outcomes = session_.take_output();
  lock.unlock();
  v1::AppendResponse response;
  reply(outcomes, response);
  return response.SerializeAsString();
}

std::string ReadCall::next_frame(Lock& lock) { return encode_chunk(session_.take_output(lock)); }

/// Damaged data on the disk is not an error of the request.
grpc::Status ReadCall::to_grpc(const Status& status) const {
  grpc::Status made = StreamCall::to_grpc(status);
  if (status.has_value() || status.error().code != Errc::malformed) return made;
  return {grpc::StatusCode::DATA_LOSS, made.error_message(), made.error_details()};
}

Status SubscribeCall::take(grpc::ByteBuffer& request) {
  BATON_TRY_STATUS(parse_request(request, request_));
  fill(wanted_, request_);
  return session_.take(wanted_);
}

std::string SubscribeCall::next_frame(Lock& lock) {
  session_.take_output(output_);
  lock.unlock();
  std::string frame;
  for (const subscription::Said& said : output_) {
    std::visit([&](const auto& part) { append(frame, part); }, said);
  }
  output_.clear();
  return frame;
}

}  // namespace baton
