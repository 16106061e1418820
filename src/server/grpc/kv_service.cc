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
  return ask_for_page(
      UnaryCall(context, state_, Operation::list_buckets), convert(*request),
      [response](std::vector<ListBucketsCommand>& answers, const Page& page) {
        constexpr auto kKey = &KvBucketDescription::name;
        const auto listed =
            merge_page(answers, &ListBucketsCommand::descriptions, kKey, page.items_max);
        response->set_next_page_token(
            fill_page(page, listed, *response->mutable_buckets(), kKey,
                      [](const auto& bucket, v1::Bucket& shown) { describe(bucket, shown); }));
      });
}

Reactor* KvService::DescribeBucket(Context* context, const v1::DescribeBucketRequest* request,
                                   v1::DescribeBucketResponse* response) {
  return run(UnaryCall(context, state_, Operation::describe_bucket), convert(*request),
             [response](const DescribeBucketCommand& done) {
               describe(done.description, *response->mutable_bucket());
             });
}

Reactor* KvService::GetKey(Context* context, const v1::GetKeyRequest* request,
                           v1::GetKeyResponse* response) {
  return run(UnaryCall(context, state_, Operation::kv_get), convert(*request),
             [response](const KvGetCommand& done) {
               if (done.entry != nullptr) show(*done.entry, *response->mutable_entry());
             });
}

Reactor* KvService::PutKey(Context* context, const v1::PutKeyRequest* request,
                           v1::PutKeyResponse* response) {
  return run(UnaryCall(context, state_, Operation::kv_put), convert(own(request)),
             [response](const KvPutCommand& done) { reply(done.outcome, *response); });
}

Reactor* KvService::DeleteKey(Context* context, const v1::DeleteKeyRequest* request,
                              v1::DeleteKeyResponse* response) {
  return run(UnaryCall(context, state_, Operation::kv_delete), convert(*request),
             [response](const KvRemoveCommand& done) { reply(done.outcome, *response); });
}

Reactor* KvService::ListKeys(Context* context, const v1::ListKeysRequest* request,
                             v1::ListKeysResponse* response) {
  return run(UnaryCall(context, state_, Operation::kv_list), convert(*request),
             [response](const KvListCommand& done) { reply(done, *response); });
}

grpc::ServerBidiReactor<grpc::ByteBuffer, grpc::ByteBuffer>* KvService::WatchKeys(
    Context* context) {
  const auto call = std::make_shared<WatchCall>(state_);
  auto* const reactor = new BidiReactor(context, state_, Operation::kv_watch, call);
  call->open(*reactor, true);
  return reactor;
}

}  // namespace baton
