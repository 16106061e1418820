// Messages that used up their attempts: dead letters, hand-over between shards, redrive.

#include <gtest/gtest.h>

#include "queue/machine_operate_fixture.h"

namespace baton::machine_test {
namespace {

TEST(MachineDeadLetter, TheLastAllowedAttemptMovesTheMessageWithHeadersThatSayWhy) {
  World world;
  QueueSettingsPatch settings;
  settings.max_attempts = 2;
  world.create("q", settings);
  NewMessage sent = message("payload");
  sent.headers = {{"mine", "kept"}};
  sent.fairness_key = "tenant";
  const Uuid id = world.send("q", sent).id;
  const ConsumerNumber alice = world.attach("q", "alice");
  const Instant first = world.now();
  world.nack("q", world.take(alice).at(0).token, kNow, "one");
  world.advance(seconds{3});
  world.nack("q", world.take(alice).at(0).token, kNow, "two");
  EXPECT_TRUE(world.take(alice).empty());
  const std::vector<Delivery> dead = world.take(world.attach("q.dlq", "operator"));
  ASSERT_EQ(dead.size(), 1U);
  const Message& letter = *dead[0].message;
  EXPECT_EQ(letter.id(), id);
  EXPECT_EQ(letter.payload(), "payload");
  EXPECT_EQ(letter.fairness_key(), "tenant");
  EXPECT_EQ(letter.header("mine"), "kept");
  EXPECT_EQ(letter.header("baton-source-queue"), "q");
  EXPECT_EQ(letter.header("baton-attempts"), "2");
  EXPECT_EQ(letter.header("baton-first-failure-ns"), std::to_string(first.ns));
  EXPECT_EQ(letter.header("baton-last-failure-ns"), std::to_string(world.now().ns));
  EXPECT_EQ(letter.header("baton-last-error"), "two");
}

TEST(MachineDeadLetter, TheDefaultIsSixteenAttemptsAndZeroIsNoLimit) {
  World world;
  QueueSettingsPatch settings;
  settings.max_attempts = 0;
  world.create("for-ever", settings);
  world.create("q");
  for (const std::string queue : {"q", "for-ever"}) {
    world.send(queue, "m");
    const ConsumerNumber alice = world.attach(queue, "alice");
    for (int attempt = 1; attempt <= 16; ++attempt) {
      const std::vector<Delivery> got = world.take(alice);
      ASSERT_EQ(got.size(), 1U) << queue << attempt;
      world.nack(queue, got[0].token, kNow);
    }
  }
  EXPECT_EQ(world.stats("q").dead_lettered_total, 1U);
  EXPECT_EQ(world.stats("for-ever").dead_lettered_total, 0U);
}

TEST(MachineDeadLetter, ADeadLetterQueueHasNone) {
  World world;
  world.create("q.dlq", one_attempt());
  world.send("q.dlq", "m");
  const ConsumerNumber alice = world.attach("q.dlq", "alice");
  for (int i = 0; i < 5; ++i) {
    const std::vector<Delivery> got = world.take(alice);
    ASSERT_EQ(got.size(), 1U);
    world.nack("q.dlq", got[0].token, kNow);
  }
  EXPECT_TRUE(world.machine().list("q.dlq.dlq").empty());
}

TEST(MachineDeadLetter, GoesWhereTheSettingSays) {
  World world;
  QueueSettingsPatch settings = one_attempt();
  settings.dead_letter_queue = "graveyard";
  world.create("q", settings);
  kill_all(world, "q", {"m"}, "why");
  EXPECT_EQ(world.stats("graveyard").ready, 1U);
}

TEST(MachineDeadLetter, AQueueCannotBeItsOwn) {
  World world;
  QueueSettingsPatch settings = one_attempt();
  settings.dead_letter_queue = "q";
  const auto created = world.run(
      CreateQueueCommand{.queue = "q", .settings = settings, .error = {}, .description = {}});
  ASSERT_TRUE(created.error.has_value());
  EXPECT_EQ(created.error->code, Errc::invalid_argument);
  EXPECT_NE(created.error->text.find("dead_letter_queue"), std::string::npos);

  world.create("q", one_attempt());
  const auto updated = world.run(
      UpdateQueueCommand{.queue = "q", .settings = settings, .error = {}, .description = {}});
  ASSERT_TRUE(updated.error.has_value());
  EXPECT_EQ(updated.error->code, Errc::invalid_argument);
}

TEST(MachineDeadLetter, ReleasesAndUnwrittenDeliveriesNeverKill) {
  World world;
  world.create("q", one_attempt());
  world.send("q", "m");
  for (int i = 0; i < 5; ++i) {
    const ConsumerNumber alice = world.attach("q", "alice");
    const std::vector<Delivery> got = world.take(alice);
    ASSERT_EQ(got.size(), 1U);
    world.detach("q", alice, {got[0].token});
  }
  EXPECT_EQ(world.stats("q").dead_lettered_total, 0U);
}

// Across shards: kept until the other shard has it, sent again after a restart, taken once.
TEST(MachineTransfer, AMessageForAnotherShardIsNeverLostAndNeverTwice) {
  QueueMachine::Options first;
  first.shards = 2;
  first.shard = shard_of_queue("q", 2);
  QueueMachine::Options second = first;
  second.shard = 1 - first.shard;
  std::string target = "dead0";
  for (int i = 1; shard_of_queue(target, 2) != second.shard; ++i)
    target = "dead" + std::to_string(i);
  World here(first);
  World there(second);
  QueueSettingsPatch settings = one_attempt();
  settings.dead_letter_queue = target;
  here.create("q", settings);
  kill_all(here, "q", {"m"}, "why");
  ASSERT_EQ(here.transfers.size(), 1U);
  EXPECT_EQ(here.stats("q").outgoing, 1U);
  EXPECT_TRUE(here.run(DeleteQueueCommand{.queue = "q", .error = {}}).error.has_value());
  for (const bool clean : {false, true}) {
    clean ? here.restart() : here.crash();
    const QueueEffects::Transfer& sent = here.transfers.back();
    there.run(TransferCommand{.queue = sent.to,
                              .from_shard = first.shard,
                              .from_queue = sent.from_queue,
                              .message = sent.message,
                              .error = {}});
    clean ? there.restart() : there.crash();
  }
  EXPECT_EQ(here.transfers.size(), 3U);
  EXPECT_EQ(there.stats(target).ready, 1U);
  const QueueEffects::Transfer sent = here.transfers.back();
  EXPECT_EQ(sent.message->header("baton-last-error"), "why");
  here.run(TransferDoneCommand{
      .queue = target, .from_queue = sent.from_queue, .id = sent.message->id()});
  EXPECT_EQ(here.stats("q").outgoing, 0U);
  there.run(
      TransferForgetCommand{.queue = target, .from_shard = first.shard, .id = sent.message->id()});
  here.restart();
  there.restart();
  EXPECT_EQ(here.transfers.size(), 3U);
  EXPECT_TRUE(there.store().table(tables::kReceived).empty());
  EXPECT_TRUE(here.store().table(tables::kOutgoing).empty());
  EXPECT_EQ(there.drain(target), (Payloads{"m"}));
}

class MachineRedrive : public ::testing::TestWithParam<bool> {
 protected:
  MachineRedrive() : world(GetParam() ? QueueMachine::Options{} : no_memory()) {
    world.create("q", one_attempt());
    world.create("other");
    kill_all(world, "q", {"a", "b", "c"}, "timeout");
    kill_all(world, "q", {"d", "e"}, "bad input");
  }
  World world;
};
INSTANTIATE_TEST_SUITE_P(Places, MachineRedrive, ::testing::Bool(),
                         [](const auto& tested) { return tested.param ? "InMemory" : "Spilled"; });

TEST_P(MachineRedrive, MovesAllBackToWhereTheyCameFrom) {
  const RedriveCommand done = redrive(world, redrive_from("q.dlq"));
  EXPECT_EQ(done.moved, 5U);
  EXPECT_EQ(done.skipped, 0U);
  EXPECT_EQ(world.drain("q"), (Payloads{"a", "b", "c", "d", "e"}));
  EXPECT_TRUE(world.drain("q.dlq").empty());
}

TEST_P(MachineRedrive, MovesNoMoreThanAsked) {
  RedriveCommand command = redrive_from("q.dlq");
  command.max = 2;
  EXPECT_EQ(redrive(world, command).moved, 2U);
  EXPECT_EQ(world.stats("q").ready, 2U);
  EXPECT_EQ(world.drain("q.dlq"), (Payloads{"c", "d", "e"}));
}

TEST_P(MachineRedrive, ADryRunCountsAndMovesNothing) {
  RedriveCommand command = redrive_from("q.dlq");
  command.dry_run = true;
  world.facts.clear();
  const RedriveCommand done = redrive(world, command);
  EXPECT_EQ(done.matched, 5U);
  EXPECT_EQ(done.moved, 0U);
  EXPECT_TRUE(world.facts.empty());
  EXPECT_EQ(world.stats("q.dlq").ready, 5U);
}

TEST_P(MachineRedrive, MovesWhatTheFilterMatches) {
  RedriveCommand command = redrive_from("q.dlq");
  command.reason_contains = "input";
  EXPECT_EQ(redrive(world, command).moved, 2U);
  EXPECT_EQ(world.drain("q"), (Payloads{"d", "e"}));
  command = redrive_from("q.dlq");
  command.source_queue = "nobody";
  EXPECT_EQ(redrive(world, command).matched, 0U);
  EXPECT_EQ(world.drain("q.dlq"), (Payloads{"a", "b", "c"}));
}

TEST_P(MachineRedrive, MovesToAnotherQueueOrSkipsWhereThereIsNone) {
  RedriveCommand command = redrive_from("q.dlq");
  command.to = "nowhere";
  const RedriveCommand lost = redrive(world, command);
  EXPECT_EQ(lost.moved, 0U);
  EXPECT_EQ(lost.skipped, 5U);
  command.to = "other";
  EXPECT_EQ(redrive(world, command).moved, 5U);
  EXPECT_EQ(world.stats("other").ready, 5U);
  EXPECT_EQ(world.stats("q.dlq").ready, 0U);
}

// Never loads the dead-letter queue into memory.
TEST(MachineRedriveMemory, ALargeDeadLetterQueueIsMovedAPageAtATime) {
  World world(no_memory());
  world.create("q", one_attempt());
  Payloads payloads;
  for (int i = 0; i < 1000; ++i) payloads.push_back("m" + std::to_string(i));
  world.create("from");
  for (const std::string& payload : payloads) world.send("from", payload);
  RedriveCommand command = redrive_from("from");
  command.to = "q";
  EXPECT_EQ(redrive(world, command).moved, 1000U);
  EXPECT_EQ(world.machine().payload_bytes(), 0U);
  EXPECT_EQ(world.drain("q"), payloads);
}

TEST(MachineRedriveMemory, ARateIsKept) {
  World world(no_memory());
  world.create("from");
  world.create("to");
  world.send_many("from", "m", 50);
  RedriveCommand command = redrive_from("from");
  command.to = "to";
  command.rate = 10;
  const Instant begin = world.now();
  EXPECT_EQ(redrive(world, command).moved, 50U);
  EXPECT_GE(world.now() - begin, seconds{4});
  EXPECT_LE(world.now() - begin, seconds{6});
}

}  // namespace
}  // namespace baton::machine_test
