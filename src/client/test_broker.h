#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <unistd.h>

#include <fmt/format.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <baton/connection.h>
#include <baton/v1/queues.grpc.pb.h>

namespace baton::client {

/// Something that one thread sets and others wait for. A test that waits longer than this is hung.
class Gate {
 public:
  void open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  [[nodiscard]] bool wait() {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds{20}, [&] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

/// A list that threads add to, and that a test waits on to grow.
template <class T>
class Log {
 public:
  void add(T entry) {
    const std::lock_guard lock(mutex_);
    entries_.push_back(std::move(entry));
    changed_.notify_all();
  }
  /// The entries, when there are at least `count`; fewer after 20 s.
  std::vector<T> wait(std::size_t count) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds{20}, [&] { return entries_.size() >= count; });
    return entries_;
  }
  std::vector<T> now() { return wait(0); }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<T> entries_;
};

/// A broker that does what the test's scripts say, on an abstract Unix socket. Each streaming
/// script gets the number of its call, from 1.
class TestBroker final : public v1::Queues::Service {
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

/// A status as the broker sends it: with the Error in its details.
inline grpc::Status refusal(grpc::StatusCode code, std::uint32_t number, const std::string& name) {
  v1::Error error;
  error.set_code(number);
  error.set_name(name);
  error.set_text("scripted " + name);
  return {code, error.text(), error.SerializeAsString()};
}

inline void set_lease_lost(v1::ItemResult& result) {
  result.mutable_error()->set_code(101);
  result.mutable_error()->set_name("lease_lost");
  result.mutable_error()->set_text("the lease ended before the request arrived");
}

}  // namespace baton::client
