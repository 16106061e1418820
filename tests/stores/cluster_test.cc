// Clusters of three that lose members. They take minutes: only with BATON_LONG.

#include <atomic>
#include <cstdio>
#include <thread>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "stores/contract.h"
#include "worker/nats/nats_link.h"
#include "worker/stores/limits.h"

namespace baton::stores {
namespace {

using Clock = e2e::Clock;

/// Increments by compare-and-set again and again, and knows which outcomes are possible.
class Counters {
 public:
  ~Counters() { done_ = true; }
  Counters(const Counters&) = delete;
  Counters& operator=(const Counters&) = delete;
  Counters(std::string url, int threads) : url_(std::move(url)) {
    const auto store = open(url_);
    must_write(*store, "counter", 0, "0");
    for (int i = 0; i < threads; ++i) stores_.push_back(open(url_));
    for (const auto& each : stores_) threads_.emplace_back([this, &each] { run(*each); });
  }

  /// Waits for some more confirmed increments; returns how long that took.
  milliseconds wait_for_more(int count, milliseconds within) {
    const auto start = Clock::now();
    const int goal = confirmed_ + count;
    EXPECT_TRUE(e2e::eventually([&] { return confirmed_ >= goal; }, within))
        << confirmed_ << " of " << goal << "; last error: " << last_error();
    return std::chrono::duration_cast<milliseconds>(Clock::now() - start);
  }

  enum class Reads : std::uint8_t { linearizable, stale_for_a_while };
  /// Stops, and compares with the store's content.
  void check(Reads reads = Reads::linearizable) {
    done_ = true;
    threads_.clear();
    const auto store = open(url_);
    const int stored = std::stoi(value_of(*store, "counter"));
    fmt::print("  {} increments confirmed, {} unknown, {} stored; {} stale reads\n",
               confirmed_.load(), unknown_.load(), stored, stale_.load());
    EXPECT_GE(stored, confirmed_) << "a confirmed write is lost";
    EXPECT_LE(stored, confirmed_ + unknown_) << "a refused write was done";
    if (reads == Reads::linearizable) {
      EXPECT_EQ(stale_, 0) << "reads are not linearizable";
    }
  }

 private:
  void run(KvStore& store) {
    while (!done_) {
      const int floor = highest_;
      const auto entry = store.get("counter", milliseconds{500});
      if (!entry || !*entry) {
        note(entry ? "nothing there" : to_string(entry.error()));
        continue;
      }
      const int value = std::stoi((*entry)->value);
      if (value < floor) ++stale_;
      const std::string next = std::to_string(value + 1);
      const auto outcome =
          store.cas("counter", (*entry)->revision, next, std::nullopt, milliseconds{500});
      if (!outcome) {
        ++unknown_;
        note(to_string(outcome.error()));
      } else if (outcome->done) {
        ++confirmed_;
        // From here on no read may return less.
        int known = highest_;
        while (known <= value && !highest_.compare_exchange_weak(known, value + 1)) {
        }
      }
    }
  }
  void note(std::string error) {
    const std::lock_guard lock(mutex_);
    last_error_ = std::move(error);
  }
  std::string last_error() {
    const std::lock_guard lock(mutex_);
    return last_error_;
  }

  std::string url_;
  std::atomic<bool> done_ = false;
  std::atomic<int> confirmed_ = 0;
  std::atomic<int> unknown_ = 0;
  std::atomic<int> highest_ = 0;  // The highest value whose write was confirmed.
  std::atomic<int> stale_ = 0;    // How many reads returned less.
  std::mutex mutex_;
  std::string last_error_;
  std::vector<std::unique_ptr<KvStore>> stores_;
  std::vector<std::jthread> threads_;
};

class Cluster : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (!e2e::is_long_run()) GTEST_SKIP() << "clusters: only with BATON_LONG";
    const ServerOptions options{.kind = GetParam(), .members = 3};
    if (const std::string why = Server::missing(options); !why.empty()) {
      GTEST_SKIP() << "SKIPPED: " << why;
    }
    server_ = std::make_unique<Server>(options);
    ASSERT_TRUE(server_->start());
  }

  [[nodiscard]] std::string url() const {
    return server_->url("leases", GetParam() == Kind::nats ? "?replicas=3" : "");
  }
  /// Prints a time that a lease must outlast.
  static void report(std::string_view what, milliseconds took) {
    fmt::print("  {}: {}: writes go on after {} ms\n", name_of(GetParam()), what, took.count());
    EXPECT_LE(took, GetParam() == Kind::nats ? seconds{20} : seconds{7});
  }

  std::unique_ptr<Server> server_;
};
INSTANTIATE_TEST_SUITE_P(Stores, Cluster, testing::Values(Kind::nats, Kind::etcd),
                         [](const auto& each) { return std::string(name_of(each.param)); });

// Each member in turn, so that the leader is among them.
TEST_P(Cluster, GoesOnWhileOneMemberIsKilledAndNothingIsLost) {
  Counters counters(url(), 4);
  counters.wait_for_more(20, seconds{20});

  for (std::size_t i = 0; i < server_->size(); ++i) {
    server_->member(i).kill();
    report(fmt::format("{} killed", server_->member(i).name()),
           counters.wait_for_more(20, seconds{30}));
    ASSERT_TRUE(server_->member(i).start());
    counters.wait_for_more(20, seconds{30});
    // The one that returned must have caught up before the next one is killed.
    std::this_thread::sleep_for(seconds{3});
  }
  counters.check();
}

