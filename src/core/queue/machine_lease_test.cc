// Leases: granting, the fence, nack, expiry, disconnect, restart. Acceptance criteria 3 to 9 of the
// queue specification are named where they are tested.
//
// More than 500 lines: all claims about leases.

#include <set>

#include <gtest/gtest.h>

#include "core/queue/machine_fixture.h"

namespace baton::machine_test {
namespace {

using Payloads = std::vector<std::string>;
constexpr Retry kNow{.kind = Retry::Kind::after, .delay = {}};
constexpr Retry kRelease{.kind = Retry::Kind::release, .delay = {}};

Retry after(Duration delay) { return {.kind = Retry::Kind::after, .delay = delay}; }

class MachineLease : public ::testing::Test {
 protected:
  MachineLease() { world.create("q"); }

  Delivery lease_one(ConsumerNumber consumer) {
    const std::vector<Delivery> got = world.take(consumer);
    BATON_ASSERT(got.size() == 1);
    return got.front();
  }

  World world;
};

// Criterion 3, and the trap "first deliveries lost because the channel was registered late".
TEST_F(MachineLease, PendingMessagesGoToAConsumerAsSoonAsItIsRegistered) {
  world.send_many("q", "m", 3);
  const ConsumerNumber alice = world.attach("q", "alice");
  EXPECT_EQ(world.take_payloads(alice), (Payloads{"m1", "m2", "m3"}));
}

TEST_F(MachineLease, MessagesThatComeLaterAreDeliveredWithoutAsking) {
  const ConsumerNumber alice = world.attach("q", "alice");
  EXPECT_TRUE(world.take(alice).empty());
  world.send("q", "late");
  EXPECT_EQ(world.take_payloads(alice), (Payloads{"late"}));
}

// Criterion 4.
TEST_F(MachineLease, ADeliveryCarriesIdHeadersPayloadKeyAttemptAndDeadline) {
  NewMessage sent = message("payload");
  sent.headers = {{"name", "value"}, {"empty", ""}};
  sent.fairness_key = "tenant";
  const EnqueueOutcome outcome = world.send("q", sent);
  const Delivery got = lease_one(world.attach("q", "alice"));
  EXPECT_EQ(got.message->id(), outcome.id);
  EXPECT_EQ(got.message->payload(), "payload");
  EXPECT_EQ(got.message->header("name"), "value");
  EXPECT_EQ(got.message->headers().size(), 2U);
  EXPECT_EQ(got.message->fairness_key(), "tenant");
  EXPECT_EQ(got.message->enqueued_at(), kStart);
  EXPECT_EQ(got.attempt, 1U);
  EXPECT_EQ(got.deadline, kStart + seconds{30});
  EXPECT_EQ(got.token.boot, 1U);
}

// Criteria 5 and 6: both rows are in one batch, under the keys that the specification names.
TEST_F(MachineLease, ALeaseStandsInLeasesAndLeaseExpiryInOneBatch) {
  const Uuid id = world.send("q", "m");
  const Delivery got = lease_one(world.attach("q", "alice"));
  world.checkpoint();

  const QueueId queue = world.describe("q").id;
  std::string key;
  Encoder(key).big_u64(queue.value);
  key.append(id.raw());
  std::string expiry;
  Encoder(expiry).big_u64(static_cast<std::uint64_t>(got.deadline.ns));
  expiry += key;

  const auto& leases = world.store().table(tables::kLeases);
  ASSERT_EQ(leases.size(), 1U);
  EXPECT_EQ(leases.begin()->first, key);
  const Result<LeaseRow> row = decode_lease_row(leases.begin()->second);
  ASSERT_TRUE(row.has_value());
  EXPECT_EQ(row->consumer_id, "alice");
  EXPECT_EQ(row->deadline, got.deadline);
  EXPECT_EQ(row->token, got.token);
  const auto& order = world.store().table(tables::kLeaseExpiry);
  ASSERT_EQ(order.size(), 1U);
  EXPECT_EQ(order.begin()->first, expiry);
  EXPECT_EQ(order.begin()->second, "");
  std::size_t in_batch = 0;
  for (const RowChange& change : world.last_batch.changes()) {
    if (change.table == tables::kLeases || change.table == tables::kLeaseExpiry) ++in_batch;
  }
  EXPECT_EQ(in_batch, 2U);
}

TEST_F(MachineLease, BothRowsOfALeaseGoWithItAndFollowAnExtension) {
  world.send("q", "m");
  const Delivery got = lease_one(world.attach("q", "alice"));
  world.checkpoint();
  world.extend("q", got.token, minutes{2});
  world.checkpoint();
  const auto& order = world.store().table(tables::kLeaseExpiry);
  ASSERT_EQ(order.size(), 1U);
  EXPECT_EQ(decode_time_key(order.begin()->first)->at, world.now() + minutes{2});
  world.ack("q", got.token);
  world.checkpoint();
  EXPECT_TRUE(order.empty());
  EXPECT_TRUE(world.store().table(tables::kLeases).empty());
  EXPECT_TRUE(world.store().table(tables::kMessages).empty());
  EXPECT_TRUE(world.store().table(tables::kIds).empty());
}

// The store is for lasting state: most leases never reach it.
TEST_F(MachineLease, ALeaseThatEndedBeforeItsCheckpointIsNeverWritten) {
  world.send("q", "m");
  world.ack("q", lease_one(world.attach("q", "alice")).token);
  world.checkpoint();
  for (const RowChange& change : world.last_batch.changes()) {
    if (change.kind == RowChange::Kind::erase_range) continue;
    EXPECT_TRUE(change.table == tables::kQueues || change.table == tables::kState)
        << int{change.table.value};
  }
}

// Criterion 7.
TEST_F(MachineLease, TheVisibilityTimeoutIsThirtySecondsUnlessTheQueueSaysOtherwise) {
  QueueSettingsPatch slow;
  slow.visibility_timeout = minutes{10};
  world.create("slow", slow);
  world.send("q", "a");
  world.send("slow", "b");
  EXPECT_EQ(lease_one(world.attach("q", "alice")).deadline, world.now() + seconds{30});
  EXPECT_EQ(lease_one(world.attach("slow", "alice")).deadline, world.now() + minutes{10});
}

// Criterion 8.
TEST_F(MachineLease, ADisconnectedConsumerIsUnregisteredAndGetsNothing) {
  const ConsumerNumber alice = world.attach("q", "alice");
  EXPECT_EQ(world.stats("q").consumers, 1U);
  world.detach("q", alice);
  EXPECT_EQ(world.stats("q").consumers, 0U);
  world.send("q", "m");
  EXPECT_TRUE(world.take(alice).empty());
  EXPECT_EQ(world.stats("q").ready, 1U);
}

// Criterion 9.
TEST_F(MachineLease, ConsumersOfOneQueueGetDifferentMessagesInTurn) {
  const ConsumerNumber a = world.attach("q", "a");
  const ConsumerNumber b = world.attach("q", "b");
  const ConsumerNumber c = world.attach("q", "c");
  world.send_many("q", "m", 9);
  std::set<std::string> all;
  for (const ConsumerNumber consumer : {a, b, c}) {
    const Payloads got = world.take_payloads(consumer);
    EXPECT_GE(got.size(), 2U);
    all.insert(got.begin(), got.end());
  }
  EXPECT_EQ(all.size(), 9U);
}

TEST_F(MachineLease, AnAckRemovesTheMessageForGood) {
  world.send("q", "m");
  const Delivery got = lease_one(world.attach("q", "alice"));
  EXPECT_FALSE(world.ack("q", got.token).has_value());
  EXPECT_EQ(world.stats("q").leased, 0U);
  EXPECT_EQ(world.stats("q").bytes, 0U);
  EXPECT_EQ(world.stats("q").acked_total, 1U);
  world.crash();
  EXPECT_TRUE(world.drain("q").empty());
}

// Trap: "ack that checks no owner". The next holder of the message must not lose it to a slow
// predecessor.
TEST_F(MachineLease, AckNackAndExtendOfALeaseThatIsOverChangeNothing) {
  world.send("q", "m");
  const ConsumerNumber alice = world.attach("q", "alice");
  const Delivery first = lease_one(alice);
  world.detach("q", alice);
  const Delivery second = lease_one(world.attach("q", "bob"));
  world.facts.clear();

  for (const ItemOutcome& outcome : {world.ack("q", first.token), world.nack("q", first.token),
                                     world.extend("q", first.token)}) {
    ASSERT_TRUE(outcome.has_value());
    EXPECT_EQ(outcome->code, Errc::lease_lost);
  }
  EXPECT_TRUE(world.facts.empty());
  EXPECT_EQ(world.machine().lease_lost_total(), 3U);
  EXPECT_FALSE(world.ack("q", second.token).has_value());
}

TEST_F(MachineLease, ATokenOfAnotherQueueOrOfNobodyIsALostLease) {
  world.create("other");
  world.send("q", "m");
  const Delivery got = lease_one(world.attach("q", "alice"));
  EXPECT_EQ(world.ack("other", got.token)->code, Errc::lease_lost);
  EXPECT_EQ(world.ack("q", {.boot = 9, .number = 9})->code, Errc::lease_lost);
  EXPECT_EQ(world.stats("q").leased, 1U);
}

TEST_F(MachineLease, ABadItemDoesNotFailItsNeighbours) {
  world.send_many("q", "m", 2);
  const std::vector<Delivery> got = world.take(world.attach("q", "alice"));
  ASSERT_EQ(got.size(), 2U);
  const AckCommand done = world.run(
      AckCommand{.queue = "q", .tokens = {got[0].token, {7, 7}, got[1].token}, .outcomes = {}});
  ASSERT_EQ(done.outcomes.size(), 3U);
  EXPECT_FALSE(done.outcomes[0].has_value());
  EXPECT_TRUE(done.outcomes[1].has_value());
  EXPECT_FALSE(done.outcomes[2].has_value());
}

TEST_F(MachineLease, ANackForNowGivesTheMessageBackAtItsPlaceWithOneMoreAttempt) {
  world.send_many("q", "m", 2);
  const ConsumerNumber alice = world.attach("q", "alice", 1);
  const Delivery first = lease_one(alice);
  world.nack("q", first.token, kNow);
  const Delivery again = lease_one(alice);
  EXPECT_EQ(again.message->payload(), "m1");
  EXPECT_EQ(again.attempt, 2U);
  EXPECT_NE(again.token, first.token);
}

TEST_F(MachineLease, ANackWithADelayHidesTheMessageUntilThen) {
  world.send("q", "m");
  const ConsumerNumber alice = world.attach("q", "alice");
  world.nack("q", lease_one(alice).token, after(seconds{10}));
  EXPECT_EQ(world.stats("q").delayed, 1U);
  world.advance(seconds{10} - Duration{1});
  EXPECT_TRUE(world.take(alice).empty());
  EXPECT_EQ(world.machine().next_deadline(), world.now() + Duration{1});
  world.advance(Duration{1});
  EXPECT_EQ(lease_one(alice).attempt, 2U);
}

TEST_F(MachineLease, ANackByBackoffWaitsLongerEachTimeUpToTheMaximum) {
  QueueSettingsPatch settings;
  settings.attempts_max = 0;
  world.run(UpdateQueueCommand{.queue = "q", .settings = settings, .error = {}, .description = {}});
  world.send("q", "m");
  const ConsumerNumber alice = world.attach("q", "alice");
  Duration expected = milliseconds{100};
  for (int attempt = 1; attempt <= 14; ++attempt) {
    const Delivery got = lease_one(alice);
    ASSERT_EQ(got.attempt, static_cast<std::uint32_t>(attempt));
    world.nack("q", got.token);
    const Duration wait = world.machine().next_deadline() - world.now();
    EXPECT_GE(wait, expected / 2) << attempt;
    EXPECT_LE(wait, expected) << attempt;
    expected = std::min<Duration>(expected * 2, seconds{60});
    world.advance_in_steps(expected);
  }
}

TEST_F(MachineLease, AReleaseGivesTheMessageBackWithNoAttemptCounted) {
  world.send("q", "m");
  const ConsumerNumber alice = world.attach("q", "alice");
  for (int i = 0; i < 100; ++i) {
    const Delivery got = lease_one(alice);
    ASSERT_EQ(got.attempt, 1U);
    ASSERT_FALSE(world.nack("q", got.token, kRelease).has_value());
  }
}

TEST_F(MachineLease, AnExtensionMovesTheDeadline) {
  world.send("q", "m");
  const ConsumerNumber alice = world.attach("q", "alice");
  const Delivery got = lease_one(alice);
  world.advance(seconds{29});
  EXPECT_FALSE(world.extend("q", got.token).has_value());
  world.advance(seconds{29});
  EXPECT_FALSE(world.extend("q", got.token, seconds{100}).has_value());
  world.advance(seconds{99});
  EXPECT_EQ(world.stats("q").lease_expired_total, 0U);
  world.advance(seconds{1});
  EXPECT_EQ(world.stats("q").lease_expired_total, 1U);
}

// "An ack is good until an expiry fact has ended its lease": the clock alone ends nothing.
TEST_F(MachineLease, AnAckAfterTheDeadlineIsGoodWhileNobodyEndedTheLease) {
  world.send("q", "m");
  const Delivery got = lease_one(world.attach("q", "alice"));
  const LeaseToken token = got.token;
  QueueCommand ack = AckCommand{.queue = "q", .tokens = {token}, .outcomes = {}};
  world.machine().execute(ack, world.now() + hours{1});
  EXPECT_FALSE(std::get<AckCommand>(ack).outcomes.at(0).has_value());
}

// Trap: "leases reclaimed only when idle".
TEST_F(MachineLease, ExpiryHappensWhileCommandsKeepComing) {
  world.send("q", "m");
  const ConsumerNumber alice = world.attach("q", "alice", 1);
  const Delivery got = lease_one(alice);
  for (int i = 0; i < 30; ++i) {
    world.send("q", "busy" + std::to_string(i));
    world.advance(seconds{1});
  }
  EXPECT_EQ(world.stats("q").lease_expired_total, 1U);
  EXPECT_EQ(world.ack("q", got.token)->code, Errc::lease_lost);
}

// Trap: "expiry that skips the failure policy, so a message that crashes its consumer is
// redelivered for ever".
TEST_F(MachineLease, ExpiryCountsAsAFailedAttemptAndEndsInTheDeadLetterQueue) {
  QueueSettingsPatch settings;
  settings.attempts_max = 3;
  world.create("poison", settings);
  world.send("poison", "m");
  const ConsumerNumber alice = world.attach("poison", "alice");
  for (std::uint32_t attempt = 1; attempt <= 3; ++attempt) {
    const std::vector<Delivery> got = world.take(alice);
    ASSERT_EQ(got.size(), 1U) << attempt;
    EXPECT_EQ(got[0].attempt, attempt);
    world.advance_in_steps(seconds{40});
  }
  EXPECT_TRUE(world.take(alice).empty());
  EXPECT_EQ(world.stats("poison").dead_lettered_total, 1U);
  const std::vector<Delivery> dead = world.take(world.attach("poison.dlq", "operator"));
  ASSERT_EQ(dead.size(), 1U);
  EXPECT_EQ(dead[0].message->header("baton-last-error"), "the lease expired");
}

// "The cost is the number of expired leases, not of leases", counted in facts.
TEST_F(MachineLease, ExpiryEndsOnlyWhatExpiredInDeadlineOrder) {
  world.send_many("q", "m", 100);
  const std::vector<Delivery> got = world.take(world.attach("q", "alice"));
  ASSERT_EQ(got.size(), 100U);
  world.extend("q", got[50].token, seconds{10});
  world.extend("q", got[7].token, seconds{20});
  world.facts.clear();
  world.advance(seconds{20});
  ASSERT_EQ(count_facts<Ended>(world.facts), 2U);
  EXPECT_EQ(std::get<Ended>(world.facts[0]).token, got[50].token);
  EXPECT_EQ(std::get<Ended>(world.facts[1]).token, got[7].token);
  EXPECT_EQ(world.machine().next_deadline() > world.now(), true);
}

TEST_F(MachineLease, ExpireHandlesNoMoreThanItsCountAndSaysThatThereIsMore) {
  world.send_many("q", "m", 10);
  world.take(world.attach("q", "alice"));
  const Instant later = world.now() + seconds{31};
  EXPECT_TRUE(world.machine().expire(later, 4));
  EXPECT_EQ(world.stats("q").lease_expired_total, 4U);
  EXPECT_FALSE(world.machine().expire(later, 100));
  EXPECT_EQ(world.stats("q").lease_expired_total, 10U);
}

// Trap: "leases left to time out after a disconnect".
TEST_F(MachineLease, ADisconnectReleasesAtOnceInOrderToTheFront) {
  world.send_many("q", "m", 5);
  const ConsumerNumber alice = world.attach("q", "alice", 3);
  EXPECT_EQ(world.take(alice).size(), 3U);
  world.detach("q", alice);
  const ConsumerNumber bob = world.attach("q", "bob");
  const std::vector<Delivery> got = world.take(bob);
  ASSERT_EQ(got.size(), 5U);
  for (std::size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(got[i].message->payload(), "m" + std::to_string(i + 1));
    // Only the message that the consumer was working on counts an attempt.
    EXPECT_EQ(got[i].attempt, i < 1 ? 2U : 1U);
  }
}

// Trap: "lease written, then rolled back because the channel was full".
TEST_F(MachineLease, WhatWasNeverWrittenToTheNetworkCountsNoAttempt) {
  world.send_many("q", "m", 3);
  const ConsumerNumber alice = world.attach("q", "alice");
  const std::vector<Delivery> got = world.take(alice);
  ASSERT_EQ(got.size(), 3U);
  world.detach("q", alice, {got[1].token, got[2].token});
  const std::vector<Delivery> again = world.take(world.attach("q", "bob"));
  ASSERT_EQ(again.size(), 3U);
  EXPECT_EQ(again[0].message->payload(), "m1");
  EXPECT_EQ(again[0].attempt, 2U);
  EXPECT_EQ(again[1].attempt, 1U);
  EXPECT_EQ(again[2].attempt, 1U);
}

TEST_F(MachineLease, WithoutReleaseOnDisconnectALeaseLastsUntilItsDeadline) {
  QueueSettingsPatch settings;
  settings.release_on_disconnect = false;
  world.create("sticky", settings);
  world.send("sticky", "m");
  const ConsumerNumber alice = world.attach("sticky", "alice");
  const Delivery got = lease_one(alice);
  world.detach("sticky", alice);
  EXPECT_EQ(world.stats("sticky").leased, 1U);
  EXPECT_FALSE(world.ack("sticky", got.token).has_value());
}

TEST_F(MachineLease, AConsumerIdIsTakenOverByWhoConnectsLast) {
  world.send_many("q", "m", 2);
  const ConsumerNumber first = world.attach("q", "alice", 1);
  const Delivery got = lease_one(first);
  const ConsumerNumber second = world.attach("q", "alice", 2);
  ASSERT_EQ(world.closed.size(), 1U);
  EXPECT_EQ(world.closed[0].consumer, first);
  EXPECT_EQ(world.closed[0].reason.code, Errc::already_exists);
  EXPECT_EQ(world.stats("q").consumers, 1U);
  // The old lease continues, and counts against the new consumer's limit.
  EXPECT_EQ(world.take_payloads(second), (Payloads{"m2"}));
  world.detach("q", first);
  EXPECT_EQ(world.stats("q").leased, 2U);
  EXPECT_FALSE(world.ack("q", got.token).has_value());
}

// Trap: "a token issued twice after a crash".
TEST_F(MachineLease, ATokenIsNeverIssuedTwice) {
  std::set<LeaseToken> tokens;
  for (int life = 0; life < 5; ++life) {
    world.send("q", "m");
    for (const Delivery& got : world.take(world.attach("q", "alice"))) {
      EXPECT_TRUE(tokens.insert(got.token).second);
    }
    if (life % 2 == 0) {
      world.crash();
    } else {
      world.restart();
    }
    world.advance(seconds{5});
  }
  EXPECT_EQ(tokens.size(), 1U + 2U + 3U + 4U + 5U);
}

class MachineLeaseRestart : public MachineLease, public ::testing::WithParamInterface<bool> {
 protected:
  void reboot() { GetParam() ? world.restart() : world.crash(); }
};

TEST_P(MachineLeaseRestart, LeasesSurviveForAConsumerThatReturns) {
  world.send_many("q", "m", 2);
  const std::vector<Delivery> got = world.take(world.attach("q", "alice"));
  ASSERT_EQ(got.size(), 2U);
  reboot();
  world.attach("q", "alice");
  world.advance(seconds{6});
  EXPECT_EQ(world.stats("q").leased, 2U);
  EXPECT_FALSE(world.ack("q", got[0].token).has_value());
  EXPECT_FALSE(world.nack("q", got[1].token, kNow).has_value());
}

TEST_P(MachineLeaseRestart, AnAckIsGoodBeforeTheConsumerHasReturned) {
  world.send("q", "m");
  const Delivery got = lease_one(world.attach("q", "alice"));
  reboot();
  EXPECT_FALSE(world.ack("q", got.token).has_value());
}

TEST_P(MachineLeaseRestart, LeasesOfConsumersThatStayAwayAreReleasedWithoutAnAttempt) {
  world.send_many("q", "m", 3);
  world.take(world.attach("q", "alice"));
  reboot();
  const ConsumerNumber bob = world.attach("q", "bob");
  EXPECT_TRUE(world.take(bob).empty());
  EXPECT_EQ(world.machine().next_deadline(), world.now() + seconds{5});
  world.advance(seconds{5});
  const std::vector<Delivery> got = world.take(bob);
  ASSERT_EQ(got.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(got[i].message->payload(), "m" + std::to_string(i + 1));
    EXPECT_EQ(got[i].attempt, 1U);
  }
}

// Such a queue promises that only the deadline ends a lease, also across a restart.
TEST_P(MachineLeaseRestart, WithoutReleaseOnDisconnectOnlyTheDeadlineEndsALease) {
  QueueSettingsPatch settings;
  settings.release_on_disconnect = false;
  world.create("sticky", settings);
  world.send("sticky", "early");
  world.send("sticky", "late");
  const std::vector<Delivery> got = world.take(world.attach("sticky", "alice"));
  ASSERT_EQ(got.size(), 2U);
  world.advance(seconds{3});
  reboot();
  const ConsumerNumber bob = world.attach("sticky", "bob");
  world.advance(seconds{27} - Duration{1});
  EXPECT_TRUE(world.take(bob).empty());
  EXPECT_FALSE(world.ack("sticky", got[0].token).has_value());
  world.advance_in_steps(seconds{1});
  EXPECT_EQ(world.take_payloads(bob), (Payloads{"late"}));
}

TEST_P(MachineLeaseRestart, AttemptsAndTheReasonOfFailureSurvive) {
  QueueSettingsPatch settings;
  settings.attempts_max = 2;
  world.create("r", settings);
  world.send("r", "m");
  world.nack("r", lease_one(world.attach("r", "alice")).token, kNow, "first");
  const Instant first = world.now();
  reboot();
  const ConsumerNumber bob = world.attach("r", "bob");
  const Delivery again = lease_one(bob);
  EXPECT_EQ(again.attempt, 2U);
  world.advance(seconds{1});
  world.nack("r", again.token, kNow, "second");
  const Delivery dead = lease_one(world.attach("r.dlq", "bob"));
  EXPECT_EQ(dead.message->header("baton-first-failure-ns"), std::to_string(first.ns));
  EXPECT_EQ(dead.message->header("baton-last-error"), "second");
}

// Trap: "wall-clock expiry". Broker time never goes back, and deadlines are in broker time: time
// that passes while the broker is down counts.
TEST_P(MachineLeaseRestart, ADeadlineIsTheSameMomentAfterARestart) {
  world.send("q", "m");
  const Delivery got = lease_one(world.attach("q", "alice"));
  world.advance(seconds{20});
  reboot();
  world.attach("q", "alice");
  world.advance(seconds{10} - Duration{1});
  EXPECT_EQ(world.stats("q").lease_expired_total, 0U);
  world.advance(Duration{1});
  EXPECT_EQ(world.stats("q").lease_expired_total, 1U);
  EXPECT_EQ(world.ack("q", got.token)->code, Errc::lease_lost);
}

INSTANTIATE_TEST_SUITE_P(CleanAndCrash, MachineLeaseRestart, ::testing::Bool(),
                         [](const auto& tested) { return tested.param ? "Clean" : "Crash"; });

}  // namespace
}  // namespace baton::machine_test
