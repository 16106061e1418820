#include <future>
#include <numeric>
#include <thread>

#include <baton/broker.h>
#include <baton/producer.h>
#include <gtest/gtest.h>

#include "sdk/queue/test_broker.h"

namespace baton::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using EnqueueCall = TestBroker::EnqueueCall;

NewMessage message(int number) {
  NewMessage made;
  made.payload = std::to_string(number);
  return made;
}

// Confirms every message of the frame; its id is "id-<payload>".
v1::EnqueueResponse confirm(const v1::EnqueueRequest& request) {
  v1::EnqueueResponse response;
  for (const auto& sent : request.messages())
    response.add_results()->set_id("id-" + sent.payload());
  return response;
}

grpc::Status confirm_all(EnqueueCall& call) {
  v1::EnqueueRequest request;
  while (call.Read(&request)) call.Write(confirm(request));
  return grpc::Status::OK;
}

std::vector<std::string> payloads(const v1::EnqueueRequest& request) {
  std::vector<std::string> list;
  for (const auto& sent : request.messages()) list.push_back(sent.payload());
  return list;
}

std::vector<std::string> numbers(int count) {
  std::vector<std::string> list;
  for (int i = 0; i < count; ++i) list.push_back(std::to_string(i));
  return list;
}

std::unique_ptr<Producer> open(ConnectionOptions connection, ProducerOptions options = {}) {
  const auto broker = Broker::open(std::move(connection));
  auto producer = broker->queue("orders").producer(std::move(options));
  EXPECT_TRUE(producer.has_value());
  return std::make_unique<Producer>(*std::move(producer));
}

TEST(Producer, ConfirmsEachMessageInTheOrderOfSending) {
  TestBroker broker;
  broker.on_enqueue_stream = [](int, EnqueueCall& call) { return confirm_all(call); };
  const auto producer = open(broker.connection());
  Log<std::string> ids;

  for (int i = 0; i < 1000; ++i) {
    producer->send(message(i), [&](EnqueueResult result) { ids.add(result.id); });
  }

  ASSERT_TRUE(producer->flush(seconds{20}).has_value());
  const auto got = ids.now();
  ASSERT_EQ(got.size(), 1000U);
  for (int i = 0; i < 1000; ++i)
    EXPECT_EQ(got[static_cast<std::size_t>(i)], fmt::format("id-{}", i));
  EXPECT_EQ(producer->stats().messages_confirmed, 1000U);
}

// A frame costs the same with one message as with a hundred, so load must make frames bigger.
TEST(Producer, GathersWhatIsSentWhileFramesAreUnconfirmed) {
  Gate answer;
  Log<std::size_t> frames;
  TestBroker broker;
  broker.on_enqueue_stream = [&](int, EnqueueCall& call) {
    v1::EnqueueRequest request;
    while (call.Read(&request)) {
      EXPECT_EQ(request.queue(), "orders");
      frames.add(static_cast<std::size_t>(request.messages_size()));
      EXPECT_TRUE(answer.wait());
      call.Write(confirm(request));
    }
    return grpc::Status::OK;
  };
  const auto producer = open(broker.connection(), {.frames_ahead = 1});

  producer->send(message(0), {});
  ASSERT_EQ(frames.wait(1).size(), 1U);
  for (int i = 1; i <= 600; ++i) producer->send(message(i), {});
  answer.open();

  ASSERT_TRUE(producer->flush(seconds{20}).has_value());
  EXPECT_EQ(frames.now(), (std::vector<std::size_t>{1, 256, 256, 88}));
}

TEST(Producer, SplitsABatchByMessagesAndBytesAndAnswersItAtOnce) {
  Log<std::size_t> frames;
  TestBroker broker;
  broker.on_enqueue_stream = [&](int, EnqueueCall& call) {
    v1::EnqueueRequest request;
    while (call.Read(&request)) {
      frames.add(static_cast<std::size_t>(request.messages_size()));
      call.Write(confirm(request));
    }
    return grpc::Status::OK;
  };
  const auto producer =
      open(broker.connection(), {.batch_messages_max = 4, .batch_bytes_max = 3000});
  std::vector<NewMessage> batch;
  for (int i = 0; i < 5; ++i) batch.push_back(message(i));
  for (int i = 0; i < 3; ++i) batch.push_back({.payload = std::string(1400, 'x')});
  std::promise<std::vector<EnqueueResult>> told;

  producer->send_batch(std::move(batch), [&](std::vector<EnqueueResult> results) {
    told.set_value(std::move(results));
  });

  const auto results = told.get_future().get();
  ASSERT_EQ(results.size(), 8U);
  EXPECT_EQ(results[4].id, "id-4");
  EXPECT_EQ(frames.now(), (std::vector<std::size_t>{4, 3, 1}));
}

