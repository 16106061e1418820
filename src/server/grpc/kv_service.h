#pragma once

#include <memory>
#include <utility>

#include <baton/v1/kv.grpc.pb.h>

#include "server/session/server_state.h"

namespace baton {

// As for streams: the watch uses raw bytes, the other methods messages.
using KvBuckets = v1::KvService::WithCallbackMethod_CreateBucket<
    v1::KvService::WithCallbackMethod_DeleteBucket<v1::KvService::WithCallbackMethod_ListBuckets<
        v1::KvService::WithCallbackMethod_DescribeBucket<v1::KvService::Service>>>>;
using KvUnary = v1::KvService::WithCallbackMethod_GetKey<
    v1::KvService::WithCallbackMethod_PutKey<v1::KvService::WithCallbackMethod_DeleteKey<
        v1::KvService::WithCallbackMethod_ListKeys<KvBuckets>>>>;
using KvBase = v1::KvService::WithRawCallbackMethod_WatchKeys<KvUnary>;

/// baton.v1.KvService of one server. Like QueueService, it never blocks a thread of gRPC.
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
  Reactor* GetKey(Context* context, const v1::GetKeyRequest* request,
                  v1::GetKeyResponse* response) override;
  Reactor* PutKey(Context* context, const v1::PutKeyRequest* request,
                  v1::PutKeyResponse* response) override;
  Reactor* DeleteKey(Context* context, const v1::DeleteKeyRequest* request,
                     v1::DeleteKeyResponse* response) override;
  Reactor* ListKeys(Context* context, const v1::ListKeysRequest* request,
                    v1::ListKeysResponse* response) override;

  grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* WatchKeys(Context* context) override;

 private:
  std::shared_ptr<ServerState> state_;
};

}  // namespace baton
