#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "server/app/service_fixture.h"

/// For tests only: Consume and Lease calls on a real server, over a FakeBroker.
namespace baton::consumer_test {

class ConsumerStreamTest : public ServiceTest {
 protected:
  using Consume = grpc::ClientReaderWriter<v1::ConsumeRequest, v1::ConsumeResponse>;

  // In every test each successful attach must have exactly one detach.
  void TearDown() override {
    api_->shutdown(std::chrono::seconds{20});
    EXPECT_EQ(broker_.detach_count(), attached_);
  }

  /// Completes the waiting attach; the sink is then registered.
  std::shared_ptr<ConsumerSink> accept() {
    std::unique_ptr<Call> call = broker_.take<AttachCommand>();
    return accept(std::move(call));
  }
  std::shared_ptr<ConsumerSink> accept(std::unique_ptr<Call> call) {
    auto& command = FakeBroker::of<AttachCommand>(call);
    command.visibility_timeout = std::chrono::seconds{30};
    std::shared_ptr<ConsumerSink> sink = command.sink;
    consumer_ = command.consumer;
    ++attached_;
    broker_.complete(std::move(call));
    return sink;
  }
  static Delivery delivery(std::uint64_t number, std::size_t payload_bytes = 3) {
    NewMessage message;
    message.payload = std::string(payload_bytes, 'x');
    message.headers = {{"k", "v"}};
    message.fairness_key = "tenant";
    message.throttle_keys = {"api"};
    return {.message = Message::make(message, id(static_cast<std::uint8_t>(number)), {1000},
                                     Instant::never()),
            .token = {.boot = 4, .number = number},
            .attempt = 2,
            .deadline = {5000}};
  }
  void deliver(std::shared_ptr<ConsumerSink> sink, std::vector<Delivery> deliveries) {
    broker_.post([sink = std::move(sink), deliveries = std::move(deliveries)] {
      sink->deliver(deliveries);
    });
  }
  static std::string token(std::uint64_t number) {
    return TokenSeal{}.of("orders").seal({.boot = 4, .number = number});
  }
  static v1::ConsumeRequest start() {
    v1::ConsumeRequest request;
    request.mutable_start()->set_queue("orders");
    return request;
  }
  /// Opens a Consume stream and reads its registration.
  std::unique_ptr<Consume> open(grpc::ClientContext& context) {
    auto stream = stub_->Consume(&context);
    EXPECT_TRUE(stream->Write(start()));
    sink_ = accept();
    v1::ConsumeResponse response;
    EXPECT_TRUE(stream->Read(&response));
    EXPECT_TRUE(response.has_registered());
    return stream;
  }
  /// Finishes the ack with one outcome per token.
  void finish_acks(std::unique_ptr<Call> call) {
    auto& command = FakeBroker::of<AckCommand>(call);
    for (const LeaseToken& each : command.tokens) {
      // Even numbers have lost their lease, so that results differ.
      ItemOutcome outcome;
      if (each.number % 2 == 0) outcome = Error{Errc::lease_lost, std::to_string(each.number)};
      command.outcomes.push_back(std::move(outcome));
    }
    broker_.complete(std::move(call));
  }

  std::size_t attached_ = 0;
  ConsumerNumber consumer_;
  std::shared_ptr<ConsumerSink> sink_;
};

}  // namespace baton::consumer_test
