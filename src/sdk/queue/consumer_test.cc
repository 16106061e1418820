#include <algorithm>
#include <stdexcept>

#include <baton/broker.h>
#include <baton/consumer.h>
#include <gtest/gtest.h>

#include "sdk/queue/test_consume.h"

namespace baton::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using ConsumeCall = TestBroker::ConsumeCall;

template <class Handler>
std::unique_ptr<Consumer> start(ConnectionOptions connection, ConsumerOptions options,
                                Handler handler) {
  const auto broker = Broker::open(std::move(connection));
  auto consumer = broker->queue("orders").consumer(std::move(options), std::move(handler));
  EXPECT_TRUE(consumer.has_value());
  return std::make_unique<Consumer>(*std::move(consumer));
}

TEST(Consumer, RunsTheHandlerAndAcks) {
  Log<std::string> acked;
  TestBroker broker;
  broker.on_consume = [&](int, ConsumeCall& call) {
    ConsumeDialog dialog(call);
    dialog.accept();
    EXPECT_TRUE(dialog.start.manual_credit());
    EXPECT_EQ(dialog.credit, 16U);
    dialog.deliver({"a", "b", "c"});
    while (dialog.read()) {
      for (const auto& token : dialog.last.acks()) acked.add(token);
      dialog.answer();
    }
    EXPECT_EQ(dialog.credit, 19U);  // One returned for each message.
    return grpc::Status::OK;
  };
  Log<std::string> handled;
  const auto consumer = start(broker.connection(), {.concurrency = 2, .in_flight_max = 16},
                              [&](Delivery& delivery) { handled.add(delivery.message().payload); });

  auto tokens = acked.wait(3);
  EXPECT_TRUE(consumer->close(seconds{20}).has_value());

  std::ranges::sort(tokens);
  EXPECT_EQ(tokens, (std::vector<std::string>{"t-a", "t-b", "t-c"}));
  EXPECT_EQ(handled.now().size(), 3U);
  EXPECT_EQ(consumer->stats().acked, 3U);
}

TEST(Consumer, RunsAsManyHandlersAtOnceAsAsked) {
  TestBroker broker;
  broker.on_consume = [&](int, ConsumeCall& call) {
    ConsumeDialog dialog(call);
    dialog.accept();
    dialog.deliver({"a", "b", "c"});
    return dialog.answer_all();
  };
  Log<int> inside;
  Gate all_inside;
  const auto consumer = start(broker.connection(), {.concurrency = 3}, [&](Delivery&) {
    inside.add(1);
    EXPECT_TRUE(all_inside.wait());
  });

  EXPECT_EQ(inside.wait(3).size(), 3U);
  all_inside.open();
  EXPECT_TRUE(consumer->close(seconds{20}).has_value());
}

// If the process dies now, these two may be the cause; the third was not begun.
TEST(Consumer, TellsTheBrokerHowManyItHandlesAtATimeAndWhichItHasBegun) {
  Log<std::string> begun;
  TestBroker broker;
  broker.on_consume = [&](int, ConsumeCall& call) {
    ConsumeDialog dialog(call);
    dialog.accept();
    EXPECT_EQ(dialog.start.concurrency(), 2U);
    dialog.deliver({"a", "b", "c"});
    while (dialog.read()) {
      for (const auto& token : dialog.last.begun()) begun.add(token);
      if (dialog.last.acks_size() + dialog.last.nacks_size() > 0 || dialog.last.quiesce()) {
        dialog.answer();
      }
    }
    return grpc::Status::OK;
  };
  Gate go;
  const auto consumer = start(broker.connection(), {.concurrency = 2}, [&](Delivery& delivery) {
    EXPECT_TRUE(delivery.message().payload == "c" || go.wait());
  });

  auto marked = begun.wait(2);
  std::ranges::sort(marked);
  EXPECT_EQ(marked, (std::vector<std::string>{"t-a", "t-b"}));
  go.open();
  EXPECT_TRUE(consumer->close(seconds{20}).has_value());
}

