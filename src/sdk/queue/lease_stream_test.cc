#include <algorithm>
#include <array>
#include <future>
#include <thread>

#include <baton/broker.h>
#include <baton/lease_stream.h>
#include <gtest/gtest.h>

#include "sdk/queue/test_consume.h"

namespace baton::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ConsumeCall = TestBroker::ConsumeCall;

std::unique_ptr<LeaseStream> open(ConnectionOptions connection, LeaseStreamOptions options = {}) {
  const auto broker = Broker::open(std::move(connection));
  auto stream = broker->queue("orders").lease(std::move(options));
  EXPECT_TRUE(stream.has_value());
  return std::make_unique<LeaseStream>(*std::move(stream));
}

TEST(LeaseStream, RegistersAndHandsOutMessages) {
  v1::ConsumeStart start;
  TestBroker broker;
  broker.on_consume = [&](int, ConsumeCall& call) {
    ConsumeDialog dialog(call);
    dialog.accept(1234);
    start = dialog.start;
    dialog.deliver({"a", "b", "c"});
    return dialog.answer_all();
  };
  const auto stream = open(broker.connection(),
                           {.consumer_id = "me", .in_flight_max = 7, .in_flight_bytes_max = 99});

  const auto registration = stream->wait_until_registered(seconds{20});
  const auto first = stream->next(seconds{20});
  const auto rest = stream->next_batch(seconds{20});

  ASSERT_TRUE(registration.has_value());
  EXPECT_EQ(registration->consumer_id, "me");
  EXPECT_EQ(registration->visibility_timeout, milliseconds{1234});
  EXPECT_EQ(start.queue(), "orders");
  EXPECT_EQ(start.in_flight_max(), 7U);
  EXPECT_EQ(start.in_flight_bytes_max(), 99U);
  EXPECT_FALSE(start.manual_credit());
  ASSERT_TRUE(first.has_value() && first->has_value());
  EXPECT_EQ((*first)->payload, "a");
  EXPECT_EQ((*first)->token.bytes, "t-a");
  ASSERT_TRUE(rest.has_value());
  ASSERT_EQ(rest->size(), 2U);
  EXPECT_EQ((*rest)[1].id, "id-c");
}

TEST(LeaseStream, AnswersEachItemOfEachCall) {
  TestBroker broker;
  broker.on_consume = [](int, ConsumeCall& call) {
    ConsumeDialog dialog(call);
    dialog.accept();
    return dialog.answer_all({"b", "x"});
  };
  const auto stream = open(broker.connection());
  std::promise<ItemResults> acks;
  std::promise<ItemResults> nacks;
  std::promise<ItemResults> extends;
  const std::array<LeaseToken, 3> tokens{LeaseToken{"a"}, LeaseToken{"b"}, LeaseToken{"c"}};

  stream->ack(tokens, [&](const ItemResults& results) { acks.set_value(results); });
  stream->nack(Nack{.token = {"n"}, .retry = Retry::at_once(), .reason = "why"},
               [&](const ItemResults& results) { nacks.set_value(results); });
  stream->extend(Extension{.token = {"x"}},
                 [&](const ItemResults& results) { extends.set_value(results); });

  const ItemResults acked = acks.get_future().get();
  EXPECT_EQ(acked.items, 3U);
  ASSERT_EQ(acked.failures.size(), 1U);
  EXPECT_EQ(acked.failures[0].index, 1U);
  EXPECT_EQ(acked.failures[0].error.code, Errc::lease_lost);
  EXPECT_TRUE(nacks.get_future().get().ok());
  EXPECT_FALSE(extends.get_future().get().ok());
  EXPECT_EQ(stream->flush(seconds{20}).error().code, Errc::lease_lost);
  EXPECT_EQ(stream->stats().items_done, 3U);
  EXPECT_EQ(stream->stats().items_failed, 2U);
}

