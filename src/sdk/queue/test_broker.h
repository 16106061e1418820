#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>

#include <baton/connection.h>
#include <baton/v1/queues.grpc.pb.h>
#include <fmt/format.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "sdk/base/test_script.h"  // IWYU pragma: export

namespace baton::client {

/// A broker that does what the test's scripts say, on an abstract Unix socket. Each streaming
/// script gets the number of its call, counted from 1.
class TestBroker final : public v1::QueueService::Service {
 public:
  using EnqueueCall = grpc::ServerReaderWriter<v1::EnqueueResponse, v1::EnqueueRequest>;
  using ConsumeCall = grpc::ServerReaderWriter<v1::ConsumeResponse, v1::ConsumeRequest>;
  using EnqueueScript = std::function<grpc::Status(int, EnqueueCall&)>;
  using ConsumeScript = std::function<grpc::Status(int, ConsumeCall&)>;

  TestBroker() {
    static std::atomic<int> number = 0;
    address_ = fmt::format("unix-abstract:baton-client-test-{}-{}", getpid(), ++number);
    start();
  }
  ~TestBroker() override { stop(); }
  TestBroker(const TestBroker&) = delete;
  TestBroker& operator=(const TestBroker&) = delete;
  TestBroker(TestBroker&&) = delete;
  TestBroker& operator=(TestBroker&&) = delete;

  void start() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    builder.RegisterService(this);
    server_ = builder.BuildAndStart();
  }
  /// Breaks every connection.
  void stop() {
    if (server_) server_->Shutdown(std::chrono::system_clock::now());
    server_.reset();
  }
  [[nodiscard]] ConnectionOptions connection() const {
    return {.address = address_,
            .tls = std::nullopt,
            .deadline = std::chrono::seconds{20},
            .reconnect_min = std::chrono::milliseconds{1},
            .reconnect_max = std::chrono::milliseconds{20}};
  }

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
  std::string address_;
  std::atomic<int> enqueue_calls_ = 0;
  std::atomic<int> consume_calls_ = 0;
  std::unique_ptr<grpc::Server> server_;
};

inline void set_lease_lost(v1::ItemResult& result) {
  result.mutable_error()->set_code(101);
  result.mutable_error()->set_name("lease_lost");
  result.mutable_error()->set_text("the lease ended before the request arrived");
}

}  // namespace baton::client
