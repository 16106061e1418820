#include <future>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "server/grpc/consumer_fixture.h"
#include "server/grpc/queue_calls.h"

namespace baton::consumer_test {
namespace {

// A first message that overtook the registration would reach a consumer that does not know its id
// yet.
TEST_F(ConsumerStreamTest, TheRegistrationComesFirstAndThenMessagesWithAllTheirFields) {
  grpc::ClientContext context;
  v1::LeaseRequest request;
  request.set_queue("orders");
  auto stream = stub_->Lease(&context, request);
  std::unique_ptr<Call> call = broker_.take<AttachCommand>();
  const std::string consumer_id = FakeBroker::of<AttachCommand>(call).consumer_id;
  EXPECT_TRUE(Uuid::parse(consumer_id).has_value()) << consumer_id;
  EXPECT_EQ(FakeBroker::of<AttachCommand>(call).in_flight_max, 256U);
  const std::shared_ptr<ConsumerSink> sink = accept(std::move(call));
  deliver(sink, {delivery(1), delivery(2)});

  v1::LeaseResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.registered().consumer_id(), consumer_id);
  EXPECT_EQ(response.registered().visibility_timeout().seconds(), 30);
  EXPECT_EQ(response.messages_size(), 0);
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_FALSE(response.has_registered());
  ASSERT_EQ(response.messages_size(), 2);
  const v1::LeasedMessage& message = response.messages(1);
  EXPECT_EQ(message.id(), id(2).to_string());
  EXPECT_EQ(message.payload(), "xxx");
  EXPECT_EQ(message.headers().at("k"), "v");
  EXPECT_EQ(message.fairness_key(), "tenant");
  EXPECT_EQ(message.attempt(), 2U);
  EXPECT_EQ(message.enqueued_at_ns(), 1000);
  EXPECT_EQ(message.lease_deadline_ns(), 5000);
  EXPECT_EQ(message.lease_token(), token(2));
  EXPECT_EQ(message.throttle_keys(0), "api");
  context.TryCancel();
  EXPECT_TRUE(broker_.detaches(1)[0].unwritten.empty());
}

TEST_F(ConsumerStreamTest, AFailedRegistrationEndsTheStreamAndIsNotDetached) {
  grpc::ClientContext context;
  v1::LeaseRequest request;
  request.set_queue("orders");
  auto stream = stub_->Lease(&context, request);
  std::unique_ptr<Call> call = broker_.take<AttachCommand>();
  FakeBroker::of<AttachCommand>(call).error = Error{Errc::queue_not_found, "orders"};
  broker_.complete(std::move(call));

  v1::LeaseResponse response;
  EXPECT_FALSE(stream->Read(&response));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_TRUE(status.error_message().starts_with("queue_not_found"));
}

TEST_F(ConsumerStreamTest, ABrokerThatDropsTheRegistrationIsUnavailable) {
  grpc::ClientContext context;
  v1::LeaseRequest request;
  request.set_queue("orders");
  auto stream = stub_->Lease(&context, request);
  broker_.take<AttachCommand>().reset();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNAVAILABLE);
}

// A stream that ended would give the leases back before the client could ack them.
TEST_F(ConsumerStreamTest, ALeaseAsksForNoMoreThanMaxMessagesAndStaysOpen) {
  grpc::ClientContext context;
  v1::LeaseRequest request;
  request.set_queue("orders");
  request.set_consumer_id("me");
  request.set_messages_max(3);
  auto stream = stub_->Lease(&context, request);
  std::unique_ptr<Call> call = broker_.take<AttachCommand>();
  EXPECT_EQ(FakeBroker::of<AttachCommand>(call).credit, 3U);
  const std::shared_ptr<ConsumerSink> sink = accept(std::move(call));
  deliver(sink, {delivery(1), delivery(2)});
  deliver(sink, {delivery(3)});

  v1::LeaseResponse response;
  int messages = 0;
  while (messages < 3 && stream->Read(&response)) messages += response.messages_size();
  EXPECT_EQ(messages, 3);
  EXPECT_EQ(broker_.detach_count(), 0U);
  context.TryCancel();
  const std::vector<DetachCommand> detaches = broker_.detaches(1);
  EXPECT_EQ(detaches[0].consumer, consumer_);
  EXPECT_TRUE(detaches[0].unwritten.empty());
}

