// Stores of three members that lose any one of them: a lease of the default profile outlives the
// election, and nothing moves. These tests take minutes: only with BATON_LONG.

#include <signal.h>

#include <thread>

#include <fmt/format.h>

#include "worker/on_each_store.h"

namespace baton::worker_tests {
namespace {

using stores::Kind;

class OnCluster : public testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    if (!e2e::is_long_run()) GTEST_SKIP() << "clusters: only with BATON_LONG";
    const stores::ServerOptions options{.kind = GetParam(), .members = 3};
    if (const std::string why = stores::Server::missing(options); !why.empty()) {
      GTEST_SKIP() << "SKIPPED: " << why;
    }
    server_ = std::make_unique<stores::Server>(options);
    ASSERT_TRUE(server_->start());
  }
  [[nodiscard]] std::string store() const {
    return server_->url("leases", GetParam() == Kind::nats ? "?replicas=3" : "");
  }

  /// The next one may be killed when this one has caught up: two that are behind would break the
  /// majority.
  void bring_back(std::size_t number) {
    ASSERT_TRUE(server_->member(number).start());
    std::this_thread::sleep_for(seconds{5});
    ASSERT_TRUE(e2e::eventually([&] { return server_->member(number).is_current(); }, seconds{60}));
  }

  std::unique_ptr<stores::Server> server_;
};
INSTANTIATE_TEST_SUITE_P(Stores, OnCluster, testing::Values(Kind::nats, Kind::etcd), store_name);

// Each member in turn: the leader of the bucket is among them.
TEST_P(OnCluster, AKilledMemberMovesNothing) {
  Fleet fleet({.store = store(), .flags = {"--profile", "default", "--drain", "5s"}});
  fleet.start("w1");
  ASSERT_TRUE(fleet.settles({{"w1", 4}})) << fleet.story();
  fleet.start("w2");
  ASSERT_TRUE(fleet.settles({{"w1", 2}, {"w2", 2}})) << fleet.story();
  for (std::size_t i = 0; i < server_->size(); ++i) {
    server_->member(i).kill();
    std::this_thread::sleep_for(seconds{12});
    bring_back(i);
    if (HasFatalFailure()) return;
    for (const char* name : {"w1", "w2"}) {
      EXPECT_EQ(fleet[name].holds().size(), 2U) << fleet.story();
      EXPECT_TRUE(fleet[name].events("lost").empty()) << fleet.story();
    }
  }
  // Partitions still move.
  fleet["w2"].signal(SIGTERM);
  ASSERT_TRUE(fleet.settles({{"w1", 4}}, seconds{60})) << fleet.story();
  EXPECT_EQ(fleet["w2"].wait(), 0) << fleet.story();
  EXPECT_EQ(fleet["w1"].leave(), 0) << fleet.story();
  expect_no_overlap(fleet.handler_log());
}

// A worker and a member of the store at the same time.
TEST_P(OnCluster, AWorkerKilledWithAMemberIsReplaced) {
  Fleet fleet({.store = store(), .flags = {"--profile", "default", "--drain", "5s"}});
  fleet.start("w1");
  ASSERT_TRUE(fleet.settles({{"w1", 4}})) << fleet.story();
  for (std::size_t i = 0; i < server_->size(); ++i) {
    fleet.start("w2");
    ASSERT_TRUE(fleet.settles({{"w1", 2}, {"w2", 2}}, seconds{60})) << fleet.story();
    const std::int64_t killed = boot_ns();
    server_->member(i).kill();
    fleet["w2"].kill();
    fleet.forget("w2");
    ASSERT_TRUE(fleet.settles({{"w1", 4}}, seconds{60})) << fleet.story();
    print_time(stores::name_of(GetParam()), fmt::format("kill, with {}", server_->member(i).name()),
               fleet["w1"].last_acquired_ns() - killed, "11 s");
    bring_back(i);
    if (HasFatalFailure()) return;
  }
  EXPECT_EQ(fleet["w1"].leave(), 0) << fleet.story();
  expect_no_overlap(fleet.handler_log());
}

}  // namespace
}  // namespace baton::worker_tests
