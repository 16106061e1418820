// Buckets on a real broker: kills under compare-and-set, watches that resume, bad input.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <baton/broker.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "e2e/broker_process.h"

namespace baton::e2e {
namespace {

using client::Broker;
using client::KvWatchEvent;

class KvTest : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(broker_.start()) << broker_.log(); }

  [[nodiscard]] Broker client() const {
    auto made = Broker::open(broker_.connection());
    EXPECT_TRUE(made.has_value());
    return *std::move(made);
  }
  void create(const client::BucketSettings& settings = {}) const {
    const auto made = client().bucket("b").create(settings);
    ASSERT_TRUE(made.has_value()) << to_string(made.error());
  }

  BrokerProcess broker_{{"--shards", "1"}};
};

/// Increments a key by compare-and-set until told to stop. Remembers confirmed writes with their
/// revisions.
class Counter {
 public:
  Counter(Broker client, std::string key) : client_(std::move(client)), key_(std::move(key)) {
    thread_ = std::thread([this] { run(); });
  }
  Counter(const Counter&) = delete;
  Counter& operator=(const Counter&) = delete;
  ~Counter() { finish(); }

  void finish() {
    stop_ = true;
    if (thread_.joinable()) thread_.join();
  }
  struct Confirmed {
    std::uint64_t value = 0;
    std::uint64_t revision = 0;
  };
  [[nodiscard]] const std::vector<Confirmed>& confirmed() const { return confirmed_; }
  [[nodiscard]] std::uint64_t unknown() const { return unknown_; }
  [[nodiscard]] const std::string& key() const { return key_; }

 private:
  void run() {
    bool in_doubt = false;
    while (!stop_) {
      const auto entry = client_.bucket("b").get(key_, {.deadline = seconds{2}});
      if (!entry) {
        std::this_thread::sleep_for(milliseconds{5});
        continue;
      }
      const std::uint64_t value = *entry ? std::stoull((*entry)->value) : 0;
      const std::uint64_t revision = *entry ? (*entry)->revision : 0;
      // The last confirmed value is there, or a newer one.
      if (!confirmed_.empty()) {
        EXPECT_GE(value, confirmed_.back().value) << key_;
        EXPECT_GE(revision, confirmed_.back().revision) << key_;
      }
      const auto written = client_.bucket("b").cas(key_, revision, std::to_string(value + 1),
                                                   {.deadline = seconds{2}});
      if (written && written->done) confirmed_.push_back({value + 1, written->revision});
      // The write before it, which had no answer in time, may take effect late.
      EXPECT_TRUE(!written || written->done || in_doubt) << key_ << " has one writer";
      in_doubt = !written;
      if (in_doubt) ++unknown_;
    }
  }

  Broker client_;
  std::string key_;
  std::atomic<bool> stop_ = false;
  std::uint64_t unknown_ = 0;
  std::vector<Confirmed> confirmed_;
  std::thread thread_;
};

/// Everything that a watch saw of each key, in order.
class Observer {
 public:
  Observer(Broker& client, std::string session = {}) {
    auto made = client.bucket("b").watch({.session = std::move(session)},
                                         [this](const KvWatchEvent& event) { take(event); });
    EXPECT_TRUE(made.has_value());
    watch_ = *std::move(made);
    EXPECT_TRUE(watch_->wait_until_started(seconds{20}).has_value());
  }
  [[nodiscard]] std::map<std::string, std::uint64_t> keys() {
    const std::scoped_lock lock(mutex_);
    return keys_;
  }
  [[nodiscard]] int lost() {
    const std::scoped_lock lock(mutex_);
    return lost_;
  }
  [[nodiscard]] int disconnects() {
    const std::scoped_lock lock(mutex_);
    return disconnects_;
  }

 private:
  void take(const KvWatchEvent& event) {
    const std::scoped_lock lock(mutex_);
    switch (event.kind) {
      case KvWatchEvent::Kind::put: {
        std::uint64_t& revision = keys_[event.entry.key];
        EXPECT_GT(event.entry.revision, revision) << event.entry.key;
        revision = event.entry.revision;
        return;
      }
      case KvWatchEvent::Kind::removed:
      case KvWatchEvent::Kind::expired: keys_.erase(event.entry.key); return;
      case KvWatchEvent::Kind::compacted: keys_.clear(); return;
      case KvWatchEvent::Kind::session_lost: ++lost_; return;
      case KvWatchEvent::Kind::disconnected: ++disconnects_; return;
      default: return;
    }
  }

