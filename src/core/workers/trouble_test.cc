// Workers with contradictory settings, documents that cannot be read, a store that half works.

#include <algorithm>
#include <chrono>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "core/workers/fake_group.h"

namespace baton::partition {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

// The former life may work until its own deadline: nothing checks its epochs.
TEST(Trouble, AStaticIdFencedWaitsForAFormerLifeThatWasNot) {
  FakeGroup group(4);
  Settings settings = group.settings("w1");
  settings.static_id = true;
  auto& first = group.join(settings);
  first.running = false;
  settings.fenced = true;
  const auto& second = group.join(settings);
  ASSERT_TRUE(first.machine->may_act(0, group.now));
  EXPECT_TRUE(second.at_work.empty());
  group.pass(seconds(6));
  EXPECT_FALSE(first.machine->may_act(0, group.now));
  EXPECT_EQ(second.at_work.size(), 4U);
}

TEST(Trouble, AStaticIdFencedIsRefusedByOneThatIsNotAndLives) {
  FakeGroup group(4);
  Settings settings = group.settings("w1");
  settings.static_id = true;
  const auto& first = group.join(settings);
  settings.fenced = true;
  const auto& second = group.join(settings);
  group.pass(seconds(10));
  ASSERT_TRUE(second.ended && !second.end.has_value());
  EXPECT_EQ(second.end.error().code, Errc::already_exists);
  EXPECT_EQ(first.at_work.size(), 4U);
}

// It writes its end: otherwise the next life of the real one would wait for the end of its session.
TEST(Trouble, ADuplicateOfAStaticIdThatIsRefusedLeavesNothingBehind) {
  FakeGroup group(4);
  Settings settings = group.settings("w1");
  settings.static_id = true;
  Settings late = settings;
  late.incarnation = [] { return "9"; };  // So that the other session sorts before it.
  auto& first = group.join(late);
  const auto& second = group.join(settings);
  for (int i = 0; i < 20 && !second.ended; ++i) group.pass(milliseconds(500));
  ASSERT_TRUE(second.ended && !second.end.has_value());
  first.machine->leave(false, group.now);
  group.settle();
  ASSERT_TRUE(first.ended && first.end.has_value());
  const auto& next = group.join(settings);
  EXPECT_EQ(next.at_work.size(), 4U);
}

// Both saw a group without an assignment. The one whose count differs must not touch it.
TEST(Trouble, OfTwoThatStartTogetherWithDifferentPartitionsOneEnds) {
  FakeGroup group(4);
  Settings settings = group.settings("w1");
  auto& first = group.add(settings);
  settings.worker = "w2";
  settings.partitions = 8;
  auto& second = group.add(settings);
  group.settle();
  group.pass(seconds(1));
  ASSERT_NE(first.ended, second.ended);
  const auto& refused = first.ended ? first : second;
  const auto& stays = first.ended ? second : first;
  EXPECT_EQ(refused.end.error().code, Errc::failed_precondition);
  EXPECT_TRUE(refused.at_work.empty());
  group.pass(seconds(10));
  EXPECT_EQ(stays.at_work.size(), first.ended ? 8U : 4U);
}

// The assignment of a running group is removed: the workers that knew it write it again.
TEST(Trouble, ARemovedAssignmentIsWrittenAgainAsItWas) {
  FakeGroup group(4);
  const auto& first = group.join("w1");
  const auto& second = group.join("w2");
  const auto before = group.assignment();
  group.remove(assignment_key("g", 0));
  EXPECT_EQ(group.assignment().holdings, before.holdings);
  EXPECT_EQ(first.at_work, (std::set<std::uint32_t>{0, 1}));
  EXPECT_EQ(second.at_work, (std::set<std::uint32_t>{2, 3}));
}

TEST(Trouble, GarbageInTheSessionOfAnOwnerDoesNotKeepItsPartitions) {
  FakeGroup group(4);
  auto& first = group.join("w1");
  const auto& second = group.join("w2");
  first.running = false;
  group.put(session_key("g", first.machine->session()), "garbage");
  group.pass(seconds(4));
  EXPECT_EQ(second.at_work.size(), 2U);  // Its lease may still run.
  group.pass(seconds(2));
  EXPECT_EQ(second.at_work.size(), 4U);
}

// It has never seen a readable session of theirs.
TEST(Trouble, OneThatStartsOverAGarbledOwnerWaitsItsOwnLease) {
  FakeGroup group(4);
  auto& first = group.join("w1");
  first.running = false;
  group.put(session_key("g", first.machine->session()), "garbage");
  const std::uint64_t before = group.requests;
  const auto& second = group.join("w2");
  group.pass(seconds(4));
  EXPECT_TRUE(second.at_work.empty());
  EXPECT_LT(group.requests - before, 50U);
  group.pass(seconds(2));
  EXPECT_EQ(second.at_work.size(), 4U);
}

// Such a long lease would overflow our clock.
TEST(Trouble, ASessionWithALeaseThatCannotBeKeepsNothing) {
  FakeGroup group(2);
  auto& first = group.join("w1");
  WorkerSession session;
  session.lease = milliseconds(std::int64_t{1} << 53U);
  first.running = false;
  group.put(session_key("g", first.machine->session()), encode(session));
  const auto& second = group.join("w2");
  group.pass(seconds(6));
  EXPECT_EQ(second.at_work.size(), 2U);
}

TEST(Trouble, AnEpochThatCannotGrowKeepsItsOwnerAndTheRestIsDivided) {
  FakeGroup group(3);
  Assignment assignment{.partitions = 3, .first = 0, .holdings = {}};
  assignment.holdings.assign(3, Holding{.owner = {}, .epoch = 5, .next = {}});
  assignment.holdings[0].epoch = kEpochMax;
  group.put(assignment_key("g", 0), encode(assignment));
  const auto& first = group.join("w1");
  group.pass(seconds(1));
  EXPECT_EQ(first.at_work, (std::set<std::uint32_t>{1, 2}));
  EXPECT_EQ(group.assignment().holdings[0].epoch, kEpochMax);
}

// A server that is behind may have answered one read: that proves nothing.
TEST(Trouble, AnOwnerThatAReadDoesNotFindIsNotTakenForDead) {
  FakeGroup group(4);
  group.join("w1");
  group.blank_reads = session_key("g", "w1.");
  const auto& second = group.join("w2");
  group.pass(seconds(3));
  EXPECT_EQ(second.at_work.size(), 2U);
  EXPECT_TRUE(second.notes.empty() || !second.notes.back().contains("is dead"));
}

TEST(Trouble, AnOwnerWithoutASessionIsDeclaredDead) {
  FakeGroup group(2);
  Assignment assignment{.partitions = 2, .first = 0, .holdings = {}};
  assignment.holdings.assign(2, Holding{.owner = "w7.1", .epoch = 5, .next = {}});
  group.put(assignment_key("g", 0), encode(assignment));
  const auto& first = group.join("w1");
  group.pass(seconds(5));
  EXPECT_TRUE(first.at_work.empty());
  group.pass(milliseconds(500));
  EXPECT_EQ(first.at_work.size(), 2U);
  EXPECT_EQ(group.assignment().holdings[0].epoch, 6U);
}

// It stands still, and its handlers work until the deadline that their guardian knows.
TEST(Trouble, AnOwnerWhoseSessionIsRemovedHasTheRestOfItsLease) {
  FakeGroup group(4);
  auto& first = group.join("w1");
  const auto& second = group.join("w2");
  first.running = false;
  group.remove(session_key("g", first.machine->session()));
  group.pass(milliseconds(4900));
  ASSERT_TRUE(first.machine->may_act(0, group.now));
  EXPECT_EQ(second.at_work.size(), 2U);
  group.pass(milliseconds(500));
  EXPECT_FALSE(first.machine->may_act(0, group.now));
  EXPECT_EQ(second.at_work.size(), 4U);
}

TEST(Trouble, AnOwnerWhoseSessionComesBackStartsItsLeaseAnew) {
  FakeGroup group(4);
  auto& first = group.join("w1");
  const auto& second = group.join("w2");
  first.running = false;
  const Entry session = group.stored(session_key("g", first.machine->session()));
  group.remove(session.key);
  group.pass(seconds(3));
  group.put(session.key, session.value);
  group.remove(session.key);
  group.pass(seconds(3));
  EXPECT_EQ(second.at_work.size(), 2U);
  group.pass(milliseconds(2500));
  EXPECT_EQ(second.at_work.size(), 4U);
}

// Its own lease, if it was seen; otherwise the longest in the group, whose workers start alike.
TEST(Trouble, AnOwnerWhoseSessionIsRemovedIsGivenTheLeaseThatItHad) {
  FakeGroup group(4);
  Settings patient = group.settings("w1");
  patient.timing.lease = seconds(20);
  auto& first = group.join(patient);
  patient.worker = "w2";
  auto& second = group.join(patient);
  const auto& witness = group.join("w3");
  first.running = second.running = false;
  group.remove(session_key("g", first.machine->session()));
  const auto& late = group.join("w4");
  group.pass(milliseconds(19'500));
  ASSERT_TRUE(first.machine->may_act(0, group.now));
  EXPECT_EQ(witness.at_work.size() + late.at_work.size(), 1U);
  group.pass(seconds(2));
  EXPECT_EQ(witness.at_work.size() + late.at_work.size(), 4U);
}

class LostStore : public ::testing::TestWithParam<bool> {};

// Its server came back without its disk: revisions are lower than those known.
TEST_P(LostStore, AStoreThatBeginsAnewIsBelieved) {
  const bool another_was_first = GetParam();
  FakeGroup group(4);
  const auto& first = group.join("w1");
  group.pass(seconds(60));
  const auto& second = group.join("w2");
  const std::uint64_t epoch = group.assignment().holdings[0].epoch;
  group.away = true;
  group.pass(seconds(6));
  group.away = false;
  group.wipe();
  const auto* third = another_was_first ? &group.join("w3") : nullptr;
  group.pass(seconds(12));
  EXPECT_EQ(
      first.at_work.size() + second.at_work.size() + (third == nullptr ? 0 : third->at_work.size()),
      4U);
  EXPECT_FALSE(first.at_work.empty());
  EXPECT_FALSE(second.at_work.empty());
  EXPECT_TRUE(another_was_first || group.assignment().holdings[0].epoch > epoch);
}
INSTANTIATE_TEST_SUITE_P(AnotherWasFirst, LostStore, ::testing::Bool());

// Stopping is always safe; only a hand-over needs the others to know.
TEST(Trouble, OneThatLeavesWithoutTheStoreStopsItsWorkAtOnce) {
  FakeGroup group(4);
  auto& first = group.join("w1");
  first.obedient = false;
  group.away = true;
  first.machine->leave(true, group.now);
  group.settle();
  EXPECT_EQ(first.revoking.size(), 4U);
  EXPECT_TRUE(first.machine->may_act(0, group.now));  // To finish the work in progress.
}

TEST(Trouble, OneThatLeavesStopsItsWorkWhenTheStoreDoesNotAnswer) {
  FakeGroup group(4);
  auto& first = group.join("w1");
  first.obedient = false;
  group.silent = true;
  first.machine->leave(true, group.now);
  group.settle();
  EXPECT_TRUE(first.revoking.empty());
  group.pass(first.machine->deadline() - group.now - milliseconds(1));
  EXPECT_EQ(first.revoking.size(), 4U);
}

TEST(Trouble, OneThatLeavesWithoutTheStoreEndsWithItsLease) {
  FakeGroup group(4);
  auto& first = group.join("w1");
  const Duration left = first.machine->deadline() - group.now;
  group.away = true;
  first.machine->leave(true, group.now);
  group.settle();
  EXPECT_TRUE(first.at_work.empty());
  group.pass(left - milliseconds(1));
  EXPECT_FALSE(first.ended);  // The store may come back in time.
  group.pass(seconds(1));
  ASSERT_TRUE(first.ended && !first.end.has_value());
  EXPECT_EQ(first.end.error().code, Errc::deadline_exceeded);
}

TEST(Trouble, OneWithoutALeaseThatLeavesTriesOnceMore) {
  FakeGroup group(4);
  auto& first = group.join("w1");
  group.away = true;
  group.pass(seconds(20));
  group.away = false;
  first.machine->leave(true, group.now);
  group.settle();
  group.pass(seconds(1));
  EXPECT_TRUE(first.ended && first.end.has_value());
}

class RefusedWrites : public ::testing::TestWithParam<bool> {};

// The store is full, or has a limit that a session does not fit into.
TEST_P(RefusedWrites, AStoreThatOnlyAnswersReadsIsNotHammeredAndTheReasonIsTold) {
  const bool from_the_start = GetParam();
  FakeGroup group(4);
  group.writes_fail = from_the_start;
  const auto& first = group.join("w1");
  group.writes_fail = true;
  const std::uint64_t before = group.requests;
  group.pass(seconds(10));
  EXPECT_LT(group.requests - before, 60U);
  EXPECT_TRUE(first.at_work.empty());
  EXPECT_EQ(std::ranges::count_if(first.notes,
                                  [](const std::string& note) { return note.contains("no room"); }),
            1);
  group.writes_fail = false;
  group.pass(seconds(2));
  EXPECT_EQ(first.at_work.size(), 4U);
}
INSTANTIATE_TEST_SUITE_P(FromTheStart, RefusedWrites, ::testing::Bool());

// A thousand partitions stop at once: each of them must not cause a check of all of them.
TEST(Trouble, WhatHasStoppedIsLookedAtOnceAndTogether) {
  FakeGroup group(4);
  auto& first = group.join("w1");
  first.obedient = false;
  group.join("w2");
  ASSERT_EQ(first.revoking.size(), 2U);
  for (const std::uint32_t partition : first.revoking) {
    first.machine->stopped(partition, group.now);
    EXPECT_TRUE(first.machine->take_effects().empty());
    EXPECT_LE(first.machine->next_deadline(), group.now);
  }
}

class Twins : public ::testing::TestWithParam<bool> {};

// Neither has seen a former life.
TEST_P(Twins, OfTwoThatStartTogetherUnderOneStaticIdOneEnds) {
  FakeGroup group(4);
  Settings settings = group.settings("w1");
  settings.static_id = true;
  settings.fenced = GetParam();
  auto& first = group.add(settings);
  auto& second = group.add(settings);
  group.settle();
  group.pass(seconds(12));
  ASSERT_NE(first.ended, second.ended);
  const auto& refused = first.ended ? first : second;
  const auto& stays = first.ended ? second : first;
  EXPECT_EQ(refused.end.error().code, Errc::already_exists);
  EXPECT_EQ(stays.at_work.size(), 4U);
}
INSTANTIATE_TEST_SUITE_P(Fenced, Twins, ::testing::Bool());

// Neither may take over from the crashed one before its lease is over, nor from each other.
TEST(Trouble, OfTwoFencedThatWaitForTheSameFormerLifeOneEnds) {
  FakeGroup group(4);
  Settings settings = group.settings("w1");
  settings.static_id = true;
  group.join(settings).running = false;
  settings.fenced = true;
  auto& first = group.add(settings);
  auto& second = group.add(settings);
  group.settle();
  group.pass(seconds(12));
  ASSERT_NE(first.ended, second.ended);
  EXPECT_EQ((first.ended ? second : first).at_work.size(), 4U);
}

TEST(Trouble, AListThatFailsIsTold) {
  FakeGroup group(4);
  const auto& first = group.join("w1");
  group.lists_fail = true;
  group.pass(seconds(20));
  EXPECT_EQ(std::ranges::count_if(
                first.notes, [](const std::string& note) { return note.contains("too slow"); }),
            1);
}

}  // namespace
}  // namespace baton::partition
