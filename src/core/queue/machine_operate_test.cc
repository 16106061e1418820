// Everything besides leasing that happens to messages: delay, dedup, dead letters, redrive, cancel,
// purge, delete, limits, retention; all of it across restarts.
//
// More than 500 lines: all claims about an operator's commands.

#include <gtest/gtest.h>

#include "core/queue/machine_operate_fixture.h"

namespace baton::machine_test {
namespace {

/// Every promise about durable state is tested for a clean stop and for a crash, with messages in
/// memory and as rows only.
struct Life {
  bool clean;
  bool in_memory;
};
class MachineLife : public ::testing::TestWithParam<Life> {
 protected:
  MachineLife() : world(GetParam().in_memory ? QueueMachine::Options{} : no_memory()) {
    world.create("q");
  }
  void reboot() { GetParam().clean ? world.restart() : world.crash(); }
  World world;
};
INSTANTIATE_TEST_SUITE_P(Lives, MachineLife,
                         ::testing::Values(Life{true, true}, Life{true, false}, Life{false, true},
                                           Life{false, false}),
                         [](const auto& tested) {
                           return std::string(tested.param.clean ? "Clean" : "Crash") +
                                  (tested.param.in_memory ? "InMemory" : "Spilled");
                         });

TEST_P(MachineLife, MessagesSurviveInOrder) {
  world.send_many("q", "a", 10, "a");
  reboot();
  world.send_many("q", "b", 2, "a");
  EXPECT_EQ(world.stats("q").ready, 12U);
  EXPECT_EQ(world.drain("q"),
            (Payloads{"a1", "a2", "a3", "a4", "a5", "a6", "a7", "a8", "a9", "a10", "b1", "b2"}));
  reboot();
  EXPECT_TRUE(world.drain("q").empty());
  EXPECT_EQ(world.stats("q").bytes, 0U);
  world.restart();
  EXPECT_TRUE(world.store().table(tables::kMessages).empty());
  EXPECT_TRUE(world.store().table(tables::kIds).empty());
}

TEST_P(MachineLife, DelayedMessagesComeInOrderOfTheirTimeAlsoAfterARestart) {
  world.send("q", delayed("third", seconds{30}));
  world.send("q", delayed("first", seconds{10}));
  world.send("q", delayed("fourth", hours{2}));
  world.send("q", delayed("second", seconds{20}));
  reboot();
  EXPECT_EQ(world.stats("q").delayed, 4U);
  const ConsumerNumber alice = world.attach("q", "alice");
  world.advance_in_steps(seconds{10} - Duration{1});
  EXPECT_TRUE(world.take(alice).empty());
  world.advance_in_steps(Duration{1});
  EXPECT_EQ(world.take_payloads(alice), (Payloads{"first"}));
  world.advance_in_steps(seconds{20});
  EXPECT_EQ(world.take_payloads(alice), (Payloads{"second", "third"}));
  world.detach("q", alice);
  reboot();
  const ConsumerNumber bob = world.attach("q", "bob");
  for (const Delivery& got : world.take(bob)) world.ack("q", got.token);
  EXPECT_EQ(world.stats("q").acked_total, 3U);
  world.advance_in_steps(hours{2} - seconds{30});
  EXPECT_EQ(world.take_payloads(bob), (Payloads{"fourth"}));
}

TEST_P(MachineLife, ARetryThatWaitsSurvives) {
  world.send("q", "m");
  const ConsumerNumber alice = world.attach("q", "alice");
  world.nack("q", world.take(alice).at(0).token, {.kind = Retry::Kind::after, .delay = minutes{5}});
  reboot();
  const ConsumerNumber bob = world.attach("q", "bob");
  world.advance_in_steps(minutes{5} - Duration{1});
  EXPECT_TRUE(world.take(bob).empty());
  world.advance_in_steps(Duration{1});
  const std::vector<Delivery> got = world.take(bob);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].attempt, 2U);
  world.ack("q", got[0].token);
  world.restart();
  EXPECT_TRUE(world.store().table(tables::kDelayed).empty());
}

