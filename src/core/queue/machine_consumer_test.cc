// Consumers that disconnect: which of the messages they held count an attempt.

#include <map>

#include <gtest/gtest.h>

#include "core/queue/machine_fixture.h"

namespace baton::machine_test {
namespace {

using Attempts = std::map<std::string, std::uint32_t>;

class MachineConsumer : public ::testing::Test {
 protected:
  MachineConsumer() { world.create("q"); }

  std::vector<LeaseToken> take_tokens(ConsumerNumber consumer) {
    std::vector<LeaseToken> tokens;
    for (const Delivery& got : world.take(consumer)) tokens.push_back(got.token);
    return tokens;
  }
  /// The attempts that another consumer sees of each message. Messages without a counted attempt
  /// come first, in the order of sending.
  Attempts attempts(const std::string& queue) {
    Attempts found;
    std::string last;
    for (const Delivery& got : world.take(world.attach(queue, "next"))) {
      const std::string payload(got.message->payload());
      if (got.attempt == 1) {
        EXPECT_LT(last, payload);
        last = payload;
      }
      found[payload] = got.attempt;
    }
    return found;
  }

  World world;
};

// A crash loop of three kills once moved 200 messages to the dead-letter queue, of which 199 had
// never been begun.
TEST_F(MachineConsumer, ACrashLoopDeadLettersOnlyTheMessageThatWasWorkedOn) {
  QueueSettingsPatch settings;
  settings.attempts_max = 3;
  world.create("jobs", settings);
  world.send_many("jobs", "m", 200);
  for (int i = 0; i < 3; ++i) {
    const ConsumerNumber victim = world.attach("jobs", "victim");
    EXPECT_EQ(world.take(victim).size(), 200U) << i;
    world.detach("jobs", victim);
  }
  EXPECT_EQ(world.stats("jobs").dead_lettered_total, 1U);
  const std::vector<Delivery> dead = world.take(world.attach("jobs.dlq", "operator"));
  ASSERT_EQ(dead.size(), 1U);
  EXPECT_EQ(dead[0].message->payload(), "m1");
  EXPECT_EQ(dead[0].message->header("baton-last-error"), "the consumer disconnected");
  for (const Delivery& got : world.take(world.attach("jobs", "next"))) {
    EXPECT_EQ(got.attempt, 1U) << got.message->payload();
  }
}

TEST_F(MachineConsumer, OfOneThatMarksNothingTheOldestCountAsManyAsItWorksOnAtATime) {
  world.send_many("q", "m", 5);
  const ConsumerNumber alice = world.attach("q", "alice", 10, 2);
  EXPECT_EQ(take_tokens(alice).size(), 5U);
  world.detach("q", alice);
  EXPECT_EQ(attempts("q"), (Attempts{{"m1", 2}, {"m2", 2}, {"m3", 1}, {"m4", 1}, {"m5", 1}}));
}

TEST_F(MachineConsumer, OfOneThatMarksThoseCountThatItHadBegun) {
  world.send_many("q", "m", 5);
  const ConsumerNumber alice = world.attach("q", "alice");
  const std::vector<LeaseToken> tokens = take_tokens(alice);
  world.begin("q", alice, {tokens[1], tokens[3]});
  world.detach("q", alice);
  EXPECT_EQ(attempts("q"), (Attempts{{"m1", 1}, {"m2", 2}, {"m3", 1}, {"m4", 2}, {"m5", 1}}));
}

// A message that kills its consumer at once may prevent its own mark from leaving the process.
TEST_F(MachineConsumer, WhenNothingThatItHoldsIsBegunTheOldestCounts) {
  world.send_many("q", "m", 3);
  const ConsumerNumber alice = world.attach("q", "alice");
  const std::vector<LeaseToken> tokens = take_tokens(alice);
  world.begin("q", alice, {tokens[0]});
  world.ack("q", tokens[0]);
  world.detach("q", alice);
  EXPECT_EQ(attempts("q"), (Attempts{{"m2", 2}, {"m3", 1}}));
}

TEST_F(MachineConsumer, WhatWasNeverWrittenIsNotAmongTheOldest) {
  world.send_many("q", "m", 3);
  const ConsumerNumber alice = world.attach("q", "alice", 10, 2);
  const std::vector<LeaseToken> tokens = take_tokens(alice);
  world.detach("q", alice, {tokens[1], tokens[2]});
  EXPECT_EQ(attempts("q"), (Attempts{{"m1", 2}, {"m2", 1}, {"m3", 1}}));
}

TEST_F(MachineConsumer, NobodyMarksWhatAnotherHolds) {
  world.send_many("q", "m", 2);
  const ConsumerNumber alice = world.attach("q", "alice", 10, 1);
  const std::vector<LeaseToken> tokens = take_tokens(alice);
  const ConsumerNumber eve = world.attach("q", "eve");
  world.facts.clear();
  world.begin("q", eve, {tokens[1], {.boot = 9, .number = 9}});
  world.begin("q", ConsumerNumber{99}, {tokens[1]});
  EXPECT_TRUE(world.facts.empty());
  world.detach("q", eve);
  world.detach("q", alice);
  EXPECT_EQ(attempts("q"), (Attempts{{"m1", 2}, {"m2", 1}}));
}

TEST_F(MachineConsumer, AnOrderlyEndCountsNothing) {
  world.send_many("q", "m", 3);
  const ConsumerNumber alice = world.attach("q", "alice");
  const std::vector<LeaseToken> tokens = take_tokens(alice);
  world.begin("q", alice, {tokens[0]});
  world.detach_orderly("q", alice);
  EXPECT_EQ(attempts("q"), (Attempts{{"m1", 1}, {"m2", 1}, {"m3", 1}}));
}

TEST_F(MachineConsumer, OneThatLeavesGivesEverythingBackAndGetsNothingMore) {
  world.send_many("q", "m", 3);
  const ConsumerNumber alice = world.attach("q", "alice", 2);
  const std::vector<LeaseToken> tokens = take_tokens(alice);
  ASSERT_EQ(tokens.size(), 2U);
  const auto left = world.run(LeaveCommand{.queue = "q", .consumer_id = "alice", .error = {}});
  EXPECT_FALSE(left.error.has_value());
  EXPECT_EQ(left.released, 2U);
  EXPECT_TRUE(world.take(alice).empty());
  EXPECT_EQ(world.ack("q", tokens[0])->code, Errc::lease_lost);
  world.detach("q", alice);
  EXPECT_EQ(attempts("q"), (Attempts{{"m1", 1}, {"m2", 1}, {"m3", 1}}));
}

TEST_F(MachineConsumer, LeavingNamesWhatIsNotThere) {
  EXPECT_EQ(world.run(LeaveCommand{.queue = "no", .consumer_id = "a", .error = {}}).error->code,
            Errc::queue_not_found);
  const auto left = world.run(LeaveCommand{.queue = "q", .consumer_id = "nobody", .error = {}});
  ASSERT_TRUE(left.error.has_value());
  EXPECT_EQ(left.error->code, Errc::not_found);
  EXPECT_NE(left.error->text.find("nobody"), std::string::npos);
}

// The message waited at a consumer that was busy with others: that is not a failure of the message.
TEST_F(MachineConsumer, ADeadlineThatPassesBeforeAMarkingConsumerBeganCountsNothing) {
  world.send_many("q", "m", 3);
  const ConsumerNumber alice = world.attach("q", "alice");
  const std::vector<LeaseToken> tokens = take_tokens(alice);
  world.begin("q", alice, {tokens[0]});
  // The consumer is frozen, and its connection is not yet known to be dead.
  world.run(QuiesceCommand{.queue = "q", .consumer = alice});
  world.advance_in_steps(seconds{31});
  EXPECT_EQ(world.stats("q").lease_expired_total, 3U);
  EXPECT_EQ(attempts("q"), (Attempts{{"m2", 1}, {"m3", 1}, {"m1", 2}}));
}

class MachineConsumerKept : public MachineConsumer {
 protected:
  MachineConsumerKept() {
    QueueSettingsPatch settings;
    settings.release_on_disconnect = false;
    world.create("kept", settings);
    world.send_many("kept", "m", 3);
  }
};

// Otherwise a crash loop moves messages that were never begun to the dead-letter queue, only more
// slowly.
TEST_F(MachineConsumerKept, ADeadlineOfADeadConsumersLeaseCountsAsItsDeathWouldHave) {
  const ConsumerNumber alice = world.attach("kept", "alice");
  EXPECT_EQ(take_tokens(alice).size(), 3U);
  world.detach("kept", alice);
  EXPECT_EQ(world.stats("kept").leased, 3U);
  world.advance_in_steps(seconds{31});
  EXPECT_EQ(attempts("kept"), (Attempts{{"m2", 1}, {"m3", 1}, {"m1", 2}}));
}

TEST_F(MachineConsumerKept, AfterAnOrderlyEndADeadlineCountsNothing) {
  const ConsumerNumber alice = world.attach("kept", "alice");
  EXPECT_EQ(take_tokens(alice).size(), 3U);
  world.detach_orderly("kept", alice);
  world.advance_in_steps(seconds{31});
  EXPECT_EQ(attempts("kept"), (Attempts{{"m1", 1}, {"m2", 1}, {"m3", 1}}));
}

// A restart of the broker is not a failure of the message, whichever way its lease ends.
TEST_F(MachineConsumerKept, AfterARestartADeadlineOfAConsumerThatStaysAwayCountsNothing) {
  EXPECT_EQ(take_tokens(world.attach("kept", "alice")).size(), 3U);
  world.crash();
  world.advance_in_steps(seconds{31});
  EXPECT_EQ(attempts("kept"), (Attempts{{"m1", 1}, {"m2", 1}, {"m3", 1}}));
}

// Rows of leases are read in the order of message ids, which is not the order of leasing.
TEST_F(MachineConsumer, AfterARestartTheOldestIsTheOneThatWasLeasedFirst) {
  for (const char* key : {"x", "x", "y", "y"}) world.send("q", std::string("m-") + key, key);
  const ConsumerNumber alice = world.attach("q", "alice", 10, 2);
  const std::vector<Delivery> got = world.take(alice);
  ASSERT_EQ(got.size(), 4U);
  ASSERT_EQ(got[1].message->payload(), "m-y");
  world.restart();
  world.detach("q", world.attach("q", "alice", 10, 2));
  for (const Delivery& again : world.take(world.attach("q", "next"))) {
    const bool first_two =
        again.message->id() == got[0].message->id() || again.message->id() == got[1].message->id();
    EXPECT_EQ(again.attempt, first_two ? 2U : 1U) << again.message->payload();
  }
}

}  // namespace
}  // namespace baton::machine_test
