// What every store promises to writers: single-key compare-and-set, and reads that see it. The same
// tests run against a real broker, a real NATS server and a real etcd.

#include "stores/contract.h"

#include <algorithm>
#include <atomic>
#include <latch>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "stores/programs.h"

namespace baton::stores {
namespace {

BATON_FOR_EACH_STORE(Contract);

std::vector<std::string> keys_of(const std::vector<StoredEntry>& entries) {
  std::vector<std::string> keys;
  for (const StoredEntry& entry : entries) keys.push_back(entry.key);
  return keys;
}

TEST_P(Contract, AKeyThatIsNotThereReadsAsNothing) {
  const auto store = client();

  EXPECT_EQ(value_of(*store, "a"), "(none)");
  EXPECT_EQ(store->name(), url());
}

TEST_P(Contract, AWriteIsReadBackWithItsRevision) {
  const auto store = client();

  const KvRevision first = must_write(*store, "g.orders.a", 0, "one");
  const KvRevision second = must_write(*store, "g.orders.a", first, "two");

  EXPECT_NE(first, second);
  const auto found = store->get("g.orders.a", kTimeout).value();
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->key, "g.orders.a");
  EXPECT_EQ(found->value, "two");
  EXPECT_EQ(found->revision, second);
}

TEST_P(Contract, ACreateIsRefusedWhereTheKeyIs) {
  const auto store = client();
  must_write(*store, "a", 0, "mine");

  const auto refused = store->cas("a", 0, "yours", std::nullopt, kTimeout);

  ASSERT_TRUE(refused.has_value());
  EXPECT_FALSE(refused->done);
  EXPECT_EQ(value_of(*store, "a"), "mine");
}

TEST_P(Contract, AWriteIsRefusedAtAnyOtherRevision) {
  const auto store = client();
  const KvRevision old = must_write(*store, "a", 0, "one");
  const KvRevision now = must_write(*store, "a", old, "two");

  for (const KvRevision wrong : {old, now + 1, now + 1000}) {
    EXPECT_FALSE(store->cas("a", wrong, "x", std::nullopt, kTimeout).value().done) << wrong;
    EXPECT_FALSE(store->remove("a", wrong, kTimeout).value().done) << wrong;
    EXPECT_FALSE(store->cas("no-such-key", wrong, "x", std::nullopt, kTimeout).value().done);
    EXPECT_FALSE(store->remove("no-such-key", wrong, kTimeout).value().done);
  }
  EXPECT_EQ(value_of(*store, "a"), "two");
  EXPECT_EQ(value_of(*store, "no-such-key"), "(none)");
}

// A recreated key is another key: a client that knew the first may not change the second.
TEST_P(Contract, AKeyIsMadeAgainAfterItsRemovalUnderANewRevision) {
  const auto store = client();
  std::set<KvRevision> used;

  for (int life = 0; life < 3; ++life) {
    const KvRevision born = must_write(*store, "a", 0, fmt::format("life {}", life));
    EXPECT_TRUE(used.insert(born).second);
    for (const KvRevision old : used) {
      if (old == born) continue;
      EXPECT_FALSE(store->cas("a", old, "x", std::nullopt, kTimeout).value().done);
    }
    EXPECT_EQ(value_of(*store, "a"), fmt::format("life {}", life));
    must_remove(*store, "a", born);
    EXPECT_EQ(value_of(*store, "a"), "(none)");
    // A removed key is neither removed twice, nor changed.
    EXPECT_FALSE(store->remove("a", born, kTimeout).value().done);
    EXPECT_FALSE(store->cas("a", born, "x", std::nullopt, kTimeout).value().done);
    EXPECT_EQ(value_of(*store, "a"), "(none)");
  }
}

TEST_P(Contract, AListHasEveryKeyUnderThePrefixAndNoOther) {
  const auto store = client();
  for (const char* key : {"g.a.m.w1", "g.a.m.w2", "g.ab.m.w1", "g.b.m.w1", "h"}) {
    must_write(*store, key, 0, fmt::format("of {}", key));
  }
  must_remove(*store, "g.a.m.gone", must_write(*store, "g.a.m.gone", 0, "x"));
  using Keys = std::vector<std::string>;

  EXPECT_EQ(keys_of(store->list("g.a.", kTimeout).value()), (Keys{"g.a.m.w1", "g.a.m.w2"}));
  EXPECT_EQ(keys_of(store->list("g.a", kTimeout).value()),
            (Keys{"g.a.m.w1", "g.a.m.w2", "g.ab.m.w1"}));
  EXPECT_EQ(keys_of(store->list("g.a.m.w1", kTimeout).value()), (Keys{"g.a.m.w1"}));
  EXPECT_EQ(store->list("", kTimeout).value().size(), 5U);
  EXPECT_EQ(store->list("nothing", kTimeout).value().size(), 0U);
  const auto listed = store->list("h", kTimeout).value();
  ASSERT_EQ(listed.size(), 1U);
  EXPECT_EQ(listed[0].value, "of h");
  EXPECT_EQ(listed[0].revision, store->get("h", kTimeout).value()->revision);
}

TEST_P(Contract, ValuesAreAnyBytesOfAnySize) {
  const auto store = client();
  std::string every_byte;
  for (int i = 0; i < 256; ++i) every_byte.push_back(static_cast<char>(i));
  std::string large;
  while (large.size() < 100 * 1024) large += every_byte;
  const auto reader = client();

  for (const std::string& value : {std::string(), std::string(1, '\0'), every_byte, large}) {
    const auto there = store->get("bytes", kTimeout).value();
    must_write(*store, "bytes", there ? there->revision : 0, value);
    EXPECT_TRUE(value_of(*reader, "bytes") == value) << value.size() << " bytes";
    EXPECT_TRUE(reader->list("bytes", kTimeout).value().at(0).value == value) << value.size();
  }
}

// A client that is told of a write by its writer must find it.
TEST_P(Contract, AReadSeesEveryWriteConfirmedBeforeIt) {
  const auto writer = client();
  const auto reader = client();
  KvRevision revision = 0;

  for (int i = 0; i < times(100); ++i) {
    revision = must_write(*writer, "a", revision, std::to_string(i));
    ASSERT_EQ(value_of(*reader, "a"), std::to_string(i));
  }
}

// The promise that everything else depends on.
TEST_P(Contract, OfRacingWritesExactlyOneHasSuccess) {
  constexpr int kThreads = 8;
  constexpr int kRounds = times(50);
  const std::array clients{client(), client()};
  KvRevision revision = 0;

  for (int round = 0; round < kRounds; ++round) {
    std::latch start(kThreads);
    std::array<Result<CasOutcome>, kThreads> outcomes{};
    std::vector<std::jthread> threads;
    for (std::size_t i = 0; i < kThreads; ++i) {
      threads.emplace_back([&, i] {
        start.arrive_and_wait();
        outcomes.at(i) =
            clients.at(i % 2)->cas("seat", revision, std::to_string(i), std::nullopt, kTimeout);
      });
    }
    threads.clear();
    int winners = 0;
    std::string winner;
    for (std::size_t i = 0; i < kThreads; ++i) {
      ASSERT_TRUE(outcomes.at(i).has_value()) << to_string(outcomes.at(i).error());
      if (!outcomes.at(i)->done) continue;
      ++winners;
      winner = std::to_string(i);
      revision = outcomes.at(i)->revision;
    }
    ASSERT_EQ(winners, 1) << "round " << round;
    ASSERT_EQ(value_of(*clients[0], "seat"), winner);
  }
}

// Every increment by compare-and-set counts exactly once.
TEST_P(Contract, NoIncrementIsLostOrCountedTwice) {
  constexpr int kThreads = 4;
  constexpr int kEach = times(25);
  const auto store = client();
  must_write(*store, "counter", 0, "0");

  std::vector<std::jthread> threads;
  for (int i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (int done = 0; done < kEach;) {
        const auto entry = store->get("counter", kTimeout).value().value();
        const std::string next = std::to_string(std::stoi(entry.value) + 1);
        done += store->cas("counter", entry.revision, next, std::nullopt, kTimeout)->done ? 1 : 0;
      }
    });
  }
  threads.clear();

  EXPECT_EQ(value_of(*store, "counter"), std::to_string(kThreads * kEach));
}

