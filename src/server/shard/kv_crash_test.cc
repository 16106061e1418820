// Random commands, checkpoints and power cuts on one shard: confirmed changes exist afterwards,
// unconfirmed ones may exist or not, and no revision is ever given twice.

#include <map>
#include <set>

#include <gtest/gtest.h>

#include "base/random.h"
#include "server/shard/kv_shard_fixture.h"

namespace baton::kv_shard_test {
namespace {

class KvCrashTest : public KvShardTest {
 protected:
  struct Known {
    std::string value;
    Revision revision;
    bool operator==(const Known&) const = default;
  };
  using Keys = std::map<std::string, Known>;

  void run(std::uint64_t seed) {
    Random random(seed);
    for (int step = 0; step < 150; ++step) {
      switch (random.below(12)) {
        case 0: lose_power(random); break;
        case 1: checkpoint(); break;
        case 2: recreate(); break;
        case 3: remove_one(random); break;
        case 4:
          pass(milliseconds{random.below(400)});
          forget_expired();
          break;
        default: write(random); break;
      }
      if (HasFatalFailure()) return;
    }
    lose_power(random);
  }

 private:
  static std::string key_of(Random& random) { return fmt::format("k{}", random.below(5)); }
  KvPutCommand make_write(Random& random) {
    std::optional<Revision> expected;
    const std::string key = key_of(random);
    if (random.below(2) == 0) {
      const auto known = keys_.find(key);
      expected = known == keys_.end() ? Revision{0} : known->second.revision;
    }
    std::optional<Duration> ttl;
    if (random.below(4) == 0) ttl = milliseconds{1 + random.below(600)};
    return make_put(key, std::to_string(++values_), expected, ttl);
  }

  void write(Random& random) {
    KvPutCommand command = make_write(random);
    const std::string key = command.request.key;
    const std::string value = command.request.value;
    const auto ttl = command.request.ttl;
    const auto done = execute(std::move(command));
    ASSERT_FALSE(done.error.has_value()) << to_string(*done.error);
    ASSERT_EQ(done.outcome.verdict, Verdict::done) << key;
    note(key, value, done.outcome.revision, ttl);
  }
  void note(const std::string& key, const std::string& value, Revision revision,
            std::optional<Duration> ttl) {
    ASSERT_TRUE(given_.insert(revision).second) << "revision " << revision.value << " again";
    keys_[key] = {value, revision};
    deadlines_[key] = ttl.has_value() ? now_ + *ttl : Instant::never();
  }
  void remove_one(Random& random) {
    const std::string key = key_of(random);
    const auto done = remove(key);
    ASSERT_EQ(done.outcome.verdict, keys_.contains(key) ? Verdict::done : Verdict::unchanged);
    keys_.erase(key);
  }
  void recreate() {
    execute(DeleteBucketCommand{.bucket = "b", .error = {}});
    create("b");
    keys_.clear();
  }
  void forget_expired() {
    std::erase_if(keys_, [&](const auto& known) { return deadlines_.at(known.first) <= now_; });
  }

  Keys read_all() {
    KvListCommand command;
    command.request.bucket = "b";
    const auto done = execute(std::move(command));
    EXPECT_FALSE(done.error.has_value()) << to_string(*done.error);
    Keys all;
    for (const KvEntryRef& entry : done.page.entries) {
      all[entry->key] = {entry->value, entry->revision};
    }
    return all;
  }

  /// The power is cut while a few writes are on their way to the disk. Of these, the first few of
  /// each key may have happened.
  void lose_power(Random& random) {
    std::map<std::string, std::vector<std::pair<std::string, Instant>>> in_doubt;
    for (std::uint64_t i = random.below(4); i > 0; --i) {
      KvPutCommand command = make_write(random);
      command.request.expected.reset();
      const auto& wanted = command.request;
      in_doubt[wanted.key].emplace_back(
          wanted.value, wanted.ttl.has_value() ? now_ + *wanted.ttl : Instant::never());
      submit(std::move(command));
    }
    decide();
    done_.clear();
    crash();
    forget_expired();
    const Keys there = read_all();
    for (const auto& [key, known] : keys_) {
      ASSERT_TRUE(there.contains(key) || in_doubt.contains(key)) << key << " is lost";
    }
    for (const auto& [key, found] : there) {
      const auto known = keys_.find(key);
      if (known != keys_.end() && known->second == found) continue;
      const auto& maybe = in_doubt[key];
      const auto same = [&](const auto& one) { return one.first == found.value; };
      const auto write = std::ranges::find_if(maybe, same);
      ASSERT_NE(write, maybe.end()) << key << " is at " << found.value;
      keys_[key] = found;
      deadlines_[key] = write->second;
      given_.insert(found.revision);
    }
    // Uncertain writes with a short time-to-live may have removed a key.
    std::erase_if(keys_, [&](const auto& known) { return !there.contains(known.first); });
  }

  Keys keys_;
  std::map<std::string, Instant> deadlines_;
  std::set<Revision> given_;
  std::uint64_t values_ = 0;
};

class KvCrashes : public KvCrashTest, public testing::WithParamInterface<int> {};

TEST_P(KvCrashes, WhatWasToldIsThereAndNoRevisionComesTwice) {
  run(static_cast<std::uint64_t>(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Seeds, KvCrashes, testing::Range(1, 11));

}  // namespace
}  // namespace baton::kv_shard_test
