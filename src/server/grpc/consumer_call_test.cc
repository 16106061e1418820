#include "server/grpc/queue_calls.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "server/app/service_fixture.h"

namespace baton {
namespace {

class ConsumerStreamTest : public ServiceTest {
 protected:
  using Consume = grpc::ClientReaderWriter<v1::ConsumeRequest, v1::ConsumeResponse>;

  // Whatever the test did: each attach that succeeded had its one detach.
  void TearDown() override {
    api_->shutdown(std::chrono::seconds{20});
    EXPECT_EQ(broker_.detach_count(), attached_);
  }

  /// Lets the attach that waits succeed; the sink is then registered.
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
      // Even numbers have lost their lease, so that results can be told apart.
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

// A first message that overtook the registration would reach a consumer that does not know its
// name.
TEST_F(ConsumerStreamTest, TheRegistrationComesFirstAndThenMessagesWithAllTheirFields) {
  grpc::ClientContext context;
  v1::LeaseRequest request;
  request.set_queue("orders");
  auto stream = stub_->Lease(&context, request);
  std::unique_ptr<Call> call = broker_.take<AttachCommand>();
  const std::string consumer_id = FakeBroker::of<AttachCommand>(call).consumer_id;
  EXPECT_TRUE(Uuid::parse(consumer_id).has_value()) << consumer_id;
  EXPECT_EQ(FakeBroker::of<AttachCommand>(call).max_in_flight, 256U);
  const std::shared_ptr<ConsumerSink> sink = accept(std::move(call));
  deliver(sink, {delivery(1), delivery(2)});

  v1::LeaseResponse response;
  ASSERT_TRUE(stream->Read(&response));
  EXPECT_EQ(response.registered().consumer_id(), consumer_id);
  EXPECT_EQ(response.registered().visibility_timeout_ms(), 30'000U);
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

// An ended stream would give the leases back before anybody could ack them.
TEST_F(ConsumerStreamTest, ALeaseAsksForNoMoreThanMaxMessagesAndStaysOpen) {
  grpc::ClientContext context;
  v1::LeaseRequest request;
  request.set_queue("orders");
  request.set_consumer_id("me");
  request.set_max_messages(3);
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

// A delivery that crosses with the consumer's leaving never reached the network either.
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
  // More than HTTP/2's windows take from a client that does not read.
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
  // A round that was under way may still deliver; nobody is there to take it.
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

// An ack that was sent is answered, even when the client has nothing more to say.
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
  // The end of the stream says that everything is given back.
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
  // More than HTTP/2's windows take from a client that does not read: most of them wait.
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
  // Many more than the stream takes unanswered: marks need no answer, and do not fill it up.
  for (std::size_t i = 0; i < 3 * limits::kStreamBatches; ++i) ASSERT_TRUE(stream->Write(marks));
  EXPECT_EQ(broker_.begun(3 * limits::kStreamBatches + 1).size(), 3 * limits::kStreamBatches + 1);
  stream->WritesDone();
  v1::ConsumeResponse response;
  int responses = 0;
  while (stream->Read(&response)) ++responses;
  EXPECT_EQ(responses, 1);  // The registration.
  EXPECT_TRUE(stream->Finish().ok());
}

// Only a consumer that dies may have died of a message.
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

// A consumer whose requests pile up is not read: its calls are admitted to a full shard.
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
  // Round trips, so that the server has done whatever it had ready to do.
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

/// Stands where gRPC does, so that a test decides how each write ends.
class FakePort final : public StreamPort {
 public:
  void read() override {}
  void write(grpc::ByteBuffer /*frame*/) override { add(writes_); }
  void finish(const grpc::Status& /*status*/) override { add(finishes_); }

  void wait_for_writes(int count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(
        changed_.wait_for(lock, std::chrono::seconds{20}, [&] { return writes_ >= count; }));
  }
  void wait_for_finish() {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(changed_.wait_for(lock, std::chrono::seconds{20}, [&] { return finishes_ >= 1; }));
  }
  int finishes() {
    const std::lock_guard lock(mutex_);
    return finishes_;
  }

 private:
  void add(int& count) {
    {
      const std::lock_guard lock(mutex_);
      ++count;
    }
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  int writes_ = 0;
  int finishes_ = 0;
};

class ConsumerPortTest : public ConsumerStreamTest {
 protected:
  /// A consumer on a FakePort, registered, with its first response written.
  std::shared_ptr<ConsumerCall> registered(FakePort& port) {
    auto stream =
        std::make_shared<ConsumerCall>(std::make_shared<ServerState>(broker_, std::uint64_t{1}));
    AttachCommand command;
    command.queue = "orders";
    stream->attach(std::move(command));
    stream->open(port, false);
    sink_ = accept();
    port.wait_for_writes(1);
    stream->on_written(true);
    return stream;
  }
};

// A write that failed may not have reached the network: its messages count no attempt.
TEST_F(ConsumerPortTest, WhatAFailedWriteHeldIsUnwrittenAndSoIsWhatWaitedBehindIt) {
  FakePort port;
  const auto stream = registered(port);
  deliver(sink_, {delivery(1)});
  port.wait_for_writes(2);
  stream->on_written(true);
  deliver(sink_, {delivery(2), delivery(3)});
  port.wait_for_writes(3);
  stream->on_cancel();
  // Its write is still under way, so it is not known yet what was written.
  EXPECT_EQ(broker_.detach_count(), 0U);
  EXPECT_EQ(port.finishes(), 0);
  stream->on_written(false);

  const std::vector<LeaseToken> expected = {{.boot = 4, .number = 2}, {.boot = 4, .number = 3}};
  EXPECT_EQ(broker_.detaches(1)[0].unwritten, expected);
  port.wait_for_finish();
  EXPECT_EQ(port.finishes(), 1);
}

// A client that sees the end of its stream may count on its messages being free for others.
TEST_F(ConsumerPortTest, TheEndIsNotToldBeforeTheDetachIsDone) {
  FakePort port;
  broker_.hold_detaches();
  const auto stream = registered(port);
  stream->session()->end({});
  std::unique_ptr<Call> detach = broker_.take<DetachCommand>();
  EXPECT_EQ(port.finishes(), 0);
  broker_.complete(std::move(detach));
  port.wait_for_finish();
  EXPECT_EQ(port.finishes(), 1);
}

}  // namespace
}  // namespace baton
