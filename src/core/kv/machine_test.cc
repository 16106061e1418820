// Buckets and keys by behaviour. The comments name the rule of the partition leases that rests on
// each.

#include "core/kv/machine.h"

#include <gtest/gtest.h>

#include "core/kv/machine_fixture.h"

namespace baton::kv_test {
namespace {

constexpr Revision kNone{};

class KvMachineTest : public testing::Test {
 protected:
  KvMachineTest() { world_.create(); }
  World world_;
};

TEST_F(KvMachineTest, EveryChangeTakesTheNextRevisionOfItsBucket) {
  world_.create("other");
  EXPECT_EQ(world_.put("k", "1").revision, Revision{1});
  EXPECT_EQ(world_.put("l", "2").revision, Revision{2});
  EXPECT_EQ(world_.remove("k").revision, Revision{3});
  EXPECT_EQ(world_.put("k", "3").revision, Revision{4});
  EXPECT_EQ(world_.revision(), Revision{4});
  EXPECT_EQ(world_.revision("other"), kNone);
}

TEST_F(KvMachineTest, AnEntryKnowsItsRevisionsAndItsVersion) {
  world_.put("k", "1");
  world_.put("other", "x");
  world_.put("k", "2");
  const KvEntryRef entry = world_.get("k");
  ASSERT_NE(entry, nullptr);
  EXPECT_EQ(*entry, (KvEntry{.key = "k",
                             .value = "2",
                             .revision = Revision{3},
                             .created_revision = Revision{1},
                             .version = 2,
                             .expires_at = Instant::never()}));
  world_.remove("k");
  world_.put("k", "3");
  EXPECT_EQ(world_.get("k")->created_revision, Revision{5});
  EXPECT_EQ(world_.get("k")->version, 1U);
}

// A worker creates its session; another one must not make the same again.
TEST_F(KvMachineTest, CompareWithZeroCreatesAndNeverOverwrites) {
  EXPECT_EQ(world_.cas("k", kNone, "mine").verdict, Verdict::done);
  const KvOutcome second = world_.cas("k", kNone, "yours");
  EXPECT_EQ(second.verdict, Verdict::refused);
  ASSERT_NE(second.current, nullptr);
  EXPECT_EQ(second.current->value, "mine");
  EXPECT_EQ(second.current->revision, Revision{1});
  EXPECT_EQ(world_.value("k"), "mine");
}

// The self-test of every adapter: racing compare-and-sets have one winner.
TEST_F(KvMachineTest, OfRacingCompareAndSetsOneWins) {
  const Revision seen = world_.put("k", "0").revision;
  int winners = 0;
  for (int racer = 0; racer < 10; ++racer) {
    if (world_.cas("k", seen, std::to_string(racer)).verdict == Verdict::done) ++winners;
  }
  EXPECT_EQ(winners, 1);
  EXPECT_EQ(world_.value("k"), "0");
  EXPECT_EQ(world_.revision(), Revision{2});
}

// Evict is a compare-and-set on the revision that was seen, so a renewal in between defeats it; and
// after an eviction the late renewal is refused.
TEST_F(KvMachineTest, ARenewalDefeatsAnEvictionAndTheOtherWayRound) {
  const Revision seen = world_.cas("session", kNone, "active 1").revision;
  const Revision renewed = world_.cas("session", seen, "active 2").revision;
  EXPECT_EQ(world_.cas("session", seen, "evicted").verdict, Verdict::refused);
  EXPECT_EQ(world_.cas("session", renewed, "evicted").verdict, Verdict::done);
  const KvOutcome late = world_.cas("session", renewed, "active 3");
  EXPECT_EQ(late.verdict, Verdict::refused);
  EXPECT_EQ(late.current->value, "evicted");
}

// A renewal with nothing new to say must still defeat the evictor: there is no silent touch.
TEST_F(KvMachineTest, WritingTheSameValueIsAChange) {
  const Revision first = world_.put("k", "same").revision;
  EXPECT_EQ(world_.cas("k", first, "same").verdict, Verdict::done);
  EXPECT_EQ(world_.cas("k", first, "other").verdict, Verdict::refused);
}

TEST_F(KvMachineTest, ARefusalChangesNothingAndRecordsNothing) {
  world_.put("k", "1");
  world_.facts.clear();
  EXPECT_EQ(world_.cas("k", Revision{7}, "2").verdict, Verdict::refused);
  EXPECT_EQ(world_.remove("k", Revision{7}).verdict, Verdict::refused);
  EXPECT_EQ(world_.cas("gone", Revision{1}, "2").verdict, Verdict::refused);
  EXPECT_EQ(world_.cas("gone", Revision{1}, "2").current, nullptr);
  EXPECT_TRUE(world_.facts.empty());
  EXPECT_EQ(world_.revision(), Revision{1});
  EXPECT_EQ(world_.machine().totals().refused_total, 4U);
}

TEST_F(KvMachineTest, ARemovalComparesToo) {
  const Revision first = world_.put("k", "1").revision;
  const Revision second = world_.put("k", "2").revision;
  const KvOutcome refused = world_.remove("k", first);
  EXPECT_EQ(refused.verdict, Verdict::refused);
  EXPECT_EQ(refused.current->value, "2");
  EXPECT_EQ(world_.remove("k", second).verdict, Verdict::done);
  EXPECT_EQ(world_.value("k"), "-");
  EXPECT_EQ(world_.remove("k", second).verdict, Verdict::refused);
  EXPECT_EQ(world_.remove("k").verdict, Verdict::unchanged);
  EXPECT_FALSE(
      world_.machine().remove({.bucket = "b", .key = "k", .expected = kNone}, world_.now()));
}

// A key that was removed and made again is another one: a compare-and-set from before must fail.
TEST_F(KvMachineTest, NoRevisionComesBackWithAKey) {
  const Revision first = world_.put("k", "1").revision;
  world_.remove("k");
  world_.put("k", "1");
  EXPECT_EQ(world_.cas("k", first, "2").verdict, Verdict::refused);
}

TEST_F(KvMachineTest, NoRevisionComesBackWithABucket) {
  const Revision first = world_.put("k", "1").revision;
  ASSERT_TRUE(world_.machine().delete_bucket("b").has_value());
  world_.checkpoint();
  world_.restart();
  world_.create();
  EXPECT_GT(world_.put("k", "1").revision, first);
  EXPECT_EQ(world_.cas("k", first, "2").verdict, Verdict::refused);
}

TEST_F(KvMachineTest, RevisionsSurviveARestartWithNoKeyLeft) {
  world_.put("k", "1");
  const Revision last = world_.remove("k").revision;
  world_.checkpoint();
  world_.restart();
  EXPECT_EQ(world_.put("k", "1").revision, next(last));
}

TEST_F(KvMachineTest, ListGivesPagesInOrderByPrefix) {
  for (const char* key : {"a.1", "b.3", "b.1", "b.2", "c.1"}) world_.put(key, key);
  const KvPage first = world_.list({.bucket = "b", .prefix = "b.", .after = {}, .entries_max = 2});
  ASSERT_EQ(first.entries.size(), 2U);
  EXPECT_EQ(first.entries[0]->key, "b.1");
  EXPECT_EQ(first.next, "b.2");
  EXPECT_EQ(first.revision, Revision{5});
  const KvPage last =
      world_.list({.bucket = "b", .prefix = "b.", .after = first.next, .entries_max = 2});
  ASSERT_EQ(last.entries.size(), 1U);
  EXPECT_EQ(last.entries[0]->key, "b.3");
  EXPECT_TRUE(last.next.empty());
  EXPECT_EQ(world_.list({.bucket = "b", .prefix = {}, .after = {}}).entries.size(), 5U);
}

TEST_F(KvMachineTest, APageIsBoundedInBytesButNeverEmpty) {
  world_.put("a", std::string(100, 'x'));
  world_.put("b", std::string(100, 'x'));
  const KvPage page =
      world_.list({.bucket = "b", .prefix = {}, .after = {}, .entries_max = 10, .bytes_max = 10});
  ASSERT_EQ(page.entries.size(), 1U);
  EXPECT_EQ(page.next, "a");
}

TEST_F(KvMachineTest, CreatingABucketAgainIsFineWithTheSameSettingsOnly) {
  const auto again = world_.machine().create_bucket("b", {}, world_.now());
  ASSERT_TRUE(again.has_value());
  EXPECT_FALSE(again->second);
  const auto other = world_.machine().create_bucket("b", {.keys_max = 3}, world_.now());
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().code, Errc::bucket_exists);
}

TEST_F(KvMachineTest, AListOfBucketsGoesOnBehindANameAndSaysWhetherItHasMore) {
  for (const char* const name : {"a1", "a2", "a3"}) world_.create(name);
  const auto [first, first_has_more] =
      world_.machine().list_buckets({.prefix = "a", .after = "a1"}, 1);
  ASSERT_EQ(first.size(), 1U);
  EXPECT_EQ(first[0].name, "a2");
  EXPECT_TRUE(first_has_more);
  const auto [second, second_has_more] =
      world_.machine().list_buckets({.prefix = "a", .after = "a2"}, 1);
  ASSERT_EQ(second.size(), 1U);
  EXPECT_EQ(second[0].name, "a3");
  EXPECT_FALSE(second_has_more);
}

TEST_F(KvMachineTest, BucketsAreListedByNameWithTheirCounts) {
  world_.create("a");
  world_.put("k", "12345");
  const auto buckets = world_.machine().list_buckets().first;
  ASSERT_EQ(buckets.size(), 2U);
  EXPECT_EQ(buckets[0].name, "a");
  EXPECT_EQ(buckets[1].name, "b");
  EXPECT_EQ(buckets[1].keys, 1U);
  EXPECT_EQ(buckets[1].bytes, 6U);
  EXPECT_EQ(world_.machine().totals().bytes, 6U);
  ASSERT_TRUE(world_.machine().delete_bucket("b").has_value());
  EXPECT_EQ(world_.machine().totals().bytes, 0U);
  EXPECT_EQ(world_.machine().totals().keys, 0U);
}

TEST_F(KvMachineTest, RefusesWhatIsOutOfItsLimitsByName) {
  world_.create("small", {.value_bytes_max = 3, .keys_max = 1});
  KvMachine& machine = world_.machine();
  const Instant now = world_.now();
  const auto code = [&](const KvWrite& write) { return machine.put(write, now).error().code; };
  KvWrite write{.bucket = "small", .key = "k", .value = "1234", .expected = {}, .ttl = {}};
  EXPECT_EQ(code(write), Errc::invalid_argument);
  write.value = "123";
  EXPECT_TRUE(machine.put(write, now).has_value());
  EXPECT_TRUE(machine.put(write, now).has_value());  // It is there already: no key more.
  write.key = "l";
  EXPECT_EQ(code(write), Errc::resource_exhausted);
  write.key = "a b";
  EXPECT_EQ(code(write), Errc::invalid_argument);
  write.key = "k";
  write.ttl = Duration{0};
  EXPECT_EQ(code(write), Errc::invalid_argument);
  write.bucket = "none";
  EXPECT_EQ(code(write), Errc::bucket_not_found);
  EXPECT_FALSE(machine.create_bucket("x y", {}, now).has_value());
  EXPECT_FALSE(machine.create_bucket("x", {.history_changes_max = 0}, now).has_value());
  EXPECT_EQ(machine.get("none", "k", now).error().code, Errc::bucket_not_found);
}

// Keys and values are in memory, whatever the buckets allow.
TEST(KvMachineLimits, AShardHoldsOnlySoManyBytes) {
  World world({.bytes_max = 20});
  world.create("b");
  world.put("k", "123456789");
  world.put("l", "123456789");
  KvWrite write{.bucket = "b", .key = "m", .value = "", .expected = {}, .ttl = {}};
  EXPECT_EQ(world.machine().put(write, world.now()).error().code, Errc::resource_exhausted);
  write = {.bucket = "b", .key = "k", .value = "123456789+", .expected = {}, .ttl = {}};
  EXPECT_EQ(world.machine().put(write, world.now()).error().code, Errc::resource_exhausted);
  world.put("k", "987654321");
  world.remove("l");
  world.put("m", "123456789");
}

TEST(KvMachineLimits, AShardHasOnlySoManyBuckets) {
  World world({.buckets_max = 1});
  world.create("a");
  const auto second = world.machine().create_bucket("b", {}, world.now());
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, Errc::resource_exhausted);
}

