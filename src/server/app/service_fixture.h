#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <baton/v1/admin.grpc.pb.h>
#include <baton/v1/queues.grpc.pb.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "server/app/server.h"
#include "server/session/fake_broker.h"

namespace baton {

/// For tests only: the real server on its own port, over a FakeBroker.
class ServiceTest : public testing::Test {
 protected:
  ServiceTest() {
    ServerOptions options;
    options.listen = "127.0.0.1:0";
    options.http_listen = "127.0.0.1:0";
    options.message_bytes_max = 4 * limits::kMiB;
    auto started = ApiServer::start(broker_, options);
    if (!started.has_value()) {
      ADD_FAILURE() << to_string(started.error());
      std::abort();
    }
    api_ = *std::move(started);
    stub_ = v1::QueueService::NewStub(make_channel());
  }

  std::shared_ptr<grpc::Channel> make_channel() const {
    grpc::ChannelArguments arguments;
    arguments.SetMaxReceiveMessageSize(-1);
    // A separate connection, instead of one that gRPC shares between channels.
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    return grpc::CreateCustomChannel("127.0.0.1:" + std::to_string(api_->grpc_port()),
                                     grpc::InsecureChannelCredentials(), arguments);
  }

  static Uuid id(std::uint8_t number) {
    Uuid uuid;
    uuid.bytes.back() = number;
    return uuid;
  }
  /// Confirms every message of an enqueue; ids count up from `first`.
  void confirm(std::unique_ptr<Call> call, std::uint8_t first) {
    auto& command = FakeBroker::of<EnqueueCommand>(call);
    for (std::size_t i = 0; i < command.messages.size(); ++i) {
      command.outcomes.push_back(
          {.id = id(static_cast<std::uint8_t>(first + i)), .duplicate = false, .error = {}});
    }
    broker_.complete(std::move(call));
  }
  static v1::EnqueueRequest enqueue_request(int messages, const std::string& queue = "orders") {
    v1::EnqueueRequest request;
    request.set_queue(queue);
    for (int i = 0; i < messages; ++i) request.add_messages()->set_payload("p" + std::to_string(i));
    return request;
  }

  FakeBroker broker_;
  std::unique_ptr<ApiServer> api_;
  std::unique_ptr<v1::QueueService::Stub> stub_;
};

}  // namespace baton
