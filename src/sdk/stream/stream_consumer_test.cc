// More than 500 lines: all claims about one class.

#include <algorithm>
#include <array>
#include <thread>

#include <baton/broker.h>
#include <baton/stream_consumer.h>
#include <gtest/gtest.h>

#include "sdk/base/times.h"
#include "sdk/stream/test_streams.h"

namespace baton::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using SubscribeCall = TestStreams::SubscribeCall;
using Events = std::vector<std::string>;

constexpr seconds kLong{20};
const grpc::Status kDying(grpc::StatusCode::UNAVAILABLE, "dying");

StreamConsumerOptions options_for(bool single_active) {
  StreamConsumerOptions options;
  options.group = "billing";
  options.single_active = single_active;
  options.from = StartFrom::first();
  options.storing.interval = milliseconds{0};
  return options;
}

std::unique_ptr<StreamConsumer> start(const TestStreams& broker, StreamConsumerOptions options,
                                      StreamConsumer::Handler handler) {
  auto consumer = Broker::open(broker.connection())
                      ->stream("events")
                      .consumer(std::move(options), std::move(handler));
  EXPECT_TRUE(consumer.has_value());
  return std::make_unique<StreamConsumer>(*std::move(consumer));
}

/// A handler that writes "partition@offset value" for each record.
StreamConsumer::Handler into(Log<std::string>& log) {
  return [&log](const RecordBatch& batch) {
    for (const Record& record : batch.records) {
      log.add(fmt::format("{}@{} {}", batch.partition.value, record.offset.value,
                          record.value.value_or("")));
    }
  };
}

/// Waits for a condition that no thread announces; false after 20 s.
template <class Condition>
bool wait_for(const Condition& condition) {
  const auto deadline = std::chrono::steady_clock::now() + kLong;
  while (!condition()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    std::this_thread::yield();
  }
  return true;
}

/// What the dialog saw, without the starts.
Events without_starts(Events events) {
  std::erase(events, "start");
  return events;
}

// The hand-over: handler, offset, confirmation, reply; and no batch behind the running handler.
TEST(StreamConsumer, StepsDownOnlyAfterItsOffsetIsConfirmed) {
  TestStreams broker;
  Gate handling;
  Log<std::string> callbacks;
  Log<std::string> seen;
  broker.on_subscribe = [&](int, SubscribeCall& call) {
    SubscribeDialog dialog(call);
    dialog.accept();
    EXPECT_TRUE(dialog.starts[0].single_active());
    EXPECT_EQ(dialog.starts[0].owner(), "me");
    dialog.update(true, false, 3, 10);
    EXPECT_TRUE(dialog.read_until("store 0 3 10"));
    dialog.deliver({"a", "b"}, 10, 3);
    dialog.deliver({"c"}, 12, 3);
    EXPECT_TRUE(handling.wait());
    dialog.update(false, true, 4);
    dialog.deliver({"late"}, 13, 3);  // Dropped, which shows that the update was read before.
    EXPECT_TRUE(dialog.read_until("store 0 3 12"));
    EXPECT_TRUE(dialog.read_until("reply 0 4"));
    dialog.deliver({"d"}, 13, 3);  // For a seat that is gone.
    dialog.update(true, false, 5, 12);
    EXPECT_TRUE(dialog.read_until("store 0 5 12"));
    dialog.deliver({"c"}, 12, 5);
    const auto status = dialog.finish();
    for (const std::string& event : without_starts(dialog.events)) seen.add(event);
    return status;
  };
  Log<std::string> records;
  auto options = options_for(true);
  options.owner = "me";
  options.on_active = [&](const StreamPosition& position) {
    callbacks.add(fmt::format("active {} at {}", position.epoch.value, position.offset.value));
  };
  options.on_step_down = [&](PartitionNumber) { callbacks.add("step down"); };
  std::atomic<bool> first = true;
  std::atomic<StreamConsumer*> self = nullptr;
  const auto consumer = start(broker, std::move(options), [&](RecordBatch& batch) {
    if (first.exchange(false)) {
      handling.open();
      const auto dropped = [&] {
        return self.load() != nullptr && self.load()->stats().batches_dropped > 0;
      };
      EXPECT_TRUE(wait_for(dropped));
    }
    into(records)(batch);
  });
  self = consumer.get();

  EXPECT_EQ(records.wait(3), (Events{"0@10 a", "0@11 b", "0@12 c"}));
  EXPECT_TRUE(consumer->close(kLong).has_value());
  EXPECT_EQ(seen.wait(6), (Events{"store 0 3 10", "store 0 3 12", "reply 0 4", "store 0 5 12",
                                  "store 0 5 13", "unsubscribe"}));
  EXPECT_EQ(callbacks.now(),
            (Events{"active 3 at 10", "step down", "active 5 at 12", "step down"}));
  EXPECT_GE(consumer->stats().batches_dropped, 1U);
}

