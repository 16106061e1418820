#include "sdk/stream/partition_seat.h"

#include <gtest/gtest.h>

#include "sdk/base/errors.h"

namespace baton::client {
namespace {

using std::chrono::milliseconds;
using Kind = SeatTask::Kind;
using Store = PartitionSeat::Store;
using Reply = PartitionSeat::Reply;
using Time = PartitionSeat::Time;

constexpr Time kStart{std::chrono::seconds{100}};
constexpr std::uint64_t kSubscription = 5;

PartitionSeat::Update active(std::uint64_t generation, std::int64_t offset) {
  return {.active = true, .generation = generation, .offset = Offset{offset}};
}
Store store(std::uint64_t epoch, std::int64_t offset) {
  return {.epoch = Epoch{epoch}, .offset = Offset{offset}};
}
PartitionSeat::Update step_down(std::uint64_t generation) {
  return {.stepping_down = true, .generation = generation};
}

class SingleActive : public testing::Test {
 protected:
  SingleActive() { seat_.started(kSubscription); }

  bool deliver(std::uint64_t epoch, std::int64_t next_offset) {
    return seat_.deliver({.subscription = kSubscription,
                          .epoch = Epoch{epoch},
                          .next_offset = Offset{next_offset},
                          .cost = {.batches = 1, .bytes = 100}});
  }
  /// Runs the next task, which must be of this kind.
  SeatTask run(Kind kind, std::uint64_t records = 1, Time now = kStart) {
    EXPECT_TRUE(seat_.has_task());
    SeatTask task = seat_.begin();
    EXPECT_EQ(task.kind, kind);
    task.records = records;
    seat_.finish(task, now);
    return task;
  }
  /// Takes the seat under `epoch` at `offset`, with the tasks that belong to it.
  void take(std::uint64_t epoch, std::int64_t offset) {
    seat_.update(active(epoch, offset));
    run(Kind::activate);
    EXPECT_EQ(seat_.next_store(), store(epoch, offset));
    EXPECT_TRUE(seat_.stored(Offset{offset}, std::nullopt));
  }

