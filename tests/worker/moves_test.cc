// The three use cases, with handlers that prove that no two of them were ever at work on one
// partition: a worker joins, leaves, and is killed.

#include <signal.h>

#include <limits>

#include "worker/on_each_store.h"

namespace baton::worker_tests {
namespace {

// Several times what it takes on an idle machine (a join 100 ms, a leave 50 ms, a kill the lease
// and 1 %), so that a busy one passes; still far less than a heartbeat or a lease.
constexpr std::int64_t kMs = 1'000'000;
constexpr std::int64_t kJoinNsMax = 3'000 * kMs;
constexpr std::int64_t kLeaveNsMax = 500 * kMs;
constexpr std::int64_t kKillNsMax = 1'515 * kMs + 3'000 * kMs;

class Moves : public OnEachStore {};
BATON_ON_EACH_STORE(Moves);

TEST_P(Moves, JoinLeaveAndKill) {
  Fleet fleet({.store = store()});
  fleet.start("w1");
  ASSERT_TRUE(fleet.settles({{"w1", 4}})) << fleet.story();

  // Join: the first keeps the lower half.
  fleet.start("w2");
  ASSERT_TRUE(fleet.settles({{"w1", 2}, {"w2", 2}})) << fleet.story();
  EXPECT_EQ(fleet["w1"].holds(), (Partitions{0, 1}));
  EXPECT_EQ(fleet["w2"].holds(), (Partitions{2, 3}));
  const auto began = fleet["w2"].events("started").at(0)["at_ns"].get<std::int64_t>();
  print_time(name(), "join", fleet["w2"].last_acquired_ns() - began, "3 s");
  EXPECT_LT(fleet["w2"].last_acquired_ns() - began, kJoinNsMax) << fleet.story();

  // Leave: it stops, hands over, and ends with 0.
  std::int64_t leave = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < 3 && leave >= kLeaveNsMax; ++i) {  // Machines do not stall each time.
    if (i > 0) fleet.start("w2");
    ASSERT_TRUE(fleet.settles({{"w1", 2}, {"w2", 2}})) << fleet.story();
    const std::int64_t told = boot_ns();
    fleet["w2"].signal(SIGTERM);
    ASSERT_TRUE(fleet.settles({{"w1", 4}})) << fleet.story();
    EXPECT_EQ(fleet["w2"].wait(), 0) << fleet.story();
    leave = fleet["w1"].last_acquired_ns() - told;
  }
  print_time(name(), "leave", leave, "4 s");
  EXPECT_LT(leave, kLeaveNsMax) << "nobody waits for a heartbeat";

  // Kill: the lease of 1.5 s runs out.
  fleet.start("w2");
  ASSERT_TRUE(fleet.settles({{"w1", 2}, {"w2", 2}})) << fleet.story();
  const std::vector<pid_t> handlers = fleet["w2"].handler_pids();
  EXPECT_EQ(handlers.size(), 2U);
  const std::int64_t killed = boot_ns();
  fleet["w2"].kill();
  fleet.forget("w2");
  ASSERT_TRUE(fleet.settles({{"w1", 4}})) << fleet.story();
  print_time(name(), "kill", fleet["w1"].last_acquired_ns() - killed, "11 s");
  EXPECT_LT(fleet["w1"].last_acquired_ns() - killed, kKillNsMax) << fleet.story();
  for (const pid_t pid : handlers) EXPECT_FALSE(is_alive(pid));

  EXPECT_EQ(fleet["w1"].leave(), 0);
  expect_no_overlap(fleet.handler_log());
}

// Slow handlers: the partition waits for them, and no other handler begins earlier.
TEST_P(Moves, HandlersDrainBeforeTheirPartitionMoves) {
  Fleet fleet({.store = store()});
  fleet.start("w1", {}, {"HANDLER_DRAIN=0.5"});
  ASSERT_TRUE(fleet.settles({{"w1", 4}})) << fleet.story();
  fleet.start("w2");
  ASSERT_TRUE(fleet.settles({{"w1", 2}, {"w2", 2}})) << fleet.story();
  const auto revoked = fleet["w1"].events("revoking").at(0)["at_ns"].get<std::int64_t>();
  EXPECT_GE(fleet["w2"].last_acquired_ns() - revoked, 450'000'000);

  fleet["w1"].signal(SIGTERM);
  ASSERT_TRUE(fleet.settles({{"w2", 4}})) << fleet.story();
  EXPECT_EQ(fleet["w1"].wait(), 0);
  EXPECT_EQ(fleet["w2"].leave(), 0);
  expect_no_overlap(fleet.handler_log());
}

// Killed within a lease, again and again, in both directions.
TEST_P(Moves, KillsInARow) {
  if (!e2e::is_long_run() && GetParam() != stores::Kind::broker) GTEST_SKIP();
  Fleet fleet({.store = store()});
  fleet.start("w1");
  fleet.start("w2");
  ASSERT_TRUE(fleet.settles({{"w1", 2}, {"w2", 2}})) << fleet.story();
  const int rounds = e2e::is_long_run() ? 20 : 3;
  for (int i = 0; i < rounds; ++i) {
    const std::string victim = i % 2 == 0 ? "w1" : "w2";
    const std::string other = i % 2 == 0 ? "w2" : "w1";
    fleet[victim].kill();
    fleet.start(victim);
    ASSERT_TRUE(fleet.settles({{"w1", 2}, {"w2", 2}})) << fleet.story();
  }
  EXPECT_EQ(fleet["w1"].leave(), 0);
  EXPECT_EQ(fleet["w2"].leave(), 0);
  expect_no_overlap(fleet.handler_log());
}

}  // namespace
}  // namespace baton::worker_tests