// Nothing breaks here, there is only silence: clients and members must notice by themselves.
TEST_P(Cluster, GoesOnWhileOneMemberIsFrozenAndNothingIsLost) {
  Counters counters(url(), 4);
  counters.wait_for_more(20, seconds{20});

  for (std::size_t i = 0; i < server_->size(); ++i) {
    server_->member(i).pause();
    report(fmt::format("{} frozen", server_->member(i).name()),
           counters.wait_for_more(20, seconds{40}));
    server_->member(i).resume();
    counters.wait_for_more(20, seconds{30});
    std::this_thread::sleep_for(seconds{3});
  }
  // A leader of NATS that wakes up answers before it knows of its successor.
  counters.check(GetParam() == Kind::nats ? Counters::Reads::stale_for_a_while
                                          : Counters::Reads::linearizable);
}

// Whether a watch dies with a member depends on which member feeds it, which its client is not
// told. Each member in turn, so that it is among them.
TEST_P(Cluster, AWatchSeesChangesOrSaysThatItIsBrokenWhenAMemberDies) {
  const auto store = open(url());
  for (std::size_t i = 0; i < server_->size(); ++i) {
    Seen seen;
    const auto watch = store->watch({}, seen.callback(), kTimeout);
    ASSERT_TRUE(watch.has_value()) << to_string(watch.error());
    ASSERT_TRUE(seen.wait_for(Kinds::snapshot_end));
    server_->member(i).kill();
    const std::string key = fmt::format("after-{}", i);
    EXPECT_TRUE(e2e::eventually(
        [&] {
          const auto done = store->cas(key, 0, "x", std::nullopt, milliseconds{500});
          return done.has_value();
        },
        seconds{30}));
    const auto written = Clock::now();
    EXPECT_TRUE(seen.wait(
        [&](const auto& events) {
          const Kinds last = events.back().kind;
          return last == Kinds::broken || (last == Kinds::put && events.back().entry.key == key);
        },
        seconds{20}))
        << "blind";
    EXPECT_LE(Clock::now() - written, coord::limits::kWatchSilence + seconds{2});
    // A new watch works, though not at once: NATS may have to find a leader for its consumers
    // first.
    Seen again;
    std::unique_ptr<coord::Watch> fresh;
    EXPECT_TRUE(e2e::eventually(
        [&] {
          auto made = store->watch({}, again.callback(), seconds{1});
          if (made) fresh = *std::move(made);
          return made.has_value();
        },
        seconds{20}));
    EXPECT_TRUE(again.wait_for(Kinds::put, key));
    const WatchEvent last = seen.events().back();
    fmt::print("  {}: {} killed: the watch {}; a new one after {} ms\n", name_of(GetParam()),
               server_->member(i).name(),
               last.kind == Kinds::broken ? "broke: " + last.entry.value : "goes on",
               (Clock::now() - written) / milliseconds{1});
    ASSERT_TRUE(server_->member(i).start());
    std::this_thread::sleep_for(seconds{3});
  }
}

TEST_P(Cluster, WithoutAMajorityNothingIsWrittenAndAfterwardsAllIsThere) {
  const auto store = open(url());
  const KvRevision kept = must_write(*store, "a", 0, "kept");
  server_->member(0).kill();
  server_->member(1).kill();

  // Reads may time out or fail, but must not return something else.
  const auto write = store->cas("a", kept, "lost", std::nullopt, seconds{1});
  EXPECT_FALSE(write.has_value() && write->done);
  ASSERT_TRUE(server_->member(0).start());
  ASSERT_TRUE(server_->member(1).start());

  EXPECT_TRUE(
      e2e::eventually([&] { return store->get("a", seconds{1}).has_value(); }, seconds{60}));
  const auto found = store->get("a", kTimeout).value();
  ASSERT_TRUE(found.has_value());
  // The outcome is unknown: the write may have waited in a log.
  EXPECT_TRUE(found->value == "kept" || (!write.has_value() && found->value == "lost"));
  EXPECT_TRUE(self_test(*store, seconds{20}).has_value());
}

/// The member that leads the bucket.
std::size_t bucket_leader(Server& server) {
  for (std::size_t i = 0; i < server.size(); ++i) {
    const coord::Deadline deadline(seconds{5});
    const auto link = coord::NatsLink::connect({server.member(i).address()}, deadline);
    if (!link) continue;
    const auto info = (*link)->api("$JS.API.STREAM.INFO.KV_leases", "", deadline);
    if (!info || !info->contains("cluster")) continue;
    const std::string leader = (*info)["cluster"].value("leader", "");
    for (std::size_t j = 0; j < server.size(); ++j) {
      if (server.member(j).name() == leader) return j;
    }
  }
  ADD_FAILURE() << "the bucket has no leader";
  return 0;
}

// The longest outage that one crash can cause, and the reason for the lease time on NATS.
TEST_P(Cluster, TheBucketsLeaderIsKilled) {
  if (GetParam() != Kind::nats) return;
  Counters counters(url(), 2);
  counters.wait_for_more(20, seconds{20});

  for (int round = 0; round < 3; ++round) {
    const std::size_t leader = bucket_leader(*server_);
    server_->member(leader).kill();
    report("the bucket's leader killed", counters.wait_for_more(1, seconds{30}));
    ASSERT_TRUE(server_->member(leader).start());
    counters.wait_for_more(20, seconds{30});
    std::this_thread::sleep_for(seconds{3});
  }
  counters.check();
}

}  // namespace
}  // namespace baton::stores
