#include "core/workers/machine.h"

#include <chrono>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/workers/fake_group.h"

namespace baton::partition {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

using Group = FakeGroup;
using Partitions = std::set<std::uint32_t>;

TEST(Machine, TheFirstWorkerTakesEverything) {
  Group group(4);
  EXPECT_EQ(group.join("w1").at_work, (Partitions{0, 1, 2, 3}));
}

TEST(Machine, AJoinMovesTheHigherHalfWithoutTimePassing) {
  Group group(4);
  const auto& first = group.join("w1");
  const auto& second = group.join("w2");
  EXPECT_EQ(first.at_work, (Partitions{0, 1}));
  EXPECT_EQ(second.at_work, (Partitions{2, 3}));
}

TEST(Machine, ALeaveHandsOverWithoutTimePassing) {
  Group group(4);
  auto& first = group.join("w1");
  const auto& second = group.join("w2");
  first.machine->leave(true, group.now);
  group.settle();
  EXPECT_TRUE(first.ended && first.end.has_value());
  EXPECT_EQ(second.at_work, (Partitions{0, 1, 2, 3}));
}

TEST(Machine, NothingIsHandedOverBeforeTheWorkHasStopped) {
  Group group(4);
  auto& first = group.join("w1");
  first.obedient = false;
  const auto& second = group.join("w2");
  EXPECT_EQ(first.revoking, (std::vector<std::uint32_t>{2, 3}));
  group.pass(seconds(20));
  EXPECT_EQ(second.at_work, Partitions{});
  first.machine->stopped(2, group.now);
  group.settle();
  group.pass(milliseconds(100));  // It waits this long for the other one.
  EXPECT_EQ(second.at_work, (Partitions{2}));
  group.pass(seconds(10));  // The time to drain is over: it is made to stop.
  EXPECT_EQ(second.at_work, (Partitions{2, 3}));
}

TEST(Machine, ManyHandOverOneAfterAnother) {
  Group group(6);
  auto& first = group.join("w1");
  auto& second = group.join("w2");
  first.obedient = second.obedient = false;
  const auto& third = group.join("w3");
  second.machine->stopped(second.revoking.back(), group.now);
  group.settle();
  EXPECT_EQ(third.at_work, Partitions{});
  group.pass(milliseconds(5));  // The first one's turn is over.
  EXPECT_EQ(third.at_work, (Partitions{second.revoking.back()}));
  first.machine->stopped(first.revoking.back(), group.now);
  group.settle();
  EXPECT_EQ(third.at_work.size(), 2U);
}

// The second planner's plan would be out of date as soon as it is written.
TEST(Machine, ThePlannersInReserveWaitForAQuietMoment) {
  Group group(4);
  auto& first = group.join("w1");
  group.join("w2");
  first.running = false;
  const auto& third = group.join("w3");
  group.pass(milliseconds(30));
  const auto& fourth = group.join("w4");
  group.pass(milliseconds(49));
  EXPECT_EQ(third.at_work.size() + fourth.at_work.size(), 0U);
  group.pass(milliseconds(1 + 5));  // And the turn of the one that stands still.
  EXPECT_EQ(third.at_work.size() + fourth.at_work.size(), 1U);
}

TEST(Machine, OfAKeyThatChangedTwiceOnlyTheNewestStateIsRead) {
  Group group(4);
  auto& member = group.join("w1");
  const Entry entry = group.stored("g.g.a");
  using enum WatchEvent::Kind;
  const std::vector<WatchEvent> events{
      {member.watch, put, {entry.key, "garbage", entry.revision + 1}},
      {member.watch, put, {entry.key, entry.value, entry.revision + 2}},
      {member.watch - 1, put, {entry.key, "of a former watch", entry.revision + 3}}};
  member.machine->on_watch(events, group.now);
  group.settle();
  EXPECT_EQ(member.machine->view().chunks().at(0).revision, entry.revision + 2);
  EXPECT_EQ(member.notes.size(), 1U);  // That it joined; nothing about garbage.
}

TEST(Machine, AKilledWorkerIsReplacedAfterItsLease) {
  Group group(4);
  auto& first = group.join("w1");
  const auto& second = group.join("w2");
  first.running = false;
  group.pass(seconds(5) - milliseconds(1250));
  EXPECT_EQ(second.at_work, (Partitions{2, 3}));
  group.pass(milliseconds(1250 + 50 + 50 + 100));  // 1 % more than the lease, and a rank's delay.
  EXPECT_EQ(second.at_work, (Partitions{0, 1, 2, 3}));
}

TEST(Machine, AWorkerThatStoodStillDoesNotActOnceItWakes) {
  Group group(4);
  auto& first = group.join("w1");
  const auto& second = group.join("w2");
  first.running = false;
  group.pass(seconds(6));
  EXPECT_FALSE(first.machine->may_act(0, group.now));
  first.running = true;
  first.machine->tick(group.now);
  group.settle();
  group.pass(seconds(2));
  EXPECT_EQ(first.at_work.size(), 2U);  // It has joined anew, in another life.
  EXPECT_EQ(second.at_work.size(), 2U);
}

TEST(Machine, WithoutTheStoreItStopsAtItsDeadlineAndGoesOnAfterwards) {
  Group group(4);
  auto& first = group.join("w1");
  group.away = true;
  const Instant deadline = first.machine->deadline();
  group.pass(deadline - group.now - milliseconds(1));
  EXPECT_TRUE(first.machine->may_act(0, group.now));
  group.pass(milliseconds(2));
  EXPECT_FALSE(first.machine->may_act(0, group.now));
  EXPECT_EQ(first.at_work, Partitions{});
  group.pass(seconds(60));
  group.away = false;
  group.pass(seconds(2));
  EXPECT_EQ(first.at_work, (Partitions{0, 1, 2, 3}));
}

TEST(Machine, FencedItGoesOnWithoutTheStore) {
  Group group(4);
  Settings settings = group.settings("w1");
  settings.fenced = true;
  auto& first = group.join(settings);
  group.away = true;
  group.pass(seconds(60));
  EXPECT_TRUE(first.machine->may_act(0, group.now));
  EXPECT_EQ(first.at_work.size(), 4U);
}

class Hints : public ::testing::TestWithParam<bool> {};

TEST_P(Hints, ABrokenConnectionIsReasonEnoughIfTheSinkChecksEpochs) {
  const bool fenced = GetParam();
  Group group(4);
  Settings settings = group.settings("w1");
  settings.fenced = fenced;
  auto& first = group.join(settings);
  settings.worker = "w2";
  const auto& second = group.join(settings);
  group.pass(seconds(2));
  first.running = false;
  group.show({.watch = 0,
              .kind = WatchEvent::Kind::session_lost,
              .entry = {session_key("g", first.machine->session()), "", 0}});
  group.settle();
  group.pass(milliseconds(99));
  EXPECT_EQ(second.at_work.size(), 2U);
  group.pass(milliseconds(102));
  EXPECT_EQ(second.at_work.size(), fenced ? 4U : 2U);
}
INSTANTIATE_TEST_SUITE_P(Fenced, Hints, ::testing::Bool());

TEST(Machine, OneThatReturnsAfterAHintIsNotEvicted) {
  Group group(4);
  Settings settings = group.settings("w1");
  settings.fenced = true;
  auto& first = group.join(settings);
  settings.worker = "w2";
  group.join(settings);
  group.pass(seconds(2));
  const SessionId before = first.machine->session();
  group.show({.watch = 0,
              .kind = WatchEvent::Kind::session_lost,
              .entry = {session_key("g", before), "", 0}});
  // Its own side of the connection broke as well: it renews at once.
  first.machine->on_watch({.watch = first.watch, .kind = WatchEvent::Kind::broken, .entry = {}},
                          group.now);
  group.settle();
  group.pass(seconds(10));
  EXPECT_EQ(first.machine->session(), before);
  EXPECT_EQ(first.at_work.size(), 2U);
}

TEST(Machine, AStaticIdFindsItsPartitionsAgain) {
  Group group(4);
  Settings settings = group.settings("w1");
  settings.static_id = true;
  auto& first = group.join(settings);
  auto& second = group.join("w2");
  first.machine->leave(false, group.now);
  group.settle();
  EXPECT_TRUE(first.ended && first.end.has_value());
  group.pass(seconds(20));
  EXPECT_EQ(second.at_work, (Partitions{2, 3}));
  const auto& again = group.join(settings);
  EXPECT_EQ(again.at_work, (Partitions{0, 1}));
  EXPECT_TRUE(second.revoking.empty());
}

TEST(Machine, AStaticIdMayChangeItsMindAndLeaveForGood) {
  Group group(4);
  Settings settings = group.settings("w1");
  settings.static_id = true;
  auto& first = group.join(settings);
  const auto& second = group.join("w2");
  first.obedient = false;
  first.machine->leave(false, group.now);
  group.settle();
  first.machine->leave(true, group.now);
  group.settle();
  for (const std::uint32_t partition : first.revoking) {
    first.machine->stopped(partition, group.now);
  }
  group.settle();
  EXPECT_TRUE(first.ended && first.end.has_value());
  EXPECT_EQ(second.at_work.size(), 4U);
}

TEST(Machine, OneThatLeavesOverGarbageDoesNotHammerTheStore) {
  Group group(4);
  auto& first = group.join("w1");
  group.put("g.g.a", "garbage");
  first.machine->leave(true, group.now);
  group.settle();
  const std::uint64_t before = group.requests;
  group.pass(seconds(10));
  EXPECT_LT(group.requests - before, 100U);
}

TEST(Machine, AStaticIdThatDoesNotReturnIsReplacedAfterTheGrace) {
  Group group(4);
  Settings settings = group.settings("w1");
  settings.static_id = true;
  auto& first = group.join(settings);
  const auto& second = group.join("w2");
  first.machine->leave(false, group.now);
  group.settle();
  group.pass(seconds(29));
  EXPECT_EQ(second.at_work.size(), 2U);
  group.pass(seconds(2));
  EXPECT_EQ(second.at_work.size(), 4U);
}

TEST(Machine, TwoWorkersUnderOneStaticId) {
  Group group(4);
  Settings settings = group.settings("w1");
  settings.static_id = true;
  const auto& first = group.join(settings);
  const auto& second = group.join(settings);
  group.pass(seconds(10));
  ASSERT_TRUE(second.ended && !second.end.has_value());
  EXPECT_EQ(second.end.error().code, Errc::already_exists);
  EXPECT_EQ(first.at_work.size(), 4U);
}

TEST(Machine, AStaticIdFencedTakesOverFromItsFormerLifeAtOnce) {
  Group group(4);
  Settings settings = group.settings("w1");
  settings.static_id = true;
  settings.fenced = true;
  auto& first = group.join(settings);
  first.running = false;
  const auto& second = group.join(settings);
  EXPECT_EQ(second.at_work.size(), 4U);
  first.running = true;  // It was alive after all: one of them ends.
  group.pass(seconds(5));
  ASSERT_TRUE(first.ended && !first.end.has_value());
  EXPECT_EQ(first.end.error().code, Errc::already_exists);
  EXPECT_EQ(second.at_work.size(), 4U);
}

TEST(Machine, AnotherNumberOfPartitionsIsAnError) {
  Group group(4);
  group.join("w1");
  Settings settings = group.settings("w2");
  settings.partitions = 8;
  const auto& second = group.join(settings);
  ASSERT_TRUE(second.ended && !second.end.has_value());
  EXPECT_EQ(second.end.error().code, Errc::failed_precondition);
  EXPECT_TRUE(second.end.error().text.contains("has 4 partitions, and this worker was told 8"));
}

TEST(Machine, AnAssignmentThatCannotBeReadIsAnErrorAtTheStart) {
  Group group(4);
  group.put("g.g.a", "garbage");
  const auto& first = group.join("w1");
  ASSERT_TRUE(first.ended && !first.end.has_value());
  EXPECT_TRUE(first.end.error().text.contains("cannot be read"));
}

TEST(Machine, GarbageThatComesLaterChangesNothing) {
  Group group(4);
  const auto& first = group.join("w1");
  group.put("g.g.m.w7.1", "garbage");
  group.put("g.g.a", "garbage");
  group.put("g.g.unknown", "garbage");
  group.pass(seconds(20));
  EXPECT_EQ(first.at_work.size(), 4U);
  EXPECT_TRUE(first.machine->may_act(0, group.now));
  EXPECT_GE(first.notes.size(), 3U);
  EXPECT_LT(first.notes.size(), 10U);  // It does not complain for ever.
}

TEST(Machine, TheKeysOfTheDeadAreSweptAway) {
  Group group(4);
  auto& first = group.join("w1");
  group.join("w2");
  first.running = false;
  group.pass(seconds(60));
  const Reply reply =
      group.store({.id = 0, .kind = Request::Kind::list, .key = "g.g.m.", .value = {}});
  EXPECT_EQ(reply.entries.size(), 1U);
}

TEST(Machine, MoreWorkersThanPartitions) {
  Group group(1);
  const auto& first = group.join("w1");
  const auto& second = group.join("w2");
  group.pass(seconds(10));
  EXPECT_EQ(first.at_work.size() + second.at_work.size(), 1U);
}

TEST(Machine, AReclaimGraceIsWaitedFor) {
  Group group(1);
  Settings settings = group.settings("w1");
  settings.timing.reclaim_grace = seconds(1);
  auto& first = group.join(settings);
  first.at_work.clear();
  first.machine->stopped(0, group.now);  // It stopped by itself.
  group.settle();
  group.pass(milliseconds(999));
  EXPECT_EQ(first.at_work, Partitions{});
  group.pass(milliseconds(2));
  EXPECT_EQ(first.at_work, (Partitions{0}));
}

}  // namespace
}  // namespace baton::partition