TEST_P(Contract, BucketsDoNotSeeEachOther) {
  const auto store = client();
  const auto other = open(server().url(bucket() + "-other"));
  must_write(*store, "a", 0, "here");

  EXPECT_EQ(value_of(*other, "a"), "(none)");
  EXPECT_EQ(other->list("", kTimeout).value().size(), 0U);
  must_write(*other, "a", 0, "there");
  EXPECT_EQ(value_of(*store, "a"), "here");
}

// All workers of a group start at the same moment, on a bucket that does not exist yet.
TEST_P(Contract, ManyMayOpenANewBucketAtOnce) {
  constexpr int kClients = kSlower > 3 ? 2 : 6;  // Times the threads of the self-test.
  std::atomic<int> opened = 0;
  std::vector<std::jthread> threads;
  for (int i = 0; i < kClients; ++i) {
    threads.emplace_back([&] {
      const auto store = coord::open_store(url(), {.connect_timeout = 4 * kTimeout});
      if (store) {
        ++opened;
      } else {
        ADD_FAILURE() << to_string(store.error());
      }
    });
  }
  threads.clear();

  EXPECT_EQ(opened, kClients);
}

// Workers come and go for years, and the keys of those that left are removed.
TEST_P(Contract, AListingDoesNotCostMoreForWhatWasRemoved) {
  constexpr std::uint64_t kGone = 20;
  const auto watcher = client();
  Seen seen;
  const auto watch = watcher->watch({.prefix = "k."}, seen.callback(), kTimeout);
  auto opened =
      coord::open_store(url(), {.connect_timeout = 4 * kTimeout, .traces_kept = milliseconds{0}});
  ASSERT_TRUE(opened.has_value()) << to_string(opened.error());
  KvStore& store = **opened;
  for (std::uint64_t i = 0; i < kGone; ++i) {
    const std::string key = fmt::format("k.{}", i);
    must_remove(store, key, must_write(store, key, 0, "x"));
  }
  const KvRevision back = must_write(store, "k.0", 0, "y");
  EXPECT_EQ(store.list("k.", kTimeout).value().size(), 1U);

  const std::uint64_t before = store.requests();
  EXPECT_EQ(store.list("k.", kTimeout).value().size(), 1U);

  EXPECT_LE(store.requests() - before, 2U);
  EXPECT_EQ(store.get("k.0", kTimeout).value()->revision, back);
  EXPECT_GT(must_write(store, "k.1", 0, "z"), back);
  EXPECT_TRUE(seen.wait_for(Kinds::put, "k.1"));
  EXPECT_TRUE(std::ranges::none_of(
      seen.events(), [](const WatchEvent& event) { return event.kind == Kinds::broken; }));
}