TEST(Producer, ABadMessageDoesNotFailItsNeighbours) {
  TestBroker broker;
  broker.on_enqueue_stream = [](int, EnqueueCall& call) {
    v1::EnqueueRequest request;
    while (call.Read(&request)) {
      v1::EnqueueResponse response = confirm(request);
      for (int i = 0; i < request.messages_size(); ++i) {
        if (request.messages(i).payload() != "1") continue;
        auto& error = *response.mutable_results(i)->mutable_error();
        error.set_code(105);
        error.set_name("queue_full");
        error.set_text("the queue is full");
      }
      call.Write(response);
    }
    return grpc::Status::OK;
  };
  const auto producer = open(broker.connection());

  auto first = producer->send(message(0));
  auto second = producer->send(message(1));
  auto third = producer->send(message(2));

  EXPECT_TRUE(first.get().ok());
  const EnqueueResult refused = second.get();
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error->code, Errc::queue_full);
  EXPECT_EQ(refused.error->name(), "queue_full");
  EXPECT_TRUE(third.get().ok());
  const Status flushed = producer->flush(seconds{20});
  ASSERT_FALSE(flushed.has_value());
  EXPECT_EQ(flushed.error().code, Errc::queue_full);
  EXPECT_TRUE(producer->flush(seconds{20}).has_value());  // Reported once.
}

TEST(Producer, SendsUnconfirmedMessagesAgainInOrderAfterAReconnect) {
  Log<std::string> second_life;
  TestBroker broker;
  broker.on_enqueue_stream = [&](int number, EnqueueCall& call) {
    v1::EnqueueRequest request;
    if (number == 1) {
      // Confirms one frame, takes another, and breaks the connection.
      call.Read(&request);
      call.Write(confirm(request));
      call.Read(&request);
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "dying");
    }
    while (call.Read(&request)) {
      for (const auto& payload : payloads(request)) second_life.add(payload);
      call.Write(confirm(request));
    }
    return grpc::Status::OK;
  };
  const auto producer = open(broker.connection(), {.batch_messages_max = 10});
  ASSERT_TRUE(producer->send(message(-1)).get().ok());
  Log<std::string> ids;

  for (int i = 0; i < 100; ++i) {
    producer->send(message(i), [&](EnqueueResult result) { ids.add(result.id); });
  }

  ASSERT_TRUE(producer->flush(seconds{20}).has_value());
  EXPECT_EQ(second_life.now(), numbers(100));
  const auto got = ids.now();
  ASSERT_EQ(got.size(), 100U);
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(got[static_cast<std::size_t>(i)], fmt::format("id-{}", i));
  EXPECT_EQ(producer->stats().reconnects, 1U);
  EXPECT_GT(producer->stats().messages_resent, 0U);
}

TEST(Producer, WithoutResendingUnconfirmedMessagesFailAsUnknown) {
  TestBroker broker;
  broker.on_enqueue_stream = [&](int number, EnqueueCall& call) {
    v1::EnqueueRequest request;
    if (number > 1) return confirm_all(call);
    call.Read(&request);
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "dying");
  };
  const auto producer = open(broker.connection(), {.resend_unconfirmed = false});

  const EnqueueResult lost = producer->send(message(0)).get();

  ASSERT_FALSE(lost.ok());
  EXPECT_EQ(lost.error->code, Errc::unavailable);
  EXPECT_NE(lost.error->text.find("may or may not have been stored"), std::string::npos);
  EXPECT_TRUE(producer->send(message(1)).get().ok());
}

TEST(Producer, SurvivesABrokerThatIsNotThereYet) {
  TestBroker broker;
  broker.on_enqueue_stream = [](int, EnqueueCall& call) { return confirm_all(call); };
  broker.stop();
  const auto producer = open(broker.connection());
  auto result = producer->send(message(0));

  broker.start();

  EXPECT_TRUE(result.get().ok());
}

TEST(Producer, BoundsWhatIsInFlight) {
  Gate answer;
  TestBroker broker;
  broker.on_enqueue_stream = [&](int, EnqueueCall& call) {
    EXPECT_TRUE(answer.wait());
    return confirm_all(call);
  };
  const auto producer = open(broker.connection(), {.in_flight_messages_max = 10});
  for (int i = 0; i < 10; ++i) producer->send(message(i), {});

  NewMessage eleventh = message(10);
  EXPECT_FALSE(producer->try_send(eleventh, {}));
  EXPECT_EQ(eleventh.payload, "10");
  EXPECT_EQ(producer->stats().messages_in_flight, 10U);
  // Blocks until the gate opens; only then can the thread end.
  std::thread blocked([&] { producer->send(std::move(eleventh), {}); });
  answer.open();
  blocked.join();

  ASSERT_TRUE(producer->flush(seconds{20}).has_value());
  EXPECT_EQ(producer->stats().messages_confirmed, 11U);
}

