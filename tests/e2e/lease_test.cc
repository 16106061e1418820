// Leases of the real broker: tokens that nobody can guess, leases that only their deadline ends,
// and consumers that leave in order.
#include <random>
#include <thread>

#include <baton/v1/queues.grpc.pb.h>
#include <fmt/format.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "e2e/broker_process.h"

namespace baton::e2e {
namespace {

class LeaseTest : public testing::Test {
 protected:
  void SetUp() override { start(); }
  void start() {
    ASSERT_TRUE(broker_.start()) << broker_.log();
    stub_ = v1::QueueService::NewStub(broker_.channel());
  }

  /// The broker's answer to an ack of these bytes; "" if it is accepted.
  std::string ack(const std::string& queue, const std::string& token) {
    grpc::ClientContext context;
    context.set_wait_for_ready(true);
    context.set_deadline(std::chrono::system_clock::now() + seconds{20});
    v1::AckRequest request;
    request.set_queue(queue);
    request.add_lease_tokens(token);
    v1::AckResponse response;
    const grpc::Status status = stub_->Ack(&context, request, &response);
    if (!status.ok()) return status.error_message();
    return response.results_size() == 1 ? response.results(0).error().name() : "no result";
  }

  BrokerProcess broker_{{"--shards", "2"}};
  std::unique_ptr<v1::QueueService::Stub> stub_;
};

/// All tokens that can be derived from one without knowing the broker's key.
std::vector<std::string> guesses(const std::string& token) {
  std::vector<std::string> made;
  for (std::size_t bit = 0; bit < token.size() * 8; ++bit) {
    made.push_back(token);
    made.back()[bit / 8] = static_cast<char>(made.back()[bit / 8] ^ (1 << (bit % 8)));
  }
  for (std::size_t at = 0; at < token.size(); ++at) {
    for (const int step : {-1, 1}) {
      made.push_back(token);
      made.back()[at] = static_cast<char>(made.back()[at] + step);
    }
    made.push_back(token.substr(0, at));
    made.push_back(token.substr(at + 1));
  }
  made.push_back(token + '\0');
  made.push_back(token + token);
  std::mt19937_64 random(7);
  for (int i = 0; i < 200; ++i) {
    std::string bytes(token.size(), '\0');
    for (char& byte : bytes) byte = static_cast<char>(random());
    made.push_back(bytes);
  }
  return made;
}

// Once, a stranger's ack of (boot, number + 1) was accepted.
TEST_F(LeaseTest, NoTokenButTheLeasesOwnAcksIt) {
  const std::vector<std::string> queues{"jobs", "jobs.dlq", "other", "elsewhere", "third"};
  std::vector<client::LeasedMessage> held;
  std::vector<std::unique_ptr<client::LeaseStream>> streams;
  for (const std::string& queue : queues) {
    broker_.create(queue);
    broker_.send(queue, numbered("job", 3));
    streams.push_back(open_stream(broker_, queue));
    const auto messages = take(*streams.back(), 3);
    ASSERT_EQ(messages.size(), 3U);
    held.insert(held.end(), messages.begin(), messages.end());
  }
  for (const std::string& guess : guesses(held[1].token.bytes)) {
    ASSERT_EQ(ack("jobs", guess), "lease_lost");
  }
  for (std::size_t i = 3; i < held.size(); ++i) {
    EXPECT_EQ(ack("jobs", held[i].token.bytes), "lease_lost") << "a token of " << queues[i / 3];
  }
  for (const std::string& queue : queues) EXPECT_EQ(broker_.stats(queue).leased, 3U) << queue;

  // Neither a restart nor another life's token changes that; the lease's own token is always valid.
  broker_.kill();
  start();
  for (const std::string& guess : guesses(held[1].token.bytes)) {
    ASSERT_EQ(ack("jobs", guess), "lease_lost");
  }
  for (std::size_t i = 0; i < held.size(); ++i) {
    EXPECT_EQ(ack(queues[i / 3], held[i].token.bytes), "") << queues[i / 3];
  }
  for (std::size_t i = 0; i < held.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(held[i].token.bytes, held[j].token.bytes);
  }
}

// Once, a 12 s lease ended 6.4 s early, because the broker had been restarted.
TEST_F(LeaseTest, WithoutReleaseOnDisconnectARestartShortensNoLease) {
  broker_.create("kept", {.visibility_timeout = seconds{9}, .release_on_disconnect = false});
  broker_.send("kept", {"a", "b"});
  auto holder = open_stream(broker_, "kept", {.consumer_id = "holder"});
  const auto messages = take(*holder, 2);
  ASSERT_EQ(messages.size(), 2U);
  const auto leased = Clock::now();
  broker_.kill();
  // The consumer does not return.
  holder.reset();
  ASSERT_TRUE(broker_.start()) << broker_.log();

  const auto next = open_stream(broker_, "kept", {.consumer_id = "next"});
  const auto later = take(*next, 1, seconds{30});
  const auto took = std::chrono::duration_cast<milliseconds>(Clock::now() - leased);
  fmt::print("the lease of 9 s ended after {} ms\n", took.count());
  ASSERT_EQ(later.size(), 1U);
  EXPECT_GT(took, milliseconds{8'900});
  EXPECT_EQ(later[0].attempt, 1U) << "a restart is no failure of a message";
}

// For any gRPC client: cancelling alone looks like a crash.
TEST_F(LeaseTest, AConsumerThatLeavesItsLeaseInOrderCountsNoAttempt) {
  broker_.create("jobs");
  broker_.send("jobs", numbered("job", 5));
  grpc::ClientContext context;
  v1::LeaseRequest request;
  request.set_queue("jobs");
  request.set_consumer_id("me");
  const auto reader = stub_->Lease(&context, request);
  v1::LeaseResponse response;
  int messages = 0;
  while (messages < 5 && reader->Read(&response)) messages += response.messages_size();

  grpc::ClientContext leaving;
  v1::LeaveRequest leave;
  leave.set_queue("jobs");
  leave.set_consumer_id("me");
  v1::LeaveResponse left;
  ASSERT_TRUE(stub_->Leave(&leaving, leave, &left).ok());
  EXPECT_EQ(left.released(), 5U);
  context.TryCancel();
  (void)reader->Finish();

  const auto again = take(*open_stream(broker_, "jobs"), 5);
  ASSERT_EQ(again.size(), 5U);
  for (const auto& message : again) EXPECT_EQ(message.attempt, 1U) << message.payload;
}

// A consumer that is stopped does this, and the command line when it is interrupted.
TEST_F(LeaseTest, ClosingTheSendingSideOfConsumeCountsNoAttempt) {
  broker_.create("jobs");
  broker_.send("jobs", numbered("job", 5));
  grpc::ClientContext context;
  const auto stream = stub_->Consume(&context);
  v1::ConsumeRequest request;
  request.mutable_start()->set_queue("jobs");
  ASSERT_TRUE(stream->Write(request));
  v1::ConsumeResponse response;
  std::vector<std::string> tokens;
  while (tokens.size() < 5 && stream->Read(&response)) {
    for (const auto& message : response.messages()) tokens.push_back(message.lease_token());
  }
  v1::ConsumeRequest begun;
  begun.add_begun(tokens.at(0));
  ASSERT_TRUE(stream->Write(begun));
  stream->WritesDone();
  while (stream->Read(&response)) {
  }
  ASSERT_TRUE(stream->Finish().ok());

  const auto again = take(*open_stream(broker_, "jobs"), 5);
  ASSERT_EQ(again.size(), 5U);
  for (const auto& message : again) EXPECT_EQ(message.attempt, 1U) << message.payload;
}

}  // namespace
}  // namespace baton::e2e
