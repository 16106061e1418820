#include <map>
#include <mutex>

#include <gtest/gtest.h>

#include "worker/stores/checked_store.h"
#include "worker/stores/kv_store.h"

namespace baton::coord {
namespace {

constexpr std::chrono::seconds kTimeout{5};

/// A store in memory, which can be made to break its promises.
class MemoryStore final : public CheckedStore {
 public:
  enum class Flaw : std::uint8_t {
    none,
    two_winners,      // One loser of each race is told that it won.
    nobody_wins,      // Refuses everything.
    stale_reads,      // Shows the value before the last.
    removes_twice,    // Confirms removals of what is not there.
    keeps_removed,    // Confirms removals, and keeps the key.
    loses_an_answer,  // Fails once, in the middle, after it has written.
  };

  explicit MemoryStore(Flaw flaw = Flaw::none) : CheckedStore("memory://"), flaw_(flaw) {}

  [[nodiscard]] std::uint64_t requests() const override { return 0; }
  [[nodiscard]] std::size_t size() const { return entries_.size(); }
  [[nodiscard]] int writes() const { return writes_; }

 protected:
  Result<std::optional<StoredEntry>> do_get(const std::string& key, const Deadline&) override {
    const std::lock_guard lock(mutex_);
    const auto& entries = flaw_ == Flaw::stale_reads ? before_ : entries_;
    const auto found = entries.find(key);
    if (found == entries.end()) return std::nullopt;
    return found->second;
  }

  Result<CasOutcome> do_cas(const Write& write, const Deadline&) override {
    const std::lock_guard lock(mutex_);
    if (flaw_ == Flaw::nobody_wins) return CasOutcome{};
    if (at(write.key) != write.expected) {
      // Two losers of a race are never told the same.
      if (flaw_ == Flaw::two_winners && ++losers_ % 3 == 1) {
        return CasOutcome{.done = true, .revision = revision_};
      }
      return CasOutcome{};
    }
    before_ = entries_;
    entries_[write.key] = {
        .key = write.key, .value = std::string(write.value), .revision = ++revision_};
    if (++writes_ == 2 && flaw_ == Flaw::loses_an_answer) {
      return Error{Errc::unavailable, "the answer got lost"};
    }
    return CasOutcome{.done = true, .revision = revision_};
  }

  Result<CasOutcome> do_remove(const std::string& key, KvRevision expected,
                               const Deadline&) override {
    const std::lock_guard lock(mutex_);
    if (flaw_ == Flaw::removes_twice) {
      entries_.erase(key);
      return CasOutcome{.done = true};
    }
    if (at(key) != expected || removed_ == expected) return CasOutcome{};
    removed_ = expected;
    if (flaw_ != Flaw::keeps_removed) entries_.erase(key);
    return CasOutcome{.done = true};
  }

  Result<std::vector<StoredEntry>> do_list(const std::string&, const Deadline&) override {
    return std::vector<StoredEntry>{};
  }
  Result<std::unique_ptr<Watch>> do_watch(WatchOptions, WatchCallback, const Deadline&) override {
    return Error{Errc::unavailable, "nothing to see here"};
  }

 private:
  [[nodiscard]] KvRevision at(const std::string& key) const {
    const auto found = entries_.find(key);
    return found == entries_.end() ? 0 : found->second.revision;
  }

  Flaw flaw_;
  std::mutex mutex_;
  std::map<std::string, StoredEntry> entries_;
  std::map<std::string, StoredEntry> before_;
  KvRevision revision_ = 0;
  KvRevision removed_ = 0;
  int losers_ = 0;
  int writes_ = 0;
};

std::string verdict(MemoryStore::Flaw flaw) {
  MemoryStore store(flaw);
  const Status status = self_test(store, kTimeout);
  return status ? "passed" : status.error().text;
}

TEST(SelfTest, ASoundStorePassesAndKeepsNothing) {
  MemoryStore store;

  EXPECT_TRUE(self_test(store, kTimeout).has_value());
  EXPECT_EQ(store.size(), 0U);
  EXPECT_EQ(store.writes(), 6);  // One winner in each of the rounds.
}

// Each of these would let two workers hold one partition.
TEST(SelfTest, AStoreThatBreaksItsPromisesIsRefused) {
  using Flaw = MemoryStore::Flaw;
  EXPECT_EQ(verdict(Flaw::two_winners),
            "memory:// is not fit for leases: of 4 racing compare-and-sets 2 had success, and one "
            "should");
  EXPECT_EQ(verdict(Flaw::nobody_wins),
            "memory:// is not fit for leases: of 4 racing compare-and-sets 0 had success, and one "
            "should");
  EXPECT_EQ(verdict(Flaw::stale_reads),
            "memory:// is not fit for leases: it does not show what was just written");
  EXPECT_EQ(verdict(Flaw::removes_twice),
            "memory:// is not fit for leases: of 4 racing removals 4 had success, and one should");
  EXPECT_EQ(verdict(Flaw::keeps_removed),
            "memory:// is not fit for leases: it shows what was just removed");
}

// Not a verdict on the store: the caller opens it again.
TEST(SelfTest, ALostAnswerIsPassedOnAndLeavesNothing) {
  MemoryStore store(MemoryStore::Flaw::loses_an_answer);

  const Status status = self_test(store, kTimeout);

  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Errc::unavailable);
  EXPECT_EQ(store.size(), 0U);
}

TEST(CheckedStore, KeysAreSubjectsOfNats) {
  for (const char* key : {"a", "g.orders.a", "g.x.m.w-1.2", "_selftest.0", "-"}) {
    EXPECT_TRUE(check_key(key).has_value()) << key;
  }
  for (const char* key : {"", ".", ".a", "a.", "a..b", "a b", "a/b", "a*", ">", "\xc3\xa4"}) {
    EXPECT_FALSE(check_key(key).has_value()) << key;
  }
  EXPECT_FALSE(check_key(std::string(513, 'a')).has_value());
  EXPECT_TRUE(check_prefix("").has_value());
  EXPECT_TRUE(check_prefix("g.orders.").has_value());
  EXPECT_FALSE(check_prefix("g..").has_value());
  EXPECT_FALSE(check_prefix(".g").has_value());
}

TEST(CheckedStore, RefusesWhatNobodyCanMean) {
  MemoryStore store;

  EXPECT_EQ(store.remove("a", 0, kTimeout).error().code, Errc::invalid_argument);
  EXPECT_EQ(store.cas("a", 0, "x", Duration::zero(), kTimeout).error().code,
            Errc::invalid_argument);
  EXPECT_EQ(store.get("a b", kTimeout).error().text,
            "key \"a b\" is not of letters, digits, _ and -, with single dots");
}

}  // namespace
}  // namespace baton::coord