  std::mutex mutex_;
  std::map<std::string, std::uint64_t> keys_;
  int lost_ = 0;
  int disconnects_ = 0;
  std::optional<client::KvWatch> watch_;
};

// Promise: a confirmed write is there, under the revision that was reported, however often the
// broker is killed; and a watch that resumes after each kill ends with the same.
TEST_F(KvTest, KilledUnderCompareAndSetsEveryConfirmedWriteIsThere) {
  create();
  Broker watcher = client();
  Observer observer(watcher);
  std::vector<std::unique_ptr<Counter>> counters;
  for (int i = 0; i < 8; ++i) {
    counters.push_back(std::make_unique<Counter>(client(), fmt::format("counter-{}", i)));
  }
  std::mt19937 random(20'260'731);
  const int kills = is_long_run() ? 40 : 6;
  for (int i = 0; i < kills; ++i) {
    std::this_thread::sleep_for(milliseconds{100 + random() % 500});
    broker_.kill();
    ASSERT_TRUE(broker_.start()) << broker_.log();
  }
  std::this_thread::sleep_for(milliseconds{300});
  std::map<std::uint64_t, std::string> revisions;
  std::size_t confirmed = 0;
  std::uint64_t unknown = 0;
  for (const auto& counter : counters) {
    counter->finish();
    ASSERT_FALSE(counter->confirmed().empty()) << counter->key();
    const Counter::Confirmed last = counter->confirmed().back();
    const auto entry = client().bucket("b").get(counter->key());
    ASSERT_TRUE(entry.has_value() && entry->has_value());
    EXPECT_GE(std::stoull((*entry)->value), last.value);
    EXPECT_GE((*entry)->revision, last.revision);
    // Each count is one write: those without an answer either happened or did not.
    EXPECT_EQ((*entry)->version, std::stoull((*entry)->value)) << counter->key();
    EXPECT_LE((*entry)->version, counter->confirmed().size() + counter->unknown());
    EXPECT_GE((*entry)->version, counter->confirmed().size());
    for (const Counter::Confirmed& write : counter->confirmed()) {
      EXPECT_TRUE(revisions.emplace(write.revision, counter->key()).second)
          << "revision " << write.revision << " was given twice";
    }
    confirmed += counter->confirmed().size();
    unknown += counter->unknown();
  }
  std::map<std::string, std::uint64_t> there;
  const auto page = client().bucket("b").list();
  ASSERT_TRUE(page.has_value());
  for (const client::KvEntry& entry : page->entries) there[entry.key] = entry.revision;
  EXPECT_TRUE(eventually([&] { return observer.keys() == there; }));
  EXPECT_GE(observer.disconnects(), 1);
  fmt::print("{} kills, {} writes confirmed, {} without an answer\n", kills, confirmed, unknown);
}

// Promise 4, for workers that hold leases: the others are told of a killed process at once.
TEST_F(KvTest, AKilledProcessIsMissedInMilliseconds) {
  create();
  Broker kv = client();
  ASSERT_TRUE(kv.bucket("b").put("victim", "1").has_value());
  Observer observer(kv);
  ChildProcess victim({.command = {binary(), "kv", "watch", "b", "--session", "victim", "--json",
                                   "--address", broker_.address()}});
  ASSERT_TRUE(eventually([&] { return kv.bucket("b").describe()->watches == 2; }));
  const auto before = Clock::now();
  victim.kill();
  ASSERT_TRUE(eventually([&] { return observer.lost() == 1; }, seconds{10}));
  const auto took = Clock::now() - before;
  fmt::print("heard of after {} ms\n", std::chrono::duration_cast<milliseconds>(took).count());
  EXPECT_LT(took, seconds{2});
  // A process that is asked to end says goodbye.
  ChildProcess polite({.command = {binary(), "kv", "watch", "b", "--session", "victim", "--json",
                                   "--address", broker_.address()}});
  ASSERT_TRUE(eventually([&] { return kv.bucket("b").describe()->watches == 2; }));
  polite.signal(SIGTERM);
  EXPECT_EQ(polite.wait(seconds{20}), 0);
  ASSERT_TRUE(eventually([&] { return kv.bucket("b").describe()->watches == 1; }));
  EXPECT_EQ(observer.lost(), 1);
}

