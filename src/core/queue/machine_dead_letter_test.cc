// Messages that used up their attempts: dead letters, transfers between shards, redrive.

#include <gtest/gtest.h>

#include "core/queue/machine_operate_fixture.h"

namespace baton::machine_test {
namespace {

TEST(MachineDeadLetter, TheLastAllowedAttemptMovesTheMessageWithHeadersThatSayWhy) {
  World world;
  QueueSettingsPatch settings;
  settings.attempts_max = 2;
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
  settings.attempts_max = 0;
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

/// Two shards with a queue each: "q" in `here`, whose dead letters go to `target` in `there`.
class MachineTransfer : public ::testing::Test {
 protected:
  MachineTransfer() : here(options(false)), there(options(true)) {
    QueueSettingsPatch settings = one_attempt();
    settings.dead_letter_queue = target;
    here.create("q", settings);
  }

  static QueueMachine::Options options(bool other) {
    QueueMachine::Options made;
    made.shards = 2;
    made.shard = shard_of_queue("q", 2);
    if (other) made.shard = 1 - made.shard;
    return made;
  }
  static std::string name_there() {
    int i = 0;
    while (shard_of_queue("dead" + std::to_string(i), 2) == shard_of_queue("q", 2)) ++i;
    return "dead" + std::to_string(i);
  }
  static std::uint64_t shard_of(bool other) { return options(other).shard; }

  static void transfer(World& to, const QueueEffects::Transfer& sent, bool from_there = false) {
    to.run(TransferCommand{.queue = sent.to,
                           .from_shard = shard_of(from_there),
                           .transfer = sent.id,
                           .from_queue = sent.from_queue,
                           .message = sent.message,
                           .error = {}});
  }
  static void done(World& from, const QueueEffects::Transfer& sent) {
    from.run(TransferDoneCommand{.queue = sent.to,
                                 .transfer = sent.id,
                                 .from_queue = sent.from_queue,
                                 .id = sent.message->id()});
  }
  static void forget(World& to, const QueueEffects::Transfer& sent, bool from_there = false) {
    to.run(TransferForgetCommand{
        .queue = sent.to, .from_shard = shard_of(from_there), .transfer = sent.id});
  }

  const std::string target = name_there();
  World here;
  World there;
};

// A transfer keeps the message until the other shard has it, repeats after a restart, and is taken
// once.
TEST_F(MachineTransfer, AMessageForAnotherShardIsNeverLostAndNeverTwice) {
  kill_all(here, "q", {"m"}, "why");
  ASSERT_EQ(here.transfers.size(), 1U);
  EXPECT_EQ(here.stats("q").outgoing, 1U);
  EXPECT_TRUE(here.run(DeleteQueueCommand{.queue = "q", .error = {}}).error.has_value());
  for (const bool clean : {false, true}) {
    clean ? here.restart() : here.crash();
    transfer(there, here.transfers.back());
    clean ? there.restart() : there.crash();
  }
  EXPECT_EQ(here.transfers.size(), 3U);
  EXPECT_EQ(here.transfers.back().id, here.transfers.front().id);
  EXPECT_EQ(there.stats(target).ready, 1U);
  const QueueEffects::Transfer sent = here.transfers.back();
  EXPECT_EQ(sent.message->header("baton-last-error"), "why");
  done(here, sent);
  EXPECT_EQ(here.stats("q").outgoing, 0U);
  forget(there, sent);
  here.restart();
  there.restart();
  EXPECT_EQ(here.transfers.size(), 3U);
  EXPECT_TRUE(there.store().table(tables::kReceived).empty());
  EXPECT_TRUE(here.store().table(tables::kOutgoing).empty());
  EXPECT_EQ(there.drain(target), (Payloads{"m"}));
}

// A message that was transferred the same way twice was once taken for a repetition, and lost.
TEST_F(MachineTransfer, AMessageThatGoesRoundInCirclesIsNeitherLostNorDoubled) {
  kill_all(here, "q", {"m"}, "first");
  const QueueEffects::Transfer first = here.transfers.back();
  transfer(there, first);
  // Redriven before the first shard learns that the first transfer is done.
  EXPECT_EQ(redrive(there, redrive_from(target)).moved, 1U);
  const QueueEffects::Transfer back = there.transfers.back();
  transfer(here, back, true);
  EXPECT_EQ(here.stats("q").ready, 1U);
  EXPECT_EQ(here.stats("q").outgoing, 0U);
  // The message fails again.
  const ConsumerNumber killer = here.attach("q", "killer");
  for (const Delivery& got : here.take(killer)) here.nack("q", got.token, kNow, "second");
  const QueueEffects::Transfer second = here.transfers.back();
  EXPECT_NE(second.id, first.id);
  // The late confirmation of the first transfer does not end the second one.
  done(here, first);
  EXPECT_EQ(here.stats("q").outgoing, 1U);
  for (const bool clean : {false, true}) {
    clean ? here.restart() : here.crash();
    EXPECT_EQ(here.transfers.back().id, second.id);
    transfer(there, here.transfers.back());
    clean ? there.restart() : there.crash();
    EXPECT_EQ(there.stats(target).ready, 1U);
  }
  EXPECT_EQ(there.stats(target).outgoing, 0U) << "that it came again says that it had arrived";
  done(there, back);
  done(here, second);
  forget(there, first);
  forget(there, second);
  forget(here, back, true);
  here.restart();
  there.restart();
  for (World* world : {&here, &there}) {
    EXPECT_TRUE(world->store().table(tables::kReceived).empty());
    EXPECT_TRUE(world->store().table(tables::kOutgoing).empty());
  }
  EXPECT_EQ(here.stats("q").outgoing + here.stats("q").ready, 0U);
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
  command.messages_max = 2;
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

// A redrive never loads the whole dead-letter queue into memory.
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

// The time between two moves must not overflow into the past, which would move all messages at
// once.
TEST(MachineRedriveRate, ARateNextToNothingMovesOneAndThenWaits) {
  World world;
  world.create("q", one_attempt());
  kill_all(world, "q", {"a", "b", "c"}, "no");
  for (const double rate : {1e-300, 1e-9}) {
    RedriveCommand wanted = redrive_from("q.dlq");
    wanted.rate = rate;
    QueueCommand command = wanted;
    const Progress progress = world.machine().execute(command, world.now());
    EXPECT_EQ(std::get<RedriveCommand>(command).moved, 1U) << rate;
    ASSERT_EQ(progress.kind, Progress::Kind::waits) << rate;
    EXPECT_GT(progress.until, world.now() + hours{24 * 365}) << rate;
  }
}

}  // namespace
}  // namespace baton::machine_test
