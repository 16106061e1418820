// Every request with arbitrary bytes: the conversion returns a command within the limits, or an
// error with a text.

#include <cstddef>
#include <cstdint>
#include <string>

#include <baton/v1/queues.pb.h>

#include "base/assert.h"
#include "server/grpc/convert_fuzz.h"
#include "server/grpc/queue_convert.h"

namespace {

template <class T>
void check_items(const baton::CheckedItems<T>& checked, std::size_t good) {
  BATON_ASSERT(checked.refused.size() + good == checked.items);
  std::size_t next = 0;
  for (const baton::Refused& refused : checked.refused) {
    BATON_ASSERT(refused.index >= next && refused.index < checked.items);
    BATON_ASSERT(!refused.error.text.empty());
    next = refused.index + 1;
  }
}

void check(const baton::CheckedItems<baton::EnqueueCommand>& checked) {
  check_items(checked, checked.command.messages.size());
  for (const auto& message : checked.command.messages) {
    BATON_ASSERT(baton::validate(message).has_value());
  }
}
void check(const baton::CheckedItems<baton::AckCommand>& checked) {
  check_items(checked, checked.command.tokens.size());
}
void check(const baton::CheckedItems<baton::NackCommand>& checked) {
  check_items(checked, checked.command.items.size());
}
void check(const baton::CheckedItems<baton::ExtendCommand>& checked) {
  check_items(checked, checked.command.items.size());
}
void check(const baton::CheckedItems<baton::CancelCommand>& checked) {
  check_items(checked, checked.command.ids.size());
}
template <class Command>
void check(const baton::Paged<Command>& list) {
  baton::check_page(list);
}
template <class Command>
void check(const Command& /*command*/) {}

template <class Request>
void try_request(const std::string& bytes) {
  Request request;
  if (!request.ParseFromString(bytes)) return;
  const auto result = [&] {
    if constexpr (requires { baton::convert(request, baton::TokenSeal{}); }) {
      return baton::convert(request, baton::TokenSeal{});
    } else {
      return baton::convert(request);
    }
  }();
  baton::check_result(result, [](const auto& converted) { check(converted); });
}

void try_consume(const std::string& bytes) {
  baton::v1::ConsumeRequest request;
  if (!request.ParseFromString(bytes)) return;
  baton::v1::ConsumeStart copy = request.start();
  const auto start = baton::convert(copy);
  BATON_ASSERT(start.has_value() || !start.error().text.empty());
  const auto items = baton::convert_items(request, "queue", baton::TokenSeal{}.of("queue"));
  if (!items.has_value()) return;
  check(items->acks);
  check(items->nacks);
  check(items->extends);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  namespace v1 = baton::v1;
  const std::string input(reinterpret_cast<const char*>(bytes), size);  // NOLINT
  try_request<v1::CreateQueueRequest>(input);
  try_request<v1::UpdateQueueRequest>(input);
  try_request<v1::DeleteQueueRequest>(input);
  try_request<v1::DescribeQueueRequest>(input);
  try_request<v1::ListQueuesRequest>(input);
  try_request<v1::EnqueueRequest>(input);
  try_request<v1::AckRequest>(input);
  try_request<v1::NackRequest>(input);
  try_request<v1::ExtendRequest>(input);
  try_request<v1::LeaveRequest>(input);
  try_request<v1::PeekRequest>(input);
  try_request<v1::PurgeRequest>(input);
  try_request<v1::CancelRequest>(input);
  try_request<v1::RedriveRequest>(input);
  try_request<v1::LeaseRequest>(input);
  try_consume(input);
  return 0;
}
