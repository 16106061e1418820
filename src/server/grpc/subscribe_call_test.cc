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

TEST_F(SubscribeCallTest, DeliversWhatIsThereAndThenWhatComes) {
  create(1);
  append(0, 3);
  Client client = connect();
  client.port->send(start("", false));
  Responses all = client.port->wait_for(batches_at_least(1));
  EXPECT_TRUE(has_started(all));
  EXPECT_EQ(batches(all).front().next_offset(), 3);
  for (std::uint64_t i = 2; i < 50; ++i) {
    append(0);
    all = client.port->wait_for(batches_at_least(i));
  }
  EXPECT_EQ(batches(all).back().next_offset(), 51);
  client.port->half_close();
  EXPECT_TRUE(client.port->wait_for_end().ok());
}

// The feeds of a subscription read at the same time, and share its credit.
TEST_F(SubscribeCallTest, PartitionsThatReadAtOnceNeverSpendMoreCreditThanWasGiven) {
  constexpr std::uint32_t kPartitions = 8;
  create(kPartitions);
  for (std::uint32_t partition = 0; partition < kPartitions; ++partition) {
    for (int i = 0; i < 10; ++i) append(partition);
  }
  Client client = connect();
  client.port->send(start("", false, 1));
  std::uint64_t given = 1;
  for (; given < 60; ++given) {
    client.port->wait_for(batches_at_least(given));
    let_background_finish();
    ASSERT_EQ(batch_count(client.port->now()), given);
    client.port->send(credit(1));
  }
  client.port->wait_for(batches_at_least(60));
  client.port->cancel();
}

TEST_F(SubscribeCallTest, CreditOfBytesIsSpentAsWell) {
  create(1);
  for (int i = 0; i < 10; ++i) append(0, 1, 1000);
  Client client = connect();
  v1::SubscribeRequest request = start("", false);
  request.mutable_starts(0)->mutable_credit()->set_bytes(2500);
  client.port->send(request);
  client.port->wait_for(batches_at_least(2));
  let_background_finish();
  // Two fit; a third may be begun with the rest of the credit.
  EXPECT_LE(batch_count(client.port->now()), 3U);
  v1::SubscribeRequest more = credit(0);
  more.mutable_credits(0)->set_bytes(1 << 20);
  client.port->send(more);
  client.port->wait_for(batches_at_least(10));
  client.port->cancel();
}

TEST_F(SubscribeCallTest, MoreCreditThanCanBeCountedClosesTheSubscription) {
  create(1);
  Client client = connect();
  client.port->send(start("", false));
  client.port->wait_for(has_started);
  client.port->send(credit(~std::uint64_t{0}));
  const auto reasons = closed(client.port->wait_for(closed_at_least(1)));
  EXPECT_EQ(reasons.at(0).reason().code(), code_of(Errc::invalid_argument));
  client.port->cancel();
}

TEST_F(SubscribeCallTest, ASubscriptionThatDeliveredKeepsNothingAliveAfterItsEnd) {
  create(1);
  append(0);
  Client client = connect();
  client.port->send(start("g", true));
  client.port->wait_for(batches_at_least(1));
  client.port->half_close();
  EXPECT_TRUE(client.port->wait_for_end().ok());
  EXPECT_EQ(members(), 0U);
  EXPECT_EQ(broker_.connections_down(), 1U);
  const std::weak_ptr<Session> gone = client.stream->session();
  client = {};
  state_->background.stop();
  EXPECT_TRUE(gone.expired());
}

TEST_F(SubscribeCallTest, AnUnsubscribeBeforeStartedClosesOnceItHasStarted) {
  create(1);
  Client client = connect();
  v1::SubscribeRequest request = start("g", true);
  request.add_unsubscribes()->set_id(1);
  client.port->send(request);
  const Responses all = client.port->wait_for(closed_at_least(1));
  EXPECT_TRUE(has_started(all));
  EXPECT_FALSE(closed(all).at(0).has_reason());
  EXPECT_EQ(members(), 0U);
  // The id is free again.
  client.port->send(start("g", true));
  client.port->wait_for(updates_at_least(1));
  EXPECT_EQ(members(), 1U);
  client.port->cancel();
}

TEST_F(SubscribeCallTest, AStartThatIsRefusedIsClosedAndLeavesNothing) {
  create(1);
  Client client = connect();
  v1::SubscribeRequest request = start("g", true);
  request.mutable_starts(0)->set_stream("absent");
  client.port->send(request);
  auto reasons = closed(client.port->wait_for(closed_at_least(1)));
  EXPECT_EQ(reasons.at(0).reason().code(), code_of(Errc::stream_not_found));
  request = start("g", true);
  request.mutable_starts(0)->add_partitions(~std::uint32_t{0});
  client.port->send(request);
  reasons = closed(client.port->wait_for(closed_at_least(2)));
  EXPECT_EQ(reasons.at(1).reason().code(), code_of(Errc::partition_not_found));
  client.port->send(start("g", true));
  client.port->wait_for(updates_at_least(1));
  client.port->send(start("g", true));
  reasons = closed(client.port->wait_for(closed_at_least(3)));
  EXPECT_EQ(reasons.at(2).reason().code(), code_of(Errc::already_exists));
  EXPECT_EQ(members(), 1U);
  client.port->cancel();
}

TEST_F(SubscribeCallTest, ADeletedStreamClosesItsSubscriptions) {
  create(1);
  Client plain = connect();
  plain.port->send(start("", false));
  plain.port->wait_for(has_started);
  Client seat = connect();
  seat.port->send(start("g", true));
  seat.port->wait_for(updates_at_least(1));
  let_background_finish();
  broker_.execute(DeleteStreamCommand{.stream = "s", .error = {}});
  EXPECT_EQ(closed(plain.port->wait_for(closed_at_least(1))).at(0).reason().code(),
            code_of(Errc::stream_not_found));
  EXPECT_TRUE(closed(seat.port->wait_for(closed_at_least(1))).at(0).has_reason());
  plain.port->cancel();
  seat.port->cancel();
}

