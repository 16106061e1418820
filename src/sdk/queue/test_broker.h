#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <baton/v1/queues.grpc.pb.h>
#include <grpcpp/support/sync_stream.h>

#include "sdk/base/test_script.h"  // IWYU pragma: export
#include "sdk/base/test_server.h"

namespace baton::client {

/// A broker that does what the test's scripts say, on an abstract Unix socket. Each streaming
/// script gets the number of its call, counted from 1.
class TestBroker final : public v1::QueueService::Service, public TestServer {
 public:
  using EnqueueCall = grpc::ServerReaderWriter<v1::EnqueueResponse, v1::EnqueueRequest>;
  using ConsumeCall = grpc::ServerReaderWriter<v1::ConsumeResponse, v1::ConsumeRequest>;
  using EnqueueScript = std::function<grpc::Status(int, EnqueueCall&)>;
  using ConsumeScript = std::function<grpc::Status(int, ConsumeCall&)>;

  TestBroker() : TestServer(static_cast<grpc::Service&>(*this)) { start(); }
  ~TestBroker() override { stop(); }
  TestBroker(const TestBroker&) = delete;
  TestBroker& operator=(const TestBroker&) = delete;
  TestBroker(TestBroker&&) = delete;
  TestBroker& operator=(TestBroker&&) = delete;

  EnqueueScript on_enqueue_stream;
  ConsumeScript on_consume;
  std::function<grpc::Status(const v1::CreateQueueRequest&, v1::CreateQueueResponse&)> on_create;
  std::function<grpc::Status(const v1::EnqueueRequest&, v1::EnqueueResponse&)> on_enqueue;
  std::function<grpc::Status(const v1::AckRequest&, v1::AckResponse&)> on_ack;
  std::function<grpc::Status(const v1::ListQueuesRequest&, v1::ListQueuesResponse&)> on_list;

  grpc::Status EnqueueStream(grpc::ServerContext* /*context*/, EnqueueCall* call) override {
    return on_enqueue_stream(++enqueue_calls_, *call);
  }
  grpc::Status Consume(grpc::ServerContext* /*context*/, ConsumeCall* call) override {
    return on_consume(++consume_calls_, *call);
  }
  grpc::Status CreateQueue(grpc::ServerContext* /*context*/, const v1::CreateQueueRequest* request,
                           v1::CreateQueueResponse* response) override {
    return on_create(*request, *response);
  }
  grpc::Status Enqueue(grpc::ServerContext* /*context*/, const v1::EnqueueRequest* request,
                       v1::EnqueueResponse* response) override {
    return on_enqueue(*request, *response);
  }
  grpc::Status ListQueues(grpc::ServerContext* /*context*/, const v1::ListQueuesRequest* request,
                          v1::ListQueuesResponse* response) override {
    return on_list(*request, *response);
  }
  grpc::Status Ack(grpc::ServerContext* /*context*/, const v1::AckRequest* request,
                   v1::AckResponse* response) override {
    return on_ack(*request, *response);
  }

 private:
  std::atomic<int> enqueue_calls_ = 0;
  std::atomic<int> consume_calls_ = 0;
};

inline void set_lease_lost(v1::ItemResult& result) {
  result.mutable_error()->set_code(101);
  result.mutable_error()->set_name("lease_lost");
  result.mutable_error()->set_text("the lease ended before the request arrived");
}

}  // namespace baton::client
