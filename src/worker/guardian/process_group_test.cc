#include "worker/guardian/process_group.h"

#include <unistd.h>

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

namespace baton::worker {
namespace {

std::string stat_of(std::string_view name, char state, int threads) {
  return "71 (" + std::string(name) + ") " + state +
         " 1 4711 70 0 -1 4194304 1 2 3 4 5 6 7 8 20 0 " + std::to_string(threads) + " 0 99\n";
}

TEST(ProcessGroup, AZombieIsDead) {
  const auto running = parse_process_state(stat_of("sleep", 'S', 1));
  ASSERT_TRUE(running.has_value());
  EXPECT_EQ(running->group, 4711);
  EXPECT_FALSE(running->dead);
  EXPECT_TRUE(parse_process_state(stat_of("sleep", 'Z', 1))->dead);
}

// Its first thread has ended, and the others work.
TEST(ProcessGroup, AZombieWithThreadsIsNot) {
  EXPECT_FALSE(parse_process_state(stat_of("java", 'Z', 3))->dead);
}

TEST(ProcessGroup, ANameMayHoldAnything) {
  const auto found = parse_process_state(stat_of("a) Z 1 2 (b", 'S', 1));
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->group, 4711);
  EXPECT_FALSE(found->dead);
}

TEST(ProcessGroup, WhatCannotBeReadIsNothing) {
  for (const char* text : {"", "71", "71 (sleep)", "71 (sleep) S 1 x", "71 (sleep) S 1 4711"}) {
    EXPECT_FALSE(parse_process_state(text).has_value()) << text;
  }
}

TEST(ProcessGroup, ThisProcessIsAMemberOfItsGroup) {
  const GroupMembers members = members_of_group(::getpgrp());
  EXPECT_TRUE(std::ranges::find(members.alive, ::getpid()) != members.alive.end());
}

}  // namespace
}  // namespace baton::worker
