// Identities: static ids, more workers than partitions, what is refused and with which error.

#include <signal.h>

#include <thread>

#include <fmt/format.h>

#include "worker/on_each_store.h"

namespace baton::worker_tests {
namespace {

constexpr int kUsage = 2;
constexpr int kNotFound = 3;
constexpr int kAlreadyExists = 4;
constexpr int kUnreachable = 5;

using Words = std::vector<std::string>;

class Identity : public OnBroker {
 protected:
  [[nodiscard]] e2e::CommandResult baton(Words words) const {
    words.insert(words.begin(), e2e::binary());
    return e2e::run_command(std::move(words),
                            {.environment = {"BATON_ADDRESS=" + server_->member(0).address()}});
  }
  /// A worker that is expected to end by itself.
  [[nodiscard]] e2e::CommandResult run(Words more) const {
    Words words{"worker", "run", "--group", "orders"};
    const auto add = [&](const char* flag, const std::string& value) {
      if (std::ranges::find(more, flag) == more.end()) words.insert(words.end(), {flag, value});
    };
    add("--store", store());
    add("--profile", "fast");
    words.insert(words.end(), more.begin(), more.end());
    return baton(std::move(words));
  }
  [[nodiscard]] nlohmann::json status() const {
    const auto result =
        baton({"worker", "status", "--group", "orders", "--store", store(), "--json"});
    EXPECT_EQ(result.exit_code, 0) << result.err;
    return nlohmann::json::parse(result.out, nullptr, false);
  }