// A broker that is shut down in order must not make its clients evict each other.
TEST_F(KvTest, AShutDownOfTheBrokerIsNoLostSession) {
  create();
  Broker kv = client();
  ASSERT_TRUE(kv.bucket("b").put("one", "1").has_value());
  ASSERT_TRUE(kv.bucket("b").put("two", "1").has_value());
  Observer one(kv, "one");
  Observer two(kv, "two");
  EXPECT_EQ(broker_.terminate(), 0);
  ASSERT_TRUE(broker_.start()) << broker_.log();
  ASSERT_TRUE(kv.wait_until_ready(seconds{20}).has_value());
  ASSERT_TRUE(eventually([&] { return kv.bucket("b").describe()->watches == 2; }));
  ASSERT_TRUE(kv.bucket("b").put("three", "1").has_value());
  ASSERT_TRUE(eventually([&] { return one.keys().size() == 3 && two.keys().size() == 3; }));
  EXPECT_EQ(one.lost() + two.lost(), 0);
}

TEST_F(KvTest, AKeyExpiresWhileTheBrokerIsDown) {
  create();
  Broker kv = client();
  ASSERT_TRUE(kv.bucket("b").put("brief", "1", {.ttl = milliseconds{300}}).has_value());
  ASSERT_TRUE(kv.bucket("b").put("long", "1", {.ttl = std::chrono::hours{1}}).has_value());
  Observer observer(kv);
  broker_.kill();
  std::this_thread::sleep_for(milliseconds{400});
  ASSERT_TRUE(broker_.start()) << broker_.log();
  ASSERT_TRUE(kv.wait_until_ready(seconds{20}).has_value());
  EXPECT_FALSE(kv.bucket("b").get("brief")->has_value());
  EXPECT_TRUE(kv.bucket("b").get("long")->has_value());
  EXPECT_TRUE(eventually([&] { return observer.keys().size() == 1; }));
  const auto bucket = kv.bucket("b").describe();
  ASSERT_TRUE(bucket.has_value());
  EXPECT_EQ(bucket->keys, 1U);
  EXPECT_EQ(bucket->revision, 3U);  // The expiry is a change.
}

// In every fsync mode: a lease that reappears is worse than a slow one.
TEST_F(KvTest, AlsoWithoutFsyncsOfMessagesNothingConfirmedIsLost) {
  ASSERT_EQ(broker_.terminate(), 0);
  broker_.flags().insert(broker_.flags().end(), {"--fsync", "never"});
  ASSERT_TRUE(broker_.start()) << broker_.log();
  create();
  Broker kv = client();
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(kv.bucket("b").put("k", std::to_string(i)).has_value());
  }
  const auto metrics = broker_.http_get("/metrics");
  ASSERT_TRUE(metrics.has_value());
  const std::string name = "baton_journal_syncs_total{shard=\"0\"} ";
  const auto at = metrics->find(name);
  ASSERT_NE(at, std::string::npos);
  EXPECT_GE(std::stod(metrics->substr(at + name.size())), 20);
  EXPECT_NE(metrics->find("baton_kv_changes_total{shard=\"0\"} 20"), std::string::npos);
  EXPECT_NE(metrics->find("baton_kv_keys{shard=\"0\"} 1"), std::string::npos);
}

TEST_F(KvTest, TheCommandLineWritesReadsAndExplains) {
  const auto cli = [&](std::vector<std::string> words, std::string_view in = {}) {
    words.insert(words.begin(), "kv");
    return broker_.cli(std::move(words), in);
  };
  EXPECT_EQ(cli({"bucket", "create", "b"}).exit_code, 0);
  EXPECT_EQ(cli({"put", "b", "k", "hello"}).out, "revision 1\n");
  EXPECT_EQ(cli({"get", "b", "k"}).out, "hello\n");
  EXPECT_EQ(cli({"get", "b", "k", "--raw"}).out, "hello");
  EXPECT_EQ(cli({"put", "b", "k", "-"}, "from\nstdin").exit_code, 0);
  EXPECT_EQ(cli({"get", "b", "k", "--raw"}).out, "from\nstdin");
  const std::string file = broker_.folder() / "value";
  write_file(file, std::string_view("\0\xff", 2));
  EXPECT_EQ(cli({"put", "b", "bin", "--file", file}).exit_code, 0);
  const auto entry = nlohmann::json::parse(cli({"get", "b", "bin", "--json"}).out);
  EXPECT_EQ(entry["value_base64"], "AP8=");
  EXPECT_EQ(entry["revision"], 3);

  const CommandResult refused = cli({"cas", "b", "k", "x", "--revision", "7"});
  EXPECT_EQ(refused.exit_code, 13);
  EXPECT_NE(refused.err.find("the key is at revision 2"), std::string::npos) << refused.err;
  const CommandResult shown = cli({"cas", "b", "k", "x", "--revision", "0", "--json"});
  EXPECT_EQ(shown.exit_code, 13);
  EXPECT_EQ(nlohmann::json::parse(shown.out)["current"]["revision"], 2);
  EXPECT_EQ(cli({"cas", "b", "k", "x", "--revision", "2"}).out, "revision 4\n");
  EXPECT_EQ(cli({"del", "b", "k", "--revision", "2"}).exit_code, 13);
  EXPECT_EQ(cli({"del", "b", "k"}).exit_code, 0);
  EXPECT_EQ(cli({"del", "b", "k"}).exit_code, 3);
  EXPECT_EQ(cli({"get", "b", "k"}).exit_code, 3);
  const auto missing = nlohmann::json::parse(cli({"get", "b", "k", "--json"}).err)["error"];
  EXPECT_EQ(missing["name"], "not_found");
  EXPECT_EQ(missing["code"], 2);

  const CommandResult watched = cli({"watch", "b", "--after", "0", "--max", "3", "--json"});
  EXPECT_EQ(watched.exit_code, 0);
  EXPECT_NE(watched.out.find(R"({"event":"put","key":"k","value":"hello","revision":1)"),
            std::string::npos)
      << watched.out;
  EXPECT_EQ(cli({"watch", "b", "none", "--wait", "100ms"}).exit_code, 8);
  EXPECT_EQ(cli({"put", "b", "brief", "x", "--ttl", "200ms"}).exit_code, 0);
  EXPECT_TRUE(eventually([&] { return cli({"get", "b", "brief"}).exit_code == 3; }));
  EXPECT_EQ(cli({"bucket", "delete", "b"}).exit_code, 0);
  EXPECT_EQ(cli({"bucket", "list"}).out, "no buckets\n");
}

