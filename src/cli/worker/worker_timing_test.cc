#include "cli/worker/worker_timing.h"

#include <chrono>
#include <map>
#include <string>

#include <gtest/gtest.h>

namespace baton::cli {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr const char* kStore = "baton://127.0.0.1:7470";

Environment environment(const std::map<std::string, std::string>& variables) {
  return [variables](const char* name) -> std::optional<std::string> {
    const auto found = variables.find(name);
    if (found == variables.end()) return std::nullopt;
    return found->second;
  };
}

TEST(WorkerTiming, TheProfileIsTheBase) {
  const auto timing = resolve_timing("default", kStore, {}, environment({}));
  ASSERT_TRUE(timing.has_value());
  EXPECT_EQ(timing->lease, seconds(5));
  EXPECT_EQ(timing->heartbeat, milliseconds(1'250));
  EXPECT_EQ(timing->drain, seconds(30));
  const auto nats = resolve_timing("default", "nats://127.0.0.1:4222", {}, environment({}));
  EXPECT_EQ(nats->lease, seconds(10));
}

TEST(WorkerTiming, TheEnvironmentWinsOverTheProfile) {
  const auto timing = resolve_timing("default", kStore, {},
                                     environment({{"LEASE_TTL_SEC", "8"},
                                                  {"HEARTBEAT_SEC", "1.5"},
                                                  {"CLAIM_SEC", "3"},
                                                  {"GRACE_SEC", "1"}}));
  ASSERT_TRUE(timing.has_value());
  EXPECT_EQ(timing->lease, seconds(8));
  EXPECT_EQ(timing->heartbeat, milliseconds(1'500));
  EXPECT_EQ(timing->resync, seconds(3));
  EXPECT_EQ(timing->reclaim_grace, seconds(1));
}

TEST(WorkerTiming, AFlagWinsOverTheEnvironment) {
  const auto timing = resolve_timing("fast", kStore, {.lease = seconds(6), .drain = seconds(9)},
                                     environment({{"LEASE_TTL_SEC", "8"}, {"HEARTBEAT_SEC", "2"}}));
  ASSERT_TRUE(timing.has_value());
  EXPECT_EQ(timing->lease, seconds(6));
  EXPECT_EQ(timing->heartbeat, seconds(2));
  EXPECT_EQ(timing->drain, seconds(9));
}

// For a shorter lease the profile's heartbeat must not be reported as too long.
TEST(WorkerTiming, ALeaseAloneTakesTheHeartbeatAlong) {
  const auto timing = resolve_timing("default", kStore, {.lease = seconds(2)}, environment({}));
  EXPECT_EQ(timing->heartbeat, milliseconds(500));
  const auto reference =
      resolve_timing("reference", kStore, {}, environment({{"LEASE_TTL_SEC", "10"}}));
  EXPECT_EQ(reference->heartbeat, seconds(4));
  // Nor as too short.
  const auto shortest =
      resolve_timing("default", kStore, {.lease = milliseconds(300)}, environment({}));
  EXPECT_EQ(shortest->heartbeat, client::kWorkerIntervalMin);
}

TEST(WorkerTiming, NonsenseIsNamed) {
  for (const char* value : {"x", "5s", "-1", "nan", "inf", "1e9", "5 "}) {
    const auto timing = resolve_timing("default", kStore, {}, environment({{"CLAIM_SEC", value}}));
    ASSERT_FALSE(timing.has_value()) << value;
    EXPECT_NE(timing.error().text.find("CLAIM_SEC"), std::string::npos);
  }
  EXPECT_FALSE(resolve_timing("slow", kStore, {}, environment({})).has_value());
}

TEST(WorkerTiming, TheStoreIsTheBrokerUnlessNamed) {
  EXPECT_EQ(default_store(environment({})), kStore);
  EXPECT_EQ(default_store(environment({{"BATON_ADDRESS", "b:1"}})), "baton://b:1");
  EXPECT_EQ(default_store(environment({{"BATON_ADDRESS", "batons://b:1"}})), "batons://b:1");
  EXPECT_EQ(default_store(environment({{"BATON_ADDRESS", "b:1"}, {"BATON_TLS_CA", "ca.pem"}})),
            "batons://b:1");
  EXPECT_EQ(default_store(environment({{"BATON_ADDRESS", "b:1"}, {"BATON_STORE", "etcd://e:2"}})),
            "etcd://e:2");
}

}  // namespace
}  // namespace baton::cli
