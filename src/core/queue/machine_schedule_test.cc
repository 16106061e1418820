// Whose turn it is: fairness, throttles, consumers' turns and credit, and the memory budget.
//
// More than 500 lines: all claims about the order of delivery.

#include <gtest/gtest.h>

#include "core/queue/machine_fixture.h"

namespace baton::machine_test {
namespace {

using Payloads = std::vector<std::string>;

NewMessage keyed(const std::string& payload, const std::string& key) {
  NewMessage made = message(payload);
  made.fairness_key = key;
  return made;
}

NewMessage throttled(const std::string& payload, std::vector<std::string> keys) {
  NewMessage made = message(payload);
  made.throttle_keys = std::move(keys);
  return made;
}

QueueSettingsPatch throttles(std::map<std::string, ThrottleRate, std::less<>> rates) {
  QueueSettingsPatch settings;
  settings.throttles = std::move(rates);
  return settings;
}

/// The keys of the next `count` deliveries, one lease at a time.
std::string order_of_keys(World& world, const std::string& queue, std::size_t count) {
  AttachCommand attach{.queue = queue,
                       .consumer = ConsumerNumber{1000},
                       .consumer_id = "order",
                       .in_flight_max = 100'000,
                       .credit = count,
                       .sink = {},
                       .error = {}};
  world.attach_as(attach);
  std::string keys;
  for (const Delivery& got : world.take(ConsumerNumber{1000})) keys += got.message->fairness_key();
  return keys;
}

TEST(MachineFairness, KeysTakeTurnsHoweverManyMessagesEachHas) {
  World world;
  world.create("q");
  world.send_many("q", "a", 6, "a");
  world.send_many("q", "b", 2, "b");
  world.send_many("q", "c", 3, "c");
  EXPECT_EQ(order_of_keys(world, "q", 11), "abcabcacaaa");
}

TEST(MachineFairness, WithinAKeyOrderIsTheOrderOfArrival) {
  World world;
  world.create("q");
  world.send_many("q", "m", 200, "k");
  Payloads expected;
  for (int i = 1; i <= 200; ++i) expected.push_back("m" + std::to_string(i));
  EXPECT_EQ(world.drain("q"), expected);
}

TEST(MachineFairness, AWeightIsThatManyMessagesPerTurn) {
  World world;
  QueueSettingsPatch settings;
  settings.weights = {{"a", 3}};
  world.create("q", settings);
  world.send_many("q", "a", 9, "a");
  world.send_many("q", "b", 3, "b");
  EXPECT_EQ(order_of_keys(world, "q", 12), "aaabaaabaaab");
}

// Trap: "a new fairness key starved until the round ends".
TEST(MachineFairness, ANewKeyWaitsAtMostOneTurnOfEachOtherKey) {
  World world;
  QueueSettingsPatch settings;
  settings.weights = {{"a", 2}, {"b", 2}};
  world.create("q", settings);
  world.send_many("q", "a", 50, "a");
  world.send_many("q", "b", 50, "b");
  EXPECT_EQ(order_of_keys(world, "q", 5), "aabba");
  world.send("q", "new", "n");
  const std::string keys = order_of_keys(world, "q", 8);
  EXPECT_LE(keys.find('n'), 1U + 2U) << keys;
}

TEST(MachineFairness, AKeyThatWasIdleSavesNothingUp) {
  World world;
  QueueSettingsPatch settings;
  settings.weights = {{"a", 3}};
  world.create("q", settings);
  world.send("q", "a", "a");
  world.send_many("q", "b", 4, "b");
  EXPECT_EQ(order_of_keys(world, "q", 3), "abb");
  world.send_many("q", "a", 6, "a");
  EXPECT_EQ(order_of_keys(world, "q", 8), "aaabaaab");
}

TEST(MachineFairness, ByBytesKeysGetEqualBytesAndNotEqualMessages) {
  World world;
  QueueSettingsPatch settings;
  settings.fairness_cost = FairnessCost::byte;
  world.create("q", settings);
  for (int i = 0; i < 40; ++i) world.send("q", keyed(std::string(8000, 'x'), "s"));
  for (int i = 0; i < 10; ++i) world.send("q", keyed(std::string(32'000, 'x'), "L"));
  const std::string keys = order_of_keys(world, "q", 25);
  const auto large = std::ranges::count(keys, 'L');
  EXPECT_GE(large, 4) << keys;
  EXPECT_LE(large, 6) << keys;
}

// A message larger than any quantum must not starve, nor spin for ever.
TEST(MachineFairness, ByBytesAHugeMessageIsDeliveredAfterItsKeyHasSavedUp) {
  World world;
  QueueSettingsPatch settings;
  settings.fairness_cost = FairnessCost::byte;
  world.create("q", settings);
  world.send("q", keyed(std::string(1'000'000, 'x'), "H"));
  for (int i = 0; i < 100; ++i) world.send("q", keyed(std::string(15'000, 'x'), "s"));
  const std::string keys = order_of_keys(world, "q", 101);
  EXPECT_EQ(keys.size(), 101U);
  EXPECT_NEAR(static_cast<double>(keys.find('H')), 1'000'000.0 / 16'384, 6.0);
}

TEST(MachineFairness, WeightsChangeWhileTheQueueIsInUse) {
  World world;
  world.create("q");
  world.send_many("q", "a", 20, "a");
  world.send_many("q", "b", 20, "b");
  EXPECT_EQ(order_of_keys(world, "q", 4), "abab");
  QueueSettingsPatch settings;
  settings.weights = {{"b", 4}};
  world.run(UpdateQueueCommand{.queue = "q", .settings = settings, .error = {}, .description = {}});
  EXPECT_EQ(order_of_keys(world, "q", 10), "abbbbabbbb");
  settings.weights = {{"b", 0}};
  world.run(UpdateQueueCommand{.queue = "q", .settings = settings, .error = {}, .description = {}});
  EXPECT_EQ(order_of_keys(world, "q", 4), "abab");
}

// Traps: "gauges recomputed by walking all keys each loop", "per-delivery scan over all consumers".
// The cost of a step shows in what it yields: one fact, one grant and no row read, for any number
// of keys.
TEST(MachineFairness, AStepYieldsTheSameAtAnyNumberOfKeysAndConsumers) {
  World world;
  world.create("q");
  for (int i = 0; i < 5000; ++i) world.send("q", "m", "k" + std::to_string(i));
  for (int i = 0; i < 500; ++i) {
    world.attach_as({.queue = "q",
                     .consumer = ConsumerNumber{2000U + static_cast<unsigned>(i)},
                     .consumer_id = "c" + std::to_string(i),
                     .credit = 0,
                     .sink = {},
                     .error = {}});
  }
  world.settle();
  world.facts.clear();
  world.run(CreditCommand{.queue = "q", .consumer = ConsumerNumber{2300}, .added = 1});
  EXPECT_EQ(world.take(ConsumerNumber{2300}).size(), 1U);
  EXPECT_EQ(world.facts.size(), 1U);
  EXPECT_EQ(world.rows_read, 0U);
  EXPECT_EQ(world.stats("q").active_keys, 5000U);
}

TEST(MachineThrottle, ABurstGoesAtOnceAndThenOneMessagePerInterval) {
  World world;
  world.create("q", throttles({{"t", {.rate = 10, .burst = 3}}}));
  for (int i = 1; i <= 6; ++i) world.send("q", throttled("m" + std::to_string(i), {"t"}));
  const ConsumerNumber alice = world.attach("q", "alice");
  EXPECT_EQ(world.take_payloads(alice), (Payloads{"m1", "m2", "m3"}));
  // The machine does not poll in between: the next refill of the bucket is a deadline.
  EXPECT_EQ(world.machine().next_deadline(), world.now() + milliseconds{100});
  EXPECT_FALSE(world.machine().deliver(world.now(), 100));
  world.advance(milliseconds{100});
  EXPECT_EQ(world.take_payloads(alice), (Payloads{"m4"}));
  world.advance(milliseconds{99});
  EXPECT_TRUE(world.take(alice).empty());
  world.advance(milliseconds{1});
  EXPECT_EQ(world.take_payloads(alice), (Payloads{"m5"}));
}

TEST(MachineThrottle, AMessageWaitsUntilAllItsBucketsHaveAToken) {
  World world;
  world.create("q",
               throttles({{"slow", {.rate = 1, .burst = 1}}, {"fast", {.rate = 10, .burst = 1}}}));
  world.send("q", throttled("m1", {"slow", "fast"}));
  world.send("q", throttled("m2", {"fast", "slow"}));
  world.send("q", throttled("m3", {"fast"}));
  const ConsumerNumber alice = world.attach("q", "alice");
  EXPECT_EQ(world.take_payloads(alice), (Payloads{"m1"}));
  world.advance_in_steps(milliseconds{999});
  EXPECT_EQ(world.take_payloads(alice), (Payloads{"m3"}));
  world.advance_in_steps(milliseconds{1});
  EXPECT_EQ(world.take_payloads(alice), (Payloads{"m2"}));
}

TEST(MachineThrottle, AThrottledMessageDoesNotBlockTheRestOfItsKey) {
  World world;
  world.create("q", throttles({{"t", {.rate = 1, .burst = 1}}}));
  world.send("q", throttled("t1", {"t"}));
  world.send("q", throttled("t2", {"t"}));
  world.send("q", "free");
  const ConsumerNumber alice = world.attach("q", "alice");
  EXPECT_EQ(world.take_payloads(alice), (Payloads{"t1", "free"}));
  EXPECT_EQ(world.stats("q").ready, 1U);
}

TEST(MachineThrottle, AKeyWithoutARateIsNotThrottled) {
  World world;
  world.create("q", throttles({{"t", {.rate = 1, .burst = 1}}}));
  for (int i = 0; i < 50; ++i) world.send("q", throttled("m", {"unknown"}));
  EXPECT_EQ(world.drain("q").size(), 50U);
}

// Memory is bounded: a key waits once 1 024 of its messages are parked; other keys do not wait.
TEST(MachineThrottle, AKeyWithAThousandParkedMessagesWaits) {
  World world;
  world.create("q", throttles({{"t", {.rate = 1, .burst = 1}}}));
  for (int i = 0; i < 1 + 1024; ++i) {
    NewMessage made = throttled("t", {"t"});
    made.fairness_key = "k";
    world.send("q", made);
  }
  world.send("q", "behind", "k");
  world.send("q", "beside", "other");
  const ConsumerNumber alice = world.attach("q", "alice");
  EXPECT_EQ(world.take_payloads(alice), (Payloads{"t", "beside"}));
  world.advance(seconds{1});
  EXPECT_EQ(world.take_payloads(alice), (Payloads{"t", "behind"}));
}

// A key that waits for its parked messages must go on when those expire or are cancelled.
TEST(MachineThrottle, AKeyGoesOnWhenItsParkedMessagesExpireOrAreCancelled) {
  World world;
  world.create("q", throttles({{"t", {.rate = 0.001, .burst = 1}}}));
  std::vector<Uuid> ids;
  for (int i = 0; i < 1 + 1024; ++i) ids.push_back(world.send("q", throttled("t", {"t"})).id);
  world.send("q", "behind");
  const ConsumerNumber alice = world.attach("q", "alice");
  EXPECT_EQ(world.take_payloads(alice), (Payloads{"t"}));
  for (std::size_t i = 1; i < ids.size(); ++i) EXPECT_FALSE(world.cancel("q", ids[i]).has_value());
  EXPECT_EQ(world.take_payloads(alice), (Payloads{"behind"}));
}

TEST(MachineThrottle, ARateThatIsRaisedOrRemovedCountsAtOnce) {
  World world;
  world.create("q", throttles({{"t", {.rate = 0.001, .burst = 1}}}));
  for (int i = 1; i <= 5; ++i) world.send("q", throttled("m" + std::to_string(i), {"t"}));
  const ConsumerNumber alice = world.attach("q", "alice");
  EXPECT_EQ(world.take_payloads(alice), (Payloads{"m1"}));
  world.run(UpdateQueueCommand{.queue = "q",
                               .settings = throttles({{"t", {.rate = 1, .burst = 2}}}),
                               .error = {},
                               .description = {}});
  EXPECT_EQ(world.take_payloads(alice), (Payloads{"m2", "m3"}));
  world.run(UpdateQueueCommand{.queue = "q",
                               .settings = throttles({{"t", {.rate = 0, .burst = 1}}}),
                               .error = {},
                               .description = {}});
  EXPECT_EQ(world.take_payloads(alice), (Payloads{"m4", "m5"}));
}

TEST(MachineThrottle, ParkedMessagesSurviveARestart) {
  for (const bool clean : {true, false}) {
    World world;
    world.create("q", throttles({{"t", {.rate = 1, .burst = 1}}}));
    for (int i = 1; i <= 4; ++i) world.send("q", throttled("m" + std::to_string(i), {"t"}));
    const ConsumerNumber alice = world.attach("q", "alice");
    EXPECT_EQ(world.take_payloads(alice), (Payloads{"m1"}));
    clean ? world.restart() : world.crash();
    EXPECT_EQ(world.stats("q").ready, 3U);
    const ConsumerNumber again = world.attach("q", "alice");
    EXPECT_EQ(world.take_payloads(again), (Payloads{"m2"}));
    world.advance_in_steps(seconds{2});
    EXPECT_EQ(world.take_payloads(again), (Payloads{"m3", "m4"}));
  }
}

// A turn is min(credit, 64, max(1, pending / consumers with credit)).
struct TurnCase {
  std::uint64_t pending;
  std::uint64_t consumers;
  std::uint64_t credit;
  std::size_t expected;
};
class MachineTurn : public ::testing::TestWithParam<TurnCase> {};

TEST_P(MachineTurn, IsItsShareWithinCreditAndSixtyFour) {
  const TurnCase& turn = GetParam();
  World world;
  world.create("q");
  world.send_many("q", "m", static_cast<int>(turn.pending));
  for (std::uint64_t i = 1; i <= turn.consumers; ++i) {
    QueueCommand attach = AttachCommand{.queue = "q",
                                        .consumer = ConsumerNumber{i},
                                        .consumer_id = "c" + std::to_string(i),
                                        .credit = turn.credit,
                                        .sink = {},
                                        .error = {}};
    world.machine().execute(attach, world.now());
  }
  world.facts.clear();
  world.machine().deliver(world.now(), 1);
  ASSERT_EQ(world.facts.size(), 1U);
  EXPECT_EQ(std::get<Leased>(world.facts[0]).items.size(), turn.expected);
}

INSTANTIATE_TEST_SUITE_P(Formula, MachineTurn,
                         ::testing::Values(TurnCase{200, 1, 1000, 64}, TurnCase{10, 1, 1000, 10},
                                           TurnCase{200, 1, 7, 7}, TurnCase{100, 10, 1000, 10},
                                           TurnCase{5, 10, 1000, 1}, TurnCase{1000, 2, 50, 50}));

// Traps: "credit by timer", "messages beyond the credit dropped".
TEST(MachineCredit, WhatIsBeyondTheCreditWaitsForMoreOfIt) {
  World world;
  world.create("q");
  world.send_many("q", "m", 5);
  world.attach_as({.queue = "q",
                   .consumer = ConsumerNumber{1},
                   .consumer_id = "alice",
                   .credit = 2,
                   .sink = {},
                   .error = {}});
  EXPECT_EQ(world.take_payloads(ConsumerNumber{1}), (Payloads{"m1", "m2"}));
  world.advance(seconds{1});
  EXPECT_TRUE(world.take(ConsumerNumber{1}).empty());
  EXPECT_EQ(world.stats("q").ready, 3U);
  world.run(CreditCommand{.queue = "q", .consumer = ConsumerNumber{1}, .added = 2});
  EXPECT_EQ(world.take_payloads(ConsumerNumber{1}), (Payloads{"m3", "m4"}));
  world.run(CreditCommand{.queue = "q", .consumer = ConsumerNumber{1}, .added = 2});
  EXPECT_EQ(world.take_payloads(ConsumerNumber{1}), (Payloads{"m5"}));
  // Credit that was not used is kept.
  world.send("q", "m6");
  EXPECT_EQ(world.take_payloads(ConsumerNumber{1}), (Payloads{"m6"}));
}

TEST(MachineCredit, AnAckGivesNoCreditAndCreditNoRoomInFlight) {
  World world;
  world.create("q");
  world.send_many("q", "m", 4);
  world.attach_as({.queue = "q",
                   .consumer = ConsumerNumber{1},
                   .consumer_id = "alice",
                   .in_flight_max = 1,
                   .credit = 2,
                   .sink = {},
                   .error = {}});
  const std::vector<Delivery> got = world.take(ConsumerNumber{1});
  ASSERT_EQ(got.size(), 1U);
  world.run(CreditCommand{.queue = "q", .consumer = ConsumerNumber{1}, .added = 1});
  EXPECT_TRUE(world.take(ConsumerNumber{1}).empty());
  world.ack("q", got[0].token);
  const std::vector<Delivery> second = world.take(ConsumerNumber{1});
  ASSERT_EQ(second.size(), 1U);
  world.ack("q", second[0].token);
  const std::vector<Delivery> third = world.take(ConsumerNumber{1});
  ASSERT_EQ(third.size(), 1U);
  world.ack("q", third[0].token);
  EXPECT_TRUE(world.take(ConsumerNumber{1}).empty());
}

TEST(MachineCredit, MaxInFlightBoundsWhatAConsumerHoldsAndSlowsNobodyElse) {
  World world;
  world.create("q");
  const ConsumerNumber slow = world.attach("q", "slow", 3);
  world.send_many("q", "m", 10);
  EXPECT_EQ(world.take(slow).size(), 3U);
  const ConsumerNumber quick = world.attach("q", "quick");
  EXPECT_EQ(world.take(quick).size(), 7U);
}

TEST(MachineCredit, MaxInFlightBytesStopsAfterTheMessageThatReachesIt) {
  World world;
  world.create("q");
  for (int i = 0; i < 5; ++i) world.send("q", std::string(1000, 'x'));
  world.attach_as({.queue = "q",
                   .consumer = ConsumerNumber{1},
                   .consumer_id = "alice",
                   .in_flight_bytes_max = 1500,
                   .credit = {},
                   .sink = {},
                   .error = {}});
  const std::vector<Delivery> got = world.take(ConsumerNumber{1});
  ASSERT_EQ(got.size(), 2U);
  world.ack("q", got[0].token);
  EXPECT_EQ(world.take(ConsumerNumber{1}).size(), 1U);
}

TEST(MachineCredit, CreditForNobodyIsIgnored) {
  World world;
  world.create("q");
  world.run(CreditCommand{.queue = "q", .consumer = ConsumerNumber{77}, .added = 5});
  world.detach("q", ConsumerNumber{77});
  EXPECT_EQ(world.stats("q").consumers, 0U);
}

QueueMachine::Options small_memory() {
  QueueMachine::Options options;
  options.payload_budget_bytes = 2000;
  options.refill_rows = 4;
  return options;
}

TEST(MachineMemory, OverTheBudgetMessagesSpillAndOrderIsKept) {
  World world(small_memory());
  world.create("q");
  Payloads expected;
  for (int i = 1; i <= 300; ++i) {
    expected.push_back("m" + std::to_string(i));
    world.send("q", expected.back());
  }
  EXPECT_GT(world.spilled_messages, 200U);
  EXPECT_LT(world.machine().payload_bytes(), 2100U);
  EXPECT_EQ(world.stats("q").ready, 300U);
  const ConsumerNumber alice = world.attach("q", "alice", 5);
  Payloads got;
  while (got.size() < expected.size()) {
    const std::vector<Delivery> batch = world.take(alice);
    ASSERT_FALSE(batch.empty()) << got.size();
    EXPECT_LT(world.machine().payload_bytes(), 2600U);
    for (const Delivery& delivery : batch) {
      got.emplace_back(delivery.message->payload());
      world.ack("q", delivery.token);
    }
  }
  EXPECT_EQ(got, expected);
  EXPECT_EQ(world.rows_missing, 0U);
  world.checkpoint();
  EXPECT_TRUE(world.store().table(tables::kMessages).empty());
  EXPECT_TRUE(world.store().table(tables::kIds).empty());
  EXPECT_TRUE(world.store().table(tables::kKeys).empty());
}

TEST(MachineMemory, OrderIsKeptWhenWhatWasLeasedComesBackBetweenSpillAndRefill) {
  World world(small_memory());
  world.create("q");
  world.send_many("q", "m", 100);
  const ConsumerNumber alice = world.attach("q", "alice", 10);
  EXPECT_EQ(world.take(alice).size(), 10U);
  world.detach("q", alice);
  Payloads expected;
  for (int i = 1; i <= 100; ++i) expected.push_back("m" + std::to_string(i));
  EXPECT_EQ(world.drain("q"), expected);
}

// A refill is read first and brought some rounds later: rows that spilled in between are not in it,
// and must not be lost.
TEST(MachineMemory, WhatSpillsWhileARefillIsOnItsWayIsNotTakenForMissing) {
  World world(small_memory());
  world.create("q");
  world.send_many("q", "m", 100);
  ASSERT_GT(world.spilled_messages, 0U);
  const ConsumerNumber alice = world.attach("q", "alice", 1000);
  world.refills_by_hand = true;
  world.settle();
  while (world.refills_wanted() > 0) {
    world.read_refills();
    world.send("q", "late");
    world.bring_refills();
    world.settle();
    if (world.stats("q").delivered_total > 300) break;
  }
  EXPECT_EQ(world.rows_missing, 0U);
  world.refills_by_hand = false;
  world.settle();
  EXPECT_EQ(world.stats("q").ready, 0U);
  EXPECT_EQ(world.take(alice).size(), world.stats("q").enqueued_total);
}

// The same if the refill's rows were cancelled and others spilled after it began.
TEST(MachineMemory, ARefillThatWasOvertakenDoesNotStopTheKey) {
  World world(small_memory());
  world.create("q");
  const ConsumerNumber alice = world.attach("q", "alice", 1);
  world.send("q", "held");
  ASSERT_EQ(world.take(alice).size(), 1U);
  world.send("q", std::string(3000, 'x'), "ballast");
  const Uuid spilled = world.send("q", "spilled");
  ASSERT_EQ(world.spilled_messages, 1U);
  world.refills_by_hand = true;
  const ConsumerNumber bob = world.attach("q", "bob");
  world.settle();
  ASSERT_EQ(world.refills_wanted(), 1U);
  world.read_refills();
  EXPECT_FALSE(world.cancel("q", spilled).has_value());
  world.send("q", "next");
  world.bring_refills();
  world.refills_by_hand = false;
  const Payloads got = world.take_payloads(bob);
  EXPECT_NE(std::ranges::find(got, "next"), got.end());
  EXPECT_EQ(world.rows_missing, 0U);
}

// All rows of a refill under way may have been cancelled.
TEST(MachineMemory, ARefillOfWhatWasCancelledBringsNothingBack) {
  World world(small_memory());
  world.create("q");
  world.send("q", "held");
  const ConsumerNumber alice = world.attach("q", "alice", 1);
  ASSERT_EQ(world.take(alice).size(), 1U);
  world.send("q", std::string(3000, 'x'), "ballast");
  const Uuid spilled = world.send("q", "spilled");
  world.refills_by_hand = true;
  const ConsumerNumber bob = world.attach("q", "bob");
  world.settle();
  world.read_refills();
  EXPECT_FALSE(world.cancel("q", spilled).has_value());
  world.bring_refills();
  EXPECT_EQ(world.take(bob).size(), 1U);
  EXPECT_EQ(world.stats("q").ready, 0U);
  EXPECT_EQ(world.rows_missing, 0U);
}

TEST(MachineMemory, RowsThatAreGoneFromTheStoreAreCountedAndNotWaitedFor) {
  World world(small_memory());
  world.create("q");
  world.send_many("q", "m", 100);
  ASSERT_GT(world.spilled_messages, 0U);
  world.refills_by_hand = true;
  const ConsumerNumber alice = world.attach("q", "alice", 1000);
  world.settle();
  const QueueId queue = world.describe("q").id;
  // As a damaged store would answer.
  world.machine().refill({.request = {.queue = queue,
                                      .key = "",
                                      .delayed = false,
                                      .range = {.table = tables::kMessages,
                                                .begin = world.wanted_refill().range.begin,
                                                .end = {},
                                                .rows_max = 4,
                                                .bytes_max = 1000}},
                          .rows = {},
                          .exhausted = true},
                         world.now());
  world.settle();
  EXPECT_EQ(world.stats("q").ready, 0U);
  EXPECT_EQ(world.rows_missing, world.spilled_messages);
  EXPECT_FALSE(world.take(alice).empty());
}

TEST(MachineMemory, KeysShareTheBudgetAndNoneIsForgotten) {
  World world(small_memory());
  world.create("q");
  for (int i = 0; i < 200; ++i)
    world.send("q", "m" + std::to_string(i), "k" + std::to_string(i % 20));
  const Payloads got = world.drain("q");
  EXPECT_EQ(got.size(), 200U);
}

}  // namespace
}  // namespace baton::machine_test
