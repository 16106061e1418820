// Scenarios 35 to 52 of the specification, by number: node back, frozen groups, operators.

#include "core/group/scenario_test.h"

namespace baton::scenario {
namespace {

using NodeBack = Scenario;
using Frozen = Scenario;
using Operators = Scenario;

TEST_F(NodeBack, Scenario35_EachConnectionIsCheckedOnce) {
  on_one_node("x y");
  given("simple[x.0:dA y.1:dW x.2:dW z.3:W]");
  EXPECT_EQ(node_up("x"), "[x.0:dA y.1:dW x.2:dW z.3:W] -> 0");
  EXPECT_EQ(checks_, (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(watches_, (std::vector<std::string>{"x", "y"}));
}

TEST_F(NodeBack, Scenario36_ACutOffActiveIsToldWithTheSameGeneration) {
  given("simple[x.0:dA y.1:W z.2:W]");
  const Generation before = generation();
  EXPECT_EQ(back("x"), "[x.0:A y.1:W z.2:W] -> ACT x.0");
  EXPECT_EQ(told_, before);
  EXPECT_EQ(generation(), before);
}

TEST_F(NodeBack, Scenario37_TheTargetChangesWhenOneReturns) {
  given("super(1)[x.0:dW y.1:W z.2:A]");
  EXPECT_EQ(back("x"), "[x.0:W y.1:W z.2:X] -> DOWN z.2");
}

TEST_F(NodeBack, Scenario38_AnotherOneStillFreezesTheGroup) {
  given("super(1)[x.0:dW y.1:W z.2:dA]");
  EXPECT_EQ(back("x"), "[x.0:W y.1:W z.2:dA] -> 0");
}

TEST_F(NodeBack, Scenario39_AForgottenActiveWaitsItsTurn) {
  given("simple[x.0:fA y.1:A z.2:W]");
  EXPECT_EQ(back("x"), "[x.0:W y.1:A z.2:W] -> INFORM x.0");
  EXPECT_EQ(down("y"), "[x.0:A z.2:W] -> ACT x.0");
}

TEST_F(NodeBack, Scenario39_AForgottenActiveMayChangeTheTarget) {
  given("super(1)[x.0:fA y.1:W z.2:A]");
  EXPECT_EQ(back("x"), "[x.0:W y.1:W z.2:X] -> INFORM x.0, DOWN z.2");
  EXPECT_EQ(replies("z.2"), "[x.0:W y.1:A z.2:W] -> ACT y.1");
}

TEST_F(NodeBack, Scenario39b_ACutOffDeactivatingOneIsAskedAgainWithTheSameGeneration) {
  given("super(1)[x.0:W y.1:dX z.2:W]");
  const Generation before = generation();
  EXPECT_EQ(back("y"), "[x.0:W y.1:X z.2:W] -> DOWN y.1");
  EXPECT_EQ(told_, before);
  EXPECT_EQ(replies("y.1", before), "[x.0:W y.1:A z.2:W] -> ACT y.1");
}

TEST_F(NodeBack, Scenario40_TheNodeIsBackButTheConnectionIsDead) {
  given("simple[x.0:dA y.1:W]");
  EXPECT_EQ(node_up("x"), "[x.0:dA y.1:W] -> 0");
  EXPECT_EQ(down("x"), "[y.1:A] -> ACT y.1");
  EXPECT_EQ(timer("x"), "[y.1:A] -> 0");
}

TEST_F(NodeBack, Scenario41_ALateReplyOfAnOldHandOverIsIgnored) {
  given("super(1)[x.0:W y.1:X z.2:W]");
  const Generation old = generation();
  node_lost("y");
  timer("y");
  EXPECT_EQ(back("y"), "[x.0:W y.1:W z.2:X] -> DOWN z.2");
  EXPECT_EQ(replies("y.1", old), "[x.0:W y.1:W z.2:X] -> 0");
  EXPECT_EQ(replies("z.2", old), "[x.0:W y.1:W z.2:X] -> 0");
  EXPECT_EQ(replies("z.2"), "[x.0:W y.1:A z.2:W] -> ACT y.1");
}

TEST_F(NodeBack, Scenario42_TwoOfThreeConnectionsComeBack) {
  on_one_node("a b c");
  given("simple[y.0:A a.1:W b.2:W c.3:W]");
  EXPECT_EQ(node_lost("a"), "[y.0:A a.1:dW b.2:dW c.3:dW] -> 0");
  EXPECT_EQ(timers_.size(), 3U);
  node_up("a");
  EXPECT_EQ(back("a"), "[y.0:A a.1:W b.2:dW c.3:dW] -> 0");
  EXPECT_EQ(back("b"), "[y.0:A a.1:W b.2:W c.3:dW] -> 0");
  EXPECT_EQ(timer("c"), "[y.0:A a.1:W b.2:W c.3:fW] -> 0");
  EXPECT_EQ(timer("a"), "[y.0:A a.1:W b.2:W c.3:fW] -> 0");
}

TEST_F(Frozen, Scenario43_RegisteringThawsNothing) {
  given("super(1)[x.0:W y.1:dA]");
  EXPECT_EQ(registers("z.2"), "[x.0:W y.1:dA z.2:W] -> 0");
}

TEST_F(Frozen, Scenario44_UnregisteringAWaitingOneThawsNothing) {
  given("super(1)[x.0:W y.1:dA z.2:W]");
  EXPECT_EQ(unregisters("x.0"), "[y.1:dA z.2:W] -> 0");
}

TEST_F(Frozen, Scenario45_AnotherConnectionDownThawsNothing) {
  given("super(1)[x.0:W y.1:dX z.2:W]");
  EXPECT_EQ(down("z"), "[x.0:W y.1:dX] -> 0");
}

TEST_F(Frozen, Scenario46_AReplyNobodyOwesThawsNothing) {
  given("super(1)[x.0:W y.1:dA z.2:W]");
  EXPECT_EQ(replies("x.0", generation()), "[x.0:W y.1:dA z.2:W] -> 0");
  EXPECT_EQ(replies("y.1", generation()), "[x.0:W y.1:dA z.2:W] -> 0");
}

TEST_F(Operators, Scenario47_AnUnknownGroupIsNotFound) {
  const Status status = machine_.evaluate_group(kGroup, {}, now_);
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Errc::not_found);
  EXPECT_EQ(status.error().text, "there is no group 'orders/1 billing'");
}

TEST_F(Operators, Scenario48_EvaluatingAHealthyGroupChangesNothing) {
  given("super(1)[x.0:W y.1:A z.2:W]");
  EXPECT_EQ(evaluated({}), "[x.0:W y.1:A z.2:W] -> 0");
}

TEST_F(Operators, Scenario49_TheActivesConnectionIsDead) {
  given("simple[x.0:A y.1:W]");
  EXPECT_EQ(evaluated({"x"}), "[y.1:A] -> ACT y.1");
}

TEST_F(Operators, Scenario49_TheActiveIsNotConnected) {
  given("simple[x.0:dA y.1:W]");
  EXPECT_EQ(evaluated({}), "[y.1:A] -> ACT y.1");
  // Its remaining consumers must not become active again.
  EXPECT_EQ(timer("x"), "[y.1:A] -> 0");
  EXPECT_EQ(back("x"), "[y.1:A] -> UNKNOWN x");
}

TEST_F(Operators, Scenario50_OnlyDeadOnes) {
  given("simple[x.0:dA y.1:W]");
  EXPECT_EQ(evaluated({"y"}), "gone -> 0");
}

TEST_F(Operators, Scenario51_PurgingANodeRemovesItsConsumers) {
  given("simple[n.0:dA y.1:W]");
  const std::uint64_t touched = machine_.totals().groups_touched_total;
  const GroupId other{.stream = "other", .partition = 0, .name = "untouched"};
  ASSERT_TRUE(machine_
                  .register_consumer({.group = other,
                                      .member = member("y.1"),
                                      .ticket = Ticket{99},
                                      .single_active = true,
                                      .partition_index = kSimple,
                                      .owner = ""},
                                     now_)
                  .has_value());
  outcome();
  EXPECT_EQ(purged("n"), "[y.1:A] -> ACT y.1");
  EXPECT_EQ(machine_.totals().groups_touched_total, touched + 2);  // The registration; the purge.
}

// Two purged connections in one group: the seat must not go from one of them to the other.
TEST_F(Operators, Scenario51_PurgingElectsNobodyWhoIsPurgedToo) {
  on_one_node("m n");
  given("simple[m.0:A n.1:W y.2:W]");
  EXPECT_EQ(purged("m"), "[y.2:A] -> ACT y.2");
}

TEST_F(Operators, Scenario52_ANewLeaderKeepsTheTimeThatWasLeft) {
  given("simple[x.0:dA y.1:W]");
  const Instant lost = consumer("x.0").since;
  now_ = lost + std::chrono::seconds{3};
  machine_.become_leader(now_);
  EXPECT_EQ(outcome(), "[x.0:dA y.1:W] -> 0");
  ASSERT_EQ(timers_.size(), 1U);
  EXPECT_EQ(timers_[0].second, lost + limits::kNodeLeaseCoordinator);
  EXPECT_EQ(watches_, (std::vector<std::string>{"x", "y"}));
}

// Half of the time passed, or all of it, or far more: none of this may break the new leader.
TEST_F(Operators, Scenario52_ANewLeaderMeetsATimerOfAnyAge) {
  given("simple[x.0:dA y.1:W]");
  const Instant lost = consumer("x.0").since;
  for (const int seconds : {0, 2, 5, 3600, 1'000'000}) {
    now_ = lost + std::chrono::seconds{seconds};
    Coordinator successor = machine_;
    successor.become_leader(now_);
    successor.expire(now_);
    const bool over = seconds >= 5;
    EXPECT_EQ(to_string(successor.find(kGroup)->find(member("x.0"))->status), over ? "fA" : "dA");
    EXPECT_EQ(to_string(successor.find(kGroup)->find(member("y.1"))->status), over ? "A" : "W");
    for (const auto& effect : successor.take_effects().list) {
      if (const auto* timer = std::get_if<CoordinatorEffects::SetTimer>(&effect)) {
        EXPECT_GE(timer->at, now_);
      }
    }
  }
}

// The former leader may have failed between recording a hand-over and sending it.
TEST_F(Operators, Scenario52_ANewLeaderSaysAgainWhatMayNotHaveBeenSent) {
  given("super(1)[x.0:W y.1:X z.2:W]");
  machine_.become_leader(now_);
  EXPECT_EQ(outcome(), "[x.0:W y.1:X z.2:W] -> DOWN y.1");
  EXPECT_EQ(told_, generation());
}

}  // namespace
}  // namespace baton::scenario
