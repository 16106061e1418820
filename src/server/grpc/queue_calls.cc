#include "server/grpc/queue_calls.h"

#include <utility>

#include "server/grpc/heartbeat.h"
#include "server/grpc/parse_request.h"
#include "server/grpc/queue_convert.h"
#include "server/grpc/queue_wire.h"
#include "server/session/limits.h"

namespace baton {
namespace {

/// The items of `request`. An error of the whole request becomes the error of each message: the
/// call continues.
CheckedItems<EnqueueCommand> checked_items(v1::EnqueueRequest& request) {
  const auto items = static_cast<std::size_t>(request.messages_size());
  Result<CheckedItems<EnqueueCommand>> checked = convert(request);
  if (checked.has_value()) return *std::move(checked);
  CheckedItems<EnqueueCommand> refused;
  refused.items = items;
  for (std::size_t i = 0; i < items; ++i) refused.refused.push_back({i, checked.error()});
  return refused;
}

}  // namespace

Status EnqueueCall::take(grpc::ByteBuffer& request) {
  const std::size_t bytes = request.Length();
  BATON_TRY_STATUS(parse_request(request, request_));
  CheckedItems<EnqueueCommand> checked = checked_items(request_);
  // Memory of a refused or an unusually large request is not kept for the life of the call.
  if (!checked.refused.empty() || checked.items > limits::kFrameMessages * 4) request_ = {};
  session_.take(std::move(checked), bytes);
  return {};
}

std::string EnqueueCall::next_frame(Lock& lock) {
  const EnqueueSession::Output results = session_.take_output();
  lock.unlock();
  std::string frame;
  append_enqueued(frame, results);
  return frame;
}

void ConsumerCall::use_tokens_of(const std::string& queue) {
  queue_ = queue;
  tokens_ = state_->broker.token_seal().of(queue_);
}

void ConsumerCall::attach(AttachCommand command) {
  use_tokens_of(command.queue);
  const Status taken = session_.take({.start = std::move(command)});
  if (!taken.has_value()) session_.end(taken);
}

Status ConsumerCall::take(grpc::ByteBuffer& request) {
  ConsumerSession::Request wanted{.bytes = request.Length()};
  BATON_TRY_STATUS(parse_request(request, request_));
  if (request_.has_heartbeat()) wanted.heartbeat = request_.heartbeat().number();
  if (request_.has_start()) {
    BATON_TRY(wanted.start, convert(*request_.mutable_start()));
    // The session refuses a second start.
    if (queue_.empty()) use_tokens_of(wanted.start->queue);
  }
  BATON_TRY(wanted.items, convert_items(request_, queue_, tokens_));
  return session_.take(std::move(wanted));
}

std::string ConsumerCall::next_frame(Lock& lock) {
  ConsumerSession::Output output = session_.take_output();
  lock.unlock();
  if (output.heartbeat.has_value()) {
    v1::ConsumeResponse answer;
    *answer.mutable_heartbeat() = to_proto(*output.heartbeat);
    return answer.SerializeAsString();
  }
  std::size_t bytes = 0;
  for (const Delivery& delivery : output.deliveries) bytes += delivery_bytes(delivery);
  std::string frame;
  frame.reserve(bytes);
  if (output.registered.has_value()) {
    append_registered(frame, output.registered->consumer_id, output.registered->visibility_timeout);
  }
  for (const ConsumerSession::ItemResults& results : output.results) {
    append_results(frame, ResultField::acks, results.acks);
    append_results(frame, ResultField::nacks, results.nacks);
    append_results(frame, ResultField::extends, results.extends);
  }
  for (const Delivery& delivery : output.deliveries) append_delivery(frame, delivery, tokens_);
  if (output.quiesced) append_quiesced(frame);
  return frame;
}

}  // namespace baton
