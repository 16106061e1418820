#pragma once

#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <baton/connection.h>
#include <fmt/format.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

namespace baton::client {

/// For tests only: serves one gRPC service on an abstract Unix socket. The service's destructor
/// must call stop().
class TestServer {
 public:
  explicit TestServer(grpc::Service& service) : service_(service) {
    static std::atomic<int> number = 0;
    address_ = fmt::format("unix-abstract:baton-client-test-{}-{}", getpid(), ++number);
  }

  void start() {
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address_, grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
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

 private:
  grpc::Service& service_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

}  // namespace baton::client