// Acks that come one by one must not cost a frame each.
TEST(LeaseStream, GathersAcksWhileFramesAreUnanswered) {
  Gate answer;
  Log<int> frames;
  TestBroker broker;
  broker.on_consume = [&](int, ConsumeCall& call) {
    ConsumeDialog dialog(call);
    dialog.accept();
    while (dialog.read()) {
      frames.add(dialog.last.acks_size());
      EXPECT_TRUE(answer.wait());
      dialog.answer();
    }
    return grpc::Status::OK;
  };
  const auto stream = open(broker.connection(), {.frames_ahead = 1});
  stream->ack(LeaseToken{"first"});
  ASSERT_EQ(frames.wait(1).size(), 1U);
  for (int i = 0; i < 100; ++i) stream->ack(LeaseToken{std::to_string(i)});
  answer.open();

  ASSERT_TRUE(stream->flush(seconds{20}).has_value());
  EXPECT_EQ(frames.now(), (std::vector<int>{1, 100}));
}

// The broker keeps a returning consumer's leases under its id, and its acks must not be lost.
// Messages that were not handed out are given back, because it is unknown whether they were
// released already.
TEST(LeaseStream, ReturnsUnderItsIdSendsAcksAgainAndReleasesTheUntaken) {
  std::promise<ConsumeDialog*> second;
  Gate checked;
  TestBroker broker;
  broker.on_consume = [&](int number, ConsumeCall& call) {
    ConsumeDialog dialog(call);
    dialog.accept();
    if (number == 1) {
      dialog.deliver({"a", "b", "c"});
      EXPECT_TRUE(dialog.read());
      EXPECT_EQ(dialog.acks, std::vector<std::string>{"t-a"});
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "dying");
    }
    while (dialog.acks.empty() || dialog.nacks.size() < 2) {
      if (!dialog.read()) break;
      dialog.answer();
    }
    second.set_value(&dialog);
    EXPECT_TRUE(checked.wait());
    return dialog.answer_all();
  };
  Log<std::string> connected;
  const auto stream =
      open(broker.connection(), {.on_connected = [&](const Registration& registration) {
             connected.add(registration.consumer_id);
           }});
  const auto first = stream->next(seconds{20});
  ASSERT_TRUE(first.has_value() && first->has_value());
  std::promise<ItemResults> told;

  stream->ack((*first)->token, [&](const ItemResults& results) { told.set_value(results); });

  const ConsumeDialog& dialog = *second.get_future().get();
  EXPECT_EQ(dialog.start.consumer_id(), "made-by-broker");
  EXPECT_EQ(dialog.acks, std::vector<std::string>{"t-a"});
  ASSERT_EQ(dialog.nacks.size(), 2U);
  EXPECT_EQ(dialog.nacks[0].lease_token(), "t-b");
  EXPECT_TRUE(dialog.nacks[0].release());
  checked.open();
  EXPECT_TRUE(told.get_future().get().ok());
  EXPECT_EQ(connected.wait(2).size(), 2U);
  EXPECT_EQ(stream->stats().reconnects, 1U);
}

TEST(LeaseStream, SendsTheCreditThatItsOwnerGives) {
  std::promise<std::uint64_t> credit;
  TestBroker broker;
  broker.on_consume = [&](int, ConsumeCall& call) {
    ConsumeDialog dialog(call);
    dialog.accept();
    EXPECT_TRUE(dialog.start.manual_credit());
    while (dialog.credit < 5 && dialog.read()) {
    }
    credit.set_value(dialog.credit);
    return dialog.answer_all();
  };
  const auto stream = open(broker.connection(), {.manual_credit = true});

  stream->add_credit(2);
  stream->add_credit(3);

  EXPECT_EQ(credit.get_future().get(), 5U);
}

TEST(LeaseStream, ARefusedRegistrationEndsTheStream) {
  TestBroker broker;
  broker.on_consume = [](int, ConsumeCall&) {
    return refusal(grpc::StatusCode::NOT_FOUND, 102, "queue_not_found");
  };
  const auto stream = open(broker.connection());

  EXPECT_EQ(stream->wait_until_registered(seconds{20}).error().code, Errc::queue_not_found);
  EXPECT_EQ(stream->next(seconds{20}).error().code, Errc::queue_not_found);
  std::promise<ItemResults> told;
  stream->ack(LeaseToken{"x"}, [&](const ItemResults& results) { told.set_value(results); });
  EXPECT_EQ(told.get_future().get().failures.at(0).error.code, Errc::queue_not_found);
}

