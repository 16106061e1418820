#include "core/group/seat.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

constexpr Ticket kTicket{7};
constexpr Instant kNow{1'000'000'000'000};

CoordinatorEffects::Activate activate(std::uint64_t generation,
                                      std::optional<GroupOffset> offset = std::nullopt) {
  return {.group = {},
          .member = {},
          .ticket = kTicket,
          .generation = Generation{generation},
          .offset = offset};
}
CoordinatorEffects::StepDown step_down(std::uint64_t generation) {
  return {.group = {}, .member = {}, .ticket = kTicket, .generation = Generation{generation}};
}
CoordinatorEffects::Inform inform(std::uint64_t generation) {
  return {.group = {}, .member = {}, .ticket = kTicket, .generation = Generation{generation}};
}
SeatUpdate told(bool active, bool stepping_down, std::uint64_t generation) {
  return {.active = active, .stepping_down = stepping_down, .generation = Generation{generation}};
}

class SeatTest : public ::testing::Test {
 protected:
  static Seat new_seat(bool ask_offset) {
    return Seat({.ticket = kTicket,
                 .ask_offset = ask_offset,
                 .handover_timeout = limits::kHandoverTimeout});
  }
  Seat seat_ = new_seat(false);
  Seat asking_ = new_seat(true);
};

TEST_F(SeatTest, ActivateDeliversFromTheStoredOffset) {
  const SeatActions actions = seat_.on(activate(3, GroupOffset{42}), kNow);
  EXPECT_EQ(actions.update, told(true, false, 3));
  EXPECT_TRUE(actions.start_delivery);
  EXPECT_EQ(actions.from, GroupOffset{42});
  EXPECT_EQ(seat_.epoch(), Generation{3});
}

TEST_F(SeatTest, ActivateWithoutAStoredOffsetLeavesItToTheStart) {
  const SeatActions actions = seat_.on(activate(3), kNow);
  EXPECT_TRUE(actions.start_delivery);
  EXPECT_EQ(actions.from, std::nullopt);
}

TEST_F(SeatTest, AKnownActivateChangesNothingWhileDeliveryRuns) {
  seat_.on(activate(3), kNow);
  EXPECT_TRUE(seat_.on(activate(3, GroupOffset{9}), kNow).empty());
  EXPECT_TRUE(seat_.delivering());
}

TEST_F(SeatTest, AnOldActivateIsIgnored) {
  seat_.on(activate(3), kNow);
  seat_.on(step_down(4), kNow);
  EXPECT_TRUE(seat_.on(activate(3), kNow).empty());
  EXPECT_FALSE(seat_.delivering());
}

// A client may use the id of a subscription again; a message for the former one must not make the
// new one active.
TEST_F(SeatTest, WhatWasSaidToAnotherTicketIsIgnored) {
  CoordinatorEffects::Activate other = activate(3);
  other.ticket = Ticket{6};
  EXPECT_TRUE(seat_.on(other, kNow).empty());
  seat_.on(activate(4), kNow);
  CoordinatorEffects::StepDown stale = step_down(5);
  stale.ticket = Ticket{6};
  EXPECT_TRUE(seat_.on(stale, kNow).empty());
  CoordinatorEffects::Inform gone = inform(6);
  gone.ticket = Ticket{6};
  EXPECT_TRUE(seat_.on(gone).empty());
  EXPECT_TRUE(seat_.delivering());
}

TEST_F(SeatTest, StepDownStopsAtOnceAndAsksTheClient) {
  seat_.on(activate(3), kNow);
  const SeatActions actions = seat_.on(step_down(4), kNow);
  EXPECT_TRUE(actions.stop_delivery);
  EXPECT_EQ(actions.update, told(false, true, 4));
  EXPECT_EQ(actions.reply, std::nullopt);
  EXPECT_EQ(seat_.client_replied(Generation{4}, {}).reply, Generation{4});
  // The epoch stays what the application was given: offsets may still be on their way with it.
  EXPECT_EQ(seat_.epoch(), Generation{3});
}