// The owner of a poison message looks for the reason in the dead-letter queue.
TEST(Consumer, AnExceptionIsANackWithItsText) {
  Log<v1::NackItem> nacked;
  TestBroker broker;
  broker.on_consume = [&](int, ConsumeCall& call) {
    ConsumeDialog dialog(call);
    dialog.accept();
    dialog.deliver({"throws", "odd", "releases", "later"});
    while (dialog.read()) {
      for (const auto& item : dialog.last.nacks()) nacked.add(item);
      dialog.answer();
    }
    return grpc::Status::OK;
  };
  const auto consumer = start(broker.connection(), {}, [](Delivery& delivery) -> Outcome {
    if (delivery.message().payload == "throws") throw std::runtime_error("no such customer");
    if (delivery.message().payload == "odd") throw 7;
    if (delivery.message().payload == "releases") return Outcome::release();
    return Outcome::nack("not now", Retry::after(milliseconds{250}));
  });

  const auto items = nacked.wait(4);

  ASSERT_EQ(items.size(), 4U);
  EXPECT_EQ(items[0].reason(), "no such customer");
  EXPECT_EQ(items[0].retry_case(), v1::NackItem::RETRY_NOT_SET);
  EXPECT_NE(items[1].reason(), "");
  EXPECT_TRUE(items[2].release());
  EXPECT_EQ(items[3].delay_ms(), 250U);
  EXPECT_EQ(items[3].reason(), "not now");
  EXPECT_TRUE(consumer->close(seconds{20}).has_value());
  EXPECT_EQ(consumer->stats().nacked, 3U);
  EXPECT_EQ(consumer->stats().released, 1U);
}

TEST(Consumer, ExtendsWhatItHoldsAtHalfOfItsTime) {
  Gate extended;
  Log<std::string> acked;
  TestBroker broker;
  broker.on_consume = [&](int, ConsumeCall& call) {
    ConsumeDialog dialog(call);
    dialog.accept(40);
    dialog.deliver({"running", "waiting"});
    while (dialog.read()) {
      dialog.answer();
      // Both, twice: the message in the handler and the one that waits.
      if (dialog.extends.size() >= 4) extended.open();
      for (const auto& token : dialog.last.acks()) acked.add(token);
    }
    EXPECT_EQ(dialog.extends[0].timeout_ms(), 40U);
    return grpc::Status::OK;
  };
  const auto consumer = start(broker.connection(), {.concurrency = 1}, [&](Delivery& delivery) {
    EXPECT_TRUE(extended.wait());
    EXPECT_FALSE(delivery.lost());
  });

  EXPECT_EQ(acked.wait(2).size(), 2U);
  EXPECT_TRUE(consumer->close(seconds{20}).has_value());
  EXPECT_GE(consumer->stats().extended, 4U);
}

TEST(Consumer, ALostLeaseIsToldToTheHandlerAndSkippedByTheNext) {
  Log<std::string> acked;
  Gate inside;
  TestBroker broker;
  broker.on_consume = [&](int, ConsumeCall& call) {
    ConsumeDialog dialog(call);
    dialog.accept(20);
    dialog.deliver({"a", "b"});
    EXPECT_TRUE(inside.wait());
    while (dialog.read()) {
      dialog.answer({"t-a", "t-b"});
      for (const auto& token : dialog.last.acks()) acked.add(token);
      if (dialog.last.credit() > 0 && dialog.credit == 256U + 2U) dialog.deliver({"c"});
    }
    return grpc::Status::OK;
  };
  Log<std::string> handled;
  Log<Error> errors;
  const auto consumer =
      start(broker.connection(),
            {.concurrency = 1, .on_error = [&](const Error& error) { errors.add(error); }},
            [&](Delivery& delivery) {
              handled.add(delivery.message().payload);
              inside.open();
              if (delivery.message().payload == "c") return;
              // A handler that checks now and then; both losses are known
              // together.
              errors.wait(2);
              EXPECT_TRUE(delivery.lost());
            });

  EXPECT_EQ(acked.wait(1), std::vector<std::string>{"t-c"});
  EXPECT_EQ(handled.now(), (std::vector<std::string>{"a", "c"}));
  EXPECT_TRUE(consumer->close(seconds{20}).has_value());
  EXPECT_EQ(errors.now().at(0).code, Errc::lease_lost);
  EXPECT_EQ(consumer->stats().lost, 2U);
}

