// Time-to-live. Time is an argument: nothing here waits.

#include <gtest/gtest.h>

#include "core/kv/machine_fixture.h"

namespace baton::kv_test {
namespace {

class KvExpiryTest : public testing::Test {
 protected:
  KvExpiryTest() { world_.create(); }
  template <class Fact>
  [[nodiscard]] std::size_t count_facts() const {
    std::size_t count = 0;
    for (const KvFact& fact : world_.facts) count += std::holds_alternative<Fact>(fact) ? 1U : 0U;
    return count;
  }
  World world_;
};

TEST_F(KvExpiryTest, AKeyLivesUntilItsDeadlineAndNotAtIt) {
  world_.put("k", "1", seconds{5});
  EXPECT_EQ(world_.machine().next_deadline(), world_.now() + seconds{5});
  world_.advance(seconds{5} - Duration{1});
  EXPECT_EQ(world_.value("k"), "1");
  world_.advance(Duration{1});
  EXPECT_EQ(world_.value("k"), "-");
  EXPECT_EQ(world_.machine().next_deadline(), Instant::never());
}

// Nobody may act on a key that is over, whether or not the expiry's turn has come; and what was
// answered follows from the facts, so that it holds after a crash too.
TEST_F(KvExpiryTest, WhoeverMeetsADueKeyRecordsItsExpiryFirst) {
  const Revision first = world_.put("k", "1", seconds{1}).revision;
  world_.advance(seconds{1});
  world_.facts.clear();
  EXPECT_EQ(world_.get("k"), nullptr);
  ASSERT_EQ(world_.facts.size(), 1U);
  const auto* expired = std::get_if<KvExpired>(&world_.facts[0]);
  ASSERT_NE(expired, nullptr);
  EXPECT_EQ(expired->revision, next(first));
  EXPECT_EQ(world_.machine().expire(world_.now(), 10), 0U);
}

TEST_F(KvExpiryTest, ACompareAndSetCannotReviveADueKey) {
  const Revision first = world_.put("k", "1", seconds{1}).revision;
  world_.advance(seconds{2});
  const KvOutcome late = world_.cas("k", first, "2", seconds{1});
  EXPECT_EQ(late.verdict, Verdict::refused);
  EXPECT_EQ(late.current, nullptr);
  const KvOutcome made = world_.cas("k", Revision{}, "new");
  EXPECT_EQ(made.verdict, Verdict::done);
  EXPECT_EQ(made.revision, Revision{3});
  EXPECT_EQ(world_.get("k")->created_revision, Revision{3});
}

TEST_F(KvExpiryTest, APutOverADueKeyMakesANewOne) {
  world_.put("k", "1", seconds{1});
  world_.advance(seconds{1});
  world_.put("k", "2");
  EXPECT_EQ(count_facts<KvExpired>(), 1U);
  EXPECT_EQ(world_.get("k")->version, 1U);
}

TEST_F(KvExpiryTest, RemovingADueKeyFindsItExpired) {
  const Revision first = world_.put("k", "1", seconds{1}).revision;
  world_.advance(seconds{1});
  EXPECT_EQ(world_.remove("k", first).verdict, Verdict::refused);
  EXPECT_EQ(count_facts<KvRemoved>(), 0U);
  EXPECT_EQ(count_facts<KvExpired>(), 1U);
}

TEST_F(KvExpiryTest, AListShowsNoDueKey) {
  for (const char* key : {"a", "b", "c", "d"}) world_.put(key, "1", seconds{1});
  world_.put("c", "1");
  world_.advance(seconds{1});
  const KvPage page = world_.list({.bucket = "b", .prefix = {}, .after = {}, .entries_max = 3});
  ASSERT_EQ(page.entries.size(), 1U);
  EXPECT_EQ(page.entries[0]->key, "c");
  // What is due counts as looked at, so that a page records no more than its size.
  EXPECT_EQ(count_facts<KvExpired>(), 2U);
  EXPECT_EQ(page.next, "c");
  EXPECT_EQ(page.revision, world_.revision());
}

TEST_F(KvExpiryTest, EachWriteSetsTheDeadlineAnewOrClearsIt) {
  Revision revision = world_.put("k", "1", seconds{5}).revision;
  for (int beat = 0; beat < 10; ++beat) {
    world_.advance(seconds{2});
    const KvOutcome renewed = world_.cas("k", revision, "1", seconds{5});
    ASSERT_EQ(renewed.verdict, Verdict::done);
    revision = renewed.revision;
    EXPECT_EQ(world_.machine().next_deadline(), world_.now() + seconds{5});
  }
  world_.cas("k", revision, "1");
  EXPECT_EQ(world_.machine().next_deadline(), Instant::never());
  world_.advance(seconds{1000});
  EXPECT_EQ(world_.value("k"), "1");
}

TEST_F(KvExpiryTest, ExpireTakesTheLongestOverdueFirstAndNoMoreThanAsked) {
  world_.create("other");
  world_.put("late", "1", seconds{3});
  world_.put("early", "1", seconds{1});
  world_.put("never", "1");
  world_.write(
      {.bucket = "other", .key = "middle", .value = {}, .expected = {}, .ttl = seconds{2}});
  world_.advance(seconds{3});
  world_.facts.clear();
  EXPECT_EQ(world_.machine().expire(world_.now(), 2), 2U);
  ASSERT_EQ(world_.facts.size(), 2U);
  EXPECT_EQ(std::get<KvExpired>(world_.facts[0]).key, "early");
  EXPECT_EQ(std::get<KvExpired>(world_.facts[1]).key, "middle");
  EXPECT_EQ(world_.machine().expire(world_.now(), 10), 1U);
  EXPECT_EQ(world_.machine().expire(world_.now(), 10), 0U);
  EXPECT_EQ(world_.value("never"), "1");
  EXPECT_EQ(world_.machine().totals().expired_total, 3U);
}

TEST_F(KvExpiryTest, DeadlinesSurviveARestartFromRowsAndFromFacts) {
  world_.put("row", "1", seconds{5});
  world_.checkpoint();
  world_.put("fact", "1", seconds{3});
  world_.restart();
  EXPECT_EQ(world_.machine().next_deadline(), world_.now() + seconds{3});
  world_.advance(seconds{4});
  EXPECT_EQ(world_.value("fact"), "-");
  EXPECT_EQ(world_.value("row"), "1");
  EXPECT_EQ(world_.machine().next_deadline(), world_.now() + seconds{1});
}

TEST_F(KvExpiryTest, ADeletedBucketLeavesNoDeadline) {
  world_.put("k", "1", seconds{1});
  ASSERT_TRUE(world_.machine().delete_bucket("b").has_value());
  EXPECT_EQ(world_.machine().next_deadline(), Instant::never());
  world_.advance(seconds{2});
  EXPECT_EQ(world_.machine().expire(world_.now(), 10), 0U);
}

}  // namespace
}  // namespace baton::kv_test