TEST_F(SeatTest, AReplyToAnotherGenerationIsIgnored) {
  seat_.on(activate(3), kNow);
  seat_.on(step_down(4), kNow);
  EXPECT_TRUE(seat_.client_replied(Generation{3}, {}).empty());
  EXPECT_TRUE(seat_.client_replied(Generation{5}, {}).empty());
  EXPECT_EQ(seat_.phase(), Seat::Phase::stepping_down);
}

// A bug seen in another broker: such a reply restarted delivery, at the offset of the subscribe.
TEST_F(SeatTest, ALateReplyToAnOldStepDownStartsNothing) {
  seat_.on(activate(3), kNow);
  seat_.on(step_down(4), kNow);
  seat_.on(activate(6), kNow);
  seat_.on(step_down(7), kNow);
  EXPECT_TRUE(seat_.client_replied(Generation{4}, GroupOffset{0}).empty());
  EXPECT_EQ(seat_.client_replied(Generation{7}, {}).reply, Generation{7});
  EXPECT_TRUE(seat_.client_replied(Generation{7}, {}).empty());
}

TEST_F(SeatTest, ARepeatedStepDownIsAnsweredAgainWithoutTheClient) {
  seat_.on(activate(3), kNow);
  seat_.on(step_down(4), kNow);
  EXPECT_TRUE(seat_.on(step_down(4), kNow).empty());  // The client is still busy.
  seat_.client_replied(Generation{4}, {});
  const SeatActions actions = seat_.on(step_down(4), kNow);
  EXPECT_EQ(actions.reply, Generation{4});
  EXPECT_EQ(actions.update, std::nullopt);
}

// Both the Activate and the StepDown after it were lost; the StepDown is sent again.
TEST_F(SeatTest, AStepDownForOneThatNeverHeardOfItsSeatIsAnsweredAtOnce) {
  const SeatActions actions = seat_.on(step_down(4), kNow);
  EXPECT_EQ(actions.reply, Generation{4});
  EXPECT_EQ(actions.update, std::nullopt);
  EXPECT_EQ(seat_.on(step_down(4), kNow).reply, Generation{4});
  EXPECT_TRUE(seat_.on(activate(3), kNow).empty());
}

TEST_F(SeatTest, SelfFencingStopsAndTells) {
  seat_.on(activate(3), kNow);
  const SeatActions actions = seat_.self_fence();
  EXPECT_TRUE(actions.stop_delivery);
  EXPECT_EQ(actions.update, told(false, false, 3));
  EXPECT_TRUE(seat_.self_fence().empty());
}

TEST_F(SeatTest, TheSameActivateStartsAgainAfterSelfFencing) {
  seat_.on(activate(3, GroupOffset{5}), kNow);
  seat_.self_fence();
  const SeatActions actions = seat_.on(activate(3, GroupOffset{8}), kNow);
  EXPECT_EQ(actions.update, told(true, false, 3));
  EXPECT_TRUE(actions.start_delivery);
  EXPECT_EQ(actions.from, GroupOffset{8});
}

TEST_F(SeatTest, AFencedSeatStillAsksItsClientToStepDown) {
  seat_.on(activate(3), kNow);
  seat_.self_fence();
  const SeatActions actions = seat_.on(step_down(4), kNow);
  EXPECT_FALSE(actions.stop_delivery);
  EXPECT_EQ(actions.update, told(false, true, 4));
}

TEST_F(SeatTest, AWaitingSeatHasNothingToFence) { EXPECT_TRUE(seat_.self_fence().empty()); }

TEST_F(SeatTest, InformLeavesAFencedSeatWaitingWithoutAWord) {
  seat_.on(activate(3), kNow);
  seat_.self_fence();
  EXPECT_TRUE(seat_.on(inform(5)).empty());
  EXPECT_TRUE(seat_.on(activate(3), kNow).empty());
  EXPECT_TRUE(seat_.on(activate(6), kNow).start_delivery);
}

