#pragma once

#include <memory>
#include <utility>

#include <baton/v1/streams.grpc.pb.h>

#include "server/session/server_state.h"

namespace baton {

// As for queues: the streaming methods use raw bytes, the others messages.
using StreamsNamed = v1::StreamService::WithCallbackMethod_CreateStream<
    v1::StreamService::WithCallbackMethod_UpdateStream<
        v1::StreamService::WithCallbackMethod_DeleteStream<
            v1::StreamService::WithCallbackMethod_ListStreams<
                v1::StreamService::WithCallbackMethod_DescribeStream<
                    v1::StreamService::Service>>>>>;
using StreamsGrouped = v1::StreamService::WithCallbackMethod_ListGroups<
    v1::StreamService::WithCallbackMethod_DescribeGroup<
        v1::StreamService::WithCallbackMethod_EvaluateGroup<
            v1::StreamService::WithCallbackMethod_DeleteGroup<StreamsNamed>>>>;
using StreamsMoved = v1::StreamService::WithCallbackMethod_SetGroupOffsets<StreamsGrouped>;
using StreamsUnary = v1::StreamService::WithCallbackMethod_InitProducer<
    v1::StreamService::WithCallbackMethod_Append<v1::StreamService::WithCallbackMethod_StoreOffset<
        v1::StreamService::WithCallbackMethod_QueryOffset<StreamsMoved>>>>;
using StreamsBase = v1::StreamService::WithRawCallbackMethod_AppendStream<
    v1::StreamService::WithRawCallbackMethod_Read<
        v1::StreamService::WithRawCallbackMethod_Subscribe<StreamsUnary>>>;

/// baton.v1.StreamService of one server. Like QueueService, it never blocks a thread of gRPC.
class StreamService final : public StreamsBase {
 public:
  explicit StreamService(std::shared_ptr<ServerState> state) : state_(std::move(state)) {}

  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

  Reactor* CreateStream(Context* context, const v1::CreateStreamRequest* request,
                        v1::CreateStreamResponse* response) override;
  Reactor* UpdateStream(Context* context, const v1::UpdateStreamRequest* request,
                        v1::UpdateStreamResponse* response) override;
  Reactor* DeleteStream(Context* context, const v1::DeleteStreamRequest* request,
                        v1::DeleteStreamResponse* response) override;
  Reactor* ListStreams(Context* context, const v1::ListStreamsRequest* request,
                       v1::ListStreamsResponse* response) override;
  Reactor* DescribeStream(Context* context, const v1::DescribeStreamRequest* request,
                          v1::DescribeStreamResponse* response) override;
  Reactor* InitProducer(Context* context, const v1::InitProducerRequest* request,
                        v1::InitProducerResponse* response) override;
  Reactor* Append(Context* context, const v1::AppendRequest* request,
                  v1::AppendResponse* response) override;
  Reactor* StoreOffset(Context* context, const v1::StoreOffsetRequest* request,
                       v1::StoreOffsetResponse* response) override;
  Reactor* QueryOffset(Context* context, const v1::QueryOffsetRequest* request,
                       v1::QueryOffsetResponse* response) override;
  Reactor* ListGroups(Context* context, const v1::ListGroupsRequest* request,
                      v1::ListGroupsResponse* response) override;
  Reactor* DescribeGroup(Context* context, const v1::DescribeGroupRequest* request,
                         v1::DescribeGroupResponse* response) override;
  Reactor* EvaluateGroup(Context* context, const v1::EvaluateGroupRequest* request,
                         v1::EvaluateGroupResponse* response) override;
  Reactor* DeleteGroup(Context* context, const v1::DeleteGroupRequest* request,
                       v1::DeleteGroupResponse* response) override;
  Reactor* SetGroupOffsets(Context* context, const v1::SetGroupOffsetsRequest* request,
                           v1::SetGroupOffsetsResponse* response) override;

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* AppendStream(
      Context* context) override;
  grpc::ServerWriteReactor<grpc::ByteBuffer>* Read(Context* context,
                                                   const grpc::ByteBuffer* request) override;
  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Subscribe(Context* context) override;

 private:
  std::shared_ptr<ServerState> state_;
};

}  // namespace baton