TEST_P(MachineLife, ADuplicateIsAnsweredWithTheFirstIdAndStoresNothing) {
  const EnqueueOutcome first = world.send("q", unique("one", "id"));
  EXPECT_FALSE(first.duplicate);
  reboot();
  const EnqueueOutcome second = world.send("q", unique("two", "id"));
  EXPECT_FALSE(second.error.has_value());
  EXPECT_TRUE(second.duplicate);
  EXPECT_EQ(second.id, first.id);
  EXPECT_EQ(world.stats("q").ready, 1U);
  EXPECT_EQ(world.stats("q").deduplicated_total, 1U);
}

// The window counts from the sending: a message that was acked meanwhile is not sent again either.
TEST_P(MachineLife, ADuplicateIsKnownAfterTheMessageIsGoneAndForgottenAfterTheWindow) {
  world.send("q", unique("one", "id"));
  world.drain("q");
  world.advance(minutes{5} - Duration{1});
  reboot();
  EXPECT_TRUE(world.send("q", unique("two", "id")).duplicate);
  world.advance(Duration{1});
  EXPECT_FALSE(world.send("q", unique("three", "id")).duplicate);
  EXPECT_TRUE(world.send("q", unique("four", "id")).duplicate);
}

// Trap: "a deleted queue's messages coming back".
TEST_P(MachineLife, AQueueCreatedAgainUnderTheNameStartsEmpty) {
  const QueueId old = world.describe("q").id;
  world.send_many("q", "old", 20);
  world.send("q", unique("old", "id"));
  world.send("q", delayed("old", seconds{30}));
  world.send("q", delayed("old", hours{1}));
  const ConsumerNumber alice = world.attach("q", "alice", 5);
  const std::vector<Delivery> held = world.take(alice);
  world.checkpoint();
  remove(world, "q");
  ASSERT_EQ(world.closed.size(), 1U);
  EXPECT_EQ(world.closed[0].reason.code, Errc::queue_not_found);
  EXPECT_EQ(world.ack("q", held.at(0).token)->code, Errc::lease_lost);
  reboot();
  const QueueDescription fresh = world.create("q");
  EXPECT_GT(fresh.id, old);
  EXPECT_FALSE(world.send("q", unique("new", "id")).duplicate);
  reboot();
  world.advance_in_steps(hours{2});
  EXPECT_EQ(world.drain("q"), (Payloads{"new"}));
  EXPECT_EQ(world.stats("q").delayed, 0U);
}

TEST_P(MachineLife, ADeletedQueueLeavesNoRow) {
  world.send_many("q", "m", 3);
  world.send("q", unique("m", "id"));
  world.send("q", delayed("soon", seconds{30}));
  const ConsumerNumber alice = world.attach("q", "alice", 2);
  const std::vector<Delivery> held = world.take(alice);
  world.checkpoint();
  // The store's rows of these two messages are outdated now.
  world.extend("q", held.at(0).token, minutes{9});
  world.ack("q", held.at(1).token);
  world.advance(seconds{30});
  remove(world, "q");
  reboot();
  world.checkpoint();
  for (const TableName& table : tables::kAll) {
    if (table.table != tables::kState) {
      EXPECT_TRUE(world.store().table(table.table).empty()) << table.name;
    }
  }
}

TEST_P(MachineLife, PurgeRemovesWhatWaitsAndKeepsWhatIsLeased) {
  world.send_many("q", "m", 20);
  world.send("q", delayed("soon", seconds{5}));
  world.send("q", delayed("later", hours{1}));
  const ConsumerNumber alice = world.attach("q", "alice", 2);
  const std::vector<Delivery> held = world.take(alice);
  ASSERT_EQ(held.size(), 2U);
  world.checkpoint();
  EXPECT_EQ(purge(world, "q"), 20U);
  EXPECT_EQ(world.stats("q").leased, 2U);
  EXPECT_EQ(world.stats("q").ready, 0U);
  EXPECT_EQ(world.stats("q").delayed, 0U);
  world.send("q", "new");
  reboot();
  world.attach("q", "alice", 2);
  EXPECT_FALSE(world.ack("q", held[0].token).has_value());
  EXPECT_FALSE(world.nack("q", held[1].token, kNow).has_value());
  world.advance(seconds{1});
  EXPECT_EQ(world.stats("q").leased, 2U);
  EXPECT_EQ(world.stats("q").ready + world.stats("q").delayed, 0U);
  EXPECT_EQ(world.rows_missing, 0U);
}

