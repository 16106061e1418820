#include <memory>
#include <string>
#include <utility>

#include <baton/queue_handle.h>
#include <fmt/format.h>

#include "base/result.h"
#include "sdk/base/connection.h"
#include "sdk/base/errors.h"
#include "sdk/base/pages.h"
#include "sdk/queue/convert.h"

namespace baton::client {

namespace {

using Stub = v1::QueueService::Stub;

template <class Method, class Request>
auto call(const Connection& connection, Method method, const Request& request,
          const CallTerms& terms = {}) {
  return connection.call(*connection.queues, method, request, terms);
}

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

Result<QueueInfo> Queue::create(const QueueSettings& settings) const {
  v1::CreateQueueRequest request;
  request.set_name(name_);
  to_proto(settings, *request.mutable_settings());
  BATON_TRY(const auto response, call(*connection_, &Stub::CreateQueue, request));
  return from_proto(response.queue());
}

Result<QueueInfo> Queue::update(const QueueSettings& settings) const {
  v1::UpdateQueueRequest request;
  request.set_name(name_);
  to_proto(settings, *request.mutable_settings());
  BATON_TRY(const auto response, call(*connection_, &Stub::UpdateQueue, request));
  return from_proto(response.queue());
}

Status Queue::drop() const {
  v1::DeleteQueueRequest request;
  request.set_name(name_);
  BATON_TRY_STATUS(call(*connection_, &Stub::DeleteQueue, request));
  return {};
}

Result<std::vector<QueueInfo>> Queue::list(const ConnectionPointer& connection,
                                           std::string_view prefix) {
  v1::ListQueuesRequest request;
  request.set_prefix(std::string(prefix));
  std::vector<QueueInfo> queues;
  BATON_TRY_STATUS(walk_pages(
      request, [&](const auto& page) { return call(*connection, &Stub::ListQueues, page); },
      [&](const v1::ListQueuesResponse& page) {
        for (const v1::Queue& queue : page.queues()) queues.push_back(from_proto(queue));
      }));
  return queues;
}

Result<QueueInfo> Queue::describe() const {
  v1::DescribeQueueRequest request;
  request.set_name(name_);
  BATON_TRY(const auto response, call(*connection_, &Stub::DescribeQueue, request));
  return from_proto(response.queue());
}

Result<std::vector<EnqueueResult>> Queue::enqueue(std::span<const NewMessage> messages) const {
  v1::EnqueueRequest request;
  request.set_queue(name_);
  for (const NewMessage& message : messages) to_proto(message, *request.add_messages());
  BATON_TRY(auto response, call(*connection_, &Stub::Enqueue, request));
  return enqueue_results(response, messages.size());
}

Result<std::vector<EnqueueResult>> Queue::enqueue(std::vector<NewMessage>&& messages) const {
  v1::EnqueueRequest request;
  request.set_queue(name_);
  for (NewMessage& message : messages) to_proto(std::move(message), *request.add_messages());
  BATON_TRY(auto response, call(*connection_, &Stub::Enqueue, request));
  return enqueue_results(response, messages.size());
}

Result<std::vector<Status>> Queue::ack(std::span<const LeaseToken> tokens) const {
  v1::AckRequest request;
  request.set_queue(name_);
  for (const LeaseToken& token : tokens) request.add_lease_tokens(token.bytes);
  BATON_TRY(const auto response, call(*connection_, &Stub::Ack, request));
  return item_results(response, tokens.size());
}

Result<std::vector<Status>> Queue::nack(std::span<const Nack> items) const {
  v1::NackRequest request;
  request.set_queue(name_);
  for (const Nack& item : items) to_proto(item, *request.add_items());
  BATON_TRY(const auto response, call(*connection_, &Stub::Nack, request));
  return item_results(response, items.size());
}

Result<std::vector<Status>> Queue::extend(std::span<const Extension> items) const {
  v1::ExtendRequest request;
  request.set_queue(name_);
  for (const Extension& item : items) to_proto(item, *request.add_items());
  BATON_TRY(const auto response, call(*connection_, &Stub::Extend, request));
  return item_results(response, items.size());
}

Result<std::vector<PeekedMessage>> Queue::peek(std::uint32_t messages_max) const {
  v1::PeekRequest request;
  request.set_queue(name_);
  request.set_messages_max(messages_max);
  BATON_TRY(auto response, call(*connection_, &Stub::Peek, request));
  std::vector<PeekedMessage> messages;
  for (v1::PeekedMessage& message : *response.mutable_messages()) messages.push_back(take(message));
  return messages;
}

Result<PeekedMessage> Queue::peek_message(std::string_view id) const {
  v1::PeekRequest request;
  request.set_queue(name_);
  request.set_id(std::string(id));
  BATON_TRY(auto response, call(*connection_, &Stub::Peek, request));
  if (response.messages().empty()) {
    return Error{Errc::message_not_found, fmt::format("no message {} in queue {}", id, name_)};
  }
  return take(*response.mutable_messages(0));
}

Result<std::uint64_t> Queue::purge() const {
  v1::PurgeRequest request;
  request.set_queue(name_);
  BATON_TRY(const auto response, call(*connection_, &Stub::Purge, request));
  return response.purged();
}

Result<std::vector<Status>> Queue::cancel(std::span<const std::string> ids) const {
  v1::CancelRequest request;
  request.set_queue(name_);
  for (const std::string& id : ids) request.add_ids(id);
  BATON_TRY(const auto response, call(*connection_, &Stub::Cancel, request));
  return item_results(response, ids.size());
}

Result<RedriveReport> Queue::redrive(const RedriveOptions& options) const {
  v1::RedriveRequest request;
  request.set_queue(name_);
  request.set_to(options.to);
  request.set_messages_max(options.messages_max);
  request.set_reason_contains(options.reason_contains);
  request.set_source_queue(options.source_queue);
  request.set_rate(options.rate);
  request.set_dry_run(options.dry_run);
  BATON_TRY(const auto response, call(*connection_, &Stub::Redrive, request,
                                      {.deadline = std::chrono::milliseconds{0}}));
  return RedriveReport{
      .matched = response.matched(), .moved = response.moved(), .skipped = response.skipped()};
}

}  // namespace baton::client
