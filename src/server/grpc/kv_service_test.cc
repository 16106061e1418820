// The Kv service through gRPC, over a real shard.

#include "server/grpc/kv_service.h"

#include <atomic>
#include <chrono>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "server/app/server.h"
#include "server/grpc/stream_fixture.h"
#include "server/session/limits.h"

namespace baton {
namespace {

using google::protobuf::util::TimeUtil;

class KvServiceTest : public testing::Test {
 protected:
  KvServiceTest() {
    ServerOptions options;
    options.listen = "127.0.0.1:0";
    auto started = ApiServer::start(broker_, options);
    if (!started.has_value()) {
      ADD_FAILURE() << to_string(started.error());
      std::abort();
    }
    api_ = *std::move(started);
    shard_ = std::thread([this] {
      while (!stopping_) {
        broker_.turn();
        std::unique_lock lock(mutex_);
        broker_.changed.wait_for(lock, std::chrono::milliseconds{1});
      }
      broker_.turn();
    });
    stub_ = v1::KvService::NewStub(make_channel());
  }
  ~KvServiceTest() override {
    api_->shutdown(std::chrono::seconds{5});
    stopping_ = true;
    shard_.join();
    api_.reset();
  }
  KvServiceTest(const KvServiceTest&) = delete;
  KvServiceTest& operator=(const KvServiceTest&) = delete;

  std::shared_ptr<grpc::Channel> make_channel() const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(api_->grpc_port()),
                                     grpc::InsecureChannelCredentials(), arguments);
  }

  template <class Request, class Response>
  using Method = grpc::Status (v1::KvService::Stub::*)(grpc::ClientContext*, const Request&,
                                                       Response*);
  template <class Request, class Response>
  grpc::Status call(Method<Request, Response> method, const Request& request, Response& response) {
    grpc::ClientContext context;
    return (stub_.get()->*method)(&context, request, &response);
  }

