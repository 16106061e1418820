#include <future>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "server/app/service_fixture.h"
#include "server/grpc/queue_calls.h"
#include "server/session/limits.h"

namespace baton {
namespace {

class EnqueueStreamTest : public ServiceTest {
 protected:
  /// A complete call: after it, the server has done everything that it had ready before.
  void round_trip() {
    v1::EnqueueRequest request = enqueue_request(1);
    request.mutable_messages(0)->set_delay_ms(~0ULL);
    grpc::ClientContext context;
    v1::EnqueueResponse response;
    EXPECT_TRUE(stub_->Enqueue(&context, request, &response).ok());
  }
};

// A producer matches confirmations to batches only by their order.
TEST_F(EnqueueStreamTest, ConfirmationsComeInTheOrderOfRequests) {
  grpc::ClientContext context;
  auto stream = stub_->EnqueueStream(&context);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(stream->Write(enqueue_request(1)));
  std::vector<std::unique_ptr<Call>> calls;
  for (int i = 0; i < 3; ++i) calls.push_back(broker_.take<EnqueueCommand>());

  for (int i = 2; i >= 0; --i) {
    confirm(std::move(calls[static_cast<std::size_t>(i)]), static_cast<std::uint8_t>(10 + i));
  }

  for (int i = 0; i < 3; ++i) {
    v1::EnqueueResponse response;
    ASSERT_TRUE(stream->Read(&response));
    ASSERT_EQ(response.results_size(), 1);
    EXPECT_EQ(response.results(0).id(), id(static_cast<std::uint8_t>(10 + i)).to_string());
  }
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(EnqueueStreamTest, BadItemsAndBadBatchesGetTheirErrorsAndTheStreamLivesOn) {
  grpc::ClientContext context;
  auto stream = stub_->EnqueueStream(&context);
  ASSERT_TRUE(stream->Write(enqueue_request(2, "not a name")));
  v1::EnqueueRequest mixed = enqueue_request(3);
  mixed.mutable_messages(1)->set_expires_after_ms(~0ULL);
  ASSERT_TRUE(stream->Write(mixed));
  v1::EnqueueRequest good = enqueue_request(2);
  ASSERT_TRUE(stream->Write(good));
  confirm(broker_.take<EnqueueCommand>(), 1);
  std::unique_ptr<Call> unknown = broker_.take<EnqueueCommand>();
  FakeBroker::of<EnqueueCommand>(unknown).outcomes.assign(
      2, {.id = {}, .duplicate = false, .error = Error{Errc::queue_not_found, "orders"}});
  broker_.complete(std::move(unknown));

  v1::EnqueueResponse response;
  ASSERT_TRUE(stream->Read(&response));
  ASSERT_EQ(response.results_size(), 2);
  EXPECT_EQ(response.results(1).error().name(), "invalid_argument");
  ASSERT_TRUE(stream->Read(&response));
  ASSERT_EQ(response.results_size(), 3);
  EXPECT_EQ(response.results(0).id(), id(1).to_string());
  EXPECT_NE(response.results(1).error().text().find("expires_after"), std::string::npos);
  EXPECT_EQ(response.results(2).id(), id(2).to_string());
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.results(0).error().name(), "queue_not_found");
  stream->WritesDone();
  EXPECT_TRUE(stream->Finish().ok());
}

// Nothing else holds a producer back, because a full shard admits its calls.
TEST_F(EnqueueStreamTest, AStreamIsNotReadWhileEnoughBatchesAreUnderWay) {
  constexpr std::size_t kBatches = limits::kStreamBatches;
  grpc::ClientContext context;
  auto stream = stub_->EnqueueStream(&context);
  for (std::size_t i = 0; i < kBatches + 3; ++i) ASSERT_TRUE(stream->Write(enqueue_request(1)));
  std::vector<std::unique_ptr<Call>> calls;
  for (std::size_t i = 0; i < kBatches; ++i) calls.push_back(broker_.take<EnqueueCommand>());
  for (int i = 0; i < 10; ++i) round_trip();
  EXPECT_EQ(broker_.seen(), kBatches);

  confirm(std::move(calls[0]), 1);
  calls.push_back(broker_.take<EnqueueCommand>());
  for (int i = 0; i < 10; ++i) round_trip();
  EXPECT_EQ(broker_.seen(), kBatches + 1);

  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  for (auto& call : calls) {
    if (call != nullptr) confirm(std::move(call), 1);
  }
}

TEST_F(EnqueueStreamTest, AShutdownLetsPendingConfirmationsThrough) {
  grpc::ClientContext context;
  auto stream = stub_->EnqueueStream(&context);
  ASSERT_TRUE(stream->Write(enqueue_request(1)));
  std::unique_ptr<Call> call = broker_.take<EnqueueCommand>();
  auto down = std::async(std::launch::async, [&] { api_->shutdown(std::chrono::seconds{20}); });
  // The shutdown has begun once new calls are refused.
  while (true) {
    grpc::ClientContext probe;
    v1::EnqueueResponse refused;
    v1::EnqueueRequest none = enqueue_request(0);
    if (!stub_->Enqueue(&probe, none, &refused).ok()) break;
  }
  confirm(std::move(call), 5);

  v1::EnqueueResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.results(0).id(), id(5).to_string());
  EXPECT_FALSE(stream->Read(&response));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "unavailable: shutting down");
  EXPECT_EQ(context.GetServerTrailingMetadata().count("retry-after-ms"), 1U);
  down.get();
}

TEST_F(EnqueueStreamTest, ABrokerThatDropsABatchEndsTheStreamAfterTheBatchesBeforeIt) {
  grpc::ClientContext context;
  auto stream = stub_->EnqueueStream(&context);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(stream->Write(enqueue_request(1)));
  std::unique_ptr<Call> first = broker_.take<EnqueueCommand>();
  broker_.take<EnqueueCommand>().reset();
  confirm(std::move(first), 9);

  v1::EnqueueResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.results(0).id(), id(9).to_string());
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace baton
