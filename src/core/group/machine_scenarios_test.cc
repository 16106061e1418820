// Scenarios 1 to 34 of the specification, by number: life cycle, connection down, node lost.

#include "core/group/scenario_test.h"

namespace baton::scenario {
namespace {

using LifeCycle = Scenario;
using ConnectionDown = Scenario;
using NodeLost = Scenario;

TEST_F(LifeCycle, Scenario1To5_ASimpleGroupHandsTheSeatOnInOrder) {
  given_empty(kSimple);
  EXPECT_EQ(registers("p.0"), "[p.0:A] -> ACT p.0");
  EXPECT_EQ(registers("p.1"), "[p.0:A p.1:W] -> 0");
  EXPECT_EQ(registers("p.2"), "[p.0:A p.1:W p.2:W] -> 0");
  EXPECT_EQ(unregisters("p.0"), "[p.1:A p.2:W] -> ACT p.1");
  EXPECT_EQ(unregisters("p.1"), "[p.2:A] -> ACT p.2");
  EXPECT_EQ(unregisters("p.2"), "gone -> 0");
}

TEST_F(LifeCycle, Scenario6To13_APartitionedGroupFollowsTheModulo) {
  given_empty(PartitionIndex{1});
  EXPECT_EQ(registers("p.0"), "[p.0:A] -> ACT p.0");
  EXPECT_EQ(registers("p.1"), "[p.0:X p.1:W] -> DOWN p.0");
  EXPECT_EQ(replies("p.0"), "[p.0:W p.1:A] -> ACT p.1");
  EXPECT_EQ(registers("p.2"), "[p.0:W p.1:A p.2:W] -> 0");
  EXPECT_EQ(unregisters("p.0"), "[p.1:X p.2:W] -> DOWN p.1");
  EXPECT_EQ(replies("p.1"), "[p.1:W p.2:A] -> ACT p.2");
  EXPECT_EQ(unregisters("p.1"), "[p.2:A] -> 0");
  EXPECT_EQ(unregisters("p.2"), "gone -> 0");
}

TEST_F(LifeCycle, Scenario14_RechosenConsumerIsToldAgain) {
  given_empty(PartitionIndex{3});
  EXPECT_EQ(registers("p.0"), "[p.0:A] -> ACT p.0");
  EXPECT_EQ(registers("p.1"), "[p.0:X p.1:W] -> DOWN p.0");
  EXPECT_EQ(registers("p.2"), "[p.0:X p.1:W p.2:W] -> 0");
  const Generation asked = told_;
  EXPECT_EQ(replies("p.0"), "[p.0:A p.1:W p.2:W] -> ACT p.0");
  EXPECT_GT(told_, asked);
}

TEST_F(LifeCycle, Scenario15_AnotherPartitionIndexIsRefused) {
  given("super(1)[p.0:W p.1:A]");
  const auto refused = try_register("p.2", PartitionIndex{2});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::failed_precondition);
  EXPECT_EQ(refused.error().text, "group 'orders/1 billing' has partition index 1, not 2");
  EXPECT_EQ(outcome(), "[p.0:W p.1:A] -> 0");
}

TEST_F(LifeCycle, Scenario16_AnUnknownOneMayUnregister) {
  given("simple[p.0:A]");
  EXPECT_EQ(unregisters("q.0"), "[p.0:A] -> 0");
  EXPECT_EQ(unregisters("p.5"), "[p.0:A] -> 0");
  machine_.unregister({.stream = "none", .partition = 0, .name = "none"}, member("p.0"), now_);
  EXPECT_EQ(outcome(), "[p.0:A] -> 0");
}

TEST_F(LifeCycle, Scenario17_RegisteringTwiceAddsOne) {
  given("simple[p.0:A p.1:W]");
  EXPECT_EQ(registers("p.0"), "[p.0:A p.1:W] -> 0");
  EXPECT_EQ(registers("p.1"), "[p.0:A p.1:W] -> 0");
}

TEST_F(ConnectionDown, Scenario18_NotTheDeadSibling) {
  given("simple[x.0:A y.1:W x.2:W]");
  EXPECT_EQ(down("x"), "[y.1:A] -> ACT y.1");
  EXPECT_EQ(down("y"), "gone -> 0");
}

TEST_F(ConnectionDown, Scenario19_WaitingOnesLeaveQuietly) {
  given("simple[y.0:A x.1:W x.2:W]");
  EXPECT_EQ(down("x"), "[y.0:A] -> 0");
}

TEST_F(ConnectionDown, Scenario20_TheLastConnectionTakesTheGroupAlong) {
  given("simple[x.0:A x.1:W]");
  EXPECT_EQ(down("x"), "gone -> 0");
}

TEST_F(ConnectionDown, Scenario21_TheActiveStaysTheTarget) {
  given("super(1)[x.0:W x.1:A y.2:W y.3:W]");
  EXPECT_EQ(down("y"), "[x.0:W x.1:A] -> 0");
}

TEST_F(ConnectionDown, Scenario22_TheActiveIsNoLongerTheTarget) {
  given("super(1)[x.0:W y.1:A x.2:W y.3:W]");
  EXPECT_EQ(down("x"), "[y.1:X y.3:W] -> DOWN y.1");
}

TEST_F(ConnectionDown, Scenario23_TheActiveDies) {
  given("super(1)[x.0:W x.1:A y.2:W y.3:W]");
  EXPECT_EQ(down("x"), "[y.2:W y.3:A] -> ACT y.3");
}

TEST_F(ConnectionDown, Scenario24_TheActiveDiesBeforeItReplies) {
  given("super(1)[x.0:W y.1:A z.2:W]");
  EXPECT_EQ(down("x"), "[y.1:X z.2:W] -> DOWN y.1");
  EXPECT_EQ(down("y"), "[z.2:A] -> ACT z.2");
}

TEST_F(ConnectionDown, Scenario25_ADeactivatingOneDies) {
  given("super(1)[x.0:W y.1:X z.2:W]");
  EXPECT_EQ(down("y"), "[x.0:W z.2:A] -> ACT z.2");
}

TEST_F(NodeLost, Scenario26_TheActiveIsCutOff) {
  given("super(1)[x.0:W y.1:A z.2:W]");
  EXPECT_EQ(node_lost("y"), "[x.0:W y.1:dA z.2:W] -> 0");
  ASSERT_EQ(timers_.size(), 1U);
  EXPECT_EQ(timers_[0].first, "y");
  EXPECT_EQ(timers_[0].second, now_ + limits::kNodeLeaseCoordinator);
}

// The node counts its lease from when it sent its last heartbeat, so ours begins when it arrived.
TEST_F(NodeLost, Scenario26_TheTimerCountsFromTheLastHeartbeat) {
  given("simple[x.0:A]");
  const Instant heard = now_ + std::chrono::seconds{-3};
  machine_.node_disconnected(connection("x").node, heard, now_);
  outcome();
  EXPECT_EQ(timers_[0].second, now_ + std::chrono::seconds{2});
}

TEST_F(NodeLost, Scenario27_AWaitingOneIsCutOff) {
  given("super(1)[x.0:W y.1:A z.2:W]");
  EXPECT_EQ(node_lost("z"), "[x.0:W y.1:A z.2:dW] -> 0");
  EXPECT_EQ(timers_.size(), 1U);
}

TEST_F(NodeLost, Scenario28And29_ADeactivatingOneBlocksForTheLeaseAndNoLonger) {
  given("super(1)[x.0:W y.1:X z.2:W]");
  EXPECT_EQ(node_lost("y"), "[x.0:W y.1:dX z.2:W] -> 0");
  EXPECT_EQ(timers_.size(), 1U);
  EXPECT_EQ(timer("y"), "[x.0:W y.1:fW z.2:A] -> ACT z.2");
}

TEST_F(NodeLost, Scenario30_BothOfAConnectionAreForgotten) {
  given("super(1)[x.0:X x.1:W y.2:W]");
  EXPECT_EQ(node_lost("x"), "[x.0:dX x.1:dW y.2:W] -> 0");
  EXPECT_EQ(timer("x"), "[x.0:fW x.1:fW y.2:A] -> ACT y.2");
}

TEST_F(NodeLost, Scenario31_AForgottenActiveIsReplaced) {
  given("simple[x.0:dA y.1:W z.2:W]");
  EXPECT_EQ(timer("x"), "[x.0:fA y.1:A z.2:W] -> ACT y.1");
}

TEST_F(NodeLost, Scenario32_AForgottenActiveIsReplacedByTheTarget) {
  given("super(1)[x.0:W y.1:dA z.2:W]");
  EXPECT_EQ(timer("y"), "[x.0:W y.1:fA z.2:A] -> ACT z.2");
}

TEST_F(NodeLost, Scenario33_ALateTimerIsHarmless) {
  given("simple[x.0:dA y.1:W]");
  EXPECT_EQ(back("x"), "[x.0:A y.1:W] -> ACT x.0");
  EXPECT_EQ(timer("x"), "[x.0:A y.1:W] -> 0");
}

// The timer of the first cut fires during the second: the node has renewed its lease in between,
// and its consumer may well be receiving.
TEST_F(NodeLost, Scenario33_ATimerOfAnEarlierCutIsHarmless) {
  given("simple[x.0:dA y.1:W]");
  EXPECT_EQ(back("x"), "[x.0:A y.1:W] -> ACT x.0");
  now_ = now_ + std::chrono::seconds{3};
  EXPECT_EQ(node_lost("x"), "[x.0:dA y.1:W] -> 0");
  now_ = now_ + std::chrono::seconds{2};
  machine_.disconnect_timer(connection("x"), now_);
  EXPECT_EQ(outcome(), "[x.0:dA y.1:W] -> 0");
  EXPECT_EQ(timer("x"), "[x.0:fA y.1:A] -> ACT y.1");
}

TEST_F(NodeLost, Scenario34_AForgottenWaitingOneThawsNothing) {
  given("simple[x.0:dW y.1:W z.2:dA]");
  EXPECT_EQ(timer("x"), "[x.0:fW y.1:W z.2:dA] -> 0");
}

}  // namespace
}  // namespace baton::scenario