// The same, when the broker never confirms: the reply must not go out.
TEST(StreamConsumer, DoesNotReplyBeforeTheConfirmation) {
  TestStreams broker;
  Gate stored;
  Log<std::string> seen;
  broker.on_subscribe = [&](int, SubscribeCall& call) {
    SubscribeDialog dialog(call);
    dialog.accept();
    dialog.update(true, false, 3, 10);
    dialog.update(false, true, 4);
    dialog.read();
    stored.open();
    while (dialog.read()) {
    }
    for (const std::string& event : dialog.events) seen.add(event);
    return grpc::Status::OK;
  };
  const auto consumer = start(broker, options_for(true), [](const RecordBatch&) {});
  EXPECT_TRUE(stored.wait());
  EXPECT_FALSE(consumer->close(milliseconds{100}).has_value());
  EXPECT_EQ(seen.wait(3), (Events{"start", "store 0 3 10", "unsubscribe"}));
}

TEST(StreamConsumer, GoesOnWhereItWasAfterABrokenConnection) {
  TestStreams broker(2);
  Log<std::int64_t> froms;
  Log<std::string> records;
  broker.on_subscribe = [&](int number, SubscribeCall& call) {
    SubscribeDialog dialog(call);
    if (!dialog.accept()) return grpc::Status::OK;
    for (const v1::SubscribeRequest::Start& start : dialog.starts) {
      EXPECT_EQ(start.partitions_size(), 1);
      froms.add(start.from().has_offset() ? start.from().offset() : -1);
    }
    if (number == 1) {
      dialog.deliver({"a", "b"}, 0, 0, 0);
      records.wait(2);
      return kDying;
    }
    // Batches arrive whole: this one begins with records that were handed out before.
    dialog.deliver({"a", "b", "c"}, 0, 0, 0);
    dialog.deliver({"x"}, 0, 0, 1);
    return dialog.finish();
  };
  const auto consumer = start(broker, options_for(false), into(records));

  auto got = records.wait(4);
  std::ranges::sort(got);
  EXPECT_EQ(got, (Events{"0@0 a", "0@1 b", "0@2 c", "1@0 x"}));
  EXPECT_EQ(froms.now(), (std::vector<std::int64_t>{-1, -1, 2, -1}));
  EXPECT_TRUE(consumer->close(kLong).has_value());
  EXPECT_EQ(consumer->stats().reconnects, 1U);
}

// "next" is resolved when the consumer starts, not at each reconnect.
TEST(StreamConsumer, WhatComesWhileTheFirstConnectionIsBrokenIsNotMissed) {
  TestStreams broker;
  broker.stream.mutable_details(0)->set_next_offset(42);
  Log<std::int64_t> froms;
  broker.on_subscribe = [&](int number, SubscribeCall& call) {
    SubscribeDialog dialog(call);
    dialog.accept();
    if (!dialog.starts.empty()) froms.add(dialog.starts[0].from().offset());
    return number == 1 ? kDying : dialog.finish();
  };
  auto options = options_for(false);
  options.from = StartFrom::next();
  const auto consumer = start(broker, std::move(options), [](const RecordBatch&) {});
  EXPECT_EQ(froms.wait(2), (std::vector<std::int64_t>{42, 42}));
}

TEST(StreamConsumer, BeginsAtTheGroupsOffsetAndLeavesOutWhatLiesBelow) {
  TestStreams broker;
  auto& group = *broker.stream.mutable_details(0)->add_groups();
  group.set_group("billing");
  group.set_offset(11);
  broker.on_subscribe = [&](int, SubscribeCall& call) {
    SubscribeDialog dialog(call);
    dialog.accept();
    dialog.deliver({"a", "b"}, 10, 0);
    return dialog.finish();
  };
  Log<std::string> records;
  const auto consumer = start(broker, options_for(false), into(records));
  EXPECT_EQ(records.wait(1), Events{"0@11 b"});
}

