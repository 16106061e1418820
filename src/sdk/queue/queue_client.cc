#include <baton/queue_client.h>

#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <grpcpp/client_context.h>

#include <baton/v1/queues.grpc.pb.h>

#include "base/result.h"
#include "sdk/base/channel.h"
#include "sdk/base/errors.h"
#include "sdk/queue/convert.h"

namespace baton::client {

struct QueueClient::State {
  ConnectionOptions options;
  std::shared_ptr<grpc::Channel> channel;
  std::unique_ptr<v1::Queues::Stub> stub;

  /// One unary call: `method` is the stub's, `deadline` 0 for none.
  template <class Request, class Response>
  Result<Response> call(grpc::Status (v1::Queues::Stub::*method)(grpc::ClientContext*,
                                                                 const Request&, Response*),
                        const Request& request, std::chrono::milliseconds deadline) {
    grpc::ClientContext context;
    if (deadline.count() > 0) context.set_deadline(std::chrono::system_clock::now() + deadline);
    Response response;
    const grpc::Status status = (stub.get()->*method)(&context, request, &response);
    if (!status.ok()) return from_grpc(status, options.address);
    return response;
  }
  template <class Request, class Response>
  Result<Response> call(grpc::Status (v1::Queues::Stub::*method)(grpc::ClientContext*,
                                                                 const Request&, Response*),
                        const Request& request) {
    return call(method, request, options.deadline);
  }
};

namespace {

using Stub = v1::Queues::Stub;

std::string text(std::string_view view) { return std::string(view); }

template <class Response>
Result<std::vector<Status>> item_results(const Response& response, std::size_t items) {
  if (static_cast<std::size_t>(response.results_size()) != items) {
    return Error{Errc::internal, fmt::format("the broker answered {} results to {} items",
                                             response.results_size(), items)};
  }
  std::vector<Status> results;
  results.reserve(items);
  for (const v1::ItemResult& result : response.results()) results.push_back(from_proto(result));
  return results;
}

Result<std::vector<EnqueueResult>> enqueue_results(v1::EnqueueResponse& response,
                                                   std::size_t items) {
  if (static_cast<std::size_t>(response.results_size()) != items) {
    return Error{Errc::internal, fmt::format("the broker answered {} results to {} messages",
                                             response.results_size(), items)};
  }
  std::vector<EnqueueResult> results;
  results.reserve(items);
  for (v1::EnqueueResult& result : *response.mutable_results()) results.push_back(take(result));
  return results;
}

}  // namespace

QueueClient::QueueClient(std::unique_ptr<State> state) : state_(std::move(state)) {}
QueueClient::QueueClient(QueueClient&&) noexcept = default;
QueueClient& QueueClient::operator=(QueueClient&&) noexcept = default;
QueueClient::~QueueClient() = default;

Result<QueueClient> QueueClient::connect(ConnectionOptions options) {
  auto state = std::make_unique<State>();
  BATON_TRY(state->channel, make_channel(options));
  state->stub = v1::Queues::NewStub(state->channel);
  state->options = std::move(options);
  return QueueClient(std::move(state));
}

Status QueueClient::wait_until_ready(std::chrono::milliseconds timeout) {
  if (state_->channel->WaitForConnected(std::chrono::system_clock::now() + timeout)) return {};
  return Error{Errc::unavailable, fmt::format("cannot reach the broker at {} within {} ms",
                                              state_->options.address, timeout.count())};
}

Result<QueueInfo> QueueClient::create_queue(std::string_view name, const QueueSettings& settings) {
  v1::CreateQueueRequest request;
  request.set_name(text(name));
  to_proto(settings, *request.mutable_settings());
  BATON_TRY(const auto response, state_->call(&Stub::CreateQueue, request));
  return from_proto(response.queue());
}

Result<QueueInfo> QueueClient::update_queue(std::string_view name, const QueueSettings& settings) {
  v1::UpdateQueueRequest request;
  request.set_name(text(name));
  to_proto(settings, *request.mutable_settings());
  BATON_TRY(const auto response, state_->call(&Stub::UpdateQueue, request));
  return from_proto(response.queue());
}

Status QueueClient::delete_queue(std::string_view name) {
  v1::DeleteQueueRequest request;
  request.set_name(text(name));
  BATON_TRY_STATUS(state_->call(&Stub::DeleteQueue, request));
  return {};
}

Result<std::vector<QueueInfo>> QueueClient::list_queues(std::string_view prefix) {
  v1::ListQueuesRequest request;
  request.set_prefix(text(prefix));
  BATON_TRY(const auto response, state_->call(&Stub::ListQueues, request));
  std::vector<QueueInfo> queues;
  for (const v1::Queue& queue : response.queues()) queues.push_back(from_proto(queue));
  return queues;
}

Result<QueueInfo> QueueClient::describe_queue(std::string_view name) {
  v1::DescribeQueueRequest request;
  request.set_name(text(name));
  BATON_TRY(const auto response, state_->call(&Stub::DescribeQueue, request));
  return from_proto(response.queue());
}

Result<std::vector<EnqueueResult>> QueueClient::enqueue(std::string_view queue,
                                                        std::span<const NewMessage> messages) {
  v1::EnqueueRequest request;
  request.set_queue(text(queue));
  for (const NewMessage& message : messages) to_proto(message, *request.add_messages());
  BATON_TRY(auto response, state_->call(&Stub::Enqueue, request));
  return enqueue_results(response, messages.size());
}

Result<std::vector<EnqueueResult>> QueueClient::enqueue(std::string_view queue,
                                                        std::vector<NewMessage>&& messages) {
  v1::EnqueueRequest request;
  request.set_queue(text(queue));
  for (NewMessage& message : messages) to_proto(std::move(message), *request.add_messages());
  BATON_TRY(auto response, state_->call(&Stub::Enqueue, request));
  return enqueue_results(response, messages.size());
}

Result<std::vector<Status>> QueueClient::ack(std::string_view queue,
                                             std::span<const LeaseToken> tokens) {
  v1::AckRequest request;
  request.set_queue(text(queue));
  for (const LeaseToken& token : tokens) request.add_lease_tokens(token.bytes);
  BATON_TRY(const auto response, state_->call(&Stub::Ack, request));
  return item_results(response, tokens.size());
}

Result<std::vector<Status>> QueueClient::nack(std::string_view queue, std::span<const Nack> items) {
  v1::NackRequest request;
  request.set_queue(text(queue));
  for (const Nack& item : items) to_proto(item, *request.add_items());
  BATON_TRY(const auto response, state_->call(&Stub::Nack, request));
  return item_results(response, items.size());
}

Result<std::vector<Status>> QueueClient::extend(std::string_view queue,
                                                std::span<const Extension> items) {
  v1::ExtendRequest request;
  request.set_queue(text(queue));
  for (const Extension& item : items) to_proto(item, *request.add_items());
  BATON_TRY(const auto response, state_->call(&Stub::Extend, request));
  return item_results(response, items.size());
}

Result<std::vector<PeekedMessage>> QueueClient::peek(std::string_view queue, std::uint32_t max) {
  v1::PeekRequest request;
  request.set_queue(text(queue));
  request.set_max(max);
  BATON_TRY(auto response, state_->call(&Stub::Peek, request));
  std::vector<PeekedMessage> messages;
  for (v1::PeekedMessage& message : *response.mutable_messages()) messages.push_back(take(message));
  return messages;
}

Result<PeekedMessage> QueueClient::peek_message(std::string_view queue, std::string_view id) {
  v1::PeekRequest request;
  request.set_queue(text(queue));
  request.set_id(text(id));
  BATON_TRY(auto response, state_->call(&Stub::Peek, request));
  if (response.messages().empty()) {
    return Error{Errc::message_not_found, fmt::format("no message {} in queue {}", id, queue)};
  }
  return take(*response.mutable_messages(0));
}

Result<std::uint64_t> QueueClient::purge(std::string_view queue) {
  v1::PurgeRequest request;
  request.set_queue(text(queue));
  BATON_TRY(const auto response, state_->call(&Stub::Purge, request));
  return response.purged();
}

Result<std::vector<Status>> QueueClient::cancel(std::string_view queue,
                                                std::span<const std::string> ids) {
  v1::CancelRequest request;
  request.set_queue(text(queue));
  for (const std::string& id : ids) request.add_ids(id);
  BATON_TRY(const auto response, state_->call(&Stub::Cancel, request));
  return item_results(response, ids.size());
}

Result<RedriveReport> QueueClient::redrive(std::string_view dead_letter_queue,
                                           const RedriveOptions& options) {
  v1::RedriveRequest request;
  request.set_queue(text(dead_letter_queue));
  request.set_to(options.to);
  request.set_max(options.messages_max);
  request.set_reason_contains(options.reason_contains);
  request.set_source_queue(options.source_queue);
  request.set_rate(options.rate);
  request.set_dry_run(options.dry_run);
  BATON_TRY(const auto response,
            state_->call(&Stub::Redrive, request, std::chrono::milliseconds{0}));
  return RedriveReport{
      .matched = response.matched(), .moved = response.moved(), .skipped = response.skipped()};
}

}  // namespace baton::client