// A status command must be able to read a store that it may not change.
TEST_P(Contract, OpenedToReadItChangesNothing) {
  const coord::StoreOptions to_read{.connect_timeout = kTimeout, .to_read = true};
  const auto none = coord::open_store(url(), to_read);
  ASSERT_EQ(none.has_value(), GetParam() == Kind::etcd);  // etcd has keys, but no buckets.
  if (!none) {
    EXPECT_EQ(none.error().code, Errc::bucket_not_found) << to_string(none.error());
    EXPECT_EQ(none.error().text, "there is no bucket " + bucket());
  }

  const auto store = client();
  const KvRevision before = must_write(*store, "a", 0, "x");
  const auto reader = coord::open_store(url(), to_read);
  ASSERT_TRUE(reader.has_value()) << to_string(reader.error());
  EXPECT_EQ((*reader)->list("", kTimeout).value().size(), 1U);
  EXPECT_EQ(must_write(*store, "a", before, "y"), before + 1);
}

TEST_P(Contract, TheSelfTestPassesAndLeavesNothing) {
  const auto store = client();

  const std::uint64_t before = store->requests();
  EXPECT_TRUE(self_test(*store, kTimeout).has_value());

  EXPECT_EQ(store->list("", kTimeout).value().size(), 0U);
  EXPECT_GE(store->requests(), before + 32);  // Eight races of four.
}

TEST_P(Contract, EveryRequestIsCounted) {
  const auto store = client();

  const std::uint64_t before = store->requests();
  must_write(*store, "a", 0, "x");
  (void)store->get("a", kTimeout);

  EXPECT_EQ(store->requests(), before + 2);
}

// Without its own revision, a removal could not be told from late events of the state before it.
TEST_P(Contract, ARemovalIsSeenUnderARevisionOfItsOwn) {
  const auto store = client();
  const KvRevision written = must_write(*store, "g.a", 0, "x");
  Seen seen;
  const auto watch = store->watch({}, seen.callback(), kTimeout);
  ASSERT_TRUE(store->remove("g.a", written, kTimeout)->done);
  ASSERT_TRUE(seen.wait_for(Kinds::removed, "g.a"));
  EXPECT_GT(seen.events().back().entry.revision, written);
  EXPECT_GT(must_write(*store, "g.a", 0, "y"), seen.events().back().entry.revision);
}

TEST_P(Contract, AKeyWithATimeToLiveGoesAndOthersStay) {
  const auto store = client();
  const bool keeps_all = GetParam() == Kind::etcd ||
                         (GetParam() == Kind::nats &&
                          nats_version_of(nats_program({}).path) < coord::NatsVersion{2, 11, 0});
  Seen seen;
  const auto watch = store->watch({}, seen.callback(), kTimeout);
  must_write(*store, "stays", 0, "x");
  ASSERT_TRUE(store->cas("goes", 0, "x", milliseconds{1000}, kTimeout)->done);
  const auto fresh = store->cas("renewed", 0, "x", milliseconds{1000}, kTimeout).value();
  ASSERT_TRUE(store->cas("renewed", fresh.revision, "y", std::nullopt, kTimeout)->done);

  if (keeps_all) {
    std::this_thread::sleep_for(milliseconds{1500});
    EXPECT_EQ(value_of(*store, "goes"), "x");
  } else {
    EXPECT_TRUE(seen.wait_for(Kinds::removed, "goes"));
    EXPECT_EQ(value_of(*store, "goes"), "(none)");
    must_write(*store, "goes", 0, "again");
  }
  EXPECT_EQ(value_of(*store, "stays"), "x");
  EXPECT_EQ(value_of(*store, "renewed"), "y");
}

}  // namespace
}  // namespace baton::stores