// A delivery that crosses with the consumer's departure never reached the network either.
TEST_F(ConsumerStreamTest, WhatArrivesWhileTheConsumerLeavesIsUnwrittenToo) {
  broker_.hold_quiesces();
  grpc::ClientContext context;
  v1::LeaseRequest request;
  request.set_queue("orders");
  auto stream = stub_->Lease(&context, request);
  const std::shared_ptr<ConsumerSink> sink = accept();
  context.TryCancel();
  std::unique_ptr<Call> quiesce = broker_.take<QuiesceCommand>();
  deliver(sink, {delivery(7)});
  broker_.complete(std::move(quiesce));

  const std::vector<LeaseToken> unwritten = broker_.detaches(1)[0].unwritten;

  ASSERT_EQ(unwritten.size(), 1U);
  EXPECT_EQ(unwritten[0].number, 7U);
}

// Messages that never reached the network count no attempt: the shard must learn which.
TEST_F(ConsumerStreamTest, ACancelledStreamNamesWhatItNeverWrote) {
  constexpr std::uint64_t kMessages = 64;
  grpc::ClientContext context;
  v1::LeaseRequest request;
  request.set_queue("orders");
  auto stream = stub_->Lease(&context, request);
  const std::shared_ptr<ConsumerSink> sink = accept();
  v1::LeaseResponse response;
  ASSERT_TRUE(stream->Read(&response));
  // More than HTTP/2's windows accept for a client that does not read.
  std::vector<Delivery> deliveries;
  for (std::uint64_t i = 1; i <= kMessages; ++i) deliveries.push_back(delivery(i, limits::kMiB));
  deliver(sink, deliveries);
  ASSERT_TRUE(stream->Read(&response));
  ASSERT_EQ(response.messages_size(), 1);
  context.TryCancel();

  const std::vector<LeaseToken> unwritten = broker_.detaches(1)[0].unwritten;

  ASSERT_FALSE(unwritten.empty());
  EXPECT_LT(unwritten.size(), kMessages);
  for (std::size_t i = 0; i < unwritten.size(); ++i) {
    EXPECT_EQ(unwritten[i].number, kMessages - unwritten.size() + 1 + i);
  }
}

TEST_F(ConsumerStreamTest, AClientThatLeavesBeforeItIsRegisteredIsDetachedAfterwards) {
  grpc::ClientContext context;
  v1::LeaseRequest request;
  request.set_queue("orders");
  auto stream = stub_->Lease(&context, request);
  std::unique_ptr<Call> call = broker_.take<AttachCommand>();
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  EXPECT_EQ(broker_.detach_count(), 0U);

  const std::shared_ptr<ConsumerSink> sink = accept(std::move(call));
  EXPECT_EQ(broker_.detaches(1)[0].consumer, consumer_);
  // A round under way may still deliver, though the client is gone.
  deliver(sink, {delivery(1)});
}

