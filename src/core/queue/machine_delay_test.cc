// Delayed messages and dedup ids, in memory and as rows.

#include <gtest/gtest.h>

#include "core/queue/machine_operate_fixture.h"

namespace baton::machine_test {
namespace {

TEST(MachineDelay, FarDelaysAreRowsOnlyAndComeIntoMemoryBeforeTheirTime) {
  World world;
  world.create("q");
  for (int i = 0; i < 100; ++i) world.send("q", delayed("far", hours{1} + milliseconds{i}));
  EXPECT_EQ(world.machine().payload_bytes(), 0U);
  EXPECT_EQ(world.spilled_messages, 100U);
  EXPECT_EQ(world.store().table(tables::kDelayed).size(), 100U);
  const ConsumerNumber alice = world.attach("q", "alice");
  world.advance_in_steps(hours{1} - Duration{1});
  EXPECT_GT(world.machine().payload_bytes(), 0U);
  EXPECT_TRUE(world.take(alice).empty());
  world.advance_in_steps(milliseconds{101});
  EXPECT_EQ(world.take(alice).size(), 100U);
}

// A refill of delayed rows is read first and brought later: a message delayed in between must not
// be lost.
TEST(MachineDelay, WhatIsDelayedWhileARefillIsOnItsWayComesInTime) {
  World world;
  world.create("q");
  world.send("q", delayed("far", seconds{100}));
  const ConsumerNumber alice = world.attach("q", "alice");
  world.refills_by_hand = true;
  world.advance(seconds{50});
  ASSERT_EQ(world.refills_wanted(), 1U);
  world.read_refills();
  // Beyond the present horizon, and before the next one.
  world.send("q", delayed("between", seconds{45}));
  world.bring_refills();
  world.refills_by_hand = false;
  world.advance_in_steps(seconds{45});
  EXPECT_EQ(world.take_payloads(alice), (Payloads{"between"}));
  world.advance_in_steps(seconds{5});
  EXPECT_EQ(world.take_payloads(alice), (Payloads{"far"}));
  EXPECT_EQ(world.stats("q").delayed, 0U);
}

// Time may jump while rows are read: messages in memory must not overtake rows that are due before
// them.
TEST(MachineDelay, OrderIsKeptBetweenMemoryAndRowsThatAreStillToCome) {
  World world;
  world.create("q");
  world.send("q", delayed("first", seconds{100}));
  const ConsumerNumber alice = world.attach("q", "alice");
  world.refills_by_hand = true;
  world.advance(seconds{50});
  world.send("q", delayed("second", seconds{51}));
  world.advance(seconds{52});
  EXPECT_TRUE(world.take(alice).empty());
  world.refills_by_hand = false;
  EXPECT_EQ(world.take_payloads(alice), (Payloads{"first", "second"}));
}

// A due deadline that does nothing would keep a shard awake.
TEST(MachineDelay, TheHorizonsDeadlineAsksForRowsWhenItComes) {
  World world;
  world.create("q");
  world.send("q", delayed("far", hours{1}));
  world.refills_by_hand = true;
  const Instant deadline = world.machine().next_deadline();
  ASSERT_LT(deadline, world.now() + hours{1});
  world.machine().expire(deadline, 10);
  EXPECT_GT(world.machine().next_deadline(), deadline);
}

TEST(MachineDedup, BeyondTheLimitAMessageWithADedupIdIsRefusedAndOneWithoutIsNot) {
  World world;
  QueueSettingsPatch settings;
  settings.dedup_ids_max = 2;
  world.create("q", settings);
  world.send("q", unique("m", "a"));
  world.send("q", unique("m", "b"));
  const EnqueueOutcome refused = world.send("q", unique("m", "c"));
  ASSERT_TRUE(refused.error.has_value());
  EXPECT_EQ(refused.error->code, Errc::dedup_full);
  EXPECT_TRUE(world.send("q", unique("m", "a")).duplicate);
  EXPECT_FALSE(world.send("q", message("m")).error.has_value());
  world.advance(minutes{5});
  EXPECT_FALSE(world.send("q", unique("m", "c")).error.has_value());
  EXPECT_LE(world.stats("q").dedup_ids, 2U);
}

TEST(MachineDedup, EachQueueHasItsOwnIds) {
  World world;
  world.create("a");
  world.create("b");
  EXPECT_FALSE(world.send("a", unique("m", "id")).duplicate);
  EXPECT_FALSE(world.send("b", unique("m", "id")).duplicate);
}

TEST(MachineDedup, ForgottenIdsLeaveTheStore) {
  World world;
  world.create("q");
  for (int i = 0; i < 10; ++i) world.send("q", unique("m", "old" + std::to_string(i)));
  world.checkpoint();
  EXPECT_EQ(world.store().table(tables::kDedup).size(), 10U);
  world.advance(minutes{6});
  for (int i = 0; i < 10; ++i) world.send("q", unique("m", "new" + std::to_string(i)));
  world.checkpoint();
  EXPECT_EQ(world.store().table(tables::kDedup).size(), 10U);
}

}  // namespace
}  // namespace baton::machine_test
