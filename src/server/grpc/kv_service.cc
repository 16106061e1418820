#include "server/grpc/kv_service.h"

#include <vector>

#include "server/grpc/gather.h"
#include "server/grpc/kv_calls.h"
#include "server/grpc/kv_convert.h"
#include "server/grpc/stream_port.h"
#include "server/grpc/unary.h"

namespace baton {
namespace {

using Reactor = KvService::Reactor;

}  // namespace

Reactor* KvService::CreateBucket(Context* context, const v1::CreateBucketRequest* request,
                                 v1::CreateBucketResponse* response) {
  return run(UnaryCall(context, state_, Operation::create_bucket), convert(*request),
             [response](const CreateBucketCommand& done) {
               describe(done.description, *response->mutable_bucket());
             });
}

Reactor* KvService::DeleteBucket(Context* context, const v1::DeleteBucketRequest* request,
                                 v1::DeleteBucketResponse* /*response*/) {
  return run(UnaryCall(context, state_, Operation::delete_bucket), convert(*request),
             [](const DeleteBucketCommand&) {});
}

Reactor* KvService::ListBuckets(Context* context, const v1::ListBucketsRequest* request,
                                v1::ListBucketsResponse* response) {
  return ask_all_shards(
      UnaryCall(context, state_, Operation::list_buckets),
      Result<ListBucketsCommand>({.bucket = request->prefix(), .descriptions = {}}),
      [response](std::vector<ListBucketsCommand>& answers) {
        for (const KvBucketDescription& bucket :
             sorted_by_name(answers, &ListBucketsCommand::descriptions)) {
          describe(bucket, *response->add_buckets());
        }
      });
}

Reactor* KvService::DescribeBucket(Context* context, const v1::DescribeBucketRequest* request,
                                   v1::DescribeBucketResponse* response) {
  return run(UnaryCall(context, state_, Operation::describe_bucket), convert(*request),
             [response](const DescribeBucketCommand& done) {
               describe(done.description, *response->mutable_bucket());
             });
}

Reactor* KvService::Get(Context* context, const v1::KvGetRequest* request,
                        v1::KvGetResponse* response) {
  return run(UnaryCall(context, state_, Operation::kv_get), convert(*request),
             [response](const KvGetCommand& done) {
               if (done.entry != nullptr) show(*done.entry, *response->mutable_entry());
             });
}

Reactor* KvService::Put(Context* context, const v1::KvPutRequest* request,
                        v1::KvPutResponse* response) {
  return run(UnaryCall(context, state_, Operation::kv_put), convert(own(request)),
             [response](const KvPutCommand& done) { reply(done.outcome, *response); });
}

Reactor* KvService::Delete(Context* context, const v1::KvDeleteRequest* request,
                           v1::KvDeleteResponse* response) {
  return run(UnaryCall(context, state_, Operation::kv_delete), convert(*request),
             [response](const KvRemoveCommand& done) { reply(done.outcome, *response); });
}

Reactor* KvService::List(Context* context, const v1::KvListRequest* request,
                         v1::KvListResponse* response) {
  return run(UnaryCall(context, state_, Operation::kv_list), convert(*request),
             [response](const KvListCommand& done) { show(done.page, *response); });
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* KvService::Watch(Context* context) {
  const auto call = std::make_shared<WatchCall>(state_);
  auto* const reactor = new BidiReactor(context, state_, Operation::kv_watch, call);
  call->open(*reactor, true);
  return reactor;
}

}  // namespace baton