// A spill is written at once, a purge with the next checkpoint: the purge must not erase what was
// sent after it.
TEST_P(MachineLife, WhatSpillsAfterAPurgeIsNotErasedByIt) {
  world.send_many("q", "old", 10, "k");
  world.checkpoint();
  purge(world, "q");
  world.send_many("q", "new", 10, "k");
  world.seal();
  world.send_many("q", "later", 2, "k");
  world.commit();
  const Uuid last = world.send("q", "last", "k");
  reboot();
  EXPECT_FALSE(world.cancel("q", last).has_value());
  EXPECT_EQ(world.stats("q").ready, 12U);
  EXPECT_EQ(world.drain("q").size(), 12U);
  EXPECT_EQ(world.rows_missing, 0U);
}

// A purge does not remove a message that is leased at that time.
TEST_P(MachineLife, WhatIsNackedAfterAPurgeComesBackWhenItIsDue) {
  world.send_many("q", "m", 2);
  const ConsumerNumber alice = world.attach("q", "alice", 2);
  const std::vector<Delivery> held = world.take(alice);
  ASSERT_EQ(held.size(), 2U);
  world.send("q", "waiting");
  purge(world, "q");
  world.nack("q", held[0].token, {.kind = Retry::Kind::after, .delay = seconds{10}});
  world.nack("q", held[1].token, {.kind = Retry::Kind::after, .delay = minutes{10}});
  reboot();
  const ConsumerNumber bob = world.attach("q", "bob");
  world.advance_in_steps(seconds{10});
  EXPECT_EQ(world.take_payloads(bob), (Payloads{"m1"}));
  world.detach("q", bob);
  world.advance_in_steps(minutes{10});
  EXPECT_EQ(world.drain("q"), (Payloads{"m1", "m2"}));
}

TEST_P(MachineLife, CancelFindsAMessageWhereverItIs) {
  const Uuid leased = world.send("q", "leased");
  ASSERT_EQ(world.take(world.attach("q", "alice", 1)).size(), 1U);
  world.send("q", "other");
  const Uuid soon = world.send("q", delayed("soon", seconds{5})).id;
  const Uuid far = world.send("q", delayed("far", hours{1})).id;
  const Uuid ready = world.send("q", "ready");
  reboot();
  for (const Uuid id : {leased, soon, far, ready}) {
    EXPECT_FALSE(world.cancel("q", id).has_value());
    EXPECT_EQ(world.cancel("q", id)->code, Errc::message_not_found);
  }
  reboot();
  world.advance_in_steps(hours{2});
  EXPECT_EQ(world.drain("q"), (Payloads{"other"}));
}

TEST_P(MachineLife, PeekShowsReadyMessagesInOrderAndLeasesNothing) {
  world.send_many("q", "m", 10);
  reboot();
  PeekCommand peek;
  peek.queue = "q";
  peek.messages_max = 4;
  const PeekCommand done = world.run(peek);
  ASSERT_EQ(done.messages.size(), 4U);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_EQ(done.messages[i].message->payload(), "m" + std::to_string(i + 1));
    EXPECT_EQ(done.messages[i].state, MessageState::ready);
  }
  EXPECT_EQ(world.stats("q").ready, 10U);
  EXPECT_EQ(world.drain("q").size(), 10U);
}