TEST_F(ConsumerStreamTest, ResultsComeInTheOrderOfTheItemsAcrossRequests) {
  grpc::ClientContext context;
  auto stream = open(context);
  v1::ConsumeRequest first;
  first.add_acks(token(1));
  first.add_acks("\xff");
  first.add_acks(token(2));
  ASSERT_TRUE(stream->Write(first));
  v1::ConsumeRequest second;
  second.add_acks(token(3));
  second.add_nacks()->set_lease_token(token(4));
  second.mutable_nacks(0)->set_release(true);
  second.add_extends()->set_lease_token(token(5));
  second.mutable_extends(0)->set_timeout_ms(1000);
  ASSERT_TRUE(stream->Write(second));
  std::unique_ptr<Call> early = broker_.take<AckCommand>();
  std::unique_ptr<Call> late = broker_.take<AckCommand>();
  std::unique_ptr<Call> nack = broker_.take<NackCommand>();
  std::unique_ptr<Call> extend = broker_.take<ExtendCommand>();
  EXPECT_EQ(FakeBroker::of<NackCommand>(nack).items[0].retry.kind, Retry::Kind::release);
  EXPECT_EQ(FakeBroker::of<ExtendCommand>(extend).items[0].timeout, std::chrono::seconds{1});
  EXPECT_EQ(FakeBroker::of<AckCommand>(early).queue, "orders");
  FakeBroker::of<NackCommand>(nack).outcomes.emplace_back();
  FakeBroker::of<ExtendCommand>(extend).outcomes.emplace_back(Error{Errc::lease_lost, "5"});
  broker_.complete(std::move(extend));
  broker_.complete(std::move(nack));
  finish_acks(std::move(late));
  finish_acks(std::move(early));

  v1::ConsumeResponse all;
  while (all.acks_size() < 4) {
    v1::ConsumeResponse response;
    ASSERT_TRUE(stream->Read(&response));
    all.MergeFrom(response);
  }
  ASSERT_EQ(all.acks_size(), 4);
  EXPECT_FALSE(all.acks(0).has_error());
  EXPECT_EQ(all.acks(1).error().name(), "lease_lost");
  EXPECT_EQ(all.acks(2).error().text(), "2");
  EXPECT_FALSE(all.acks(3).has_error());
  ASSERT_EQ(all.nacks_size(), 1);
  EXPECT_FALSE(all.nacks(0).has_error());
  ASSERT_EQ(all.extends_size(), 1);
  EXPECT_EQ(all.extends(0).error().text(), "5");
}

// An ack that was sent is answered, even if the client has closed its side.
TEST_F(ConsumerStreamTest, AHalfClosedStreamFinishesItsAcksThenDetachesThenEnds) {
  grpc::ClientContext context;
  auto stream = open(context);
  v1::ConsumeRequest request;
  request.add_acks(token(1));
  ASSERT_TRUE(stream->Write(request));
  stream->WritesDone();
  std::unique_ptr<Call> call = broker_.take<AckCommand>();
  EXPECT_EQ(broker_.detach_count(), 0U);
  finish_acks(std::move(call));

  v1::ConsumeResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.acks_size(), 1);
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
  // The end of the stream proves that everything is given back.
  EXPECT_EQ(broker_.detach_count(), 1U);
}

TEST_F(ConsumerStreamTest, AClosedSinkEndsTheStreamWithItsReasonAndGivesBackWhatWaits) {
  grpc::ClientContext context;
  auto stream = open(context);
  v1::ConsumeRequest request;
  request.add_acks(token(1));
  ASSERT_TRUE(stream->Write(request));
  std::unique_ptr<Call> call = broker_.take<AckCommand>();
  broker_.post([sink = sink_] { sink->close({Errc::queue_not_found, "orders was deleted"}); });
  deliver(sink_, {delivery(7), delivery(8)});
  finish_acks(std::move(call));

  v1::ConsumeResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.acks_size(), 1);
  EXPECT_EQ(response.messages_size(), 0);
  EXPECT_FALSE(stream->Read(&response));
  const grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "queue_not_found: orders was deleted");
  const std::vector<LeaseToken> expected = {{.boot = 4, .number = 7}, {.boot = 4, .number = 8}};
  EXPECT_EQ(broker_.detaches(1)[0].unwritten, expected);
}

