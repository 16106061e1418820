// What may go wrong: a worker that sleeps, a store that is unavailable. In every case, no two
// handlers of one partition are at work, and afterwards the state is as before.

#include <signal.h>

#include <thread>

#include <baton/broker.h>

#include "worker/on_each_store.h"

namespace baton::worker_tests {
namespace {

constexpr milliseconds kLease{1'500};

class Faults : public OnEachStore {
 protected:
  void TearDown() override {
    if (server_) server_->resume();
  }

  /// Two workers with handlers, two partitions each.
  Fleet& settled_fleet(const std::vector<std::string>& flags = {"--profile", "fast"}) {
    fleet_ = std::make_unique<Fleet>(Fleet::Options{.store = store(), .flags = flags});
    fleet_->start("w1");
    EXPECT_TRUE(fleet_->settles({{"w1", 4}})) << fleet_->story();
    fleet_->start("w2");
    EXPECT_TRUE(fleet_->settles({{"w1", 2}, {"w2", 2}})) << fleet_->story();
    return *fleet_;
  }
  /// Loses the servers' disks; for a broker, the bucket.
  void lose_everything() {
    if (GetParam() != stores::Kind::broker) {
      server_->kill();
      server_->lose_disks();
      ASSERT_TRUE(server_->start());
      return;
    }
    auto client = client::Broker::open({.address = server_->member(0).address()});
    ASSERT_TRUE(client && client->bucket("leases").drop());
  }
  void end(const std::vector<std::string>& names) {
    for (const std::string& name : names) EXPECT_EQ((*fleet_)[name].leave(), 0) << fleet_->story();
    expect_no_overlap(fleet_->handler_log());
  }

  std::unique_ptr<Fleet> fleet_;
};
BATON_ON_EACH_STORE(Faults);

// The classic: a worker falls asleep holding a lease, and wakes up when another one has it.
TEST_P(Faults, AStoppedWorkerDoesNotActWhenItWakes) {
  Fleet& fleet = settled_fleet();
  const std::vector<pid_t> handlers = fleet["w2"].handler_pids();
  ASSERT_EQ(handlers.size(), 2U);
  const std::int64_t stopped = boot_ns();
  fleet["w2"].pause();
  // Its handlers do not outlive its lease, though the worker itself cannot act.
  EXPECT_TRUE(eventually([&] { return !is_alive(handlers[0]) && !is_alive(handlers[1]); },
                         kLease + seconds{5}));
  EXPECT_LT(boot_ns() - stopped, milliseconds(kLease + seconds{3}).count() * 1'000'000);
  ASSERT_TRUE(eventually([&] { return fleet["w1"].holds().size() == 4; })) << fleet.story();
  std::this_thread::sleep_for(milliseconds{300});

  fleet["w2"].signal(SIGCONT);

  // It finds out, gives up, and joins anew; the partitions return to it with new epochs.
  ASSERT_TRUE(eventually([&] { return !fleet["w2"].events("lost").empty(); })) << fleet.story();
  ASSERT_TRUE(fleet.settles({{"w1", 2}, {"w2", 2}})) << fleet.story();
  end({"w1", "w2"});
}

TEST_P(Faults, AStoreThatIsAwayForLessThanTheLeaseChangesNothing) {
  Fleet& fleet = settled_fleet({"--profile", "fast", "--lease-ttl", "10s", "--heartbeat", "500ms"});
  server_->pause();
  std::this_thread::sleep_for(milliseconds{1'500});
  server_->resume();
  std::this_thread::sleep_for(milliseconds{1'500});
  for (const char* name : {"w1", "w2"}) {
    EXPECT_TRUE(fleet[name].events("lost").empty()) << fleet.story();
    EXPECT_EQ(fleet[name].holds().size(), 2U);
  }
  EXPECT_EQ(fleet["w1"].events("acquired").size(), 4U) << fleet.story();
  EXPECT_EQ(fleet["w2"].events("acquired").size(), 2U) << fleet.story();
  end({"w1", "w2"});
}

// It is unknown who holds what: owners stop at their deadline, and no worker takes anything.
TEST_P(Faults, AStoreThatIsAwayForLongerStopsAllWorkUntilItIsBack) {
  Fleet& fleet = settled_fleet();
  const std::int64_t away = boot_ns();
  server_->kill();
  ASSERT_TRUE(eventually([&] {
    return fleet["w1"].handler_pids().empty() && fleet["w2"].handler_pids().empty();
  })) << fleet.story();
  EXPECT_LT(boot_ns() - away, milliseconds(kLease + seconds{3}).count() * 1'000'000);
  // They were told before they were killed: at least some, on a busy machine, ended by themselves.
  int ended_by_themselves = 0;
  for (const char* name : {"w1", "w2"}) {
    ASSERT_TRUE(eventually([&] { return fleet[name].events("lost").size() == 2; }));
    for (const auto& ended : fleet[name].events("handler_ended")) {
      EXPECT_TRUE(ended.value("lease_over", false)) << fleet.story();
      ended_by_themselves += ended["code"] == 0 ? 1 : 0;
    }
  }
  EXPECT_GT(ended_by_themselves, 0) << fleet.story();
  std::this_thread::sleep_for(milliseconds{1'000});

  ASSERT_TRUE(server_->start());

  ASSERT_TRUE(fleet.settles({{"w1", 2}, {"w2", 2}})) << fleet.story();
  end({"w1", "w2"});
}

// Running workers know the former state, epochs included.
TEST_P(Faults, AStoreThatHasLostEverythingIsFilledAgain) {
  Fleet& fleet = settled_fleet();
  lose_everything();
  for (const char* name : {"w1", "w2"}) {
    ASSERT_TRUE(eventually([&] { return fleet[name].events("lost").size() >= 2; }))
        << fleet.story();
  }
  ASSERT_TRUE(fleet.settles({{"w1", 2}, {"w2", 2}})) << fleet.story();
  end({"w1", "w2"});
}

TEST_P(Faults, ARestartOfTheStoreIsHardlyNoticed) {
  Fleet& fleet = settled_fleet({"--profile", "fast", "--lease-ttl", "30s", "--heartbeat", "500ms"});
  server_->stop();
  ASSERT_TRUE(server_->start());
  std::this_thread::sleep_for(milliseconds{1'000});
  // Partitions still move.
  fleet["w2"].signal(SIGTERM);
  ASSERT_TRUE(fleet.settles({{"w1", 4}})) << fleet.story();
  EXPECT_TRUE(fleet["w1"].events("lost").empty()) << fleet.story();
  EXPECT_EQ(fleet["w2"].wait(), 0);
  end({"w1"});
}

TEST_P(Faults, SigtermUnderLoad) {
  Fleet fleet({.store = store(), .partitions = 16});
  for (const char* name : {"w1", "w2", "w3"}) fleet.start(name, {}, {"HANDLER_DRAIN=0.3"});
  ASSERT_TRUE(eventually([&] {
    return fleet["w1"].holds().size() + fleet["w2"].holds().size() + fleet["w3"].holds().size() ==
               16 &&
           fleet["w1"].holds().size() >= 5 && fleet["w2"].holds().size() >= 5 &&
           fleet["w3"].holds().size() >= 5;
  })) << fleet.story();
  // Two at once, and one of them twice.
  fleet["w1"].signal(SIGTERM);
  fleet["w2"].signal(SIGTERM);
  ASSERT_TRUE(fleet.settles({{"w3", 16}})) << fleet.story();
  EXPECT_EQ(fleet["w1"].wait(), 0);
  EXPECT_EQ(fleet["w2"].wait(), 0);
  fleet["w3"].signal(SIGTERM);
  std::this_thread::sleep_for(milliseconds{50});
  fleet["w3"].signal(SIGTERM);
  EXPECT_EQ(fleet["w3"].wait(), 0) << fleet.story();
  expect_no_overlap(fleet.handler_log());
}

class FaultsOnBroker : public OnBroker {};

// The sink checks epochs: there is no reason to stop.
TEST_F(FaultsOnBroker, FencedHandlersWorkOnWhileTheStoreIsAway) {
  Fleet fleet({.store = store(), .flags = {"--profile", "fast", "--fenced"}});
  fleet.start("w1");
  ASSERT_TRUE(fleet.settles({{"w1", 4}})) << fleet.story();
  const std::vector<pid_t> handlers = fleet["w1"].handler_pids();
  server_->kill();
  std::this_thread::sleep_for(kLease + milliseconds{500});
  EXPECT_EQ(fleet["w1"].handler_pids(), handlers) << fleet.story();
  ASSERT_TRUE(server_->start());
  std::this_thread::sleep_for(milliseconds{1'000});
  EXPECT_EQ(fleet["w1"].handler_pids(), handlers) << fleet.story();
  EXPECT_EQ(fleet["w1"].leave(), 0);
}

// On Baton's own store a broken connection is enough reason, if the sink checks epochs.
TEST_F(FaultsOnBroker, AKilledFencedWorkerIsReplacedAtOnce) {
  Fleet fleet({.store = store(), .flags = {"--profile", "default", "--fenced"}});
  fleet.start("w1");
  ASSERT_TRUE(fleet.settles({{"w1", 4}})) << fleet.story();
  fleet.start("w2");
  ASSERT_TRUE(fleet.settles({{"w1", 2}, {"w2", 2}})) << fleet.story();
  const std::int64_t killed = boot_ns();
  fleet["w2"].kill();
  fleet.forget("w2");
  ASSERT_TRUE(fleet.settles({{"w1", 4}})) << fleet.story();
  const std::int64_t took = fleet["w1"].last_acquired_ns() - killed;
  print_time("broker", "kill, fenced", took, "11 s");
  EXPECT_LT(took, 3'000'000'000) << "less than the lease of 5 s";
  EXPECT_EQ(fleet["w1"].leave(), 0);
}

}  // namespace
}  // namespace baton::worker_tests
