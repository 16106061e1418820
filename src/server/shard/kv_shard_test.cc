// Buckets in a shard: confirmed changes are on the disk, and what is on the disk is recovered.

#include "server/shard/kv_shard.h"

#include <gtest/gtest.h>

#include "server/shard/kv_shard_fixture.h"

namespace baton::kv_shard_test {
namespace {

// No client ever sees what a crash could take back: neither the writer, nor a reader, nor a watch.
TEST_F(KvShardTest, NothingIsToldBeforeItIsOnTheDisk) {
  const auto sink = std::make_shared<Sink>();
  execute(make_watch(kOne, sink));
  const Position before = log_->next();
  submit(make_put("k", "1"));
  submit(KvGetCommand{.bucket = "b", .key = "k", .error = {}, .entry = nullptr});
  Held held = decide();
  EXPECT_TRUE(done_.empty());
  EXPECT_EQ(sink->text, "");
  EXPECT_EQ(held.position, before);
  EXPECT_EQ(held.calls.size(), 2U);
  EXPECT_EQ(held.answers(), held.calls.size() + 1);
  ASSERT_TRUE(log_->sync().has_value());
  held.release();
  EXPECT_EQ(done_.size(), 2U);
  EXPECT_EQ(sink->text, "k=@1 ");
}

// A weaker fsync mode is a choice for messages; a released lease must never come back.
TEST_F(KvShardTest, EveryFactIsSyncedInEveryFsyncMode) {
  submit(make_put("k", "1", {}, seconds{1}));
  EXPECT_TRUE(decide().always_sync);
  submit(KvGetCommand{.bucket = "b", .key = "k", .error = {}, .entry = nullptr});
  EXPECT_FALSE(decide().always_sync);
  now_ = now_ + seconds{1};
  EXPECT_TRUE(decide().always_sync);  // The key has expired.
  submit(make_put("k", "2"));
  decide();
  KvRemoveCommand command;
  command.request = {.bucket = "b", .key = "k", .expected = {}};
  submit(std::move(command));
  EXPECT_TRUE(decide().always_sync);
  submit(DeleteBucketCommand{.bucket = "b", .error = {}});
  EXPECT_TRUE(decide().always_sync);
}

TEST_F(KvShardTest, WhatWasToldSurvivesACrash) {
  put("a", "1");
  put("b", "2");
  checkpoint();
  put("a", "3", Revision{1});
  remove("b");
  put("c", "4");
  crash();
  EXPECT_EQ(get("a"), "3@3");
  EXPECT_EQ(get("b"), "-");
  EXPECT_EQ(get("c"), "4@5");
  const KvBucketDescription bucket = describe();
  EXPECT_EQ(bucket.revision, Revision{5});
  EXPECT_EQ(bucket.keys, 2U);
  EXPECT_EQ(put("a", "5", Revision{3}).revision, Revision{6});
  checkpoint();
  crash();  // The journal has nothing of it any more.
  EXPECT_EQ(get("a"), "5@6");
  EXPECT_EQ(get("b"), "-");
  EXPECT_EQ(put("a", "6", Revision{6}).revision, Revision{7});
}

TEST_F(KvShardTest, WhatNobodyWasToldMayBeLostButNeverInHalves) {
  put("a", "1");
  for (int i = 0; i < 20; ++i) {
    submit(make_put("a", std::to_string(i)));
    submit(make_put("b", std::to_string(i)));
    decide();
    done_.clear();
    crash();
    const std::string a = get("a");
    const std::string b = get("b");
    // Both changes of a round, or neither.
    const std::string wanted = b == "-" ? "1" : b.substr(0, b.find('@'));
    EXPECT_EQ(a.substr(0, a.find('@')), wanted);
  }
}

TEST_F(KvShardTest, AKeyExpiresAtItsTimeAlsoIfTheBrokerWasDownThen) {
  put("k", "1", {}, seconds{10});
  put("stays", "1");
  checkpoint();
  put("l", "1", {}, seconds{20});
  EXPECT_EQ(shard_->next_deadline(), now_ + seconds{10});
  now_ = now_ + seconds{9};
  crash();
  EXPECT_EQ(get("k"), "1@1");
  now_ = now_ + seconds{5};
  crash();
  EXPECT_EQ(get("k"), "-");
  EXPECT_EQ(get("l"), "1@3");
  pass(seconds{6});
  EXPECT_EQ(describe().keys, 1U);
  EXPECT_EQ(describe().revision, Revision{5});  // Each expiry is a change.
  crash();
  EXPECT_EQ(describe().revision, Revision{5});
  EXPECT_EQ(get("stays"), "1@2");
}

TEST_F(KvShardTest, ManyKeysThatExpireAtOnceDoNotMakeOneLargeRound) {
  const std::size_t keys = 2 * KvShard::kExpiriesPerRound + 5;
  for (std::size_t i = 0; i < keys; ++i) {
    submit(make_put(fmt::format("k{}", i), "v", {}, seconds{1}));
  }
  round();
  ASSERT_EQ(describe().keys, keys);
  now_ = now_ + seconds{1};
  round();
  EXPECT_EQ(shard_->stats().kv.totals.keys, keys - KvShard::kExpiriesPerRound);
  EXPECT_TRUE(shard_->has_work());
  round();
  round();
  EXPECT_EQ(shard_->stats().kv.totals.keys, 0U);
  EXPECT_FALSE(shard_->has_work());
  EXPECT_EQ(shard_->stats().kv.totals.expired_total, keys);
}

// A compare-and-set from before the deletion must fail in the next bucket of the same name.
TEST_F(KvShardTest, RevisionsAreNeverGivenTwiceUnderAName) {
  EXPECT_EQ(put("k", "1").revision, Revision{1});
  EXPECT_EQ(put("k", "2").revision, Revision{2});
  Revision last{2};
  for (int life = 0; life < 3; ++life) {
    execute(DeleteBucketCommand{.bucket = "b", .error = {}});
    if (life == 1) checkpoint();
    crash();
    create("b");
    EXPECT_EQ(put("k", "x", last).verdict, Verdict::refused);
    const KvOutcome outcome = put("k", "3", Revision{0});
    EXPECT_EQ(outcome.verdict, Verdict::done);
    EXPECT_GT(outcome.revision, last);
    last = outcome.revision;
    crash();
    EXPECT_EQ(get("k"), fmt::format("3@{}", last.value));
  }
}

TEST_F(KvShardTest, ARefusalSaysWhatIsThere) {
  put("k", "1");
  const KvOutcome outcome = put("k", "2", Revision{7});
  EXPECT_EQ(outcome.verdict, Verdict::refused);
  ASSERT_NE(outcome.current, nullptr);
  EXPECT_EQ(outcome.current->value, "1");
  EXPECT_EQ(shard_->stats().kv.totals.refused_total, 1U);
}

// Locks must be released on a full disk as well, or nothing would ever be removed from it.
TEST_F(KvShardTest, OnAFullDiskWritesAreRefusedAndRemovalsAreNot) {
  put("k", "1");
  put("due", "1", {}, seconds{1});
  // Only the reserve is left.
  options_.small_round_bytes = log_->room().additions + (std::uint64_t{2} << 20U);
  start();
  shard_->set_shortage(Shard::Shortage::disk);
  const auto refused = execute(make_put("k", "2"));
  ASSERT_TRUE(refused.error.has_value());
  EXPECT_EQ(refused.error->code, Errc::disk_full);
  const auto bucket =
      execute(CreateBucketCommand{.bucket = "new", .settings = {}, .error = {}, .description = {}});
  ASSERT_TRUE(bucket.error.has_value());
  EXPECT_EQ(bucket.error->code, Errc::disk_full);
  EXPECT_EQ(remove("k").outcome.verdict, Verdict::done);
  EXPECT_EQ(get("k"), "-");
  pass(seconds{1});
  EXPECT_EQ(get("due"), "-");
  const auto deleted = execute(DeleteBucketCommand{.bucket = "b", .error = {}});
  EXPECT_FALSE(deleted.error.has_value());
}

TEST_F(KvShardTest, RowsOfBucketsAreAmongTheTablesOfAShard) {
  std::string names;
  for (const TableName& table : kShardTables) names += fmt::format("{} ", table.name);
  EXPECT_NE(names.find("kv_buckets"), std::string::npos) << names;
  EXPECT_NE(names.find("kv_entries"), std::string::npos) << names;
}

}  // namespace
}  // namespace baton::kv_shard_test
