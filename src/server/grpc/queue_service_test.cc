#include "server/grpc/queue_service.h"

#include <future>
#include <string>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "server/app/service_fixture.h"
#include "server/session/page.h"

namespace baton {
namespace {

using QueueServiceTest = ServiceTest;

// An invalid message must not fail its neighbours, nor shift their results.
TEST_F(QueueServiceTest, InvalidMessagesGetTheirErrorInPlace) {
  v1::EnqueueRequest request = enqueue_request(4);
  request.mutable_messages(0)->set_delay_ms(~0ULL);
  request.mutable_messages(2)->set_fairness_key(std::string(limits::kFairnessKeyBytes + 1, 'k'));
  auto answer = std::async(std::launch::async, [&] {
    grpc::ClientContext context;
    v1::EnqueueResponse response;
    EXPECT_TRUE(stub_->Enqueue(&context, request, &response).ok());
    return response;
  });
  std::unique_ptr<Call> call = broker_.take<EnqueueCommand>();
  const auto& command = FakeBroker::of<EnqueueCommand>(call);
  ASSERT_EQ(command.messages.size(), 2U);
  EXPECT_EQ(command.messages[0].payload, "p1");
  EXPECT_EQ(command.messages[1].payload, "p3");
  confirm(std::move(call), 7);

  const v1::EnqueueResponse response = answer.get();

  ASSERT_EQ(response.results_size(), 4);
  EXPECT_EQ(response.results(0).error().name(), "invalid_argument");
  EXPECT_NE(response.results(0).error().text().find("delay_ms"), std::string::npos);
  EXPECT_EQ(response.results(1).id(), id(7).to_string());
  EXPECT_EQ(response.results(2).error().code(), 1U);
  EXPECT_EQ(response.results(3).id(), id(8).to_string());
}

TEST_F(QueueServiceTest, AnEnqueueOfOnlyInvalidMessagesDoesNotReachTheBroker) {
  v1::EnqueueRequest request = enqueue_request(1);
  request.mutable_messages(0)->set_delay_ms(~0ULL);
  grpc::ClientContext context;
  v1::EnqueueResponse response;

  ASSERT_TRUE(stub_->Enqueue(&context, request, &response).ok());

  EXPECT_EQ(response.results(0).error().name(), "invalid_argument");
  EXPECT_EQ(broker_.seen(), 0U);
}

TEST_F(QueueServiceTest, AnUnknownQueueFailsTheUnaryCall) {
  auto answer = std::async(std::launch::async, [&] {
    grpc::ClientContext context;
    v1::EnqueueResponse response;
    return stub_->Enqueue(&context, enqueue_request(2), &response);
  });
  std::unique_ptr<Call> call = broker_.take<EnqueueCommand>();
  auto& command = FakeBroker::of<EnqueueCommand>(call);
  for (int i = 0; i < 2; ++i) {
    command.outcomes.push_back(
        {.id = {}, .duplicate = false, .error = Error{Errc::queue_not_found, "orders"}});
  }
  broker_.complete(std::move(call));

  const grpc::Status status = answer.get();

  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_TRUE(status.error_message().starts_with("queue_not_found")) << status.error_message();
}

// A full shard refuses enqueues with a delay, and still takes acks: they make room.
TEST_F(QueueServiceTest, AFullBrokerAnswersUnavailableWithADelayAndTakesAcks) {
  broker_.set_full(true);
  grpc::ClientContext context;
  v1::EnqueueResponse response;

  const grpc::Status status = stub_->Enqueue(&context, enqueue_request(1), &response);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_TRUE(status.error_message().starts_with("unavailable")) << status.error_message();
  ASSERT_EQ(context.GetServerTrailingMetadata().count("retry-after-ms"), 1U);
  EXPECT_EQ(context.GetServerTrailingMetadata().find("retry-after-ms")->second, "100");

  auto acked = std::async(std::launch::async, [&] {
    grpc::ClientContext ack_context;
    v1::AckRequest request;
    request.set_queue("orders");
    request.add_lease_tokens(TokenSeal{}.of("orders").seal({.boot = 1, .number = 2}));
    request.add_lease_tokens("\xff");
    v1::AckResponse ack_response;
    EXPECT_TRUE(stub_->Ack(&ack_context, request, &ack_response).ok());
    return ack_response;
  });
  std::unique_ptr<Call> call = broker_.take<AckCommand>();
  auto& command = FakeBroker::of<AckCommand>(call);
  ASSERT_EQ(command.tokens.size(), 1U);
  command.outcomes.emplace_back();
  broker_.complete(std::move(call));
  const v1::AckResponse ack_response = acked.get();
  EXPECT_FALSE(ack_response.results(0).has_error());
  EXPECT_EQ(ack_response.results(1).error().name(), "lease_lost");
}

TEST_F(QueueServiceTest, ACallThatTheBrokerDropsIsAnsweredUnavailable) {
  auto answer = std::async(std::launch::async, [&] {
    grpc::ClientContext context;
    v1::EnqueueResponse response;
    return stub_->Enqueue(&context, enqueue_request(1), &response);
  });
  broker_.take<EnqueueCommand>().reset();

  EXPECT_EQ(answer.get().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(QueueServiceTest, TheErrorOfACommandIsTheStatusOfItsCall) {
  auto answer = std::async(std::launch::async, [&] {
    grpc::ClientContext context;
    v1::CreateQueueRequest request;
    request.set_name("orders");
    v1::CreateQueueResponse response;
    return stub_->CreateQueue(&context, request, &response);
  });
  std::unique_ptr<Call> call = broker_.take<CreateQueueCommand>();
  FakeBroker::of<CreateQueueCommand>(call).error = Error{Errc::queue_exists, "orders"};
  broker_.complete(std::move(call));

  const grpc::Status status = answer.get();

  EXPECT_EQ(status.error_code(), grpc::StatusCode::ALREADY_EXISTS);
  EXPECT_TRUE(status.error_message().starts_with("queue_exists"));
}

TEST_F(QueueServiceTest, AListIsPutTogetherFromAllShardsAndSorted) {
  auto answer = std::async(std::launch::async, [&] {
    grpc::ClientContext context;
    v1::ListQueuesResponse response;
    EXPECT_TRUE(stub_->ListQueues(&context, {}, &response).ok());
    return response;
  });
  std::unique_ptr<Call> first = broker_.take<ListQueuesCommand>();
  std::unique_ptr<Call> second = broker_.take<ListQueuesCommand>();
  for (const char* name : {"d", "a"}) {
    FakeBroker::of<ListQueuesCommand>(first).descriptions.emplace_back().name = name;
  }
  for (const char* name : {"c", "b"}) {
    FakeBroker::of<ListQueuesCommand>(second).descriptions.emplace_back().name = name;
  }
  broker_.complete(std::move(second));
  broker_.complete(std::move(first));

  const v1::ListQueuesResponse response = answer.get();
  std::string names;
  for (const v1::Queue& queue : response.queues()) names += queue.name();
  EXPECT_EQ(names, "abcd");
}

// "b" of the first shard is not shown before the second shard has answered what comes before it.
TEST_F(QueueServiceTest, APageEndsWhereAShardHasMore) {
  v1::ListQueuesRequest request;
  request.set_page_size(3);
  auto answer = std::async(std::launch::async, [&] {
    grpc::ClientContext context;
    v1::ListQueuesResponse response;
    EXPECT_TRUE(stub_->ListQueues(&context, request, &response).ok());
    return response;
  });
  std::unique_ptr<Call> first = broker_.take<ListQueuesCommand>();
  std::unique_ptr<Call> second = broker_.take<ListQueuesCommand>();
  EXPECT_EQ(FakeBroker::of<ListQueuesCommand>(first).described_max, 3U);
  FakeBroker::of<ListQueuesCommand>(first).descriptions.emplace_back().name = "b";
  FakeBroker::of<ListQueuesCommand>(second).descriptions.emplace_back().name = "a";
  FakeBroker::of<ListQueuesCommand>(second).more = true;
  broker_.complete(std::move(first));
  broker_.complete(std::move(second));
  const v1::ListQueuesResponse page = answer.get();
  ASSERT_EQ(page.queues_size(), 1);
  EXPECT_EQ(page.queues(0).name(), "a");

  request.set_page_token(page.next_page_token());
  auto next = std::async(std::launch::async, [&] {
    grpc::ClientContext context;
    v1::ListQueuesResponse response;
    EXPECT_TRUE(stub_->ListQueues(&context, request, &response).ok());
    return response;
  });
  for (int shard = 0; shard < 2; ++shard) {
    std::unique_ptr<Call> call = broker_.take<ListQueuesCommand>();
    EXPECT_EQ(FakeBroker::of<ListQueuesCommand>(call).after, "a");
    broker_.complete(std::move(call));
  }
  EXPECT_EQ(next.get().next_page_token(), "");
}

// 1 000 queues with 100 weights each exceed what a client accepts in one message by default.
TEST_F(QueueServiceTest, APageIsCutBeforeItIsTooLarge) {
  auto answer = std::async(std::launch::async, [&] {
    grpc::ClientContext context;
    v1::ListQueuesResponse response;
    EXPECT_TRUE(stub_->ListQueues(&context, {}, &response).ok());
    return response;
  });
  for (int shard = 0; shard < 2; ++shard) {
    std::unique_ptr<Call> call = broker_.take<ListQueuesCommand>();
    for (int i = 0; i < 500; ++i) {
      QueueDescription queue;
      queue.name = fmt::format("q{}.{:03}", shard, i);
      for (int weight = 0; weight < 100; ++weight) {
        queue.settings.weights.emplace(std::string(50, 'k') + std::to_string(weight), 2);
      }
      FakeBroker::of<ListQueuesCommand>(call).descriptions.push_back(std::move(queue));
    }
    broker_.complete(std::move(call));
  }
  const v1::ListQueuesResponse page = answer.get();
  EXPECT_GT(page.queues_size(), 10);
  EXPECT_LT(page.ByteSizeLong(), 2 * limits::kMiB);
  EXPECT_NE(page.next_page_token(), "");
}

TEST_F(QueueServiceTest, ABadPageIsRefusedBeforeAShardIsAsked) {
  broker_.set_refusing(true);  // A shard that is asked nevertheless ends the call as unavailable.
  const auto list = [&](const v1::ListQueuesRequest& request) {
    grpc::ClientContext context;
    v1::ListQueuesResponse response;
    return stub_->ListQueues(&context, request, &response);
  };
  v1::ListQueuesRequest request;
  request.set_page_size(-1);
  EXPECT_EQ(list(request).error_message(),
            "invalid_argument: page_size is -1; it may be 0 (as many as allowed) to 1000");
  request.set_page_size(0);
  request.set_page_token(page_token("buckets ", "orders"));
  const grpc::Status status = list(request);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("page_token"), std::string::npos);
  EXPECT_EQ(broker_.seen(), 0U);
}

// The client may be long gone when the shard answers. (ASan would find a use after free here.)
TEST_F(QueueServiceTest, AClientThatIsGoneDoesNotDisturbTheCompletion) {
  grpc::ClientContext context;
  auto answer = std::async(std::launch::async, [&] {
    v1::EnqueueResponse response;
    return stub_->Enqueue(&context, enqueue_request(1), &response);
  });
  std::unique_ptr<Call> call = broker_.take<EnqueueCommand>();
  context.TryCancel();
  EXPECT_EQ(answer.get().error_code(), grpc::StatusCode::CANCELLED);

  confirm(std::move(call), 1);
  api_->shutdown(std::chrono::seconds{20});
}

TEST_F(QueueServiceTest, NoNewCallIsTakenAfterStopAcceptingButAcksAre) {
  api_->stop_accepting();
  grpc::ClientContext context;
  v1::EnqueueResponse response;
  const grpc::Status status = stub_->Enqueue(&context, enqueue_request(1), &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "unavailable: shutting down");
  EXPECT_EQ(broker_.seen(), 0U);

  grpc::ClientContext stream_context;
  v1::EnqueueResponse confirmation;
  auto stream = stub_->EnqueueStream(&stream_context);
  EXPECT_FALSE(stream->Read(&confirmation));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(QueueServiceTest, ARequestOverTheLimitIsRefusedWithTheLimit) {
  v1::EnqueueRequest request = enqueue_request(1);
  request.mutable_messages(0)->set_payload(std::string(5 * limits::kMiB, 'x'));
  grpc::ClientContext context;
  v1::EnqueueResponse response;

  const grpc::Status status = stub_->Enqueue(&context, request, &response);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_NE(status.error_message().find(std::to_string(4 * limits::kMiB)), std::string::npos)
      << status.error_message();
}

TEST_F(QueueServiceTest, AdminShowsTheStores) {
  const auto admin = v1::AdminService::NewStub(make_channel());
  grpc::ClientContext context;
  v1::InspectResponse response;
  ASSERT_TRUE(admin->Inspect(&context, {}, &response).ok());
  ASSERT_EQ(response.shards_size(), 2);
  EXPECT_EQ(response.shards(1).number(), 1U);
  EXPECT_EQ(response.shards(1).boot(), 3U);
  EXPECT_EQ(response.shards(1).tables(0).name(), "leases");
  grpc::ClientContext checkpoint_context;
  v1::CheckpointResponse made;
  EXPECT_TRUE(admin->Checkpoint(&checkpoint_context, {}, &made).ok());
}

}  // namespace
}  // namespace baton
