#include "server/grpc/queue_service.h"

#include <utility>
#include <vector>

#include "server/grpc/gather.h"
#include "server/grpc/parse_request.h"
#include "server/grpc/queue_calls.h"
#include "server/grpc/queue_convert.h"
#include "server/grpc/queue_reply.h"
#include "server/grpc/stream_port.h"
#include "server/grpc/unary.h"

namespace baton {
namespace {

using Reactor = QueueService::Reactor;

}  // namespace

Reactor* QueueService::CreateQueue(Context* context, const v1::CreateQueueRequest* request,
                                   v1::CreateQueueResponse* response) {
  return run(UnaryCall(context, state_, Operation::create_queue), convert(own(request)),
             [response](const CreateQueueCommand& done) {
               describe(done.description, *response->mutable_queue());
             });
}

Reactor* QueueService::UpdateQueue(Context* context, const v1::UpdateQueueRequest* request,
                                   v1::UpdateQueueResponse* response) {
  return run(UnaryCall(context, state_, Operation::update_queue), convert(own(request)),
             [response](const UpdateQueueCommand& done) {
               describe(done.description, *response->mutable_queue());
             });
}

Reactor* QueueService::DeleteQueue(Context* context, const v1::DeleteQueueRequest* request,
                                   v1::DeleteQueueResponse* /*response*/) {
  return run(UnaryCall(context, state_, Operation::delete_queue), convert(own(request)),
             [](const DeleteQueueCommand&) {});
}

Reactor* QueueService::DescribeQueue(Context* context, const v1::DescribeQueueRequest* request,
                                     v1::DescribeQueueResponse* response) {
  return run(UnaryCall(context, state_, Operation::describe_queue), convert(own(request)),
             [response](const DescribeQueueCommand& done) {
               describe(done.description, *response->mutable_queue());
             });
}

Reactor* QueueService::ListQueues(Context* context, const v1::ListQueuesRequest* request,
                                  v1::ListQueuesResponse* response) {
  return ask_for_page(UnaryCall(context, state_, Operation::list_queues), convert(*request),
                      [response](std::vector<ListQueuesCommand>& answers, const Page& page) {
                        constexpr auto kKey = &QueueDescription::name;
                        const auto listed = merge_page(answers, &ListQueuesCommand::descriptions,
                                                       kKey, page.items_max);
                        response->set_next_page_token(fill_page(
                            page, listed, *response->mutable_queues(), kKey,
                            [](const auto& queue, v1::Queue& shown) { describe(queue, shown); }));
                      });
}

Reactor* QueueService::Enqueue(Context* context, const v1::EnqueueRequest* request,
                               v1::EnqueueResponse* response) {
  return run_items(UnaryCall(context, state_, Operation::enqueue), convert(own(request)),
                   Broker::Admission::bounded, [response](const Results<EnqueueOutcome>& results) {
                     return reply(results, *response);
                   });
}

Reactor* QueueService::Ack(Context* context, const v1::AckRequest* request,
                           v1::AckResponse* response) {
  return run_items(UnaryCall(context, state_, Operation::ack),
                   convert(own(request), state_->broker.token_seal()), Broker::Admission::reserved,
                   [response](const Results<ItemOutcome>& results) {
                     return reply(results, *response->mutable_results());
                   });
}

Reactor* QueueService::Nack(Context* context, const v1::NackRequest* request,
                            v1::NackResponse* response) {
  return run_items(UnaryCall(context, state_, Operation::nack),
                   convert(own(request), state_->broker.token_seal()), Broker::Admission::reserved,
                   [response](const Results<ItemOutcome>& results) {
                     return reply(results, *response->mutable_results());
                   });
}

Reactor* QueueService::Extend(Context* context, const v1::ExtendRequest* request,
                              v1::ExtendResponse* response) {
  return run_items(UnaryCall(context, state_, Operation::extend),
                   convert(own(request), state_->broker.token_seal()), Broker::Admission::reserved,
                   [response](const Results<ItemOutcome>& results) {
                     return reply(results, *response->mutable_results());
                   });
}

Reactor* QueueService::Leave(Context* context, const v1::LeaveRequest* request,
                             v1::LeaveResponse* response) {
  return run(UnaryCall(context, state_, Operation::leave), convert(own(request)),
             [response](const LeaveCommand& done) { response->set_released(done.released); });
}

Reactor* QueueService::Peek(Context* context, const v1::PeekRequest* request,
                            v1::PeekResponse* response) {
  return run(UnaryCall(context, state_, Operation::peek), convert(own(request)),
             [response](const PeekCommand& done) { show(done.messages, *response); });
}

Reactor* QueueService::Purge(Context* context, const v1::PurgeRequest* request,
                             v1::PurgeResponse* response) {
  return run(UnaryCall(context, state_, Operation::purge), convert(own(request)),
             [response](const PurgeCommand& done) { response->set_purged(done.purged); });
}

Reactor* QueueService::Cancel(Context* context, const v1::CancelRequest* request,
                              v1::CancelResponse* response) {
  return run_items(UnaryCall(context, state_, Operation::cancel), convert(own(request)),
                   Broker::Admission::bounded, [response](const Results<ItemOutcome>& results) {
                     return reply(results, *response->mutable_results());
                   });
}

Reactor* QueueService::Redrive(Context* context, const v1::RedriveRequest* request,
                               v1::RedriveResponse* response) {
  const UnaryCall call(context, state_, Operation::redrive);
  const auto reply_to = [response](const RedriveCommand& done) {
    response->set_matched(done.matched);
    response->set_moved(done.moved);
    response->set_skipped(done.skipped);
  };
  Result<RedriveCommand> command = convert(own(request));
  if (!command.has_value() || command->to.empty()) return run(call, std::move(command), reply_to);
  // The target may be in another shard, which creates the queue when a message arrives there.
  DescribeQueueCommand target;
  target.queue = command->to;
  submit(state_->broker, std::move(target), Broker::Admission::bounded,
         [call, reply_to, command = *std::move(command)](Command* done) mutable {
           const auto* const found = answer_of<DescribeQueueCommand>(done);
           if (found == nullptr) return call.finish(to_status(busy()));
           if (found->error.has_value()) return call.finish(to_status(*found->error));
           run(call, Result<RedriveCommand>(std::move(command)), reply_to);
         });
  return call.reactor();
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* QueueService::EnqueueStream(
    Context* context) {
  const auto call = std::make_shared<EnqueueCall>(state_);
  auto* const reactor = new BidiReactor(context, state_, Operation::enqueue_stream, call);
  call->open(*reactor, true);
  return reactor;
}

grpc::ServerWriteReactor<grpc::ByteBuffer>* QueueService::Lease(Context* context,
                                                                const grpc::ByteBuffer* request) {
  const auto call = std::make_shared<ConsumerCall>(state_);
  auto* const reactor = new WriteReactor(context, state_, Operation::lease, call);
  v1::LeaseRequest lease;
  if (const Status parsed = parse_request(own(request), lease); !parsed.has_value()) {
    call->session()->end(parsed);
  } else if (Result<AttachCommand> command = convert(lease); !command.has_value()) {
    call->session()->end(command.error());
  } else if (!call->session()->is_ending()) {
    call->attach(*std::move(command));
  }
  call->open(*reactor, false);
  return reactor;
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* QueueService::Consume(
    Context* context) {
  const auto call = std::make_shared<ConsumerCall>(state_);
  auto* const reactor = new BidiReactor(context, state_, Operation::consume, call);
  call->open(*reactor, true);
  return reactor;
}

}  // namespace baton
