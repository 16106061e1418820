#include "server/app/watches.h"

#include <gtest/gtest.h>

namespace baton {
namespace {

QueueDescription queue_with(const std::string& name, std::uint64_t dead_letters) {
  QueueDescription queue;
  queue.name = name;
  queue.stats.dead_lettered_total = dead_letters;
  return queue;
}

TEST(DeadLetterWatch, TellsTheFirstOfEachQueueOnce) {
  DeadLetterWatch watch;
  EXPECT_TRUE(watch.look({queue_with("a", 0), queue_with("b", 0)}).empty());
  EXPECT_EQ(watch.look({queue_with("a", 0), queue_with("b", 3)}), (std::vector<std::string>{"b"}));
  EXPECT_EQ(watch.look({queue_with("a", 1), queue_with("b", 9)}), (std::vector<std::string>{"a"}));
}

GroupReport report(std::uint64_t lag, bool has_consumer) {
  GroupReport out;
  out.description.group = {.stream = "events", .partition = 0, .name = "billing"};
  if (has_consumer) out.description.members.emplace_back();
  out.lag = lag;
  return out;
}

// A consumer that restarts is away for a moment: that must not be logged.
TEST(GroupWatch, TellsOnlyWhatLasts) {
  GroupWatch watch;
  EXPECT_TRUE(watch.look({report(7, false)}).empty());
  EXPECT_TRUE(watch.look({report(7, true)}).empty());
  EXPECT_TRUE(watch.look({report(7, false)}).empty());
  const auto told = watch.look({report(8, false)});
  ASSERT_EQ(told.size(), 1U);
  EXPECT_EQ(told[0].group.name, "billing");
  EXPECT_EQ(told[0].lag, 8U);
}

TEST(GroupWatch, TellsItOnceUntilItIsOver) {
  GroupWatch watch;
  watch.look({report(7, false)});
  EXPECT_EQ(watch.look({report(7, false)}).size(), 1U);
  EXPECT_TRUE(watch.look({report(9, false)}).empty());
  EXPECT_TRUE(watch.look({report(0, false)}).empty());
  EXPECT_TRUE(watch.look({report(1, false)}).empty());
  EXPECT_EQ(watch.look({report(2, false)}).size(), 1U);
}

}  // namespace
}  // namespace baton