TEST(StreamConsumer, GivesCreditBackAsHandlersFinish) {
  TestStreams broker;
  Log<std::uint64_t> credit;
  broker.on_subscribe = [&](int, SubscribeCall& call) {
    SubscribeDialog dialog(call);
    dialog.accept();
    EXPECT_EQ(dialog.credit_batches, 8U);
    for (int i = 0; i < 100; ++i) {
      if (dialog.credit_batches == 0 && !dialog.read()) break;
      if (dialog.credit_batches == 0) continue;
      --dialog.credit_batches;
      dialog.deliver({"x"}, i, 0);
    }
    while (dialog.credit_batches < 8 && dialog.read()) dialog.confirm_stores();
    credit.add(dialog.credit_batches);
    return dialog.finish();
  };
  auto options = options_for(false);
  options.credit_batches = 8;
  const auto consumer = start(broker, std::move(options), [](const RecordBatch&) {});
  EXPECT_EQ(credit.wait(1), std::vector<std::uint64_t>{8});
}

// Order within a partition, and no more handlers at once than allowed.
TEST(StreamConsumer, PartitionsRunSideBySideEachInOrder) {
  TestStreams broker(4);
  Log<std::string> records;
  broker.on_subscribe = [&](int, SubscribeCall& call) {
    SubscribeDialog dialog(call);
    dialog.accept();
    for (int i = 0; i < 50; ++i) {
      for (std::uint32_t p = 0; p < 4; ++p) dialog.deliver({"x"}, i, 0, p);
    }
    return dialog.finish();
  };
  std::atomic<int> running = 0;
  std::atomic<int> most = 0;
  std::atomic<bool> in_order = true;
  std::array<std::atomic<std::int64_t>, 4> next{};
  auto options = options_for(false);
  options.concurrency = 2;
  options.credit_batches = 1000;
  const auto consumer = start(broker, std::move(options), [&](const RecordBatch& batch) {
    most = std::max(most.load(), ++running);
    if (next.at(batch.partition.value)++ != batch.records[0].offset.value) in_order = false;
    --running;
    records.add("");
  });
  EXPECT_EQ(records.wait(200).size(), 200U);
  EXPECT_TRUE(in_order);
  EXPECT_LE(most, 2);
}

TEST(StreamConsumer, ManualOffsetsAreConfirmedOrRefused) {
  TestStreams broker;
  Log<std::string> seen;
  broker.on_subscribe = [&](int, SubscribeCall& call) {
    SubscribeDialog dialog(call);
    dialog.accept();
    dialog.update(true, false, 3, 0);
    dialog.deliver({"a"}, 0, 3);
    const auto status = dialog.finish();
    for (const std::string& event : without_starts(dialog.events)) seen.add(event);
    return status;
  };
  Log<std::string> stored;
  StreamConsumer* self = nullptr;
  Gate ready;
  auto options = options_for(true);
  options.storing.automatic = false;
  const auto consumer = start(broker, std::move(options), [&](const RecordBatch& batch) {
    EXPECT_TRUE(ready.wait());
    stored.add(self->store_offset(batch.position()).has_value() ? "stored" : "refused");
    auto old = batch.position();
    old.epoch = Epoch{2};
    stored.add(std::string(self->store_offset(old).error().name()));
  });
  self = consumer.get();
  ready.open();
  EXPECT_EQ(stored.wait(2), (Events{"stored", "stale_epoch"}));
  EXPECT_TRUE(consumer->close(kLong).has_value());
  EXPECT_EQ(seen.wait(2), (Events{"store 0 3 1", "unsubscribe"}));
}

TEST(StreamConsumer, AsksTheApplicationForTheOffset) {
  TestStreams broker;
  Log<std::string> records;
  broker.on_subscribe = [&](int, SubscribeCall& call) {
    SubscribeDialog dialog(call);
    dialog.accept();
    EXPECT_TRUE(dialog.starts[0].ask_offset());
    dialog.update(true, false, 3);
    EXPECT_TRUE(dialog.read_until("reply 0 3 41"));
    dialog.deliver({"a", "b"}, 40, 3);
    return dialog.finish();
  };
  auto options = options_for(true);
  options.ask_offset = [](const StreamPosition&) { return Offset{41}; };
  const auto consumer = start(broker, std::move(options), into(records));
  EXPECT_EQ(records.wait(1), Events{"0@41 b"});
}