TEST_P(MachineLife, PeekByIdSaysWhereAMessageIs) {
  const Uuid leased = world.send("q", "leased");
  const ConsumerNumber alice = world.attach("q", "alice", 1);
  ASSERT_EQ(world.take(alice).size(), 1U);
  const Uuid ready = world.send("q", "ready");
  const Uuid far = world.send("q", delayed("far", hours{1})).id;
  reboot();
  const auto state_of = [&](Uuid id) -> std::optional<MessageState> {
    PeekCommand peek;
    peek.queue = "q";
    peek.id = id;
    const PeekCommand done = world.run(peek);
    if (done.error.has_value()) return std::nullopt;
    return done.messages.at(0).state;
  };
  EXPECT_EQ(state_of(leased), MessageState::leased);
  EXPECT_EQ(state_of(ready), MessageState::ready);
  EXPECT_EQ(state_of(far), MessageState::delayed);
  EXPECT_EQ(state_of(Uuid{}), std::nullopt);
}

TEST_P(MachineLife, DeadLettersAreKeptWithTheReasonAndGoBackByRedrive) {
  update(world, "q", one_attempt());
  kill_all(world, "q", {"a", "b", "c"}, "bad input");
  reboot();
  EXPECT_EQ(world.stats("q.dlq").ready, 3U);
  const RedriveCommand done = redrive(world, redrive_from("q.dlq"));
  EXPECT_EQ(done.matched, 3U);
  EXPECT_EQ(done.moved, 3U);
  reboot();
  EXPECT_EQ(world.stats("q.dlq").ready, 0U);
  const ConsumerNumber alice = world.attach("q", "alice");
  const std::vector<Delivery> got = world.take(alice);
  ASSERT_EQ(got.size(), 3U);
  EXPECT_EQ(got[0].message->payload(), "a");
  EXPECT_EQ(got[0].attempt, 1U);
  EXPECT_EQ(got[0].message->header("baton-last-error"), "bad input");
}

// Trap: "start-up that decodes every message". load() gets no row of `messages` or `delayed`, so
// all that the machine knows after it comes from the other tables.
TEST_P(MachineLife, ARestartReadsNoMessageThatNobodyHolds) {
  world.send_many("q", "m", 500);
  world.send("q", delayed("far", hours{1}));
  world.restart();
  EXPECT_EQ(world.machine().payload_bytes(), 0U);
  EXPECT_TRUE(world.machine().missing_bodies().empty());
  EXPECT_EQ(world.stats("q").ready, 500U);
  EXPECT_EQ(world.stats("q").delayed, 1U);
}

TEST_P(MachineLife, RetentionAndExpiresAfterDropAndCount) {
  QueueSettingsPatch settings;
  settings.retention = minutes{10};
  update(world, "q", settings);
  NewMessage brief = message("brief");
  brief.expires_after = minutes{1};
  NewMessage patient = message("patient");
  patient.expires_after = hours{1};
  world.send("q", brief);
  world.send("q", patient);
  world.send("q", delayed("delayed", minutes{20}));
  reboot();
  world.advance_in_steps(minutes{1});
  const ConsumerNumber alice = world.attach("q", "alice", 1);
  const std::vector<Delivery> got = world.take(alice);
  ASSERT_EQ(got.size(), 1U);
  EXPECT_EQ(got[0].message->payload(), "patient");
  world.nack("q", got[0].token, {.kind = Retry::Kind::after, .delay = minutes{30}});
  world.advance_in_steps(hours{1});
  EXPECT_TRUE(world.take(alice).empty());
  EXPECT_EQ(world.stats("q").ready + world.stats("q").delayed, 0U);
  EXPECT_GE(world.stats("q").dropped_total, 2U);
}

TEST_P(MachineLife, SettingsAndTheNumberOfTheNextQueueSurvive) {
  QueueSettingsPatch settings;
  settings.visibility_timeout = seconds{77};
  settings.weights = {{"a", 5}};
  settings.throttles = {{"t", {.rate = 2.5, .burst = 9}}};
  update(world, "q", settings);
  const QueueSettings before = world.describe("q").settings;
  const QueueId gone = world.create("gone").id;
  remove(world, "gone");
  reboot();
  EXPECT_EQ(world.describe("q").settings, before);
  EXPECT_GT(world.create("new").id, gone);
}