TEST_F(SeatTest, InformStopsWhoeverStillDelivers) {
  seat_.on(activate(3), kNow);
  const SeatActions actions = seat_.on(inform(5));
  EXPECT_TRUE(actions.stop_delivery);
  EXPECT_EQ(actions.update, told(false, false, 5));
}

TEST_F(SeatTest, WithAskOffsetTheClientSaysWhereToBegin) {
  const SeatActions asked = asking_.on(activate(3, GroupOffset{5}), kNow);
  EXPECT_EQ(asked.update, told(true, false, 3));
  EXPECT_FALSE(asked.start_delivery);
  const SeatActions begun = asking_.client_replied(Generation{3}, GroupOffset{17});
  EXPECT_TRUE(begun.start_delivery);
  EXPECT_EQ(begun.from, GroupOffset{17});
  EXPECT_EQ(asking_.deadline(), Instant::never());
}

TEST_F(SeatTest, WithAskOffsetAReplyWithoutOneMeansTheStoredOne) {
  asking_.on(activate(3, GroupOffset{5}), kNow);
  EXPECT_EQ(asking_.client_replied(Generation{3}, {}).from, GroupOffset{5});
}

TEST_F(SeatTest, WithAskOffsetAStepDownOvertakesTheReply) {
  asking_.on(activate(3), kNow);
  EXPECT_EQ(asking_.on(step_down(4), kNow).update, told(false, true, 4));
  EXPECT_TRUE(asking_.client_replied(Generation{3}, GroupOffset{17}).empty());
  EXPECT_EQ(asking_.client_replied(Generation{4}, {}).reply, Generation{4});
}

TEST_F(SeatTest, WithAskOffsetTheQuestionIsAskedAgainAfterSelfFencing) {
  asking_.on(activate(3), kNow);
  EXPECT_EQ(asking_.self_fence().update, told(false, false, 3));
  EXPECT_TRUE(asking_.client_replied(Generation{3}, GroupOffset{17}).empty());
  EXPECT_EQ(asking_.on(activate(3), kNow).update, told(true, false, 3));
  EXPECT_TRUE(asking_.client_replied(Generation{3}, GroupOffset{17}).start_delivery);
}

TEST_F(SeatTest, Scenario58_AClientThatNeverRepliesIsEnded) {
  seat_.on(activate(3), kNow);
  EXPECT_EQ(seat_.deadline(), Instant::never());
  seat_.on(step_down(4), kNow);
  const Instant deadline = kNow + limits::kHandoverTimeout;
  EXPECT_EQ(seat_.deadline(), deadline);
  EXPECT_TRUE(seat_.expire(deadline + Duration{-1}).empty());
  const SeatActions actions = seat_.expire(deadline);
  ASSERT_TRUE(actions.ended.has_value());
  EXPECT_EQ(actions.ended->code, Errc::handover_timeout);
  EXPECT_EQ(actions.ended->text,
            "the client did not answer the request to step down (generation 4) within 10s");
  EXPECT_TRUE(seat_.client_replied(Generation{4}, {}).empty());
  EXPECT_TRUE(seat_.on(activate(9), deadline).empty());
  EXPECT_TRUE(seat_.on(step_down(10), deadline).empty());
  EXPECT_TRUE(seat_.expire(Instant::never()).empty());
}

TEST_F(SeatTest, AnAnswerInTimeStopsTheClock) {
  seat_.on(activate(3), kNow);
  seat_.on(step_down(4), kNow);
  seat_.client_replied(Generation{4}, {});
  EXPECT_EQ(seat_.deadline(), Instant::never());
}

// Otherwise a client that hangs before it has begun would hold the seat for ever.
TEST_F(SeatTest, AClientThatNeverSaysWhereToBeginIsEnded) {
  asking_.on(activate(3), kNow);
  const SeatActions actions = asking_.expire(kNow + limits::kHandoverTimeout);
  ASSERT_TRUE(actions.ended.has_value());
  EXPECT_EQ(actions.ended->text,
            "the client did not answer where to begin (generation 3) within 10s");
}

}  // namespace
}  // namespace baton
