#pragma once

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "sdk/base/times.h"
#include "sdk/queue/test_broker.h"

namespace baton::client {

/// One Consume call as a script sees it: reads requests, records their content, and answers.
class ConsumeDialog {
 public:
  explicit ConsumeDialog(TestBroker::ConsumeCall& call) : call_(call) {}

  /// Reads the start and confirms the registration.
  void accept(std::uint64_t visibility_ms = 30'000) {
    if (!read()) return;  // The client has disconnected already.
    ASSERT_TRUE(last.has_start());
    start = last.start();
    v1::ConsumeResponse response;
    response.mutable_registered()->set_consumer_id(
        start.consumer_id().empty() ? "made-by-broker" : start.consumer_id());
    *response.mutable_registered()->mutable_visibility_timeout() =
        proto_duration(std::chrono::milliseconds{visibility_ms});
    call_.Write(response);
  }
  /// Delivers messages with these payloads; the token of each is "t-<payload>".
  void deliver(const std::vector<std::string>& payloads) {
    v1::ConsumeResponse response;
    for (const std::string& payload : payloads) {
      auto& message = *response.add_messages();
      message.set_id("id-" + payload);
      message.set_payload(payload);
      message.set_lease_token("t-" + payload);
      message.set_attempt(1);
    }
    call_.Write(response);
  }
  /// Reads the next request; false at the end of the call.
  bool read() {
    last.Clear();
    if (!call_.Read(&last)) return false;
    credit += last.credit();
    for (const auto& token : last.acks()) acks.push_back(token);
    for (const auto& item : last.nacks()) nacks.push_back(item);
    for (const auto& item : last.extends()) extends.push_back(item);
    for (const auto& token : last.begun()) begun.push_back(token);
    return true;
  }
  /// Answers every item of the last request as done, except those whose token is in `lost`.
  void answer(const std::vector<std::string>& lost = {}) {
    v1::ConsumeResponse response;
    const auto add = [&](auto* results, const std::string& token) {
      auto& result = *results->Add();
      if (std::ranges::find(lost, token) != lost.end()) set_lease_lost(result);
    };
    for (const auto& token : last.acks()) add(response.mutable_acks(), token);
    for (const auto& item : last.nacks()) add(response.mutable_nacks(), item.lease_token());
    for (const auto& item : last.extends()) add(response.mutable_extends(), item.lease_token());
    response.set_quiesced(last.quiesce());
    call_.Write(response);
  }
  /// Reads and answers until the client ends its side.
  grpc::Status answer_all(const std::vector<std::string>& lost = {}) {
    while (read()) answer(lost);
    return grpc::Status::OK;
  }

  v1::ConsumeStart start;
  v1::ConsumeRequest last;
  std::uint64_t credit = 0;
  std::vector<std::string> acks;
  std::vector<v1::NackItem> nacks;
  std::vector<v1::ExtendItem> extends;
  std::vector<std::string> begun;

 private:
  TestBroker::ConsumeCall& call_;
};

}  // namespace baton::client
