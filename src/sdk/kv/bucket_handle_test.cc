// The plain calls of the Kv SDK, against a real broker in this process.

#include <atomic>
#include <thread>
#include <vector>

#include <baton/broker.h>
#include <gtest/gtest.h>

#include "sdk/base/times.h"
#include "sdk/kv/test_kv.h"

namespace baton::client {
namespace {

using std::chrono::milliseconds;

class BucketTest : public SharedBrokerTest {
 protected:
  KvOutcome put(const std::string& key, const std::string& value, const PutOptions& options = {}) {
    const auto outcome = client_.bucket(bucket_).put(key, value, options);
    EXPECT_TRUE(outcome.has_value()) << outcome.error().text;
    return outcome.value_or(KvOutcome{});
  }
  std::optional<KvEntry> get(const std::string& key) {
    const auto entry = client_.bucket(bucket_).get(key);
    EXPECT_TRUE(entry.has_value()) << entry.error().text;
    return entry.value_or(std::nullopt);
  }
};

TEST_F(BucketTest, WritesReadsAndRemoves) {
  EXPECT_EQ(get("k"), std::nullopt);
  const std::string value("\0\xff binary", 9);
  EXPECT_EQ(put("k", value).revision, 1U);
  const auto entry = get("k");
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->value, value);
  EXPECT_EQ(entry->revision, 1U);
  EXPECT_EQ(entry->version, 1U);
  EXPECT_FALSE(entry->expires_at.has_value());
  const auto removed = client_.bucket(bucket_).remove("k");
  ASSERT_TRUE(removed.has_value());
  EXPECT_TRUE(removed->done);
  EXPECT_FALSE(removed->unchanged);
  EXPECT_EQ(removed->revision, 2U);
  const auto again = client_.bucket(bucket_).remove("k");
  ASSERT_TRUE(again.has_value());
  EXPECT_TRUE(again->done);
  EXPECT_TRUE(again->unchanged);
}

TEST_F(BucketTest, ARefusedCompareAndSetIsAnAnswer) {
  EXPECT_TRUE(client_.bucket(bucket_).cas("k", 0, "1")->done);
  const auto refused = client_.bucket(bucket_).cas("k", 0, "2");
  ASSERT_TRUE(refused.has_value());
  EXPECT_FALSE(refused->done);
  EXPECT_EQ(refused->error->code, Errc::revision_mismatch);
  ASSERT_TRUE(refused->current.has_value());
  EXPECT_EQ(refused->current->value, "1");
  EXPECT_EQ(refused->current->revision, 1U);
  EXPECT_EQ(client_.bucket(bucket_).cas("k", 1, "2")->revision, 2U);
  const auto kept = client_.bucket(bucket_).remove("k", {.expected_revision = 1});
  ASSERT_TRUE(kept.has_value());
  EXPECT_FALSE(kept->done);
  EXPECT_EQ(kept->current->revision, 2U);
  EXPECT_TRUE(client_.bucket(bucket_).remove("k", {.expected_revision = 2})->done);
}

// A lock is built from this.
TEST_F(BucketTest, RacingCompareAndSetsHaveOneWinnerEach) {
  constexpr int kThreads = 8;
  constexpr int kRounds = 20;
  for (int round = 0; round < kRounds; ++round) {
    const auto before = get("lock");
    const std::uint64_t expected = before.has_value() ? before->revision : 0;
    std::atomic<int> winners = 0;
    std::vector<std::thread> threads;
    for (int i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        const auto outcome = client_.bucket(bucket_).cas("lock", expected, std::to_string(i));
        ASSERT_TRUE(outcome.has_value()) << outcome.error().text;
        if (outcome->done) ++winners;
      });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(winners, 1);
  }
}

TEST_F(BucketTest, AKeyWithATimeToLiveGoesAndEachWriteSetsItAnew) {
  put("k", "1", {.ttl = std::chrono::hours{1}});
  const auto entry = get("k");
  ASSERT_TRUE(entry.has_value() && entry->expires_at.has_value());
  const auto left = *entry->expires_at - std::chrono::system_clock::now();
  EXPECT_GT(left, std::chrono::minutes{59});
  EXPECT_LT(left, std::chrono::minutes{61});
  put("k", "2");
  EXPECT_FALSE(get("k")->expires_at.has_value());
  EXPECT_EQ(client_.bucket(bucket_).put("k", "3", {.ttl = milliseconds{0}}).error().code,
            Errc::invalid_argument);
  EXPECT_EQ(client_.bucket(bucket_)
                .put("k", "3", {.ttl = std::chrono::hours{24 * 365 * 20}})
                .error()
                .code,
            Errc::invalid_argument);
}

TEST_F(BucketTest, ListsPageByPage) {
  for (int i = 0; i < 25; ++i) put("a." + std::to_string(10 + i), "v");
  put("b", "v");
  std::vector<std::string> keys;
  ListKeysOptions options{.prefix = "a.", .after = {}, .keys_max = 10, .deadline = {}};
  do {
    const auto page = client_.bucket(bucket_).list(options);
    ASSERT_TRUE(page.has_value()) << page.error().text;
    EXPECT_EQ(page->revision, 26U);
    for (const KvEntry& entry : page->entries) keys.push_back(entry.key);
    options.after = page->next;
  } while (!options.after.empty());
  EXPECT_EQ(keys.size(), 25U);
  EXPECT_EQ(keys.front(), "a.10");
  EXPECT_EQ(keys.back(), "a.34");
}