TEST_F(ConsumerStreamTest, ManualCreditGoesToTheShard) {
  grpc::ClientContext context;
  auto stream = stub_->Consume(&context);
  v1::ConsumeRequest request = start();
  request.mutable_start()->set_manual_credit(true);
  request.set_credit(5);
  ASSERT_TRUE(stream->Write(request));
  std::unique_ptr<Call> call = broker_.take<AttachCommand>();
  EXPECT_EQ(FakeBroker::of<AttachCommand>(call).credit, 5U);
  accept(std::move(call));
  v1::ConsumeRequest more;
  more.set_credit(7);
  ASSERT_TRUE(stream->Write(more));
  const std::vector<CreditCommand> credits = broker_.credits(1);
  ASSERT_EQ(credits.size(), 1U);
  EXPECT_EQ(credits[0].added, 7U);
  EXPECT_EQ(credits[0].consumer, consumer_);
  stream->WritesDone();
  v1::ConsumeResponse response;
  while (stream->Read(&response)) {
  }
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ConsumerStreamTest, AQuiesceIsToldBehindTheLastMessage) {
  broker_.hold_quiesces();
  grpc::ClientContext context;
  const auto stream = open(context);
  v1::ConsumeRequest request;
  request.set_quiesce(true);
  ASSERT_TRUE(stream->Write(request));
  std::unique_ptr<Call> quiesce = broker_.take<QuiesceCommand>();
  EXPECT_EQ(FakeBroker::of<QuiesceCommand>(quiesce).consumer, consumer_);
  // More than HTTP/2's windows accept for a client that does not read: most of them wait.
  std::vector<Delivery> deliveries;
  for (std::uint64_t i = 1; i <= 64; ++i) deliveries.push_back(delivery(i, limits::kMiB));
  deliver(sink_, deliveries);
  broker_.complete(std::move(quiesce));
  v1::ConsumeResponse response;
  std::size_t messages = 0;
  while (!response.quiesced() && stream->Read(&response)) {
    messages += static_cast<std::size_t>(response.messages_size());
  }
  EXPECT_EQ(messages, deliveries.size());
  stream->WritesDone();
  broker_.complete(broker_.take<QuiesceCommand>());
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_TRUE(stream->Finish().ok());
}

TEST_F(ConsumerStreamTest, MarksGoToTheShardAndThoseThatNameNoLeaseAreLeftOut) {
  grpc::ClientContext context;
  auto stream = stub_->Consume(&context);
  v1::ConsumeRequest request = start();
  request.mutable_start()->set_concurrency(3);
  ASSERT_TRUE(stream->Write(request));
  std::unique_ptr<Call> call = broker_.take<AttachCommand>();
  EXPECT_EQ(FakeBroker::of<AttachCommand>(call).concurrency, 3U);
  accept(std::move(call));
  v1::ConsumeRequest marks;
  marks.add_begun(token(1));
  marks.add_begun("nonsense");
  marks.add_begun(token(2));
  ASSERT_TRUE(stream->Write(marks));
  const std::vector<BegunCommand> begun = broker_.begun(1);
  EXPECT_EQ(begun[0].consumer, consumer_);
  EXPECT_EQ(begun[0].tokens,
            (std::vector<LeaseToken>{{.boot = 4, .number = 1}, {.boot = 4, .number = 2}}));
  // Many more than the limit of unanswered requests: marks need no answer, and do not count.
  for (std::size_t i = 0; i < 3 * limits::kStreamBatches; ++i) ASSERT_TRUE(stream->Write(marks));
  EXPECT_EQ(broker_.begun(3 * limits::kStreamBatches + 1).size(), 3 * limits::kStreamBatches + 1);
  stream->WritesDone();
  v1::ConsumeResponse response;
  int responses = 0;
  while (stream->Read(&response)) ++responses;
  EXPECT_EQ(responses, 1);  // The registration.
  EXPECT_TRUE(stream->Finish().ok());
}

