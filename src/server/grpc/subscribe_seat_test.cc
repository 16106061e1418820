// The seat of a single-active group, in a Subscribe call.
#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "server/grpc/stream_calls.h"
#include "server/grpc/subscribe_fixture.h"

namespace baton::subscribe_test {
namespace {

using std::chrono::seconds;

// A consumer that gets its seat back begins at the group's stored offset, however it lost the seat.
TEST_F(SubscribeCallTest, ASeatThatComesBackAtTheEndDeliversFromTheStoredOffset) {
  create(2);
  append(1, 1);
  append(1, 1);
  Client first = connect();
  first.port->send(start("g", true));
  // Both partitions; it waits at the end of partition 1.
  first.port->wait_for(batches_at_least(2));
  let_background_finish();

  Client second = connect();
  second.port->send(start("g", true));
  const auto told = updates(first.port->wait_for(updates_at_least(3)));
  ASSERT_TRUE(told.back().stepping_down());
  ASSERT_EQ(told.back().partition(), 1U);
  first.port->send(reply_to(told.back()));
  second.port->wait_for(batches_at_least(2));
  // Nothing was stored or appended: it gets the same two batches again.
  second.port->cancel();
  const Responses all = first.port->wait_for(batches_at_least(4));
  EXPECT_EQ(batches(all).back().next_offset(), 2);
  EXPECT_GT(batches(all).back().epoch(), told.back().generation());
  first.port->cancel();
}

// The client cannot give back credit for a batch that was taken back before it was sent.
TEST_F(SubscribeCallTest, AStepDownGivesBackTheCreditOfWhatWasNotSent) {
  create(2);
  for (int i = 0; i < 3; ++i) append(1);
  Client first = connect();
  first.port->set_slow(true);
  first.port->send(start("g", true, 3));
  // The write of Started does not end, so nothing after it is sent.
  first.port->wait_for(has_started);
  let_background_finish();
  Client second = connect();
  second.port->send(start("g", true, 3));
  second.port->wait_for(has_started);
  first.port->set_slow(false);
  const auto told = updates(first.port->wait_for(updates_at_least(3)));
  ASSERT_TRUE(told.back().stepping_down());
  EXPECT_EQ(batch_count(first.port->now()), 0U) << "sent after the step-down";
  first.port->send(reply_to(told.back()));
  second.port->wait_for(batches_at_least(3));
  second.port->cancel();
  first.port->wait_for(batches_at_least(3));
  first.port->cancel();
}

TEST_F(SubscribeCallTest, NothingIsDeliveredBetweenAStepDownAndTheNextActivation) {
  create(2);
  Client first = connect();
  first.port->send(start("g", true));
  first.port->wait_for(updates_at_least(2));
  for (int i = 0; i < 20; ++i) append(1);
  Client second = connect();
  second.port->send(start("g", true));
  const auto told = updates(first.port->wait_for(updates_at_least(3)));
  const std::uint64_t before = batch_count(first.port->now());
  for (int i = 0; i < 20; ++i) append(1);
  let_background_finish();
  EXPECT_EQ(batch_count(first.port->now()), before);
  EXPECT_EQ(batch_count(second.port->now()), 0U);
  first.port->send(store(told.at(1).generation(), 20, 1));
  first.port->send(reply_to(told.back()));
  const auto got = batches(second.port->wait_for(batches_at_least(20)));
  EXPECT_EQ(updates(second.port->now()).at(0).offset(), 20);
  EXPECT_EQ(got.back().next_offset(), 40);
  first.port->cancel();
  second.port->cancel();
}

TEST_F(SubscribeCallTest, AClientThatDoesNotAnswerAStepDownIsEndedInTime) {
  create(2);
  Client first = connect();
  first.port->send(start("g", true));
  first.port->wait_for(updates_at_least(2));
  Client second = connect();
  second.port->send(start("g", true));
  first.port->wait_for(updates_at_least(3));
  // Answers to something else do not help.
  v1::SubscribeResponse::Update other;
  other.set_id(1);
  other.set_partition(1);
  other.set_generation(99);
  first.port->send(reply_to(other));
  broker_.pass(limits::kHandoverTimeout - seconds{1});
  let_background_finish();
  EXPECT_TRUE(closed(first.port->now()).empty());
  broker_.pass(seconds{1});
  const auto reasons = closed(first.port->wait_for(closed_at_least(1)));
  EXPECT_EQ(reasons.at(0).reason().code(), code_of(Errc::handover_timeout));
  second.port->wait_for(updates_at_least(2));
  EXPECT_EQ(members(), 2U) << "one consumer at each of two partitions";
  first.port->cancel();
  second.port->cancel();
}

// Otherwise the group would wait for ever for a consumer that does not exist.
TEST_F(SubscribeCallTest, AStartUnderWayWhenTheConnectionEndsLeavesNobodyBehind) {
  create(1);
  Client client = connect();
  client.port->send(start("other", false));
  client.port->wait_for(has_started);
  v1::SubscribeRequest request = start("g", true);
  request.mutable_starts(0)->set_id(2);
  client.port->send(request);  // The broker has not handled it yet.
  client.port->cancel();
  EXPECT_EQ(broker_.connections_down(), 0U) << "it would overtake the Start";
  broker_.turn();
  EXPECT_EQ(broker_.connections_down(), 1U);
  EXPECT_EQ(members(), 0U);
  const std::weak_ptr<Session> gone = client.stream->session();
  client = {};
  state_->background.stop();
  EXPECT_TRUE(gone.expired()) << "something keeps the stream alive";
}

TEST_F(SubscribeCallTest, OffsetsAreStoredUnderTheEpochAndRefusedOtherwise) {
  create(1);
  append(0, 5);
  Client client = connect();
  client.port->send(start("g", true));
  const auto told = updates(client.port->wait_for(updates_at_least(1)));
  const std::uint64_t epoch = told.at(0).generation();
  client.port->send(store(epoch, 3));
  client.port->send(store(epoch + 1, 4));
  client.port->send(store(epoch, -1));
  client.port->send(store(epoch, 6));
  client.port->send(store(epoch, 1, ~std::uint32_t{0}));
  auto answers = stored(client.port->wait_for(stored_at_least(5)));
  std::map<std::int64_t, std::uint32_t> codes;
  for (const auto& answer : answers) codes[answer.offset()] = answer.error().code();
  EXPECT_EQ(codes[3], 0U);
  EXPECT_EQ(codes[4], code_of(Errc::stale_epoch));
  EXPECT_EQ(codes[-1], code_of(Errc::invalid_argument));
  EXPECT_EQ(codes[6], code_of(Errc::offset_out_of_range));
  EXPECT_EQ(codes[1], code_of(Errc::partition_not_found));
  client.port->cancel();
}

}  // namespace
}  // namespace baton::subscribe_test