// A deployment must neither lose the work of running handlers nor keep messages that it will not
// handle.
TEST(Consumer, StopFinishesRunningHandlersAndReleasesTheRest) {
  Log<std::string> acked;
  Log<std::string> released;
  TestBroker broker;
  broker.on_consume = [&](int, ConsumeCall& call) {
    ConsumeDialog dialog(call);
    dialog.accept();
    dialog.deliver({"running", "waiting-1", "waiting-2"});
    while (dialog.read()) {
      dialog.answer();
      for (const auto& token : dialog.last.acks()) acked.add(token);
      for (const auto& item : dialog.last.nacks()) {
        EXPECT_TRUE(item.release());
        released.add(item.lease_token());
      }
    }
    return grpc::Status::OK;
  };
  Gate running;
  const auto consumer = start(broker.connection(), {.concurrency = 1}, [&](Delivery& delivery) {
    running.open();
    // Ends only after stop() has released what waited.
    EXPECT_EQ(released.wait(2).size(), 2U);
    EXPECT_TRUE(delivery.closing());
  });
  ASSERT_TRUE(running.wait());

  EXPECT_TRUE(consumer->close(seconds{20}).has_value());

  EXPECT_EQ(acked.now(), std::vector<std::string>{"t-running"});
  EXPECT_EQ(released.now(), (std::vector<std::string>{"t-waiting-1", "t-waiting-2"}));
  EXPECT_TRUE(consumer->close(seconds{20}).has_value());
  EXPECT_TRUE(consumer->wait(seconds{20}).has_value());
}

TEST(Consumer, StopWaitsNoLongerThanItsTimeoutForResults) {
  Gate handled;
  TestBroker broker;
  broker.on_consume = [&](int, ConsumeCall& call) {
    ConsumeDialog dialog(call);
    dialog.accept();
    dialog.deliver({"a"});
    while (dialog.read()) {  // Never answers.
    }
    return grpc::Status::OK;
  };
  const auto consumer = start(broker.connection(), {}, [&](Delivery&) { handled.open(); });
  ASSERT_TRUE(handled.wait());

  const Status stopped = consumer->close(milliseconds{10});

  ASSERT_FALSE(stopped.has_value());
  EXPECT_EQ(stopped.error().code, Errc::deadline_exceeded);
}

TEST(Consumer, ReconnectsAndAsksWhatBecameOfItsLeases) {
  Gate in_handler;
  Log<Error> errors;
  Gate lost;
  TestBroker broker;
  broker.on_consume = [&](int number, ConsumeCall& call) {
    ConsumeDialog dialog(call);
    dialog.accept();
    if (number == 1) {
      dialog.deliver({"a"});
      EXPECT_TRUE(in_handler.wait());
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "dying");
    }
    EXPECT_EQ(dialog.start.consumer_id(), "made-by-broker");
    // Credit that is not used up: 256 less the one message in the handler.
    EXPECT_EQ(dialog.credit, 255U);
    return dialog.answer_all({"t-a"});
  };
  const auto consumer = start(broker.connection(),
                              {.on_error =
                                   [&](const Error& error) {
                                     errors.add(error);
                                     if (error.code == Errc::lease_lost) lost.open();
                                   }},
                              [&](Delivery& delivery) {
                                in_handler.open();
                                EXPECT_TRUE(lost.wait());
                                EXPECT_TRUE(delivery.lost());
                              });

  ASSERT_TRUE(lost.wait());
  EXPECT_TRUE(consumer->close(seconds{20}).has_value());
  EXPECT_EQ(errors.now().at(0).code, Errc::unavailable);
  EXPECT_EQ(consumer->stats().reconnects, 1U);
}

TEST(Consumer, EndsByItselfWhenTheBrokerRefusesIt) {
  TestBroker broker;
  broker.on_consume = [](int, ConsumeCall&) {
    return refusal(grpc::StatusCode::NOT_FOUND, 102, "queue_not_found");
  };
  const auto consumer = start(broker.connection(), {}, [](Delivery&) {});

  const auto ended = consumer->wait(seconds{20});

  ASSERT_TRUE(ended.has_value());
  ASSERT_FALSE(ended->has_value());
  EXPECT_EQ(ended->error().code, Errc::queue_not_found);
  EXPECT_EQ(consumer->close(seconds{20}).error().code, Errc::queue_not_found);
}

TEST(Consumer, DestructionDuringAReconnectDoesNotHang) {
  start({.address = "127.0.0.1:1"}, {}, [](Delivery&) {});
}

TEST(Consumer, RefusesBadOptions) {
  const auto broker = Broker::open();
  const auto code = [&](ConsumerOptions options) {
    return broker->queue("q").consumer(std::move(options), [](Delivery&) {}).error().code;
  };
  EXPECT_EQ(broker->queue("").consumer({}, [](Delivery&) {}).error().code, Errc::invalid_argument);
  EXPECT_EQ(code({.concurrency = 0}), Errc::invalid_argument);
  EXPECT_EQ(code({.concurrency = 9, .in_flight_max = 8}), Errc::invalid_argument);
  EXPECT_EQ(broker->queue("q").consumer({}, Consumer::Handler()).error().code,
            Errc::invalid_argument);
}

}  // namespace
}  // namespace baton::client
