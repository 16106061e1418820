#include "server/grpc/stream_calls.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "server/grpc/status.h"
#include "server/grpc/stream_fixture.h"

namespace baton {
namespace {

using std::chrono::seconds;
using Responses = std::vector<v1::SubscribeResponse>;
using Port = TestPort<v1::SubscribeResponse>;

std::uint32_t code_of(Errc code) { return to_proto({code, ""}).code(); }

class SubscribeCallTest : public StreamTest {
 protected:
  struct Client {
    std::shared_ptr<SubscribeCall> stream;
    std::unique_ptr<Port> port;
  };
  Client connect() {
    auto stream = std::make_shared<SubscribeCall>(state_);
    return {stream, std::make_unique<Port>(broker_, stream, true)};
  }

  static v1::SubscribeRequest start(const std::string& group, bool single_active,
                                    std::uint64_t batches = 1000) {
    v1::SubscribeRequest request;
    v1::Start& item = *request.add_starts();
    item.set_id(1);
    item.set_stream("s");
    item.set_group(group);
    item.set_single_active(single_active);
    item.mutable_from()->set_first(true);
    item.mutable_credit()->set_batches(batches);
    item.mutable_credit()->set_bytes(1 << 20);
    return request;
  }
  static v1::SubscribeRequest credit(std::uint64_t batches) {
    v1::SubscribeRequest request;
    v1::Credit& item = *request.add_credits();
    item.set_id(1);
    item.set_batches(batches);
    return request;
  }
  static v1::SubscribeRequest unsubscribe() {
    v1::SubscribeRequest request;
    request.add_unsubscribes()->set_id(1);
    return request;
  }
  static v1::SubscribeRequest store(std::uint64_t epoch, std::int64_t offset,
                                    std::uint32_t partition = 0) {
    v1::SubscribeRequest request;
    v1::StoreSubscriptionOffset& item = *request.add_offsets();
    item.set_id(1);
    item.set_partition(partition);
    item.set_epoch(epoch);
    item.set_offset(offset);
    return request;
  }
  static v1::SubscribeRequest reply_to(const v1::Update& update) {
    v1::SubscribeRequest request;
    v1::UpdateReply& item = *request.add_replies();
    item.set_id(update.id());
    item.set_partition(update.partition());
    item.set_generation(update.generation());
    return request;
  }

  static bool has_started(const Responses& all) {
    return std::ranges::any_of(all, [](const auto& one) { return one.started_size() > 0; });
  }
  static std::vector<v1::Batch> batches(const Responses& all) {
    std::vector<v1::Batch> found;
    for (const auto& one : all) {
      found.insert(found.end(), one.batches().begin(), one.batches().end());
    }
    return found;
  }
  static std::uint64_t batch_count(const Responses& all) {
    std::uint64_t count = 0;
    for (const v1::Batch& batch : batches(all)) count += batch.batch_count();
    return count;
  }
  static std::vector<v1::Update> updates(const Responses& all) {
    std::vector<v1::Update> found;
    for (const auto& one : all) {
      found.insert(found.end(), one.updates().begin(), one.updates().end());
    }
    return found;
  }
  static std::vector<v1::Closed> closed(const Responses& all) {
    std::vector<v1::Closed> found;
    for (const auto& one : all) {
      found.insert(found.end(), one.closed().begin(), one.closed().end());
    }
    return found;
  }
  static std::vector<v1::OffsetStored> stored(const Responses& all) {
    std::vector<v1::OffsetStored> found;
    for (const auto& one : all) found.insert(found.end(), one.stored().begin(), one.stored().end());
    return found;
  }
  static auto batches_at_least(std::uint64_t count) {
    return [count](const Responses& all) { return batch_count(all) >= count; };
  }
  static auto updates_at_least(std::size_t count) {
    return [count](const Responses& all) { return updates(all).size() >= count; };
  }
  static auto closed_at_least(std::size_t count) {
    return [count](const Responses& all) { return closed(all).size() >= count; };
  }
  static auto stored_at_least(std::size_t count) {
    return [count](const Responses& all) { return stored(all).size() >= count; };
  }

  std::size_t members() {
    const auto done = broker_.execute(GroupCommand{.stream = "s",
                                                   .group = "g",
                                                   .what = GroupCommand::What::describe,
                                                   .error = {},
                                                   .partitions = {}});
    std::size_t count = 0;
    for (const GroupReport& group : done.partitions) count += group.description.members.size();
    return count;
  }
};

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
  // Two fit; a third may be begun with what is left of the credit.
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

// Whoever comes back to a seat begins where its group stored, however it left the end before.
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
  // Nothing was stored and nothing was appended: it comes back to the same two batches.
  second.port->cancel();
  const Responses all = first.port->wait_for(batches_at_least(4));
  EXPECT_EQ(batches(all).back().next_offset(), 2);
  EXPECT_GT(batches(all).back().epoch(), told.back().generation());
  first.port->cancel();
}

// A batch that was taken back before it was sent is one the client can give no credit for.
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
  v1::Update other;
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

// Otherwise the group would wait for ever for somebody who is not there.
TEST_F(SubscribeCallTest, AStartUnderWayWhenTheConnectionEndsLeavesNobodyBehind) {
  create(1);
  Client client = connect();
  client.port->send(start("other", false));
  client.port->wait_for(has_started);
  v1::SubscribeRequest request = start("g", true);
  request.mutable_starts(0)->set_id(2);
  client.port->send(request);  // The broker has not looked at it yet.
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

// `next` is the end when the subscription started, not when the client got round to credit.
TEST_F(SubscribeCallTest, FromNextMissesNothingThatCameAfterStarted) {
  create(1);
  append(0);
  Client client = connect();
  v1::SubscribeRequest request = start("", false, 0);
  request.mutable_starts(0)->mutable_from()->set_next(true);
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
  request.mutable_starts(0)->set_on_gap(v1::ON_GAP_FIRST);
  request.mutable_starts(0)->set_format(v1::FORMAT_RECORDS);
  lenient.port->send(request);
  const Responses all = lenient.port->wait_for(batches_at_least(1));
  EXPECT_EQ(batches(all).at(0).records(0).offset(), first.value);
  // Past the end there is no gap to skip.
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
  // All that was read and not sent is dropped with the subscription.
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

// Two feeds with much to catch up on would otherwise have all the threads there are.
TEST_F(SubscribeCallTest, FeedsThatCatchUpTakeTurns) {
  create(3);
  for (std::uint32_t partition = 0; partition < 3; ++partition) {
    for (int i = 0; i < 6; ++i) append(partition, 1, 700'000);
  }
  v1::SubscribeRequest request = start("", false);
  request.mutable_starts(0)->mutable_credit()->set_bytes(1 << 30);
  std::size_t soonest = 18;
  // The system may stop a thread in the middle of a read: now and then that is bad luck.
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
}  // namespace baton