// A record that a handler failed on must not be skipped, and the group must not wait for it either.
TEST(StreamConsumer, AHandlerThatThrowsEndsTheConsumerAndFreesTheSeat) {
  TestStreams broker;
  Log<std::string> seen;
  broker.on_subscribe = [&](int, SubscribeCall& call) {
    SubscribeDialog dialog(call);
    dialog.accept();
    dialog.update(true, false, 3, 0);
    EXPECT_TRUE(dialog.read_until("store 0 3 0"));
    dialog.deliver({"good"}, 0, 3);
    dialog.deliver({"bad"}, 1, 3);
    dialog.deliver({"never"}, 2, 3);
    EXPECT_TRUE(dialog.read_until("unsubscribe"));
    for (const std::string& event : without_starts(dialog.events)) seen.add(event);
    return dialog.finish();
  };
  Log<std::string> records;
  const auto consumer = start(broker, options_for(true), [&](RecordBatch& batch) {
    if (batch.records[0].value == "bad") throw std::runtime_error("cannot");
    into(records)(batch);
  });

  const auto ended = consumer->wait(kLong);

  ASSERT_TRUE(ended.has_value());
  ASSERT_FALSE(ended->has_value());
  EXPECT_NE(ended->error().text.find("cannot"), std::string::npos);
  EXPECT_EQ(seen.wait(3), (Events{"store 0 3 0", "store 0 3 1", "unsubscribe"}));
  EXPECT_EQ(records.now(), Events{"0@0 good"});
  EXPECT_EQ(consumer->close(kLong).error(), ended->error());
}

// A handler that wants ten records gets them out of a batch of a hundred; the next consumer gets
// the others.
TEST(StreamConsumer, AHandlerMayStopInTheMiddleOfABatch) {
  TestStreams broker;
  Log<std::string> seen;
  broker.on_subscribe = [&](int, SubscribeCall& call) {
    SubscribeDialog dialog(call);
    dialog.accept();
    dialog.deliver({"a", "b", "c"}, 0, 0);
    dialog.deliver({"d"}, 3, 0);
    const auto status = dialog.finish();
    for (const std::string& event : without_starts(dialog.events)) seen.add(event);
    return status;
  };
  Log<std::string> records;
  const auto consumer = start(broker, options_for(false), [&](RecordBatch& batch) {
    batch.next_offset = Offset{2};
    records.add(batch.records[0].value.value_or(""));
  });
  records.wait(1);
  EXPECT_TRUE(consumer->close(kLong).has_value());
  EXPECT_EQ(records.now(), Events{"a"});
  EXPECT_EQ(seen.wait(2), (Events{"store 0 0 2", "unsubscribe"}));
}

TEST(StreamConsumer, AGarbledBatchEndsItLoudly) {
  TestStreams broker;
  broker.on_subscribe = [&](int, SubscribeCall& call) {
    SubscribeDialog dialog(call);
    dialog.accept();
    dialog.deliver_bytes("garbage", 5, 0);
    return dialog.finish();
  };
  const auto consumer = start(broker, options_for(false), [](const RecordBatch&) { FAIL(); });
  const auto ended = consumer->wait(kLong);
  ASSERT_TRUE(ended.has_value());
  EXPECT_EQ(ended->error().code, Errc::malformed);
}

TEST(StreamConsumer, AMissingOffsetEndsIt) {
  TestStreams broker;
  broker.on_subscribe = [&](int, SubscribeCall& call) {
    SubscribeDialog dialog(call);
    dialog.accept();
    dialog.close(305, "offset_out_of_range");
    return dialog.finish();
  };
  const auto consumer = start(broker, options_for(false), [](const RecordBatch&) {});
  EXPECT_EQ(consumer->wait(kLong)->error().code, Errc::offset_out_of_range);
}

TEST(StreamConsumer, TooSlowAtAHandOverItJoinsAgain) {
  TestStreams broker;
  broker.on_subscribe = [&](int, SubscribeCall& call) {
    SubscribeDialog dialog(call);
    dialog.accept();
    dialog.close(309, "handover_timeout");
    dialog.starts.clear();
    dialog.accept();
    dialog.update(true, false, 9, 0);
    dialog.deliver({"a"}, 0, 9);
    return dialog.finish();
  };
  Log<std::string> records;
  const auto consumer = start(broker, options_for(true), into(records));
  EXPECT_EQ(records.wait(1), Events{"0@0 a"});
}

TEST(StreamConsumer, IgnoresWhatIsNotForIt) {
  TestStreams broker;
  broker.on_subscribe = [&](int, SubscribeCall& call) {
    SubscribeDialog dialog(call);
    dialog.accept();
    v1::SubscribeResponse nonsense;
    nonsense.add_started()->set_id(999);
    nonsense.add_updates()->set_partition(77);
    nonsense.add_batches()->set_id(999);
    nonsense.add_stored()->set_offset(3);
    nonsense.add_closed()->set_id(999);
    call.Write(nonsense);
    dialog.deliver({"a"}, 0, 0);
    return dialog.finish();
  };
  Log<std::string> records;
  const auto consumer = start(broker, options_for(false), into(records));
  EXPECT_EQ(records.wait(1), Events{"0@0 a"});
  EXPECT_TRUE(consumer->close(kLong).has_value());
}