TEST(MachineLimits, AQueueAtItsLimitRefusesAndTakesAgainWhenThereIsRoom) {
  World world;
  QueueSettingsPatch settings;
  settings.messages_max = 2;
  world.create("q", settings);
  world.send_many("q", "m", 2);
  EXPECT_EQ(world.send("q", message("m")).error->code, Errc::queue_full);
  world.drain("q");
  EXPECT_FALSE(world.send("q", message("m")).error.has_value());
  settings.messages_max = 0;
  settings.bytes_max = 1000;
  update(world, "q", settings);
  EXPECT_EQ(world.send("q", message(std::string(1000, 'x'))).error->code, Errc::queue_full);
  EXPECT_FALSE(world.send("q", message(std::string(100, 'x'))).error.has_value());
}

TEST(MachineLimits, LeasedAndDelayedMessagesCountAgainstTheLimit) {
  World world;
  QueueSettingsPatch settings;
  settings.messages_max = 2;
  world.create("q", settings);
  world.send("q", delayed("m", hours{1}));
  world.send("q", "m");
  world.take(world.attach("q", "alice"));
  EXPECT_EQ(world.send("q", message("m")).error->code, Errc::queue_full);
}

TEST(MachineLimits, ABadMessageDoesNotFailItsNeighbours) {
  World world;
  QueueSettingsPatch settings;
  settings.payload_bytes_max = 10;
  world.create("q", settings);
  const EnqueueCommand done = world.run(
      EnqueueCommand{.queue = "q",
                     .messages = {message("good"), message(std::string(11, 'x')), message("too")},
                     .outcomes = {}});
  ASSERT_EQ(done.outcomes.size(), 3U);
  EXPECT_FALSE(done.outcomes[0].error.has_value());
  EXPECT_EQ(done.outcomes[1].error->code, Errc::invalid_argument);
  EXPECT_FALSE(done.outcomes[2].error.has_value());
  EXPECT_EQ(world.stats("q").ready, 2U);
}

TEST(MachineQueues, AnUnknownQueueIsAnErrorForEveryCommand) {
  World world;
  EXPECT_EQ(world.send("no", message("m")).error->code, Errc::queue_not_found);
  EXPECT_EQ(world.cancel("no", Uuid{})->code, Errc::queue_not_found);
  EXPECT_EQ(world.run(PurgeCommand{.queue = "no", .error = {}}).error->code, Errc::queue_not_found);
  EXPECT_EQ(world.run(DeleteQueueCommand{.queue = "no", .error = {}}).error->code,
            Errc::queue_not_found);
  EXPECT_EQ(redrive(world, redrive_from("no")).error->code, Errc::queue_not_found);
  PeekCommand peek;
  peek.queue = "no";
  EXPECT_EQ(world.run(peek).error->code, Errc::queue_not_found);
  EXPECT_EQ(world
                .attach_as({.queue = "no",
                            .consumer = ConsumerNumber{1},
                            .consumer_id = "a",
                            .credit = {},
                            .sink = {},
                            .error = {}})
                .error->code,
            Errc::queue_not_found);
}

TEST(MachineQueues, CreatingAgainWithTheSameSettingsIsFineAndWithOthersIsNot) {
  World world;
  const QueueId id = world.create("q").id;
  EXPECT_EQ(world.create("q").id, id);
  CreateQueueCommand other{.queue = "q", .settings = one_attempt(), .error = {}, .description = {}};
  EXPECT_EQ(world.run(other).error->code, Errc::queue_exists);
}

TEST(MachineQueues, BadNamesAndSettingsAreRefusedAndNamed) {
  World world;
  CreateQueueCommand command{.queue = "", .settings = {}, .error = {}, .description = {}};
  EXPECT_EQ(world.run(command).error->code, Errc::invalid_argument);
  command.queue = std::string(201, 'x');
  EXPECT_EQ(world.run(command).error->code, Errc::invalid_argument);
  command.queue = "with space";
  EXPECT_EQ(world.run(command).error->code, Errc::invalid_argument);
  command.queue = "q";
  command.settings.visibility_timeout = Duration{-1};
  const CreateQueueCommand refused = world.run(command);
  ASSERT_TRUE(refused.error.has_value());
  EXPECT_NE(refused.error->text.find("visibility_timeout"), std::string::npos);
}