  grpc::Status create(const std::string& name, const v1::BucketSettings& settings = {}) {
    v1::CreateBucketRequest request;
    request.set_name(name);
    *request.mutable_settings() = settings;
    v1::CreateBucketResponse response;
    return call(&v1::KvService::Stub::CreateBucket, request, response);
  }
  static v1::PutKeyRequest put_request(const std::string& key, const std::string& value) {
    v1::PutKeyRequest request;
    request.set_bucket("b");
    request.set_key(key);
    request.set_value(value);
    return request;
  }
  grpc::Status put(const v1::PutKeyRequest& request) {
    v1::PutKeyResponse response;
    return call(&v1::KvService::Stub::PutKey, request, response);
  }
  v1::PutKeyResponse put(const std::string& key, const std::string& value,
                         std::optional<std::uint64_t> expected = {}) {
    v1::PutKeyRequest request = put_request(key, value);
    if (expected.has_value()) request.set_expected_revision(*expected);
    v1::PutKeyResponse response;
    const grpc::Status status = call(&v1::KvService::Stub::PutKey, request, response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  v1::DeleteKeyResponse remove(const std::string& key, std::optional<std::uint64_t> expected = {}) {
    v1::DeleteKeyRequest request;
    request.set_bucket("b");
    request.set_key(key);
    if (expected.has_value()) request.set_expected_revision(*expected);
    v1::DeleteKeyResponse response;
    const grpc::Status status = call(&v1::KvService::Stub::DeleteKey, request, response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  v1::GetKeyResponse get(const std::string& key) {
    v1::GetKeyRequest request;
    request.set_bucket("b");
    request.set_key(key);
    v1::GetKeyResponse response;
    const grpc::Status status = call(&v1::KvService::Stub::GetKey, request, response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }
  v1::ListKeysResponse list(const std::string& prefix, const std::string& token, int size) {
    v1::ListKeysRequest request;
    request.set_bucket("b");
    request.set_prefix(prefix);
    request.set_page_token(token);
    request.set_page_size(size);
    v1::ListKeysResponse response;
    const grpc::Status status = call(&v1::KvService::Stub::ListKeys, request, response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  }

  TurnBroker broker_;
  std::unique_ptr<ApiServer> api_;
  std::atomic<bool> stopping_ = false;
  std::mutex mutex_;
  std::thread shard_;
  std::unique_ptr<v1::KvService::Stub> stub_;
};

TEST_F(KvServiceTest, WritesReadsAndRemovesKeys) {
  ASSERT_TRUE(create("b").ok());
  EXPECT_FALSE(get("k").has_entry());
  EXPECT_EQ(put("k", "1").revision(), 1U);
  EXPECT_EQ(put("k", "2").revision(), 2U);
  const v1::KvEntry entry = get("k").entry();
  EXPECT_EQ(entry.key(), "k");
  EXPECT_EQ(entry.value(), "2");
  EXPECT_EQ(entry.revision(), 2U);
  EXPECT_EQ(entry.created_revision(), 1U);
  EXPECT_EQ(entry.version(), 2U);
  EXPECT_FALSE(entry.has_expires_at());
  const v1::DeleteKeyResponse removed = remove("k");
  EXPECT_TRUE(removed.deleted());
  EXPECT_EQ(removed.revision(), 3U);
  const v1::DeleteKeyResponse nothing = remove("k");
  EXPECT_FALSE(nothing.deleted());
  EXPECT_FALSE(nothing.has_error());
  EXPECT_EQ(nothing.revision(), 3U);
}

// A client that loses a race must learn from the answer what to do next, without another call.
TEST_F(KvServiceTest, ARefusedCompareAndSetIsAnAnswerWithWhatIsThere) {
  ASSERT_TRUE(create("b").ok());
  EXPECT_EQ(put("k", "1", 0).revision(), 1U);
  const v1::PutKeyResponse refused = put("k", "2", 0);
  EXPECT_EQ(refused.error().code(), static_cast<std::uint32_t>(Errc::revision_mismatch));
  EXPECT_EQ(refused.error().name(), "revision_mismatch");
  EXPECT_EQ(refused.error().text(), "the key is at revision 1");
  EXPECT_EQ(refused.current().value(), "1");
  EXPECT_EQ(put("k", "2", 1).revision(), 2U);
  const v1::DeleteKeyResponse kept = remove("k", 1);
  EXPECT_EQ(kept.error().name(), "revision_mismatch");
  EXPECT_EQ(kept.current().revision(), 2U);
  EXPECT_FALSE(kept.deleted());
  EXPECT_TRUE(remove("k", 2).deleted());
  const v1::PutKeyResponse gone = put("k", "3", 2);
  EXPECT_EQ(gone.error().text(), "there is no such key");
  EXPECT_FALSE(gone.has_current());
  EXPECT_EQ(get("k").has_entry(), false);
}

TEST_F(KvServiceTest, ATimeToLiveIsSetAndClearedByEachWrite) {
  ASSERT_TRUE(create("b").ok());
  v1::PutKeyRequest request = put_request("k", "1");
  request.mutable_ttl()->set_seconds(5);
  ASSERT_TRUE(put(request).ok());
  EXPECT_EQ(TimeUtil::TimestampToNanoseconds(get("k").entry().expires_at()),
            broker_.now().ns + 5'000'000'000);
  broker_.pass(std::chrono::milliseconds{4999});
  EXPECT_TRUE(get("k").has_entry());
  put("k", "2");
  broker_.pass(std::chrono::seconds{5});
  EXPECT_TRUE(get("k").has_entry());
  ASSERT_TRUE(put(request).ok());
  broker_.pass(std::chrono::seconds{5});
  EXPECT_FALSE(get("k").has_entry());
}

TEST_F(KvServiceTest, ListsKeysInPages) {
  ASSERT_TRUE(create("b").ok());
  for (const char* key : {"a/1", "a/2", "a/3", "b/1"}) put(key, "v");
  const v1::ListKeysResponse first = list("a/", "", 2);
  ASSERT_EQ(first.entries_size(), 2);
  EXPECT_EQ(first.entries(1).key(), "a/2");
  EXPECT_NE(first.next_page_token(), "");
  EXPECT_EQ(first.revision(), 4U);
  const v1::ListKeysResponse second = list("a/", first.next_page_token(), 2);
  ASSERT_EQ(second.entries_size(), 1);
  EXPECT_EQ(second.entries(0).key(), "a/3");
  EXPECT_EQ(second.next_page_token(), "");
  EXPECT_EQ(list("", "", 0).entries_size(), 4);
}

// A page must fit into gRPC's default limit of 4 MiB at the client.
TEST_F(KvServiceTest, APageIsNeverTooLarge) {
  ASSERT_TRUE(create("b").ok());
  for (int i = 0; i < 8; ++i) put(fmt::format("k{}", i), std::string(limits::kMiB, 'x'));
  int entries = 0;
  std::string after;
  do {
    const v1::ListKeysResponse page = list("", after, 0);
    entries += page.entries_size();
    EXPECT_LE(page.ByteSizeLong(), 2 * limits::kMiB);
    after = page.next_page_token();
  } while (!after.empty());
  EXPECT_EQ(entries, 8);
}

TEST_F(KvServiceTest, BucketsAreMadeShownAndDeleted) {
  v1::BucketSettings settings;
  settings.set_keys_max(2);
  ASSERT_TRUE(create("b", settings).ok());
  ASSERT_TRUE(create("b", settings).ok());  // Creating it again is fine.
  ASSERT_TRUE(create("a").ok());
  put("k", "12345");
  v1::DescribeBucketRequest describe;
  describe.set_name("b");
  v1::DescribeBucketResponse described;
  ASSERT_TRUE(call(&v1::KvService::Stub::DescribeBucket, describe, described).ok());
  EXPECT_EQ(described.bucket().name(), "b");
  EXPECT_EQ(described.bucket().settings().keys_max(), 2U);
  EXPECT_EQ(described.bucket().settings().history_changes_max(), 10'000U);
  EXPECT_EQ(described.bucket().keys(), 1U);
  EXPECT_EQ(described.bucket().bytes(), 6U);
  EXPECT_EQ(described.bucket().revision(), 1U);
  v1::ListBucketsResponse all;
  ASSERT_TRUE(call(&v1::KvService::Stub::ListBuckets, v1::ListBucketsRequest{}, all).ok());
  ASSERT_EQ(all.buckets_size(), 2);
  EXPECT_EQ(all.buckets(0).name(), "a");
  v1::DeleteBucketRequest remove_it;
  remove_it.set_name("b");
  v1::DeleteBucketResponse deleted;
  ASSERT_TRUE(call(&v1::KvService::Stub::DeleteBucket, remove_it, deleted).ok());
  const grpc::Status again = call(&v1::KvService::Stub::DeleteBucket, remove_it, deleted);
  EXPECT_EQ(again.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(again.error_message(), "bucket_not_found: there is no bucket 'b'");
}

TEST_F(KvServiceTest, ListsBucketsInPages) {
  for (const char* name : {"a1", "a2", "a3", "b"}) ASSERT_TRUE(create(name).ok());
  v1::ListBucketsRequest request;
  request.set_prefix("a");
  request.set_page_size(2);
  v1::ListBucketsResponse page;
  ASSERT_TRUE(call(&v1::KvService::Stub::ListBuckets, request, page).ok());
  ASSERT_EQ(page.buckets_size(), 2);
  EXPECT_EQ(page.buckets(1).name(), "a2");
  request.set_page_token(page.next_page_token());
  page.Clear();
  ASSERT_TRUE(call(&v1::KvService::Stub::ListBuckets, request, page).ok());
  ASSERT_EQ(page.buckets_size(), 1);
  EXPECT_EQ(page.buckets(0).name(), "a3");
  EXPECT_EQ(page.next_page_token(), "");
  // The token belongs to a list with another prefix.
  request.set_prefix("b");
  const grpc::Status status = call(&v1::KvService::Stub::ListBuckets, request, page);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("page_token"), std::string::npos);
}

TEST_F(KvServiceTest, WhatIsOutOfItsLimitsIsRefusedByNameAndLimit) {
  v1::BucketSettings settings;
  settings.set_value_bytes_max(10);
  settings.set_keys_max(1);
  ASSERT_TRUE(create("b", settings).ok());
  EXPECT_EQ(create("b").error_message(),
            "bucket_exists: bucket 'b' exists with other settings; delete it first");
  EXPECT_EQ(create("").error_message(), "invalid_argument: bucket is empty");
  EXPECT_EQ(create(std::string(201, 'b')).error_message(),
            "invalid_argument: bucket has 201 bytes; the limit is 200");
  settings.set_history_changes_max(0);
  EXPECT_EQ(create("c", settings).error_message(),
            "invalid_argument: history_changes_max is 0; it may be 1 to 1000000");

  EXPECT_EQ(put(put_request("", "v")).error_message(), "invalid_argument: key is empty");
  EXPECT_EQ(put(put_request(std::string(513, 'k'), "v")).error_message(),
            "invalid_argument: key has 513 bytes; the limit is 512");
  EXPECT_EQ(put(put_request("a b", "v")).error_message(),
            "invalid_argument: key may hold only letters, digits and . _ - / :");
  EXPECT_EQ(put(put_request("k", "12345678901")).error_message(),
            "invalid_argument: value has 11 bytes; the limit is 10");
  v1::PutKeyRequest request = put_request("k", "v");
  request.mutable_ttl();
  EXPECT_EQ(put(request).error_message(),
            "invalid_argument: ttl is 0; it is at least 1 ms, and absent for a key that stays");
  request.mutable_ttl()->set_seconds(std::numeric_limits<std::int64_t>::max());
  EXPECT_EQ(put(request).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(put(request).error_message().find("ttl is"), std::string::npos);
  put("k", "v");
  EXPECT_EQ(put(put_request("l", "v")).error_message(),
            "resource_exhausted: bucket 'b' has 1 keys, which is its limit");
  request = put_request("k", "v");
  request.set_bucket("none");
  EXPECT_EQ(put(request).error_code(), grpc::StatusCode::NOT_FOUND);

  v1::DeleteKeyRequest removal;
  removal.set_bucket("b");
  removal.set_key("k");
  removal.set_expected_revision(0);
  v1::DeleteKeyResponse removed;
  EXPECT_EQ(call(&v1::KvService::Stub::DeleteKey, removal, removed).error_message(),
            "invalid_argument: expected_revision is 0: what is not there needs no removal");
  v1::ListKeysRequest listing;
  listing.set_bucket("b");
  listing.set_page_size(1001);
  v1::ListKeysResponse listed;
  EXPECT_EQ(call(&v1::KvService::Stub::ListKeys, listing, listed).error_message(),
            "invalid_argument: page_size is 1001; it may be 0 (as many as allowed) to 1000");
  listing.set_page_size(1);
  listing.set_page_token("a/2");
  EXPECT_EQ(call(&v1::KvService::Stub::ListKeys, listing, listed).error_message(),
            "invalid_argument: page_token is not a token of this list: take next_page_token of the "
            "page before, and repeat that page's other fields");
  listing.clear_page_token();
  listing.set_prefix(std::string(513, 'k'));
  EXPECT_EQ(call(&v1::KvService::Stub::ListKeys, listing, listed).error_message(),
            "invalid_argument: prefix has 513 bytes; the limit is 512");
}

TEST_F(KvServiceTest, ABrokerThatTakesNothingSaysUnavailable) {
  ASSERT_TRUE(create("b").ok());
  broker_.refuse();
  const grpc::Status status = put(put_request("k", "v"));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
}

// The connection itself breaks, as when its process is killed.
TEST_F(KvServiceTest, AConnectionThatBreaksTellsTheOthersOfItsSession) {
  ASSERT_TRUE(create("b").ok());
  put("me", "1");
  v1::WatchKeysRequest start;
  start.mutable_start()->set_bucket("b");
  grpc::ClientContext other_context;
  auto other = stub_->WatchKeys(&other_context);
  ASSERT_TRUE(other->Write(start));
  v1::WatchKeysResponse response;
  ASSERT_TRUE(other->Read(&response));
  {
    auto channel = make_channel();
    const auto stub = v1::KvService::NewStub(channel);
    grpc::ClientContext context;
    auto mine = stub->WatchKeys(&context);
    start.mutable_start()->set_session("me");
    ASSERT_TRUE(mine->Write(start));
    v1::WatchKeysResponse first;
    ASSERT_TRUE(mine->Read(&first));
    context.TryCancel();
    EXPECT_EQ(mine->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  while (response.sessions_lost_size() == 0 && other->Read(&response)) continue;
  ASSERT_EQ(response.sessions_lost_size(), 1);
  EXPECT_EQ(response.sessions_lost(0).key(), "me");
  v1::WatchKeysRequest goodbye;
  goodbye.set_goodbye(true);
  ASSERT_TRUE(other->Write(goodbye));
  while (other->Read(&response)) continue;
  EXPECT_TRUE(other->Finish().ok());
}

}  // namespace
}  // namespace baton