// Only a consumer that dies may have been killed by a message.
TEST_F(ConsumerStreamTest, ADetachSaysWhetherTheEndWasOrderly) {
  v1::ConsumeResponse response;
  {
    grpc::ClientContext context;
    auto stream = open(context);
    stream->WritesDone();
    EXPECT_FALSE(stream->Read(&response));
    EXPECT_TRUE(broker_.detaches(1)[0].orderly) << "half-closed";
  }
  {
    grpc::ClientContext context;
    auto stream = open(context);
    context.TryCancel();
    EXPECT_FALSE(broker_.detaches(2)[1].orderly) << "cancelled";
  }
  {
    grpc::ClientContext context;
    auto stream = open(context);
    v1::ConsumeRequest request;
    request.set_quiesce(true);
    ASSERT_TRUE(stream->Write(request));
    ASSERT_TRUE(stream->Read(&response));
    EXPECT_TRUE(response.quiesced());
    context.TryCancel();
    EXPECT_TRUE(broker_.detaches(3)[2].orderly) << "quiesced, then cancelled";
  }
  {
    grpc::ClientContext context;
    v1::LeaseRequest request;
    request.set_queue("orders");
    auto stream = stub_->Lease(&context, request);
    accept();
    context.TryCancel();
    EXPECT_FALSE(broker_.detaches(4)[3].orderly) << "a Lease that was cancelled";
  }
  {
    grpc::ClientContext context;
    auto stream = open(context);
    broker_.post([sink = sink_] { sink->close({Errc::queue_not_found, "deleted"}); });
    EXPECT_FALSE(stream->Read(&response));
    EXPECT_TRUE(broker_.detaches(5)[4].orderly) << "ended by the broker";
  }
}

TEST_F(ConsumerStreamTest, ASecondStartAndAMissingOneAreRefused) {
  grpc::ClientContext context;
  auto stream = open(context);
  ASSERT_TRUE(stream->Write(start()));
  grpc::Status status = stream->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("start"), std::string::npos);

  grpc::ClientContext other_context;
  auto other = stub_->Consume(&other_context);
  v1::ConsumeRequest request;
  request.set_credit(1);
  ASSERT_TRUE(other->Write(request));
  status = other->Finish();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_NE(status.error_message().find("start is missing"), std::string::npos);
}

TEST_F(ConsumerStreamTest, AShutdownDetachesAndSaysSo) {
  grpc::ClientContext context;
  auto stream = open(context);
  auto down = std::async(std::launch::async, [&] { api_->shutdown(std::chrono::seconds{20}); });

  const grpc::Status status = stream->Finish();

  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(status.error_message(), "unavailable: shutting down");
  EXPECT_EQ(broker_.detach_count(), 1U);
  down.get();
}

// The requests of a consumer with too many unanswered ones are not read, because a full shard
// admits its calls.
TEST_F(ConsumerStreamTest, UnansweredRequestsAreBounded) {
  grpc::ClientContext context;
  auto stream = open(context);
  const std::size_t before = broker_.seen();
  v1::ConsumeRequest request;
  request.add_acks(token(1));
  for (std::size_t i = 0; i < limits::kStreamBatches + 3; ++i) ASSERT_TRUE(stream->Write(request));
  std::vector<std::unique_ptr<Call>> calls;
  for (std::size_t i = 0; i < limits::kStreamBatches; ++i)
    calls.push_back(broker_.take<AckCommand>());
  // Round trips, so that the server has done everything that it had ready.
  for (int i = 0; i < 10; ++i) {
    grpc::ClientContext probe;
    v1::EnqueueResponse response;
    EXPECT_TRUE(stub_->Enqueue(&probe, enqueue_request(0), &response).ok());
  }
  EXPECT_EQ(broker_.seen() - before, limits::kStreamBatches);
  context.TryCancel();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  // Completions for a client that is gone.
  for (auto& call : calls) finish_acks(std::move(call));
}

}  // namespace
}  // namespace baton::consumer_test