// A page of the broker has 1 000 buckets, of all shards together.
TEST_F(BucketTest, AListOfManyBucketsIsWhole) {
  constexpr int kBuckets = 1003;
  std::vector<std::string> made;
  for (int i = 0; i < kBuckets; ++i) {
    made.push_back(bucket_ + ".many." + std::to_string(10'000 + i));
    ASSERT_TRUE(client_.bucket(made.back()).create().has_value());
  }
  const auto listed = client_.buckets(bucket_ + ".many.");
  ASSERT_TRUE(listed.has_value()) << to_string(listed.error());
  std::vector<std::string> names;
  for (const BucketInfo& bucket : *listed) names.push_back(bucket.name);
  EXPECT_EQ(names, made);
}

TEST_F(BucketTest, BucketsAreMadeShownAndDeleted) {
  const std::string other = bucket_ + ".2";
  const auto made = client_.bucket(other).create({.keys_max = 5});
  ASSERT_TRUE(made.has_value());
  EXPECT_EQ(made->settings.keys_max, 5U);
  EXPECT_EQ(made->settings.history_changes_max, 10'000U);
  EXPECT_EQ(client_.bucket(other).create().error().code, Errc::bucket_exists);
  const auto all = client_.buckets(bucket_);
  ASSERT_TRUE(all.has_value());
  ASSERT_EQ(all->size(), 2U);  // Of both shards, by name.
  EXPECT_EQ(all->at(0).name, bucket_);
  EXPECT_EQ(all->at(1).name, other);
  EXPECT_EQ(client_.buckets(other)->size(), 1U);
  put("k", "123");
  const auto described = client_.bucket(bucket_).describe();
  ASSERT_TRUE(described.has_value());
  EXPECT_EQ(described->keys, 1U);
  EXPECT_EQ(described->bytes, 4U);
  EXPECT_EQ(described->revision, 1U);
  EXPECT_TRUE(client_.bucket(other).drop().has_value());
  EXPECT_EQ(client_.bucket(other).describe().error().code, Errc::bucket_not_found);
  EXPECT_EQ(client_.bucket(other).get("k").error().code, Errc::bucket_not_found);
}

TEST(BucketRestart, EverythingIsThereAfterwards) {
  RealBroker broker;
  Broker client = broker.client();
  ASSERT_TRUE(client.bucket("b").create().has_value());
  ASSERT_TRUE(client.bucket("b").put("k", "1").has_value());
  ASSERT_TRUE(client.bucket("b").put("k", "2").has_value());
  broker.stop();
  const auto gone = client.bucket("b").get("k", {.deadline = milliseconds{200}});
  ASSERT_FALSE(gone.has_value());
  EXPECT_TRUE(gone.error().code == Errc::unavailable ||
              gone.error().code == Errc::deadline_exceeded);
  broker.start();
  ASSERT_TRUE(client.wait_until_ready(std::chrono::seconds{20}).has_value());
  EXPECT_EQ(client.bucket("b").get("k")->value().value, "2");
  EXPECT_EQ(client.bucket("b").cas("k", 2, "3")->revision, 3U);
}

TEST(Bucket, ACallOfItsOwnDeadlineEndsThen) {
  TestKv broker;
  Gate gate;
  broker.on_put = [&](const v1::PutKeyRequest&, v1::PutKeyResponse&) {
    EXPECT_TRUE(gate.wait());
    return grpc::Status::OK;
  };
  Broker client = broker.client();
  const auto late = client.bucket("b").put("k", "v", {.deadline = milliseconds{50}});
  EXPECT_EQ(late.error().code, Errc::deadline_exceeded);
  gate.open();
}

TEST(Bucket, SendsOnlyWhatIsSet) {
  TestKv broker;
  broker.on_put = [&](const v1::PutKeyRequest& request, v1::PutKeyResponse&) {
    if (request.key() == "plain") {
      EXPECT_FALSE(request.has_expected_revision());
      EXPECT_FALSE(request.has_ttl());
    } else {
      EXPECT_TRUE(request.has_expected_revision());
      EXPECT_EQ(request.expected_revision(), 0U);
      EXPECT_EQ(duration_of(request.ttl()), std::chrono::milliseconds{1500});
    }
    return grpc::Status::OK;
  };
  Broker client = broker.client();
  EXPECT_TRUE(client.bucket("b").put("plain", "v").has_value());
  EXPECT_TRUE(client.bucket("b").cas("full", 0, "v", {.ttl = milliseconds{1500}}).has_value());
}

TEST(Bucket, AnAddressThatIsNoneIsRefusedAtOnce) {
  EXPECT_EQ(Broker::open({.address = "nowhere"}).error().code, Errc::invalid_argument);
}

}  // namespace
}  // namespace baton::client
