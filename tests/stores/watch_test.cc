// What every store's watch promises: hints in order.

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <map>
#include <set>
#include <thread>

#include <fmt/format.h>

#include "stores/contract.h"
#include "worker/nats/nats_link.h"

namespace baton::stores {
namespace {

class WatchContract : public Contract {};
BATON_FOR_EACH_STORE(WatchContract);

using Lines = std::vector<std::string>;

std::unique_ptr<coord::Watch> watch(KvStore& store, const std::string& prefix, Seen& seen) {
  auto started = store.watch({.prefix = prefix}, seen.callback(), kTimeout);
  if (started) return *std::move(started);
  ADD_FAILURE() << to_string(started.error());
  return nullptr;
}

TEST_P(WatchContract, BeginsWithASnapshotThenShowsChanges) {
  const auto store = client();
  const KvRevision a = must_write(*store, "g.a", 0, "1");
  must_write(*store, "g.b", 0, "1");
  must_write(*store, "h.c", 0, "1");
  must_remove(*store, "g.gone", must_write(*store, "g.gone", 0, "x"));
  Seen seen;

  const auto running = watch(*store, "g.", seen);
  ASSERT_TRUE(seen.wait_for(Kinds::snapshot_end));
  // One by one: a value that is overwritten at once may be left out.
  const auto wait_for_events = [&](std::size_t count) {
    return seen.wait([&](const auto& events) { return events.size() >= count; });
  };
  const KvRevision again = must_write(*store, "g.a", a, "2");
  must_write(*store, "h.d", 0, "1");
  ASSERT_TRUE(wait_for_events(4));
  must_remove(*store, "g.a", again);
  ASSERT_TRUE(wait_for_events(5));
  const KvRevision last = must_write(*store, "g.a", 0, "3");
  must_write(*store, "g.end", 0, "1");
  ASSERT_TRUE(seen.wait_for(Kinds::put, "g.end"));

  EXPECT_EQ(seen.lines(), (Lines{"+g.a=1", "+g.b=1", "|", "+g.a=2", "-g.a", "+g.a=3", "+g.end=1"}));
  EXPECT_EQ(seen.events().at(0).entry.revision, a);
  EXPECT_EQ(seen.events().at(3).entry.revision, again);
  // A removal has a revision of its own, between those of what it removed and what comes after.
  EXPECT_GT(seen.events().at(4).entry.revision, again);
  EXPECT_LT(seen.events().at(4).entry.revision, last);
}

// A group's first member must not wait for a heartbeat before it may plan.
TEST_P(WatchContract, ASnapshotOfNothingEndsAtOnce) {
  const auto store = client();
  must_write(*store, "other", 0, "x");
  Seen seen;

  const auto running = watch(*store, "g.", seen);

  EXPECT_TRUE(seen.wait_for(Kinds::snapshot_end, {}, milliseconds{500} * kSlower));
  EXPECT_EQ(seen.lines(), (Lines{"|"}));
}

TEST_P(WatchContract, APrefixNeedNotEndWithADot) {
  const auto store = client();
  must_write(*store, "g.ab", 0, "1");
  must_write(*store, "g.ac.x", 0, "1");
  must_write(*store, "g.b", 0, "1");
  Seen seen;

  const auto running = watch(*store, "g.a", seen);
  ASSERT_TRUE(seen.wait_for(Kinds::snapshot_end));
  must_write(*store, "g.c", 0, "1");
  must_write(*store, "g.ad", 0, "1");
  ASSERT_TRUE(seen.wait_for(Kinds::put, "g.ad"));

  EXPECT_EQ(seen.lines(), (Lines{"+g.ab=1", "+g.ac.x=1", "|", "+g.ad=1"}));
}

TEST_P(WatchContract, EveryWatcherSeesWhatOtherClientsChange) {
  const auto writer = client();
  const auto reader = client();
  Seen first;
  Seen second;
  Seen third;
  const auto one = watch(*reader, "g.", first);
  const auto two = watch(*reader, "g.", second);
  const auto three = watch(*writer, "", third);

  KvRevision revision = 0;
  for (int i = 0; i < 20; ++i) {
    revision = must_write(*writer, "g.a", revision, std::to_string(i));
  }
  // Of changes that follow each other closely some may be left out, but never the last.
  const auto all = {&first, &second, &third};
  for (Seen* seen : all) {
    EXPECT_TRUE(seen->wait(
        [](const auto& events) { return !events.empty() && events.back().entry.value == "19"; }));
  }
  must_remove(*writer, "g.a", revision);
  for (Seen* seen : all) EXPECT_TRUE(seen->wait_for(Kinds::removed, "g.a"));
}

TEST_P(WatchContract, EachKeysChangesComeInOrder) {
  constexpr int kKeys = 4;
  constexpr int kChanges = times(40);
  const auto store = client();
  const auto writer = client();
  Seen seen;
  const auto running = watch(*store, "k.", seen);

  std::vector<std::jthread> threads;
  for (int key = 0; key < kKeys; ++key) {
    threads.emplace_back([&, key] {
      KvRevision revision = 0;
      for (int i = 1; i <= kChanges; ++i) {
        revision = must_write(*writer, fmt::format("k.{}", key), revision, std::to_string(i));
      }
    });
  }
  threads.clear();
  for (int key = 0; key < kKeys; ++key) {
    const std::string last = fmt::format("+k.{}={}", key, kChanges);
    ASSERT_TRUE(seen.wait([&](const auto& events) {
      return std::ranges::any_of(events, [&](const WatchEvent& event) {
        return fmt::format("+{}={}", event.entry.key, event.entry.value) == last;
      });
    }));
  }

  std::map<std::string, int> values;
  for (const WatchEvent& event : seen.events()) {
    if (event.kind != Kinds::put) continue;
    const int value = std::stoi(event.entry.value);
    EXPECT_GT(value, values[event.entry.key]) << event.entry.key;
    values[event.entry.key] = value;
  }
}

// A worker that plans on a partial snapshot would take the missing workers for dead.
TEST_P(WatchContract, TheSnapshotIsCompleteAlsoWhileKeysChange) {
  constexpr int kKeys = 30;
  const auto store = client();
  const auto writer = client();
  std::vector<KvRevision> revisions;
  for (int i = 0; i < kKeys; ++i) {
    revisions.push_back(must_write(*store, fmt::format("k.{}", i), 0, "x"));
  }
  const std::jthread churn([&](const std::stop_token& stop) {
    for (std::size_t i = 0; !stop.stop_requested(); i = (i + 7) % kKeys) {
      revisions[i] = must_write(*writer, fmt::format("k.{}", i), revisions[i], "y");
    }
  });

  for (int round = 0; round < times(10); ++round) {
    Seen seen;
    const auto running = watch(*store, "k.", seen);
    ASSERT_TRUE(seen.wait_for(Kinds::snapshot_end));
    std::set<std::string> shown;
    for (const WatchEvent& event : seen.events()) {
      if (event.kind == Kinds::snapshot_end) break;
      shown.insert(event.entry.key);
    }
    EXPECT_EQ(shown.size(), static_cast<std::size_t>(kKeys)) << "round " << round;
  }
}

// The callback uses what is destroyed next.
TEST_P(WatchContract, NothingIsCalledOnceTheWatchIsDestroyed) {
  const auto store = client();
  const auto writer = client();
  const std::jthread churn([&](const std::stop_token& stop) {
    KvRevision revision = 0;
    while (!stop.stop_requested()) revision = must_write(*writer, "k.x", revision, "y");
  });

  for (int round = 0; round < times(15); ++round) {
    auto alive = std::make_unique<std::atomic<int>>(0);
    auto running = store->watch(
        {.prefix = "k."},
        [raw = alive.get()](const WatchEvent&) {
          ++*raw;
          std::this_thread::sleep_for(milliseconds{1});
          ++*raw;
        },
        kTimeout);
    ASSERT_TRUE(running.has_value()) << to_string(running.error());
    std::this_thread::sleep_for(milliseconds{round * 2});
    running->reset();
    const int calls = *alive;
    EXPECT_EQ(calls % 2, 0) << "a call was still running";
    std::this_thread::sleep_for(milliseconds{5});
    EXPECT_EQ(*alive, calls);
  }
}

// libnats up to 3.5 crashes or hangs when a subscription is destroyed under a message of its own.
TEST_P(WatchContract, SubscriptionsOfNatsEndInTheMiddleOfAFlood) {
  if (GetParam() != Kind::nats) return;
  const std::vector<std::string> servers = {server().member(0).address()};
  const auto link = coord::NatsLink::connect(servers, coord::Deadline(kTimeout));
  const auto other = coord::NatsLink::connect(servers, coord::Deadline(kTimeout));
  ASSERT_TRUE(link.has_value() && other.has_value());
  const std::jthread flood([&](const std::stop_token& stop) {
    while (!stop.stop_requested()) {
      for (int i = 0; i < 100; ++i) {
        natsConnection_PublishString((*other)->connection(), "flood", "x");
      }
      std::this_thread::sleep_for(std::chrono::microseconds{200});
    }
  });

  for (int round = 0; round < (e2e::is_long_run() ? 20'000 : 2'000); ++round) {
    const auto subscription = coord::nats_subscribe(*link, "flood");
    ASSERT_TRUE(subscription.has_value()) << to_string(subscription.error());
    natsMsg* message = nullptr;
    EXPECT_EQ(natsSubscription_NextMsg(&message, subscription->get(), 5'000), NATS_OK);
    natsMsg_Destroy(message);
  }
}

TEST_P(WatchContract, OutlivesTheStore) {
  Seen seen;
  const auto writer = client();
  std::unique_ptr<coord::Watch> running;
  {
    const auto store = client();
    running = watch(*store, "g.", seen);
    ASSERT_TRUE(seen.wait_for(Kinds::snapshot_end));
  }

  must_write(*writer, "g.a", 0, "1");

  EXPECT_TRUE(seen.wait_for(Kinds::put, "g.a"));
}

// Not a test: the process that the next one kills.
TEST(Session, DISABLED_IsHeldUntilKilled) {
  const char* url = std::getenv("BATON_TEST_URL");      // NOLINT(concurrency-mt-unsafe)
  const char* ready = std::getenv("BATON_TEST_READY");  // NOLINT(concurrency-mt-unsafe)
  ASSERT_TRUE(url != nullptr && ready != nullptr);
  const auto store = open(url);
  const auto held =
      store->watch({.prefix = "g.", .session = "g.m.w1"}, [](const auto&) {}, kTimeout);
  ASSERT_TRUE(held.has_value());
  e2e::write_file(ready, "ready");
  std::this_thread::sleep_for(seconds{60});
}

// The fast way to notice a killed worker, which only the broker has.
TEST_P(WatchContract, ALostSessionIsHintedByTheBroker) {
  if (GetParam() != Kind::broker) return;
  const auto store = client();
  must_write(*store, "g.m.w1", 0, "session");
  Seen seen;
  const auto running = watch(*store, "g.", seen);
  const e2e::TempFolder folder;
  e2e::ChildProcess holder(
      {.command = {"/proc/self/exe", "--gtest_also_run_disabled_tests",
                   "--gtest_filter=Session.DISABLED_IsHeldUntilKilled"},
       .environment = {"BATON_TEST_URL=" + url(), "BATON_TEST_READY=" + (folder / "ready")}});
  ASSERT_TRUE(e2e::eventually([&] { return !e2e::read_file(folder / "ready").empty(); }));

  // After a goodbye no event is sent; after a broken connection one is.
  auto polite = store->watch({.prefix = "g.", .session = "g.m.w1"}, [](const auto&) {}, kTimeout);
  ASSERT_TRUE(polite.has_value());
  polite->reset();
  EXPECT_FALSE(seen.wait_for(Kinds::session_lost, {}, milliseconds{300}));
  holder.kill();

  EXPECT_TRUE(seen.wait_for(Kinds::session_lost, "g.m.w1"));
}

}  // namespace
}  // namespace baton::stores
