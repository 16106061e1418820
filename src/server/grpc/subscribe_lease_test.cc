// The lease of a Subscribe call, on the broker's side.
#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <google/protobuf/util/time_util.h>
#include <gtest/gtest.h>

#include "server/grpc/stream_calls.h"
#include "server/grpc/stream_fixture.h"

namespace baton {
namespace {

using google::protobuf::util::TimeUtil;
using std::chrono::milliseconds;
using std::chrono::seconds;
using Responses = std::vector<v1::SubscribeResponse>;
using Port = TestPort<v1::SubscribeResponse>;

class SubscriptionLeaseTest : public StreamTest {
 protected:
  std::unique_ptr<Port> connect() {
    return std::make_unique<Port>(broker_, std::make_shared<SubscribeCall>(state_), true);
  }
  static v1::SubscribeRequest start(std::optional<std::uint64_t> heartbeat,
                                    v1::GroupHandover handover = v1::GROUP_HANDOVER_UNSPECIFIED) {
    v1::SubscribeRequest request;
    v1::SubscribeRequest::Start& item = *request.add_starts();
    item.set_id(1);
    item.set_stream("s");
    item.set_group("g");
    item.set_single_active(true);
    item.set_handover(handover);
    item.mutable_from()->set_place(v1::ReadFrom::PLACE_FIRST);
    item.mutable_credit()->set_batches(1000);
    item.mutable_credit()->set_bytes(1 << 20);
    if (heartbeat) request.mutable_heartbeat()->set_number(*heartbeat);
    return request;
  }
  static v1::SubscribeRequest heartbeat(std::uint64_t number) {
    v1::SubscribeRequest request;
    request.mutable_heartbeat()->set_number(number);
    return request;
  }
  static bool is_active(const Responses& all) {
    return std::ranges::any_of(all, [](const auto& one) {
      return std::ranges::any_of(one.updates(), [](const auto& told) { return told.active(); });
    });
  }
  static bool is_closed(const Responses& all) {
    return std::ranges::any_of(all, [](const auto& one) { return one.closed_size() > 0; });
  }
  static auto answered(std::uint64_t number) {
    return [number](const Responses& all) {
      return std::ranges::any_of(
          all, [&](const auto& one) { return one.heartbeat().number() == number; });
    };
  }
  GroupReport group() {
    return broker_
        .execute(GroupCommand{.stream = "s",
                              .group = "g",
                              .what = GroupCommand::What::describe,
                              .error = {},
                              .partitions = {}})
        .partitions.at(0);
  }
};

// A client that gets a seat must know by then whether it has a lease.
TEST_F(SubscriptionLeaseTest, TheFirstWordIsTheAnswerWithTheTerms) {
  create(1);
  const auto port = connect();
  port->send(start(1));
  const auto all = port->wait_for(is_active);
  ASSERT_TRUE(all.front().has_heartbeat());
  const v1::HeartbeatAck& ack = all.front().heartbeat();
  EXPECT_EQ(ack.number(), 1U);
  EXPECT_EQ(TimeUtil::TimestampToNanoseconds(ack.broker_time()), broker_.now().ns);
  EXPECT_EQ(ack.heartbeat_interval(), TimeUtil::SecondsToDuration(1));
  EXPECT_EQ(ack.client_lease(), TimeUtil::SecondsToDuration(4));
  EXPECT_EQ(ack.broker_lease(), TimeUtil::SecondsToDuration(5));
  EXPECT_EQ(group().description.members.at(0).lease_until, broker_.now() + seconds{5});
}

// The promise: a silent client keeps its seat until its lease ends, and loses it at once then.
TEST_F(SubscriptionLeaseTest, ASilentClientKeepsItsSeatUntilItsLeaseIsOver) {
  create(1);
  const auto silent = connect();
  silent->send(start(1));
  silent->wait_for(is_active);
  const auto other = connect();
  other->send(start(1));
  broker_.pass(milliseconds{4'000});
  other->send(heartbeat(2));
  other->wait_for(answered(2));
  broker_.pass(milliseconds{900});
  let_background_finish();
  EXPECT_FALSE(is_active(other->now()));
  EXPECT_FALSE(silent->finished());

  broker_.pass(milliseconds{100});
  other->wait_for(is_active);
  EXPECT_EQ(silent->wait_for_end().error_code(), grpc::StatusCode::UNAVAILABLE);
}

// Also if a write to the client never ends.
TEST_F(SubscriptionLeaseTest, AWriteThatNeverEndsDoesNotKeepTheSeat) {
  create(1);
  const auto silent = connect();
  silent->send(start(1));
  silent->wait_for(is_active);
  silent->set_slow(true);
  append(0);
  let_background_finish();
  const auto other = connect();
  broker_.pass(seconds{3});
  other->send(start(1));
  other->wait_for(answered(1));
  broker_.pass(seconds{2});
  other->wait_for(is_active);
}

// Without heartbeats only the end of the connection tells.
TEST_F(SubscriptionLeaseTest, AClientWithoutHeartbeatsHasNoLease) {
  create(1);
  const auto plain = connect();
  plain->send(start(std::nullopt));
  plain->wait_for(is_active);
  EXPECT_EQ(group().description.members.at(0).lease_until, std::nullopt);
  broker_.pass(seconds{100});
  let_background_finish();
  EXPECT_FALSE(plain->finished());
  // A lease cannot begin later: it would be unknown under which rules the client got its seat.
  plain->send(heartbeat(1));
  EXPECT_EQ(plain->wait_for_end().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(SubscriptionLeaseTest, AVisibleBreakMovesTheSeatAtOnce) {
  create(1);
  const auto first = connect();
  first->send(start(1));
  first->wait_for(is_active);
  const auto other = connect();
  other->send(start(1));
  other->wait_for(answered(1));
  first->cancel();
  other->wait_for(is_active);
}

TEST_F(SubscriptionLeaseTest, AStrictGroupWaitsForTheRestOfTheLease) {
  create(1);
  const auto first = connect();
  first->send(start(1, v1::GROUP_HANDOVER_STRICT));
  first->wait_for(is_active);
  const auto other = connect();
  broker_.pass(seconds{2});
  other->send(start(1));  // Like the group.
  other->wait_for(answered(1));
  first->cancel();
  first->wait_for_end();
  broker_.pass(milliseconds{2'900});
  broker_.turn();
  const GroupReport report = group();
  EXPECT_EQ(report.description.handover, Handover::strict);
  ASSERT_EQ(report.description.members.size(), 2U);
  EXPECT_EQ(report.description.members[0].status.connectivity, Connectivity::disconnected);
  EXPECT_FALSE(is_active(other->now()));

  broker_.pass(milliseconds{100});
  other->wait_for(is_active);
  EXPECT_EQ(group().description.members.size(), 1U);
}

// A consumer that unsubscribes has stopped its work.
TEST_F(SubscriptionLeaseTest, AStrictGroupDoesNotWaitForWhoUnsubscribes) {
  create(1);
  const auto first = connect();
  first->send(start(1, v1::GROUP_HANDOVER_STRICT));
  first->wait_for(is_active);
  const auto other = connect();
  other->send(start(1));
  other->wait_for(answered(1));
  v1::SubscribeRequest leave;
  leave.add_unsubscribes()->set_id(1);
  first->send(leave);
  other->wait_for(is_active);
}

TEST_F(SubscriptionLeaseTest, AStrictGroupTakesOnlyConsumersThatAgreeAndHaveALease) {
  create(1);
  const auto first = connect();
  first->send(start(1, v1::GROUP_HANDOVER_STRICT));
  first->wait_for(is_active);
  const auto plain = connect();
  plain->send(start(std::nullopt));
  const auto refused = plain->wait_for(is_closed);
  EXPECT_NE(refused.back().closed(0).reason().text().find("heartbeats"), std::string::npos);
  const auto differs = connect();
  differs->send(start(1, v1::GROUP_HANDOVER_AT_ONCE));
  const auto second = differs->wait_for(is_closed);
  EXPECT_NE(second.back().closed(0).reason().text().find("handover"), std::string::npos);
}

}  // namespace
}  // namespace baton
