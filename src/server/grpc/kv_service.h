#pragma once

#include <baton/v1/kv.grpc.pb.h>

#include <memory>
#include <utility>

#include "server/session/server_state.h"

namespace baton {

// As for streams: the watch takes and gives raw bytes, the others messages.
using KvBuckets = v1::Kv::WithCallbackMethod_CreateBucket<
    v1::Kv::WithCallbackMethod_DeleteBucket<v1::Kv::WithCallbackMethod_ListBuckets<
        v1::Kv::WithCallbackMethod_DescribeBucket<v1::Kv::Service>>>>;
using KvUnary = v1::Kv::WithCallbackMethod_Get<v1::Kv::WithCallbackMethod_Put<
    v1::Kv::WithCallbackMethod_Delete<v1::Kv::WithCallbackMethod_List<KvBuckets>>>>;
using KvBase = v1::Kv::WithRawCallbackMethod_Watch<KvUnary>;

/// baton.v1.Kv of one server. As QueueService, it never blocks a thread of gRPC.
class KvService final : public KvBase {
 public:
  explicit KvService(std::shared_ptr<ServerState> state) : state_(std::move(state)) {}

  using Context = grpc::CallbackServerContext;
  using Reactor = grpc::ServerUnaryReactor;

  Reactor* CreateBucket(Context* context, const v1::CreateBucketRequest* request,
                        v1::CreateBucketResponse* response) override;
  Reactor* DeleteBucket(Context* context, const v1::DeleteBucketRequest* request,
                        v1::DeleteBucketResponse* response) override;
  Reactor* ListBuckets(Context* context, const v1::ListBucketsRequest* request,
                       v1::ListBucketsResponse* response) override;
  Reactor* DescribeBucket(Context* context, const v1::DescribeBucketRequest* request,
                          v1::DescribeBucketResponse* response) override;
  Reactor* Get(Context* context, const v1::KvGetRequest* request,
               v1::KvGetResponse* response) override;
  Reactor* Put(Context* context, const v1::KvPutRequest* request,
               v1::KvPutResponse* response) override;
  Reactor* Delete(Context* context, const v1::KvDeleteRequest* request,
                  v1::KvDeleteResponse* response) override;
  Reactor* List(Context* context, const v1::KvListRequest* request,
                v1::KvListResponse* response) override;

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* Watch(Context* context) override;

 private:
  std::shared_ptr<ServerState> state_;
};

}  // namespace baton
