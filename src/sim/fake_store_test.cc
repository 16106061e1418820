#include "sim/fake_store.h"

#include <memory>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "storage/disk/checkpoint_store_contract.h"

namespace baton {
namespace {

using contract::kIds;
using contract::kMessages;
using contract::kState;

class FakeHarness {
 public:
  std::unique_ptr<CheckpointStore> open() { return std::make_unique<FakeStore>(media_); }
  void crash(std::unique_ptr<CheckpointStore> store) {
    media_->crash();
    store.reset();
  }

 private:
  std::shared_ptr<FakeStoreMedia> media_ = std::make_shared<FakeStoreMedia>(1);
};

INSTANTIATE_TYPED_TEST_SUITE_P(Fake, CheckpointStoreContract, FakeHarness);

RowBatch position_in_all_tables(const std::string& position) {
  RowBatch batch;
  for (const Table table : {kMessages, kIds, kState}) batch.put(table, "position", position);
  return batch;
}

TEST(FakeStore, ACrashInACommitLeavesAllOfItOrNothing) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    auto media = std::make_shared<FakeStoreMedia>(seed);
    FakeStore store(media);
    ASSERT_TRUE(store.commit(position_in_all_tables("1")).has_value());
    media->crash_in_next_commit();
    ASSERT_FALSE(store.commit(position_in_all_tables("2")).has_value());

    const FakeStore next(media);
    const std::string position = contract::get(next, kState, "position");
    EXPECT_EQ(contract::get(next, kMessages, "position"), position);
    EXPECT_EQ(contract::get(next, kIds, "position"), position);
    seen.insert(position);
  }
  EXPECT_EQ(seen, (std::set<std::string>{"1", "2"}));
}

TEST(FakeStore, EachSpilledRowSurvivesACrashOrNot) {
  std::set<std::size_t> counts;
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    auto media = std::make_shared<FakeStoreMedia>(seed);
    FakeStore store(media);
    ASSERT_TRUE(store.spill(contract::ten_byte_rows(20)).has_value());
    media->crash();
    counts.insert(contract::keys(FakeStore(media), contract::whole(kMessages)).size());
  }
  EXPECT_GT(counts.size(), 3U);
}

TEST(FakeStore, TheSameSeedCrashesTheSameWay) {
  const auto run = [](std::uint64_t seed) {
    auto media = std::make_shared<FakeStoreMedia>(seed);
    EXPECT_TRUE(FakeStore(media).spill(contract::ten_byte_rows(20)).has_value());
    media->crash();
    return contract::keys(FakeStore(media), contract::whole(kMessages));
  };
  for (std::uint64_t seed = 0; seed < 20; ++seed) EXPECT_EQ(run(seed), run(seed)) << seed;
}

// Calls of a process that is gone must not reach its successor.
TEST(FakeStore, AfterACrashTheOldStoreIsDead) {
  auto media = std::make_shared<FakeStoreMedia>(1);
  FakeStore old_store(media);
  media->crash();
  const FakeStore next(media);

  EXPECT_FALSE(old_store.commit(position_in_all_tables("9")).has_value());
  EXPECT_FALSE(old_store.spill(position_in_all_tables("9")).has_value());
  EXPECT_FALSE(old_store.get(kState, "position").has_value());
  EXPECT_FALSE(old_store.scan(contract::whole(kState)).has_value());
  EXPECT_EQ(contract::get(next, kState, "position"), "absent");
}

TEST(FakeStore, ACommitOnAFullDiskSucceedsWhenItIsRepeatedWithSpace) {
  auto media = std::make_shared<FakeStoreMedia>(1);
  FakeStore store(media);
  media->set_disk_full(true);
  const Status refused = store.commit(position_in_all_tables("1"));
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::disk_full);

  media->set_disk_full(false);
  ASSERT_TRUE(store.commit(position_in_all_tables("1")).has_value());
  media->crash();
  EXPECT_EQ(contract::get(FakeStore(media), kState, "position"), "1");
}

// A failed commit that survives includes everything before it; a later one never stands alone.
TEST(FakeStore, OfFailedCommitsTheFirstFewSurviveACrash) {
  std::set<std::string> seen;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    auto media = std::make_shared<FakeStoreMedia>(seed);
    FakeStore store(media);
    media->set_disk_full(true);
    for (const char* key : {"a", "b", "c"}) {
      RowBatch batch;
      batch.put(kState, key, "x");
      ASSERT_FALSE(store.commit(batch).has_value());
    }
    media->crash();
    std::string kept;
    for (const std::string& key : contract::keys(FakeStore(media), contract::whole(kState))) {
      kept += key;
    }
    seen.insert(kept);
  }
  EXPECT_EQ(seen, (std::set<std::string>{"", "a", "ab", "abc"}));
}

}  // namespace
}  // namespace baton
