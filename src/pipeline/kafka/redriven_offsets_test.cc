#include "pipeline/kafka/redriven_offsets.h"

#include <limits>
#include <set>

#include <gtest/gtest.h>

#include "base/random.h"

namespace baton::pipeline {
namespace {

TEST(RedrivenOffsets, MovesOnOnlyPastWhatIsDone) {
  RedrivenOffsets offsets(10);
  EXPECT_TRUE(offsets.contains(9));
  EXPECT_FALSE(offsets.contains(10));
  offsets.add(12, 13);
  offsets.add(16, 36);
  EXPECT_EQ(offsets.next(), 10);
  EXPECT_EQ(offsets.note(), "redriven1 2 3.20");
  EXPECT_TRUE(offsets.contains(12));
  EXPECT_FALSE(offsets.contains(13));
  offsets.add(10, 12);
  EXPECT_EQ(offsets.next(), 13);
  offsets.add(13, 16);
  EXPECT_EQ(offsets.next(), 36);
  EXPECT_EQ(offsets.note(), "");
}

TEST(RedrivenOffsets, IsAsASetWouldBe) {
  Random random(7);
  RedrivenOffsets offsets(0);
  std::set<std::int64_t> done;
  for (int i = 0; i < 400; ++i) {
    const auto begin = static_cast<std::int64_t>(random.below(300));
    const std::int64_t end = begin + static_cast<std::int64_t>(random.below(3));
    offsets.add(begin, end);
    for (std::int64_t one = begin; one < end; ++one) done.insert(one);
    const RedrivenOffsets again = RedrivenOffsets::of(offsets.next(), offsets.note());
    EXPECT_EQ(again.note(), offsets.note());
    for (std::int64_t one = 0; one < 305; ++one) {
      ASSERT_EQ(again.contains(one), done.contains(one)) << one << " " << offsets.note();
    }
    ASSERT_FALSE(done.contains(offsets.next()));
  }
}

// Offsets in a note that cannot be read count as open: at worst they are sent back twice.
TEST(RedrivenOffsets, ANoteOfSomebodyElseSaysNothing) {
  for (const char* note :
       {"", "x", "redriven2 1.1", "redriven1 0.5", "redriven1 5 x", "redriven1 5.",
        "redriven1 99999999999999999999", "redriven1 1  1", "redriven1 1 -4"}) {
    const RedrivenOffsets offsets = RedrivenOffsets::of(3, note);
    EXPECT_EQ(offsets.next(), 3) << note;
    EXPECT_EQ(offsets.note(), "") << note;
  }
}

// A broker that refuses the note refuses the commit.
TEST(RedrivenOffsets, SaysWhenItsNoteIsFull) {
  RedrivenOffsets offsets(0);
  std::int64_t at = 1;
  for (; offsets.has_room_for(at, at + 1); at += 3) offsets.add(at, at + 1);
  EXPECT_GT(at, 3000);
  EXPECT_LE(offsets.note().size(), 4096U);
  EXPECT_GT(offsets.note().size(), 4080U);
  // A range that closes a gap needs no room, so the run can go on.
  EXPECT_TRUE(offsets.has_room_for(2, 4));
  for (std::int64_t next = 0; next < at; ++next) {
    ASSERT_TRUE(offsets.has_room_for(next, next + 1));
    offsets.add(next, next + 1);
    ASSERT_LE(offsets.note().size(), 4096U);
  }
  EXPECT_EQ(offsets.next(), at);

  RedrivenOffsets wide(0);
  constexpr std::int64_t kFar = std::numeric_limits<std::int64_t>::max() / 4000;
  for (at = kFar; wide.has_room_for(at, at + kFar); at += 2 * kFar) wide.add(at, at + kFar);
  EXPECT_LE(wide.note().size(), 4096U);
}

}  // namespace
}  // namespace baton::pipeline