TEST(StreamConsumer, RefusesBadOptions) {
  TestStreams broker(2);
  const auto client = Broker::open(broker.connection());
  const auto opened = [&](std::string_view stream, StreamConsumerOptions options) {
    const auto consumer = client->stream(stream).consumer(options, [](const RecordBatch&) {});
    return consumer.error().code;
  };
  const auto refused = [&](const auto& change) {
    auto options = options_for(false);
    change(options);
    return opened("events", options);
  };
  EXPECT_EQ(opened("", options_for(false)), Errc::invalid_argument);
  EXPECT_EQ(opened("nothing", options_for(false)), Errc::stream_not_found);
  EXPECT_EQ(refused([](auto& o) { o.partitions = {PartitionNumber{2}}; }),
            Errc::partition_not_found);
  EXPECT_EQ(refused([](auto& o) { o.concurrency = 0; }), Errc::invalid_argument);
  EXPECT_EQ(refused([](auto& o) {
              o.single_active = true;
              o.group = "";
            }),
            Errc::invalid_argument);
  EXPECT_EQ(refused([](auto& o) { o.on_step_down = [](PartitionNumber) {}; }),
            Errc::invalid_argument);
}

/// Answers the heartbeat that came with the start, with a lease of `lease`.
void grant(SubscribeCall& call, milliseconds lease, std::uint64_t number = 1) {
  v1::SubscribeResponse response;
  response.mutable_heartbeat()->set_number(number);
  *response.mutable_heartbeat()->mutable_heartbeat_interval() =
      proto_duration(std::chrono::milliseconds{1});
  *response.mutable_heartbeat()->mutable_client_lease() = proto_duration(lease);
  call.Write(response);
}

// The broker is silent, the connection stands: the seat is lost all the same, and the program is
// told.
TEST(StreamConsumer, WithoutAnAcknowledgedHeartbeatItsSeatIsLost) {
  TestStreams broker;
  Gate lost;
  Gate over;
  Log<std::string> handled;
  Log<std::string> told;
  Log<Error> errors;
  broker.on_subscribe = [&](int number, SubscribeCall& call) {
    SubscribeDialog dialog(call);
    if (number > 1) return dialog.finish();
    dialog.accept();
    EXPECT_TRUE(dialog.had_heartbeat);
    grant(call, seconds{1});
    dialog.update(true, false, 3, 10);
    // The broker answers nothing more. Records that come late are not handed out.
    EXPECT_TRUE(lost.wait());
    dialog.deliver({"late"}, 10, 3);
    EXPECT_TRUE(over.wait());
    return kDying;
  };
  auto options = options_for(true);
  options.on_active = [&](const StreamPosition&) { told.add("active"); };
  options.on_step_down = [&](PartitionNumber) { told.add("step down"); };
  options.on_losing = [&](PartitionNumber) { lost.open(); };
  options.on_error = [&](const Error& error) { errors.add(error); };
  const auto consumer = start(broker, options, into(handled));

  EXPECT_EQ(told.wait(2), (Events{"active", "step down"}));
  EXPECT_TRUE(lost.wait());
  EXPECT_EQ(errors.wait(1).at(0).code, Errc::lease_lost);
  const auto stored = consumer->store_offset({.epoch = Epoch{3}, .offset = Offset{11}});
  ASSERT_FALSE(stored.has_value());
  over.open();
  EXPECT_TRUE(handled.now().empty());
}

TEST(StreamConsumer, ItsLeaseIsRenewedByEachAcknowledgedHeartbeat) {
  TestStreams broker;
  Log<std::string> handled;
  broker.on_subscribe = [&](int, SubscribeCall& call) {
    SubscribeDialog dialog(call);
    dialog.accept();
    grant(call, seconds{20});
    dialog.update(true, false, 3, 10);
    for (std::uint64_t number = 2; number <= 5; ++number) {
      while (dialog.heartbeats < number) {
        if (!dialog.read()) return kDying;
      }
      grant(call, seconds{20}, number);
    }
    dialog.deliver({"a"}, 10, 3);
    return dialog.finish();
  };
  const auto consumer = start(broker, options_for(true), into(handled));
  EXPECT_EQ(handled.wait(1), (Events{"0@10 a"}));
  const SessionLease lease = consumer->lease();
  EXPECT_TRUE(lease.is_valid);
  EXPECT_TRUE(lease.is_renewed);
  EXPECT_GT(lease.left, seconds{5});
}

}  // namespace
}  // namespace baton::client