  PartitionSeat seat_{
      PartitionNumber{0},
      {.single_active = true,
       .has_group = true,
       .has_callbacks = true,
       .storing = {.automatic = true, .records = 100, .interval = milliseconds{50}}},
      {}};
};

// The promise of the hand-over: finish, store, be confirmed, and only then reply.
TEST_F(SingleActive, AStepDownIsAnsweredAfterTheOffsetIsConfirmed) {
  take(3, 10);
  ASSERT_TRUE(deliver(3, 12));
  ASSERT_TRUE(deliver(3, 14));
  SeatTask handler = seat_.begin();
  ASSERT_EQ(handler.kind, Kind::handle);

  seat_.update(step_down(4));

  EXPECT_FALSE(seat_.has_task());  // One handler runs, and the batch behind it was dropped.
  EXPECT_EQ(seat_.next_reply(), std::nullopt);
  EXPECT_EQ(seat_.next_store(), std::nullopt);
  seat_.finish(handler, kStart);
  EXPECT_EQ(seat_.next_reply(), std::nullopt);
  run(Kind::step_down);
  EXPECT_EQ(seat_.next_reply(), std::nullopt);
  EXPECT_EQ(seat_.next_store(), store(3, 12));
  EXPECT_EQ(seat_.next_reply(), std::nullopt);
  EXPECT_TRUE(seat_.stored(Offset{12}, std::nullopt));
  EXPECT_EQ(seat_.next_reply(), (Reply{4, std::nullopt}));
  EXPECT_EQ(seat_.next_reply(), std::nullopt);
  EXPECT_FALSE(seat_.is_ours());
}

// The group may have no offset at all: the successor would begin at its own "next".
TEST_F(SingleActive, TheOffsetIsStoredWhenTheSeatIsTaken) {
  seat_.update(active(1, 7));
  EXPECT_EQ(seat_.next_store(), store(1, 7));
  EXPECT_EQ(seat_.next_store(), std::nullopt);
}

// Where the broker does not say where delivery begins, the first batch does.
TEST_F(SingleActive, AStepDownBeforeTheFirstHandlerStoresWhereItBegan) {
  seat_.update({.active = true, .generation = 1});
  run(Kind::activate);
  ASSERT_TRUE(seat_.deliver({.subscription = kSubscription,
                             .epoch = Epoch{1},
                             .first_offset = Offset{40},
                             .next_offset = Offset{42}}));
  seat_.update(step_down(2));
  run(Kind::step_down);
  EXPECT_EQ(seat_.next_store(), store(1, 40));
}

TEST_F(SingleActive, AStepDownWithNothingHandledIsAnsweredAtOnce) {
  take(1, 7);
  seat_.update(step_down(2));
  run(Kind::step_down);
  EXPECT_EQ(seat_.next_store(), std::nullopt);  // 7 is stored already.
  EXPECT_EQ(seat_.next_reply(), (Reply{2, std::nullopt}));
}

TEST_F(SingleActive, AnOffsetThatCannotBeStoredDoesNotHoldUpTheGroup) {
  take(1, 7);
  deliver(1, 8);
  run(Kind::handle);
  seat_.update(step_down(2));
  run(Kind::step_down);
  ASSERT_EQ(seat_.next_store(), store(1, 8));
  seat_.stored(Offset{8}, Error{Errc::internal, "disk"});
  EXPECT_EQ(seat_.next_reply(), (Reply{2, std::nullopt}));
}

TEST_F(SingleActive, BatchesForASeatThatIsGoneAreDroppedAndTheirCreditGivenBack) {
  EXPECT_FALSE(deliver(1, 5));  // Never had the seat.
  take(1, 7);
  EXPECT_TRUE(deliver(1, 9));
  EXPECT_FALSE(deliver(2, 9));  // Of another epoch.
  seat_.update(step_down(2));
  EXPECT_FALSE(deliver(1, 11));
  EXPECT_EQ(seat_.take_credit(), (CreditAmount{.batches = 4, .bytes = 400}));
}

// Neither a repetition after a break nor an update that a newer one overtook may restart delivery.
TEST_F(SingleActive, ARepeatedOrOldUpdateChangesNothing) {
  take(3, 10);
  deliver(3, 12);
  seat_.update(active(3, 10));
  seat_.update(active(2, 0));
  EXPECT_EQ(seat_.begin().batch.next_offset, Offset{12});
  seat_.update(step_down(4));
  seat_.update(step_down(4));
  EXPECT_FALSE(seat_.has_task());
}

TEST_F(SingleActive, CallbacksAlternateWhateverOvertakesThem) {
  seat_.update(active(1, 0));
  seat_.update(step_down(2));  // Before the application was told of the seat.
  EXPECT_FALSE(seat_.has_task());
  seat_.next_store();
  seat_.stored(Offset{0}, std::nullopt);
  EXPECT_EQ(seat_.next_reply(), (Reply{2, std::nullopt}));

  take(3, 0);
  seat_.update({.generation = 3});  // Lost,
  seat_.update(active(5, 0));       // and back.
  run(Kind::step_down);
  run(Kind::activate);
  EXPECT_FALSE(seat_.has_task());
}

// The node's lease ran out and came back: the generation shows that no other consumer was active.
TEST_F(SingleActive, TheSameEpochAgainDoesNotHandOutTwice) {
  take(3, 10);
  deliver(3, 14);
  SeatTask handler = seat_.begin();
  seat_.update({.generation = 3});
  seat_.update(active(3, 10));
  seat_.finish(handler, kStart);
  run(Kind::step_down);
  run(Kind::activate);

  ASSERT_TRUE(deliver(3, 16));
  EXPECT_EQ(seat_.begin().floor.offset, Offset{14});
}

TEST_F(SingleActive, ANewEpochBeginsWhereTheBrokerSaysAndForgetsTheOldHandler) {
  take(3, 10);
  deliver(3, 14);
  SeatTask handler = seat_.begin();
  seat_.lost();
  seat_.started(kSubscription + 1);
  seat_.update(active(5, 10));
  EXPECT_FALSE(seat_.has_task());  // The old handler still runs.
  seat_.finish(handler, kStart);
  EXPECT_EQ(seat_.take_credit(), CreditAmount{});  // The credit was of another subscription.
  run(Kind::step_down);
  run(Kind::activate);
  EXPECT_EQ(seat_.next_store(), store(5, 10));
  ASSERT_TRUE(deliver(5, 14));
  EXPECT_EQ(seat_.begin().floor.offset, Offset{10});
}

TEST_F(SingleActive, AnAnswerToAnOlderSeatsStoreIsNotTakenForTheNewOnes) {
  take(3, 10);
  deliver(3, 14);
  run(Kind::handle, 100);
  ASSERT_EQ(seat_.next_store(), store(3, 14));
  seat_.update({.generation = 3});
  seat_.update(active(5, 14));
  ASSERT_EQ(seat_.next_store(), store(5, 14));

  EXPECT_FALSE(seat_.stored(Offset{14}, Error{Errc::stale_epoch, "old"}));
  EXPECT_TRUE(seat_.stored(Offset{14}, std::nullopt));
}

TEST_F(SingleActive, StoresByNumberAndByTime) {
  take(1, 0);
  deliver(1, 60);
  run(Kind::handle, 60);
  EXPECT_EQ(seat_.next_store(), std::nullopt);
  deliver(1, 120);
  run(Kind::handle, 60);
  EXPECT_EQ(seat_.next_store(), store(1, 120));
  seat_.stored(Offset{120}, std::nullopt);

  deliver(1, 121);
  run(Kind::handle, 1, kStart + milliseconds{49});
  EXPECT_EQ(seat_.next_store(), std::nullopt);
  seat_.tick(kStart + milliseconds{50});
  EXPECT_EQ(seat_.next_store(), store(1, 121));
  seat_.stored(Offset{121}, std::nullopt);
  seat_.tick(kStart + milliseconds{200});
  EXPECT_EQ(seat_.next_store(), std::nullopt);  // Nothing new.
}

TEST_F(SingleActive, OneStoreAtATimeAndTheNewestNext) {
  take(1, 0);
  const auto first = seat_.want_store({.epoch = Epoch{1}, .offset = Offset{5}});
  EXPECT_EQ(seat_.next_store(), store(1, 5));
  const auto second = seat_.want_store({.epoch = Epoch{1}, .offset = Offset{6}});
  const auto third = seat_.want_store({.epoch = Epoch{1}, .offset = Offset{7}});
  EXPECT_EQ(seat_.next_store(), std::nullopt);
  seat_.stored(Offset{5}, std::nullopt);
  EXPECT_TRUE(seat_.store_result(*first)->has_value());
  EXPECT_EQ(seat_.store_result(*second), std::nullopt);
  EXPECT_EQ(seat_.next_store(), store(1, 7));
  seat_.stored(Offset{7}, Error{Errc::stale_epoch, "gone"});
  EXPECT_EQ(seat_.store_result(*third)->error().code, Errc::stale_epoch);
}

TEST_F(SingleActive, AnOffsetOfAnotherEpochIsNotStored) {
  take(3, 10);
  EXPECT_EQ(seat_.want_store({.epoch = Epoch{2}, .offset = Offset{5}}).error().code,
            Errc::stale_epoch);
  seat_.lost();
  EXPECT_EQ(seat_.want_store({.epoch = Epoch{3}, .offset = Offset{11}}).error().code,
            Errc::stale_epoch);
}

TEST_F(SingleActive, StoppingFinishesStoresAndTellsThenIsDone) {
  take(1, 0);
  deliver(1, 5);
  deliver(1, 9);
  SeatTask handler = seat_.begin();
  seat_.stop();
  EXPECT_FALSE(seat_.is_done());
  seat_.finish(handler, kStart);
  EXPECT_FALSE(seat_.is_done());
  run(Kind::step_down);
  EXPECT_EQ(seat_.next_store(), store(1, 5));
  EXPECT_FALSE(seat_.is_done());
  seat_.stored(Offset{5}, std::nullopt);
  EXPECT_TRUE(seat_.is_done());
  EXPECT_FALSE(seat_.has_task());
}

TEST_F(SingleActive, AHandlerThatFailedStoresNothingOfItsBatch) {
  take(1, 0);
  deliver(1, 5);
  run(Kind::handle);
  deliver(1, 9);
  deliver(1, 12);
  SeatTask handler = seat_.begin();
  handler.failed = true;
  seat_.finish(handler, kStart);
  EXPECT_FALSE(seat_.has_task());
  seat_.stop();
  run(Kind::step_down);
  EXPECT_EQ(seat_.next_store(), store(1, 5));
}

TEST(AskOffset, TheAnswerIsTheReplyAndTheFloor) {
  PartitionSeat seat(PartitionNumber{0},
                     {.single_active = true, .has_group = true, .ask_offset = true}, {});
  seat.started(kSubscription);
  seat.update({.active = true, .generation = 4});
  SeatTask task = seat.begin();
  ASSERT_EQ(task.kind, Kind::activate);
  EXPECT_EQ(task.offset, kNoOffset);
  task.offset = Offset{40};
  seat.finish(task, kStart);
  EXPECT_EQ(seat.next_reply(), (Reply{4, Offset{40}}));
  EXPECT_EQ(seat.floor().offset, Offset{40});
}

TEST(EveryRecord, TheSeatComesWithTheSubscriptionAndReadingGoesOnWhereItWas) {
  PartitionSeat seat(PartitionNumber{2}, {.has_group = true}, {.offset = Offset{7}});
  EXPECT_FALSE(seat.deliver({.subscription = 1, .next_offset = Offset{9}}));
  seat.started(1);
  ASSERT_TRUE(seat.deliver({.subscription = 1, .next_offset = Offset{9}}));
  SeatTask handler = seat.begin();
  EXPECT_EQ(handler.floor.offset, Offset{7});
  seat.lost();
  EXPECT_EQ(seat.floor().offset, Offset{9});
  seat.finish(handler, kStart);
  seat.stop();
  EXPECT_FALSE(seat.is_done());  // After a reconnect the offset can be stored.
  seat.started(2);
  EXPECT_EQ(seat.next_store(), store(0, 9));
  seat.stored(Offset{9}, std::nullopt);
  EXPECT_TRUE(seat.is_done());
}

}  // namespace
}  // namespace baton::client