TEST(LeaseStream, WithoutReconnectTheFirstBreakEndsIt) {
  TestBroker broker;
  broker.on_consume = [](int, ConsumeCall& call) {
    ConsumeDialog(call).accept();
    return grpc::Status(grpc::StatusCode::UNAVAILABLE, "dying");
  };
  const auto stream = open(broker.connection(), {.reconnect = false});

  EXPECT_EQ(stream->next(seconds{20}).error().code, Errc::unavailable);
}

TEST(LeaseStream, InterruptEndsAWait) {
  TestBroker broker;
  broker.on_consume = [](int, ConsumeCall& call) {
    ConsumeDialog dialog(call);
    dialog.accept();
    return dialog.answer_all();
  };
  const auto stream = open(broker.connection());
  std::thread other([&] { stream->interrupt(); });

  const auto batch = stream->next_batch(seconds{3600});

  other.join();
  ASSERT_TRUE(batch.has_value());
  EXPECT_TRUE(batch->empty());
}

TEST(LeaseStream, CloseReleasesTheUntakenAndWaitsForResults) {
  Log<std::string> released;
  Gate ended;
  TestBroker broker;
  broker.on_consume = [&](int, ConsumeCall& call) {
    ConsumeDialog dialog(call);
    dialog.accept();
    dialog.deliver({"a", "b"});
    dialog.answer_all();
    for (const auto& item : dialog.nacks) released.add(item.lease_token());
    ended.open();
    return grpc::Status::OK;
  };
  const auto stream = open(broker.connection());
  const auto taken = stream->next(seconds{20});
  ASSERT_TRUE(taken.has_value() && taken->has_value());
  stream->ack((*taken)->token);

  EXPECT_TRUE(stream->close(seconds{20}).has_value());

  EXPECT_TRUE(ended.wait());
  EXPECT_EQ(released.now(), std::vector<std::string>{"t-b"});
  EXPECT_EQ(stream->stats().items_done, 2U);
  EXPECT_EQ(stream->next(seconds{20}).error().code, Errc::cancelled);
}

// The broker counts an attempt for a message on its way to a consumer that disconnects.
TEST(LeaseStream, CloseReleasesWhatStillComes) {
  Log<std::string> released;
  TestBroker broker;
  broker.on_consume = [&](int, ConsumeCall& call) {
    ConsumeDialog dialog(call);
    dialog.accept();
    while (!dialog.last.quiesce() && dialog.read()) {
    }
    dialog.deliver({"late"});
    dialog.answer();
    dialog.answer_all();
    for (const auto& item : dialog.nacks) {
      EXPECT_TRUE(item.release());
      released.add(item.lease_token());
    }
    return grpc::Status::OK;
  };
  const auto stream = open(broker.connection());
  ASSERT_TRUE(stream->wait_until_registered(seconds{20}).has_value());

  EXPECT_TRUE(stream->close(seconds{20}).has_value());

  EXPECT_EQ(released.wait(1), std::vector<std::string>{"t-late"});
}

TEST(LeaseStream, DestructionDuringAReconnectDoesNotHang) {
  std::promise<ItemResults> told;
  {
    const auto stream = open({.address = "127.0.0.1:1"});
    stream->ack(LeaseToken{"x"}, [&](const ItemResults& results) { told.set_value(results); });
  }
  EXPECT_EQ(told.get_future().get().failures.at(0).error.code, Errc::unavailable);
}

TEST(LeaseStream, MarksGoUpWithoutWaitingForAnything) {
  Log<std::string> begun;
  TestBroker broker;
  broker.on_consume = [&](int, ConsumeCall& call) {
    ConsumeDialog dialog(call);
    dialog.accept();
    EXPECT_EQ(dialog.start.concurrency(), 7U);
    dialog.deliver({"a", "b"});
    while (dialog.read()) {
      for (const auto& token : dialog.last.begun()) begun.add(token);
      if (dialog.last.nacks_size() > 0 || dialog.last.quiesce()) dialog.answer();
    }
    return grpc::Status::OK;
  };
  const auto stream = open(broker.connection(), {.concurrency = 7});
  auto first = stream->next(seconds{20});
  ASSERT_TRUE(first.has_value() && first->has_value());
  stream->begin({(**first).token});
  EXPECT_EQ(begun.wait(1), (std::vector<std::string>{"t-a"}));
  EXPECT_TRUE(stream->close(seconds{20}).has_value());
}

}  // namespace
}  // namespace baton::client
