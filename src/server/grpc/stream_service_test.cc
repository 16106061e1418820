// The lists of the Stream service through gRPC, over a real shard.

#include "server/grpc/stream_service.h"

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "server/app/server.h"
#include "server/session/turn_broker.h"

namespace baton {
namespace {

class StreamServiceTest : public testing::Test {
 protected:
  StreamServiceTest() {
    ServerOptions options;
    options.listen = "127.0.0.1:0";
    options.http_listen = "";
    api_ = ApiServer::start(broker_, options).value();
    stub_ = v1::StreamService::NewStub(grpc::CreateChannel(
        "127.0.0.1:" + std::to_string(api_->grpc_port()), grpc::InsecureChannelCredentials()));
  }

  void create(const std::string& name, std::uint32_t partitions) {
    const auto done = broker_.execute(CreateStreamCommand{
        .stream = name, .partitions = partitions, .settings = {}, .error = {}, .description = {}});
    ASSERT_FALSE(done.error.has_value()) << to_string(*done.error);
  }
  void store_offset(const GroupId& group) {
    StoreOffsetCommand store;
    store.stream = group.stream;
    store.request.group = group;
    ASSERT_FALSE(broker_.execute(std::move(store)).error.has_value());
  }
  template <class Request, class Response>
  using Method = grpc::Status (v1::StreamService::Stub::*)(grpc::ClientContext*, const Request&,
                                                           Response*);
  /// Lets the broker work until the call has ended.
  template <class Request, class Response>
  grpc::Status call(Method<Request, Response> method, const Request& request, Response& response) {
    grpc::Status status;
    std::atomic<bool> ended = false;
    std::jthread client([&] {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds{20});
      status = (stub_.get()->*method)(&context, request, &response);
      ended = true;
      broker_.changed.notify_all();
    });
    std::mutex mutex;
    while (!ended) {
      broker_.turn();
      std::unique_lock lock(mutex);
      broker_.changed.wait_for(lock, std::chrono::milliseconds{1});
    }
    return status;
  }
  static void expect_bad_token(const grpc::Status& status) {
    EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
    EXPECT_NE(status.error_message().find("page_token"), std::string::npos);
  }

  TurnBroker broker_;
  std::unique_ptr<ApiServer> api_;
  std::unique_ptr<v1::StreamService::Stub> stub_;
};

TEST_F(StreamServiceTest, ListsStreamsInPages) {
  for (const char* const name : {"a1", "a2", "a3", "b"}) create(name, 1);
  v1::ListStreamsRequest request;
  request.set_prefix("a");
  request.set_page_size(2);
  v1::ListStreamsResponse page;
  ASSERT_TRUE(call(&v1::StreamService::Stub::ListStreams, request, page).ok());
  ASSERT_EQ(page.streams_size(), 2);
  EXPECT_EQ(page.streams(1).name(), "a2");
  request.set_page_token(page.next_page_token());
  page.Clear();
  ASSERT_TRUE(call(&v1::StreamService::Stub::ListStreams, request, page).ok());
  ASSERT_EQ(page.streams_size(), 1);
  EXPECT_EQ(page.streams(0).name(), "a3");
  EXPECT_EQ(page.next_page_token(), "");
  request.set_prefix("b");
  expect_bad_token(call(&v1::StreamService::Stub::ListStreams, request, page));
}

// A group has a place in the list for each partition, in the order of the partitions' numbers.
TEST_F(StreamServiceTest, ListsGroupsInPages) {
  create("s", 11);
  for (const std::uint32_t partition : {10U, 2U, 0U}) store_offset({"s", partition, "g"});
  v1::ListGroupsRequest request;
  request.set_stream("s");
  request.set_page_size(2);
  v1::ListGroupsResponse page;
  ASSERT_TRUE(call(&v1::StreamService::Stub::ListGroups, request, page).ok());
  ASSERT_EQ(page.groups_size(), 2);
  EXPECT_EQ(page.groups(0).partition(), 0U);
  EXPECT_EQ(page.groups(1).partition(), 2U);
  request.set_page_token(page.next_page_token());
  page.Clear();
  ASSERT_TRUE(call(&v1::StreamService::Stub::ListGroups, request, page).ok());
  ASSERT_EQ(page.groups_size(), 1);
  EXPECT_EQ(page.groups(0).partition(), 10U);
  EXPECT_EQ(page.next_page_token(), "");
  request.set_stream("other");
  expect_bad_token(call(&v1::StreamService::Stub::ListGroups, request, page));
}

}  // namespace
}  // namespace baton
