#include "core/stream/retention.h"

#include <vector>

#include <gtest/gtest.h>

namespace baton {
namespace {

using std::chrono::seconds;

constexpr Instant at(std::int64_t second) { return Instant{second * 1'000'000'000}; }
SegmentExtent segment(std::uint64_t bytes, std::int64_t second) {
  return {bytes, TimestampMs{second * 1000}};
}

TEST(Retention, WithoutRulesEverythingStays) {
  const std::vector<SegmentExtent> segments{segment(1, 1), segment(1, 2), segment(1, 3)};
  EXPECT_EQ(count_expired(segments, {}, Instant::never()), 0U);
  EXPECT_EQ(count_expired({}, {.age = seconds{1}, .bytes = 0}, Instant::never()), 0U);
}

TEST(Retention, ASegmentGoesWhenItsNewestRecordIsTooOld) {
  const std::vector<SegmentExtent> segments{segment(1, 10), segment(1, 20), segment(1, 30)};
  const RetentionRules rules{.age = seconds{5}, .bytes = {}};
  EXPECT_EQ(count_expired(segments, rules, at(15)), 0U);
  EXPECT_EQ(count_expired(segments, rules, at(16)), 1U);
  EXPECT_EQ(count_expired(segments, rules, at(26)), 2U);
  // The last one is being written.
  EXPECT_EQ(count_expired(segments, rules, at(100)), 2U);
  EXPECT_TRUE(is_past_age(segments.back(), rules, at(100)));
}

// A clock that was ahead for a while must not make a hole in the middle.
TEST(Retention, NothingGoesBeforeWhatIsOlder) {
  const std::vector<SegmentExtent> segments{segment(1, 1000), segment(1, 20), segment(1, 30)};
  EXPECT_EQ(count_expired(segments, {.age = seconds{5}, .bytes = {}}, at(100)), 0U);
}

TEST(Retention, BySizeAtLeastTheLimitIsKept) {
  const std::vector<SegmentExtent> segments{segment(100, 1), segment(100, 2), segment(50, 3)};
  const auto count = [&](std::uint64_t bytes) {
    return count_expired(segments, {.age = {}, .bytes = bytes}, at(3));
  };
  EXPECT_EQ(count(151), 0U);
  EXPECT_EQ(count(150), 1U);
  EXPECT_EQ(count(51), 1U);
  EXPECT_EQ(count(50), 2U);
  EXPECT_EQ(count(0), 2U);
}

TEST(Retention, ExtremeTimestampsDoNotOverflow) {
  const std::vector<SegmentExtent> segments{
      {1, TimestampMs{std::numeric_limits<std::int64_t>::max()}}, segment(1, 1)};
  EXPECT_EQ(count_expired(segments, {.age = Duration::max(), .bytes = {}}, at(1)), 0U);
  const std::vector<SegmentExtent> old{{1, TimestampMs{std::numeric_limits<std::int64_t>::min()}},
                                       segment(1, 1)};
  EXPECT_EQ(count_expired(old, {.age = seconds{1}, .bytes = {}}, at(1)), 1U);
}

}  // namespace
}  // namespace baton
