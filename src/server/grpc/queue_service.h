#pragma once

#include <memory>

#include <baton/v1/queues.grpc.pb.h>

#include "server/session/server_state.h"

namespace baton {

// The streaming methods use raw bytes (see stream_port.h), the others messages. gRPC's generated
// code needs one layer per method.
using QueuesOperating = v1::QueueService::WithCallbackMethod_Peek<
    v1::QueueService::WithCallbackMethod_Purge<v1::QueueService::WithCallbackMethod_Cancel<
        v1::QueueService::WithCallbackMethod_Redrive<v1::QueueService::Service>>>>;
using QueuesNamed = v1::QueueService::WithCallbackMethod_CreateQueue<
    v1::QueueService::WithCallbackMethod_UpdateQueue<
        v1::QueueService::WithCallbackMethod_DeleteQueue<
            v1::QueueService::WithCallbackMethod_ListQueues<
                v1::QueueService::WithCallbackMethod_DescribeQueue<QueuesOperating>>>>>;
using QueuesBatched =
    v1::QueueService::WithCallbackMethod_Enqueue<v1::QueueService::WithCallbackMethod_Ack<
        v1::QueueService::WithCallbackMethod_Nack<v1::QueueService::WithCallbackMethod_Extend<
            v1::QueueService::WithCallbackMethod_Leave<QueuesNamed>>>>>;
using QueuesBase = v1::QueueService::WithRawCallbackMethod_EnqueueStream<
    v1::QueueService::WithRawCallbackMethod_Lease<
        v1::QueueService::WithRawCallbackMethod_Consume<QueuesBatched>>>;

/// `baton.v1.QueueService`. Owned by the ApiServer. Called by gRPC's threads, and never blocks one:
/// a unary call becomes a Call of the broker, which answers it from the shard's thread.
///
/// A unary call's reactor, request and response belong to gRPC; they live until Finish(), and
/// CallThen ensures that Finish() is called exactly once, whatever happens to the client or the
/// broker. A call that was cancelled or timed out before it is submitted is not executed.
class QueueService final : public QueuesBase {
 public:
  explicit QueueService(std::shared_ptr<ServerState> state) : state_(std::move(state)) {}

  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

  Reactor* CreateQueue(Context* context, const v1::CreateQueueRequest* request,
                       v1::CreateQueueResponse* response) override;
  Reactor* UpdateQueue(Context* context, const v1::UpdateQueueRequest* request,
                       v1::UpdateQueueResponse* response) override;
  Reactor* DeleteQueue(Context* context, const v1::DeleteQueueRequest* request,
                       v1::DeleteQueueResponse* response) override;
  Reactor* ListQueues(Context* context, const v1::ListQueuesRequest* request,
                      v1::ListQueuesResponse* response) override;
  Reactor* DescribeQueue(Context* context, const v1::DescribeQueueRequest* request,
                         v1::DescribeQueueResponse* response) override;
  Reactor* Enqueue(Context* context, const v1::EnqueueRequest* request,
                   v1::EnqueueResponse* response) override;
  Reactor* Ack(Context* context, const v1::AckRequest* request, v1::AckResponse* response) override;
  Reactor* Nack(Context* context, const v1::NackRequest* request,
                v1::NackResponse* response) override;
  Reactor* Extend(Context* context, const v1::ExtendRequest* request,
                  v1::ExtendResponse* response) override;
  Reactor* Leave(Context* context, const v1::LeaveRequest* request,
                 v1::LeaveResponse* response) override;
  Reactor* Peek(Context* context, const v1::PeekRequest* request,
                v1::PeekResponse* response) override;
  Reactor* Purge(Context* context, const v1::PurgeRequest* request,
                 v1::PurgeResponse* response) override;
  Reactor* Cancel(Context* context, const v1::CancelRequest* request,
                  v1::CancelResponse* response) override;
  Reactor* Redrive(Context* context, const v1::RedriveRequest* request,
                   v1::RedriveResponse* response) override;

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* EnqueueStream(
      Context* context) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* Lease(Context* context,
                                                    const grpc::ByteBuffer* request) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Consume(Context* context) override;

 private:
  std::shared_ptr<ServerState> state_;
};

}  // namespace baton