  e2e::TempFolder folder_;
};

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

class StaticRestart : public OnEachStore {};
BATON_ON_EACH_STORE(StaticRestart);

TEST_P(StaticRestart, MovesNothing) {
  Fleet fleet({.store = store()});
  fleet.start("w1");
  ASSERT_TRUE(fleet.settles({{"w1", 4}})) << fleet.story();
  fleet.start("w2", {"--static"});
  ASSERT_TRUE(fleet.settles({{"w1", 2}, {"w2", 2}})) << fleet.story();
  const Partitions held = fleet["w2"].holds();
  const std::size_t acquired = fleet["w1"].events("acquired").size();
  const std::size_t revoked = fleet["w1"].events("revoking").size();

  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(fleet["w2"].leave(), 0);
    fleet.start("w2", {"--static"});
    ASSERT_TRUE(fleet.settles({{"w1", 2}, {"w2", 2}})) << fleet.story();
    EXPECT_EQ(fleet["w2"].holds(), held);
  }
  EXPECT_EQ(fleet["w1"].events("acquired").size(), acquired) << fleet.story();
  EXPECT_EQ(fleet["w1"].events("revoking").size(), revoked) << fleet.story();
  EXPECT_EQ(fleet["w2"].leave(), 0);
  EXPECT_EQ(fleet["w1"].leave(), 0);
  expect_no_overlap(fleet.handler_log());
}

// It does not return: after its grace others take what it left.
TEST_F(Identity, AStaticIdThatStaysAwayLosesItsPartitionsAfterTheGrace) {
  Fleet fleet({.store = store(),
               .flags = {"--profile", "fast", "--static-grace", "4s"},
               .handlers = false});
  fleet.start("w1");
  fleet.start("w2", {"--static"});
  ASSERT_TRUE(fleet.settles({{"w1", 2}, {"w2", 2}})) << fleet.story();
  const std::int64_t left = boot_ns();
  EXPECT_EQ(fleet["w2"].leave(), 0);
  EXPECT_TRUE(has(baton({"worker", "status", "--group", "orders", "--store", store()}).out,
                  "!! w2 is RESTARTING"));
  ASSERT_TRUE(fleet.settles({{"w1", 4}})) << fleet.story();
  EXPECT_GE(fleet["w1"].last_acquired_ns() - left, 4'000'000'000);
  EXPECT_EQ(fleet["w1"].leave(), 0);
}

// A static id found at work after a crash is not taken over before its lease has run out.
TEST_F(Identity, ACrashedStaticIdIsResumedAfterItsLease) {
  Fleet fleet({.store = store()});
  fleet.start("w1");
  fleet.start("w2", {"--static"});
  ASSERT_TRUE(fleet.settles({{"w1", 2}, {"w2", 2}})) << fleet.story();
  fleet["w2"].kill();
  fleet.start("w2", {"--static"});
  ASSERT_TRUE(fleet.settles({{"w1", 2}, {"w2", 2}})) << fleet.story();
  EXPECT_EQ(fleet["w1"].leave(), 0);
  EXPECT_EQ(fleet["w2"].leave(), 0);
  expect_no_overlap(fleet.handler_log());
}

TEST_F(Identity, AStaticIdInUseIsRefused) {
  Fleet fleet({.store = store(), .handlers = false});
  fleet.start("w1", {"--static"});
  ASSERT_TRUE(fleet.settles({{"w1", 4}})) << fleet.story();
  const auto second = run({"--partitions", "4", "--id", "w1", "--static"});
  EXPECT_EQ(second.exit_code, kAlreadyExists) << second.out << second.err;
  EXPECT_TRUE(has(second.err, "w1")) << second.err;
  EXPECT_EQ(fleet["w1"].holds().size(), 4U) << fleet.story();
  EXPECT_TRUE(fleet["w1"].events("lost").empty());
}

TEST_F(Identity, MoreWorkersThanPartitions) {
  Fleet fleet({.store = store(), .partitions = 2, .handlers = false});
  for (const char* name : {"w1", "w2", "w3", "w4"}) fleet.start(name);
  const auto idle = [&] {
    std::vector<std::string> names;
    for (const char* name : {"w1", "w2", "w3", "w4"}) {
      if (fleet[name].holds().empty()) names.emplace_back(name);
    }
    return names;
  };
  ASSERT_TRUE(eventually([&] { return idle().size() == 2; })) << fleet.story();
  std::string victim = fleet["w1"].holds().empty() ? "w2" : "w1";
  fleet[victim].kill();
  fleet.forget(victim);
  fleet.start(victim);
  ASSERT_TRUE(eventually([&] {
    return idle().size() == 2 && !fleet[victim].events("started").empty();
  })) << fleet.story();
}

TEST_F(Identity, WeightsDivideInProportion) {
  Fleet fleet({.store = store(), .partitions = 8, .handlers = false});
  fleet.start("w1");
  fleet.start("w2", {"--weight", "3"});
  EXPECT_TRUE(fleet.settles({{"w1", 2}, {"w2", 6}})) << fleet.story();
}

TEST_F(Identity, NoPartitionsIsAWrongFlag) {
  const auto result = run({"--partitions", "0"});
  EXPECT_EQ(result.exit_code, kUsage);
  EXPECT_TRUE(has(result.err, "--partitions")) << result.err;
}

TEST_F(Identity, AnotherNumberOfPartitionsIsRefused) {
  Fleet fleet({.store = store(), .handlers = false});
  fleet.start("w1");
  ASSERT_TRUE(fleet.settles({{"w1", 4}})) << fleet.story();
  const auto result = run({"--partitions", "5"});
  EXPECT_EQ(result.exit_code, kUsage);
  EXPECT_TRUE(has(result.err, "has 4 partitions, and this worker was told 5")) << result.err;
  EXPECT_EQ(fleet["w1"].holds().size(), 4U);
}

TEST_F(Identity, AStoreThatCannotBeReachedIsNamed) {
  for (const char* store : {"baton://127.0.0.1:1", "nats://127.0.0.1:1", "etcd://127.0.0.1:1"}) {
    const auto result = baton({"worker", "run", "--group", "orders", "--partitions", "4", "--store",
                               store, "--", "/bin/true"});
    EXPECT_EQ(result.exit_code, kUnreachable) << store << result.err;
    EXPECT_TRUE(has(result.err, "127.0.0.1:1")) << result.err;
  }
  EXPECT_EQ(
      baton({"worker", "status", "--group", "orders", "--store", "baton://127.0.0.1:1"}).exit_code,
      kUnreachable);
}

TEST_F(Identity, WrongFlagsAreNamed) {
  const std::vector<std::pair<Words, std::string>> wrong{
      {{"--partitions", "4", "--store", "redis://x"}, "redis://x"},
      {{"--partitions", "4", "--static"}, "--id"},
      {{"--partitions", "4", "--heartbeat", "1400ms"}, "heartbeat"},
      {{"--partitions", "4", "--heartbeat", "99ms"}, "heartbeat 99ms must be at least 100ms"},
      {{"--partitions", "4", "--resync", "1ms"}, "resync 1ms must be at least 100ms"},
      {{"--partitions", "4", "--profile", "slow"}, "slow"},
      {{"--partitions", "4", "--id", "a b"}, "id"},
      {{"--partitions", "4", "--weight", "0"}, "--weight"},
      {{"--partitions", "many"}, "--partitions"},
      {{"--partitions", "4", "--lease-ttl", "soon"}, "--lease-ttl"}};
  for (const auto& [flags, part] : wrong) {
    const auto result = run(flags);
    EXPECT_EQ(result.exit_code, kUsage) << result.err;
    EXPECT_TRUE(has(result.err, part)) << part << ": " << result.err;
  }
  ASSERT_EQ(baton({"kv", "bucket", "create", "leases"}).exit_code, 0);
  const auto none = baton({"worker", "status", "--group", "nobody", "--store", store()});
  EXPECT_EQ(none.exit_code, kNotFound);
}

TEST_F(Identity, AStoreThatCannotCarryLeasesIsRefusedWithWhatIsWrong) {
  ASSERT_EQ(baton({"kv", "bucket", "create", "small", "--value-max", "100"}).exit_code, 0);
  const std::string address = server_->member(0).address();
  const std::vector<std::pair<std::string, std::string>> unfit{
      {server_->url("small"), "cannot hold a value of "},
      {"etcd://" + address, "what answers at " + address + " is not etcd"}};
  for (const auto& [url, why] : unfit) {
    const auto result =
        baton({"worker", "run", "--group", "orders", "--partitions", "4", "--store", url});
    EXPECT_EQ(result.exit_code, kUsage) << result.err;
    EXPECT_TRUE(has(result.err, why)) << result.err;
  }
}

// A user who watches during an outage wants to see its end.
TEST_F(Identity, AWatchOutlivesTheStore) {
  const auto look = [&](const char* out) { return e2e::read_file(folder_ / out); };
  e2e::ChildProcess worker(
      {.command = {e2e::binary(), "worker", "run", "--group", "orders", "--partitions", "2",
                   "--store", store(), "--profile", "fast"}});
  ASSERT_TRUE(eventually([&] {
    return baton({"worker", "status", "--group", "orders", "--store", store()}).exit_code == 0;
  }));
  e2e::ChildProcess watch({.command = {e2e::binary(), "worker", "status", "--group", "orders",
                                       "--store", store(), "--watch", "--timeout", "300ms"},
                           .out_file = folder_ / "watch.out",
                           .err_file = folder_ / "watch.err"});
  ASSERT_TRUE(eventually([&] { return has(look("watch.out"), "2 partitions, 1 worker"); }));
  server_->kill();
  ASSERT_TRUE(eventually([&] { return has(look("watch.err"), "worker status orders"); }));
  const std::size_t seen = look("watch.out").size();
  ASSERT_TRUE(server_->start());
  EXPECT_TRUE(eventually([&] { return look("watch.out").size() > seen; })) << look("watch.err");
  watch.signal(SIGINT);
  EXPECT_EQ(watch.wait(seconds{5}), 0) << look("watch.err");
  worker.signal(SIGTERM);
  worker.wait(seconds{10});
}

TEST_F(Identity, AMeasurementOnAStoreThatIsNotThereFailsAtOnce) {
  const std::int64_t began = boot_ns();
  EXPECT_EQ(baton({"bench", "failover", "--store", "baton://127.0.0.1:1"}).exit_code, kUnreachable);
  EXPECT_EQ(baton({"bench", "failover", "--store", "foo"}).exit_code, kUsage);
  EXPECT_LT(boot_ns() - began, 15'000'000'000);
}

// A status command must leave nothing behind, and say so when the store or group does not exist.
TEST_F(Identity, StatusMakesNoBucket) {
  const auto none =
      baton({"worker", "status", "--group", "orders", "--store", server_->url("elsewhere")});
  EXPECT_EQ(none.exit_code, kNotFound);
  EXPECT_TRUE(has(none.err, "there is no group orders: there is no bucket elsewhere")) << none.err;
  EXPECT_EQ(baton({"kv", "bucket", "describe", "elsewhere"}).exit_code, kNotFound);
}

TEST_F(Identity, GarbageInTheStoreIsNamedAndNotActedOn) {
  const auto put = [&](const std::string& key, const std::string& value) {
    const auto result = baton({"kv", "put", "leases", key, value});
    EXPECT_EQ(result.exit_code, 0) << result.err;
  };
  ASSERT_EQ(baton({"kv", "bucket", "create", "leases"}).exit_code, 0);
  put("g.orders.a", "garbage");
  const auto refused = run({"--partitions", "4"});
  EXPECT_EQ(refused.exit_code, kUsage) << refused.err;
  EXPECT_TRUE(has(refused.err, "g.orders.a")) << refused.err;

  ASSERT_EQ(baton({"kv", "del", "leases", "g.orders.a"}).exit_code, 0);
  put("g.orders.m.w7.life", "{}");
  put("g.orders.m.nonsense", "x");
  put("g.orders.else", "x");
  Fleet fleet({.store = store(), .handlers = false});
  fleet.start("w1");
  ASSERT_TRUE(fleet.settles({{"w1", 4}})) << fleet.story();
  EXPECT_FALSE(status()["unreadable"].empty());
  // Over a living group's assignment: nothing is lost by it, and it is reported loudly.
  put("g.orders.a", "garbage");
  std::this_thread::sleep_for(milliseconds{1'500});
  EXPECT_EQ(fleet["w1"].holds().size(), 4U) << fleet.story();
  EXPECT_TRUE(has(baton({"worker", "status", "--group", "orders", "--store", store()}).out,
                  "!! g.orders.a cannot be read"));
}

TEST_F(Identity, StatusShowsWhoHoldsWhat) {
  Fleet fleet({.store = store(), .handlers = false});
  fleet.start("w1");
  fleet.start("w2", {"--static"});
  ASSERT_TRUE(fleet.settles({{"w1", 2}, {"w2", 2}})) << fleet.story();
  const nlohmann::json shown = status();
  ASSERT_EQ(shown["assignment"].size(), 4U) << shown.dump();
  for (const char* name : {"w1", "w2"}) {
    for (const std::uint32_t partition : fleet[name].holds()) {
      EXPECT_EQ(shown["assignment"][partition]["owner"], name) << shown.dump();
    }
  }
  EXPECT_TRUE(shown["alarms"].empty()) << shown.dump();
  // --watch shows a change, and is ended by a signal.
  const e2e::TempFolder folder;
  e2e::ChildProcess watch({.command = {e2e::binary(), "worker", "status", "--group", "orders",
                                       "--store", store(), "--watch", "--json"},
                           .out_file = folder / "out"});
  ASSERT_TRUE(eventually([&] { return !e2e::read_file(folder / "out").empty(); }));
  EXPECT_EQ(fleet["w2"].leave(), 0);
  EXPECT_TRUE(eventually([&] { return has(e2e::read_file(folder / "out"), "RESTARTING"); }));
  watch.signal(SIGTERM);
  EXPECT_EQ(watch.wait(seconds{10}), 0);
}

}  // namespace
}  // namespace baton::worker_tests