TEST(Producer, AnOversizedMessageGoesAlone) {
  TestBroker broker;
  broker.on_enqueue_stream = [](int, EnqueueCall& call) { return confirm_all(call); };
  const auto producer =
      open(broker.connection(), {.batch_bytes_max = 100, .in_flight_bytes_max = 100});

  EXPECT_TRUE(producer->send({.payload = std::string(1000, 'x')}).get().ok());
}

TEST(Producer, LingersForCompany) {
  Log<std::size_t> frames;
  TestBroker broker;
  broker.on_enqueue_stream = [&](int, EnqueueCall& call) {
    v1::EnqueueRequest request;
    while (call.Read(&request)) {
      frames.add(static_cast<std::size_t>(request.messages_size()));
      call.Write(confirm(request));
    }
    return grpc::Status::OK;
  };
  const auto producer =
      open(broker.connection(), {.linger = seconds{3600}, .batch_messages_max = 3});
  for (int i = 0; i < 4; ++i) producer->send(message(i), {});

  ASSERT_EQ(frames.wait(1), std::vector<std::size_t>{3});
  ASSERT_TRUE(producer->flush(seconds{20}).has_value());  // Does not linger.
  EXPECT_EQ(frames.now(), (std::vector<std::size_t>{3, 1}));
}

TEST(Producer, ARefusedStreamFailsEverythingWithTheBrokersError) {
  TestBroker broker;
  broker.on_enqueue_stream = [](int, EnqueueCall&) {
    return refusal(grpc::StatusCode::NOT_FOUND, 102, "queue_not_found");
  };
  const auto producer = open(broker.connection());

  const EnqueueResult first = producer->send(message(0)).get();
  const EnqueueResult later = producer->send(message(1)).get();

  ASSERT_FALSE(first.ok());
  ASSERT_FALSE(later.ok());
  EXPECT_EQ(later.error->code, Errc::queue_not_found);
  EXPECT_EQ(later.error->text, "scripted queue_not_found");
}

TEST(Producer, GivesUpWhenToldTo) {
  const auto producer = open({.address = "127.0.0.1:1", .give_up_after = milliseconds{1}});

  const EnqueueResult result = producer->send(message(0)).get();

  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error->code, Errc::unavailable);
  EXPECT_NE(result.error->text.find("cannot reach the broker at 127.0.0.1:1: connection refused"),
            std::string::npos)
      << result.error->text;
}

TEST(Producer, DestructionDuringAReconnectFailsWhatWaits) {
  std::future<EnqueueResult> result;
  {
    const auto producer = open({.address = "127.0.0.1:1"});
    result = producer->send(message(0));
  }
  EXPECT_EQ(result.get().error->code, Errc::unavailable);
}

TEST(Producer, CloseConfirmsWhatWasSentAndRefusesTheRest) {
  TestBroker broker;
  broker.on_enqueue_stream = [](int, EnqueueCall& call) { return confirm_all(call); };
  const auto producer = open(broker.connection());
  auto before = producer->send(message(0));

  EXPECT_TRUE(producer->close(seconds{20}).has_value());

  EXPECT_TRUE(before.get().ok());
  EXPECT_EQ(producer->send(message(1)).get().error->code, Errc::cancelled);
  NewMessage third = message(2);
  EXPECT_FALSE(producer->try_send(third, {}));
}

TEST(Producer, RefusesBadOptions) {
  const auto broker = Broker::open();
  EXPECT_EQ(broker->queue("").producer().error().code, Errc::invalid_argument);
  EXPECT_EQ(Broker::open({.address = "nonsense"}).error().code, Errc::invalid_argument);
  EXPECT_EQ(broker->queue("q").producer({.batch_messages_max = 0}).error().code,
            Errc::invalid_argument);
}

// A value: what it holds is where it was before.
TEST(Producer, MayBeMovedWhileMessagesAreOnTheirWay) {
  Gate answer;
  TestBroker broker;
  broker.on_enqueue_stream = [&](int, TestBroker::EnqueueCall& call) {
    v1::EnqueueRequest request;
    while (call.Read(&request)) {
      EXPECT_TRUE(answer.wait());
      v1::EnqueueResponse response;
      for (int i = 0; i < request.messages_size(); ++i) response.add_results()->set_id("id");
      call.Write(response);
    }
    return grpc::Status::OK;
  };
  auto first = Broker::open(broker.connection())->queue("orders").producer();
  auto sent = first->send(message(0));

  Producer second = *std::move(first);
  answer.open();

  EXPECT_TRUE(sent.get().ok());
  EXPECT_TRUE(second.close(seconds{20}).has_value());
}

}  // namespace
}  // namespace baton::client