TEST(MachineQueues, AnUpdateIsLive) {
  World world;
  world.create("q");
  const ConsumerNumber alice = world.attach("q", "alice", 1);
  world.send_many("q", "m", 2);
  world.ack("q", world.take(alice).at(0).token);
  QueueSettingsPatch settings;
  settings.visibility_timeout = seconds{1};
  // The second message is already leased, under the old timeout; the next message is not.
  const std::vector<Delivery> second = world.take(alice);
  update(world, "q", settings);
  world.ack("q", second.at(0).token);
  world.send("q", "m3");
  EXPECT_EQ(world.take(alice).at(0).deadline, world.now() + seconds{1});
}

TEST(MachineQueues, AnUpdateThatChangesNothingMakesNoFact) {
  World world;
  world.create("q");
  world.facts.clear();
  update(world, "q", {});
  EXPECT_TRUE(world.facts.empty());
}

TEST(MachineQueues, ListGivesTheNamesWithThePrefixInOrder) {
  World world;
  for (const std::string name : {"b1", "a2", "a1", "c"}) world.create(name);
  Payloads names;
  for (const QueueDescription& queue : world.machine().list("a")) names.push_back(queue.name);
  EXPECT_EQ(names, (Payloads{"a1", "a2"}));
  EXPECT_EQ(world.machine().list("").size(), 4U);
}

TEST(MachineQueues, AListGoesOnBehindANameAndSaysWhetherItHasMore) {
  World world;
  for (const std::string name : {"a1", "a2", "a3", "b"}) world.create(name);
  ListQueuesCommand wanted;
  wanted.queue = "a";
  wanted.after = "a1";
  wanted.described_max = 1;

  const ListQueuesCommand first = world.run(wanted);
  wanted.after = "a2";
  const ListQueuesCommand second = world.run(wanted);

  ASSERT_EQ(first.descriptions.size(), 1U);
  EXPECT_EQ(first.descriptions[0].name, "a2");
  EXPECT_TRUE(first.more);
  ASSERT_EQ(second.descriptions.size(), 1U);
  EXPECT_EQ(second.descriptions[0].name, "a3");
  EXPECT_FALSE(second.more);
}

// What the metrics ask for: a bounded number of queues, and how long the oldest message has waited.
TEST(MachineQueues, AListIsBoundedAndTellsTheOldestMessage) {
  World world;
  for (const std::string name : {"a", "b", "c"}) world.create(name);
  world.advance(seconds{1});
  const Instant first = world.now();
  world.send("a", "one");
  world.advance(seconds{5});
  world.send("a", "two");
  ListQueuesCommand wanted;
  wanted.described_max = 2;
  wanted.with_oldest = true;

  const ListQueuesCommand done = world.run(wanted);

  ASSERT_EQ(done.descriptions.size(), 2U);
  EXPECT_EQ(done.left_out, 1U);
  EXPECT_EQ(done.descriptions.at(0).oldest, first);
  EXPECT_EQ(done.descriptions.at(1).oldest, std::nullopt);
}

// After a restart messages stay in the store until they are wanted. An operator must see how long
// they have waited even if no consumer came back.
TEST(MachineQueues, TheOldestMessageIsFoundAfterARestartWithoutConsumers) {
  World world;
  world.create("a");
  const Instant first = world.now();
  world.send("a", "one");
  world.advance(seconds{5});
  world.restart();
  ListQueuesCommand wanted;
  wanted.with_oldest = true;

  EXPECT_EQ(world.run(wanted).descriptions.at(0).oldest, std::nullopt);
  world.settle();
  const ListQueuesCommand done = world.run(wanted);

  ASSERT_EQ(done.descriptions.size(), 1U);
  EXPECT_EQ(done.descriptions.at(0).oldest, first);
}

}  // namespace
}  // namespace baton::machine_test