TEST_F(KvTest, BadInputIsRefusedWithWhatWouldBeRight) {
  create({.value_bytes_max = 10, .keys_max = 1});
  const auto fails = [&](std::vector<std::string> words, int code, const std::string& why) {
    words.insert(words.begin(), "kv");
    const CommandResult result = broker_.cli(words);
    EXPECT_EQ(result.exit_code, code) << fmt::format("{}", fmt::join(words, " ")) << result.err;
    EXPECT_NE(result.err.find(why), std::string::npos) << result.err;
  };
  fails({"put", "b"}, 2, "KEY");
  fails({"put", "b", "k"}, 2, "give one of VALUE");
  fails({"put", "b", "k", "v", "--file", "x"}, 2, "give one of VALUE");
  fails({"put", "b", "k", "--file", "/nowhere"}, 2, "cannot read");
  fails({"put", "b", "a b", "v"}, 2, "key may hold only");
  fails({"put", "b", std::string(600, 'k'), "v"}, 2, "the limit is 512");
  fails({"put", "b", "k", "12345678901"}, 2, "value has 11 bytes; the limit is 10");
  fails({"put", "b", "k", "v", "--ttl", "0s"}, 2, "'0s' is not from 1ms to 3650d");
  fails({"put", "b", "k", "v", "--ttl", "100000d"}, 2, "'100000d' is not from 1ms to 3650d");
  fails({"cas", "b", "k", "v", "--revision", "99999999999999999999"}, 2,
        "from 0 to 18446744073709551615");
  fails({"put", "b", "k", "v", "--revision", "-1"}, 2, "--revision");
  fails({"cas", "b", "k", "v"}, 2, "--revision");
  fails({"put", "none", "k", "v"}, 3, "there is no bucket 'none'");
  fails({"watch", "none"}, 3, "there is no bucket 'none'");
  fails({"watch", "b", "p", "--key", "k"}, 2, "not of both");
  fails({"bucket", "create", "b"}, 4, "exists with other settings");
  fails({"bucket", "create", "c", "--value-max", "1GiB"}, 2, "--value-max");
  fails({"bucket", "create", ""}, 2, "bucket is empty");
  EXPECT_EQ(broker_.cli({"kv", "put", "b", "k", "v"}).exit_code, 0);
  fails({"put", "b", "l", "v"}, 6, "has 1 keys, which is its limit");
  EXPECT_TRUE(broker_.is_running());
}

TEST_F(KvTest, BucketsAreInTheStoreAfterACheckpoint) {
  create();
  Broker kv = client();
  for (int i = 0; i < 10; ++i)
    ASSERT_TRUE(kv.bucket("b").put(fmt::format("k{}", i), "v").has_value());
  const auto rows = broker_.rows_after_checkpoint();
  EXPECT_EQ(rows.at("kv_entries"), 10U);
  EXPECT_EQ(rows.at("kv_buckets"), 2U);  // The bucket, and the next one's number.
}

}  // namespace
}  // namespace baton::e2e