// `next` is the end when the subscription started, not when the client first gave credit.
TEST_F(SubscribeCallTest, FromNextMissesNothingThatCameAfterStarted) {
  create(1);
  append(0);
  Client client = connect();
  v1::SubscribeRequest request = start("", false, 0);
  request.mutable_starts(0)->mutable_from()->set_place(v1::ReadFrom::PLACE_NEXT);
  client.port->send(request);
  client.port->wait_for(has_started);
  append(0);
  client.port->send(credit(5));
  const Responses all = client.port->wait_for(batches_at_least(1));
  EXPECT_EQ(batches(all).at(0).next_offset(), 2);
  EXPECT_EQ(batch_count(all), 1U);
  client.port->cancel();
}

TEST_F(SubscribeCallTest, AGapClosesTheSubscriptionOrIsSkipped) {
  create(1, few_segments());
  for (int i = 0; i < 20; ++i) append(0, 1, 2000);
  run_retention();
  const Offset first = first_offset();
  ASSERT_GT(first, Offset{1});
  Client strict = connect();
  v1::SubscribeRequest request = start("", false);
  request.mutable_starts(0)->mutable_from()->set_offset(1);
  strict.port->send(request);
  EXPECT_EQ(closed(strict.port->wait_for(closed_at_least(1))).at(0).reason().code(),
            code_of(Errc::offset_out_of_range));
  Client lenient = connect();
  request.mutable_starts(0)->set_on_gap(v1::SubscribeRequest::ON_GAP_FIRST);
  request.mutable_starts(0)->set_format(v1::RECORD_FORMAT_RECORDS);
  lenient.port->send(request);
  const Responses all = lenient.port->wait_for(batches_at_least(1));
  EXPECT_EQ(batches(all).at(0).records(0).offset(), first.value);
  // Beyond the end there is no gap to skip.
  Client beyond = connect();
  request.mutable_starts(0)->mutable_from()->set_offset(1'000'000);
  beyond.port->send(request);
  EXPECT_EQ(closed(beyond.port->wait_for(closed_at_least(1))).at(0).reason().code(),
            code_of(Errc::offset_out_of_range));
  for (Client* client : {&strict, &lenient, &beyond}) client->port->cancel();
}

TEST_F(SubscribeCallTest, AClientWithoutCreditDoesNotHoldUpRetention) {
  create(1, few_segments());
  for (int i = 0; i < 20; ++i) append(0, 1, 2000);
  Client client = connect();
  client.port->send(start("", false, 1));
  client.port->wait_for(batches_at_least(1));
  let_background_finish();
  run_retention();
  EXPECT_GT(first_offset(), Offset{1});
  client.port->cancel();
}

TEST_F(SubscribeCallTest, ASlowClientIsReadForOnlyUpToTheOutputBound) {
  create(1);
  for (int i = 0; i < 16; ++i) append(0, 1, 900'000);
  Client client = connect();
  client.port->set_slow(true);
  v1::SubscribeRequest request = start("", false);
  request.mutable_starts(0)->mutable_credit()->set_bytes(1 << 30);
  client.port->send(request);
  client.port->wait_for(has_started);
  let_background_finish();
  client.port->send(unsubscribe());
  client.port->set_slow(false);
  // Everything that was read and not sent is dropped with the subscription.
  const Responses all = client.port->wait_for(closed_at_least(1));
  EXPECT_LE(batch_count(all), 1U);
  client.port->cancel();

  Client patient = connect();
  patient.port->set_slow(true);
  patient.port->send(request);
  patient.port->wait_for(has_started);
  let_background_finish();
  patient.port->set_slow(false);
  patient.port->wait_for(batches_at_least(16));
  patient.port->cancel();
}

TEST_F(SubscribeCallTest, ABrokerThatStopsEndsTheStream) {
  create(1);
  Client client = connect();
  client.port->send(start("g", true));
  client.port->wait_for(updates_at_least(1));
  broker_.refuse();
  client.port->send(store(1, 0));
  EXPECT_EQ(client.port->wait_for_end().error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(SubscribeCallTest, ARequestWithTooManyItemsEndsTheStream) {
  create(1);
  Client client = connect();
  v1::SubscribeRequest request;
  for (std::size_t i = 0; i <= limits::kItemsPerRequest; ++i) request.add_credits();
  client.port->send(request);
  EXPECT_EQ(client.port->wait_for_end().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

// Otherwise two feeds with much to catch up on would use all threads.
TEST_F(SubscribeCallTest, FeedsThatCatchUpTakeTurns) {
  create(3);
  for (std::uint32_t partition = 0; partition < 3; ++partition) {
    for (int i = 0; i < 6; ++i) append(partition, 1, 700'000);
  }
  v1::SubscribeRequest request = start("", false);
  request.mutable_starts(0)->mutable_credit()->set_bytes(1 << 30);
  std::size_t soonest = 18;
  // The system may suspend a thread in the middle of a read, so a single attempt may be late.
  for (int attempt = 0; attempt < 10 && soonest >= 8; ++attempt) {
    Client client = connect();
    client.port->send(request);
    const auto got = batches(client.port->wait_for(batches_at_least(18)));
    const auto first = std::ranges::find(got, 2U, [](const auto& one) { return one.partition(); });
    soonest = std::min(soonest, static_cast<std::size_t>(first - got.begin()));
  }
  EXPECT_LT(soonest, 8U) << "the third waited for the other two";
}

}  // namespace
}  // namespace baton::subscribe_test