// A heartbeat rewrites one key thousands of times between checkpoints: one row, and its size.
TEST_F(KvMachineTest, ACheckpointCostsTheKeysThatChanged) {
  for (int i = 0; i < 100; ++i) world_.put("key" + std::to_string(i), "x");
  world_.checkpoint();
  EXPECT_EQ(world_.machine().changed_bytes(), 0U);
  world_.put("key7", std::string(1000, 'x'));
  const std::size_t once = world_.machine().changed_bytes();
  for (int i = 0; i < 50; ++i) world_.put("key7", std::string(1000, 'x'));
  EXPECT_EQ(world_.machine().changed_bytes(), once);
  EXPECT_GT(once, 1000U);
  world_.checkpoint();
  EXPECT_EQ(world_.rows_written(), 3U);  // The key, its bucket, and what comes next.
  world_.checkpoint();
  EXPECT_EQ(world_.rows_written(), 0U);
}

TEST_F(KvMachineTest, ADeletedBucketLeavesNoRow) {
  world_.put("k", "1");
  world_.checkpoint();
  world_.put("l", "2");
  ASSERT_TRUE(world_.machine().delete_bucket("b").has_value());
  world_.checkpoint();
  EXPECT_EQ(world_.rows_stored(), 1U);  // What comes next.
  world_.restart();
  EXPECT_TRUE(world_.machine().list_buckets().first.empty());
}

TEST_F(KvMachineTest, RowsThatDisagreeAreRefused) {
  KvMachine& machine = world_.machine();
  const KvEntry entry{
      .key = "k", .value = "v", .revision = Revision{9}, .created_revision = Revision{9}};
  const auto code = [&](Table table, std::string key, std::string value) {
    return machine.load(table, {std::move(key), std::move(value)}).error().code;
  };
  EXPECT_EQ(code(tables::kKvEntries, entry_row_key(BucketId{77}, "k"), encode_row(entry)),
            Errc::store_corrupt);
  EXPECT_EQ(code(tables::kKvEntries, entry_row_key(BucketId{1}, "k"), encode_row(entry)),
            Errc::store_corrupt);
  const KvBucketRow twin{.name = "b", .settings = {}, .revision = {}, .created_at = {}};
  EXPECT_EQ(code(tables::kKvBuckets, bucket_row_key(BucketId{5}), encode_row(twin)),
            Errc::store_corrupt);
  EXPECT_EQ(code(Table{3}, "k", "v"), Errc::store_corrupt);
}

}  // namespace
}  // namespace baton::kv_test
