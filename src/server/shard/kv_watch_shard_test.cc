// Watches in a shard: snapshots at one revision, and changes once they are durable.

#include <gtest/gtest.h>

#include "server/shard/kv_shard_fixture.h"

namespace baton::kv_shard_test {
namespace {

TEST_F(KvShardTest, AWatchBeginsWithASnapshotAndMissesNothingAfterIt) {
  put("a", "1");
  put("b", "2");
  const auto sink = std::make_shared<Sink>();
  submit(make_put("c", "3"));
  submit(make_watch(kOne, sink));
  submit(make_put("d", "4"));
  round();
  const auto& done = std::get<KvWatchCommand>(done_.at(1));
  ASSERT_TRUE(done.snapshot);
  EXPECT_FALSE(done.compacted);
  EXPECT_EQ(done.page.entries.size(), 3U);
  EXPECT_EQ(done.page.revision, Revision{3});
  EXPECT_EQ(sink->text, "d=@4 ");
  EXPECT_EQ(shard_->stats().kv.watches, 1U);
  unwatch(kOne, false);
  EXPECT_EQ(shard_->stats().kv.watches, 0U);
}

TEST_F(KvShardTest, AWatchOfOneKeyShowsThatKey) {
  put("a", "1");
  put("ab", "2");
  const auto sink = std::make_shared<Sink>();
  KvWatchCommand command = make_watch(kOne, sink);
  command.request.filter = {.text = "a", .exact = true};
  const auto done = execute(std::move(command));
  ASSERT_EQ(done.page.entries.size(), 1U);
  EXPECT_EQ(done.page.entries[0]->key, "a");
  EXPECT_EQ(done.page.revision, Revision{2});
  put("ab", "3");
  put("a", "4");
  EXPECT_EQ(sink->text, "a=@4 ");
}

// For any number of keys, only one page leaves the shard at a time, and changes wait.
TEST_F(KvShardTest, ASnapshotInPagesHoldsTheChangesBackUntilItsEnd) {
  for (const char* key : {"a", "b", "c", "d", "e"}) put(key, "1");
  const auto sink = std::make_shared<Sink>();
  KvWatchCommand command = make_watch(kOne, sink);
  command.page_entries_max = 2;
  const auto first = execute(std::move(command));
  EXPECT_EQ(first.page.entries.size(), 2U);
  EXPECT_EQ(first.page.next, "b");
  put("a", "2");
  put("e", "2");
  EXPECT_EQ(sink->text, "");
  KvSnapshotCommand next;
  next.request = {.bucket = "b", .prefix = {}, .after = "b", .entries_max = 2};
  next.watch = kOne;
  next.credit = 100;
  const auto second = execute(next);
  EXPECT_EQ(second.page.next, "d");
  EXPECT_EQ(second.page.revision, Revision{7});
  EXPECT_EQ(sink->text, "");
  next.request.after = std::string("d");
  const auto third = execute(next);
  ASSERT_EQ(third.page.entries.size(), 1U);
  EXPECT_EQ(third.page.entries[0]->revision, Revision{7});
  EXPECT_EQ(sink->text, "a=@6 e=@7 ");
  EXPECT_EQ(sink->complete_to, Revision{7});
}

TEST_F(KvShardTest, AnUnknownRevisionToResumeFromGivesASnapshot) {
  create("b");
  put("k", "1");
  put("k", "2");
  checkpoint();
  put("k", "3");
  crash();
  const auto sink = std::make_shared<Sink>();
  const auto resumed = execute(make_watch(kOne, sink, Revision{2}));
  EXPECT_FALSE(resumed.snapshot);
  EXPECT_EQ(sink->text, "k=@3 ");
  const auto late = std::make_shared<Sink>();
  const auto compacted = execute(make_watch(kTwo, late, Revision{1}));
  EXPECT_TRUE(compacted.compacted);
  ASSERT_TRUE(compacted.snapshot);
  EXPECT_EQ(compacted.page.revision, Revision{3});
  EXPECT_FALSE(late->end.has_value());
  EXPECT_EQ(shard_->stats().kv.totals.fell_behind_total, 1U);
  put("k", "4");
  EXPECT_EQ(late->text, "k=@4 ");
}

TEST_F(KvShardTest, AWatchThatFellBehindOrWhoseBucketWentIsTold) {
  execute(DeleteBucketCommand{.bucket = "b", .error = {}});
  create("b", {.history_changes_max = 3});
  const auto slow = std::make_shared<Sink>();
  KvWatchCommand command = make_watch(kOne, slow);
  command.request.credit = 1;
  execute(std::move(command));
  const auto other = std::make_shared<Sink>();
  execute(make_watch(kTwo, other));
  for (int i = 0; i < 6; ++i) put("k", std::to_string(i));
  EXPECT_EQ(slow->end, KvWatchEnd::fell_behind);
  EXPECT_FALSE(other->end.has_value());
  execute(DeleteBucketCommand{.bucket = "b", .error = {}});
  EXPECT_EQ(other->end, KvWatchEnd::bucket_deleted);
  EXPECT_EQ(shard_->stats().kv.watches, 0U);
}

TEST_F(KvShardTest, ABrokenWatchTellsOfItsSessionAndAGoodbyeDoesNot) {
  put("session", "1");
  const auto mine = std::make_shared<Sink>();
  const auto other = std::make_shared<Sink>();
  execute(make_watch(kTwo, other));
  execute(make_watch(kOne, mine, {}, "session"));
  unwatch(kOne, false);
  EXPECT_EQ(other->text, "");
  execute(make_watch(kOne, mine, {}, "session"));
  unwatch(kOne, true);
  EXPECT_EQ(other->text, "lost session ");
  EXPECT_EQ(mine->text, "");
}

}  // namespace
}  // namespace baton::kv_shard_test
