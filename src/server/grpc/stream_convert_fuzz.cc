// Every request of the Streams service with arbitrary bytes: the conversion returns a command
// within the limits, or an error with a text.

#include <cstddef>
#include <cstdint>
#include <string>

#include <baton/v1/streams.pb.h>

#include "base/assert.h"
#include "base/names.h"
#include "server/grpc/convert_fuzz.h"
#include "server/grpc/stream_convert.h"

namespace {

void check_stream(const std::string& name) {
  BATON_ASSERT(baton::validate_stream_name(name).has_value());
}
void check_from(const baton::ReadFrom& from) { BATON_ASSERT(from.offset.value >= 0); }

void check(const baton::subscription::Wanted& wanted) {
  check_stream(wanted.command.stream);
  check_from(wanted.from);
  BATON_ASSERT(!wanted.command.single_active || !wanted.command.group.empty());
  BATON_ASSERT(wanted.command.group.size() <= baton::limits::kGroupNameBytes);
  BATON_ASSERT(wanted.command.owner.size() <= baton::limits::kOwnerLabelBytes);
  BATON_ASSERT(wanted.command.partitions.size() <= baton::limits::kPartitionsPerStreamMax);
  BATON_ASSERT(wanted.credit.batches <= baton::limits::kCreditMax);
  BATON_ASSERT(wanted.credit.bytes <= baton::limits::kCreditMax);
}
void check(const baton::ReadWanted& wanted) {
  check_stream(wanted.open.stream);
  check_from(wanted.wanted.from);
}
void check(const baton::AppendCommand& command) {
  check_stream(command.stream);
  BATON_ASSERT(command.batches.size() + command.records.size() <= baton::limits::kItemsPerRequest);
}
void check(const baton::StoreOffsetCommand& command) {
  check_stream(command.stream);
  BATON_ASSERT(static_cast<std::int64_t>(command.request.offset.value) >= 0);
  BATON_ASSERT(command.request.group.stream == command.stream);
}
template <class Command>
void check(const baton::Paged<Command>& list) {
  baton::check_page(list);
}
template <class Command>
void check(const Command& command) {
  check_stream(command.stream);
}

template <class Request>
void try_request(const std::string& bytes) {
  Request request;
  if (!request.ParseFromString(bytes)) return;
  const auto result = baton::convert(request);
  baton::check_result(result, [](const auto& converted) { check(converted); });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  namespace v1 = baton::v1;
  const std::string input(reinterpret_cast<const char*>(bytes), size);  // NOLINT
  try_request<v1::CreateStreamRequest>(input);
  try_request<v1::UpdateStreamRequest>(input);
  try_request<v1::DeleteStreamRequest>(input);
  try_request<v1::DescribeStreamRequest>(input);
  try_request<v1::ListStreamsRequest>(input);
  try_request<v1::ListGroupsRequest>(input);
  try_request<v1::InitProducerRequest>(input);
  try_request<v1::StoreOffsetRequest>(input);
  try_request<v1::QueryOffsetRequest>(input);
  try_request<v1::ReadRequest>(input);
  try_request<v1::AppendRequest>(input);
  try_request<v1::SubscribeRequest::Start>(input);
  v1::SubscribeRequest subscribe;
  if (subscribe.ParseFromString(input)) {
    for (const v1::SubscribeRequest::Start& start : subscribe.starts())
      try_request<v1::SubscribeRequest::Start>(start.SerializeAsString());
  }
  return 0;
}
