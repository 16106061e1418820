#pragma once

#include <baton/v1/streams.grpc.pb.h>

#include <memory>
#include <utility>

#include "server/session/server_state.h"

namespace baton {

// As for queues: the streaming methods take and give raw bytes, the others messages.
using StreamsNamed =
    v1::Streams::WithCallbackMethod_CreateStream<v1::Streams::WithCallbackMethod_UpdateStream<
        v1::Streams::WithCallbackMethod_DeleteStream<v1::Streams::WithCallbackMethod_ListStreams<
            v1::Streams::WithCallbackMethod_DescribeStream<v1::Streams::Service>>>>>;
using StreamsGrouped = v1::Streams::WithCallbackMethod_ListGroups<
    v1::Streams::WithCallbackMethod_DescribeGroup<v1::Streams::WithCallbackMethod_EvaluateGroup<
        v1::Streams::WithCallbackMethod_DeleteGroup<StreamsNamed>>>>;
using StreamsMoved = v1::Streams::WithCallbackMethod_SetGroupOffsets<StreamsGrouped>;
using StreamsUnary = v1::Streams::WithCallbackMethod_InitProducer<
    v1::Streams::WithCallbackMethod_Append<v1::Streams::WithCallbackMethod_StoreOffset<
        v1::Streams::WithCallbackMethod_QueryOffset<StreamsMoved>>>>;
using StreamsBase =
    v1::Streams::WithRawCallbackMethod_AppendStream<v1::Streams::WithRawCallbackMethod_Read<
        v1::Streams::WithRawCallbackMethod_Subscribe<StreamsUnary>>>;

/// baton.v1.Streams of one server. As QueueService, it never blocks a thread of gRPC.
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
