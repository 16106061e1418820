#include "server/session/subscription_talk.h"

#include <string>

#include <gtest/gtest.h>

#include "server/session/limits.h"

namespace baton::subscription {
namespace {

Batches batch(std::size_t bytes) {
  Batches out;
  out.chunk.batches.assign(bytes, 'b');
  return out;
}

/// The kinds of the next output, by their index in Said: 2 is a batch.
std::string take(OutputQueue& queue) {
  Output output;
  queue.take(output);
  std::string kinds;
  for (const Said& said : output) kinds += std::to_string(said.index());
  return kinds;
}

TEST(OutputQueue, AnOutputEndsWhereAKindWouldGoBack) {
  OutputQueue queue;
  queue.say(Started{});
  queue.say(Update{});
  queue.say_batch(&queue, batch(10), {});
  queue.say(Update{});
  queue.say(Closed{});
  EXPECT_EQ(take(queue), "012");
  EXPECT_EQ(take(queue), "14");
  EXPECT_TRUE(queue.empty());
  EXPECT_EQ(queue.bytes(), 0U);
}

TEST(OutputQueue, AnOutputIsBoundedButNeverEmpty) {
  OutputQueue queue;
  queue.say_batch(&queue, batch(2 * limits::kFrameBytes), {});
  queue.say_batch(&queue, batch(limits::kFrameBytes / 2), {});
  queue.say_batch(&queue, batch(limits::kFrameBytes / 4), {});
  queue.say_batch(&queue, batch(limits::kFrameBytes / 2), {});
  EXPECT_EQ(take(queue), "2");
  EXPECT_EQ(take(queue), "22");
  EXPECT_EQ(take(queue), "2");
}

TEST(OutputQueue, AHeartbeatsAnswerOvertakesBatchesAndNothingElse) {
  OutputQueue queue;
  queue.say(Update{});
  queue.say_batch(&queue, batch(1), {});
  queue.say_batch(&queue, batch(1), {});
  queue.say_ahead_of_batches(HeartbeatAnswer{});
  EXPECT_EQ(take(queue), "15");
  EXPECT_EQ(take(queue), "22");
}

TEST(OutputQueue, ADroppedBatchGivesItsCreditBack) {
  OutputQueue queue;
  const int first = 0;
  const int second = 0;
  queue.say_batch(&first, batch(100), {.batches = 2, .bytes = 100});
  queue.say_batch(&second, batch(100), {.batches = 1, .bytes = 100});
  queue.say_batch(&first, batch(50), {.batches = 1, .bytes = 50});
  const std::size_t before = queue.bytes();
  const Credit credit = queue.drop_batches(&first);
  EXPECT_EQ(credit.batches, 3U);
  EXPECT_EQ(credit.bytes, 150U);
  EXPECT_LT(queue.bytes(), before - 150);
  EXPECT_EQ(take(queue), "2");
  EXPECT_TRUE(queue.empty());
}

TEST(Credit, IsTakenUpToWhatIsThereAndNeedsBoth) {
  Credit credit{.batches = 3, .bytes = 100};
  const Credit taken = credit.take({.batches = 2, .bytes = 500});
  EXPECT_EQ(taken.batches, 2U);
  EXPECT_EQ(taken.bytes, 100U);
  EXPECT_FALSE(credit.allows_more());
  credit.add({.batches = 0, .bytes = 1});
  EXPECT_TRUE(credit.allows_more());
}

}  // namespace
}  // namespace baton::subscription
