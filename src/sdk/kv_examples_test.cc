// The examples of docs/cpp-sdk.md on keys, compiled and run against a real broker.

#include <atomic>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>

#include <baton/client.h>
#include <gtest/gtest.h>

#include "sdk/kv/test_kv.h"

namespace examples {

using namespace std::chrono_literals;
namespace client = baton::client;

baton::Status take_the_lead(const client::Broker& broker) {
  client::Bucket leases = broker.bucket("leases");
  if (auto made = leases.create(); !made) return made.error();

  // The process that writes first is the leader, until the key expires or is removed.
  auto taken = leases.cas("leader", 0, "worker-1", {.ttl = 30s, .deadline = 2s});
  if (!taken) return taken.error();  // It is unknown whether it happened: read the key.
  if (!taken->done) {
    std::printf("the leader is %s\n",
                taken->current ? taken->current->value.c_str() : "gone again");
    return {};
  }
  // Renewing is a write like any other: it fails if another process has written meanwhile.
  auto renewed = leases.cas("leader", taken->revision, "worker-1", {.ttl = 30s});
  if (!renewed) return renewed.error();
  std::printf("renewed: %s\n", renewed->done ? "yes" : "no");
  return {};
}

baton::Status watch_workers(const client::Bucket& leases,
                            std::map<std::string, std::string>& workers,
                            std::atomic<bool>& snapshot) {
  auto watch = leases.watch({.prefix = "worker.", .session = "worker.1"},
                            [&](const client::KvWatchEvent& event) {
                              using Kind = client::KvWatchEvent::Kind;
                              if (event.kind == Kind::compacted) workers.clear();
                              if (event.kind == Kind::put)
                                workers[event.entry.key] = event.entry.value;
                              if (event.kind == Kind::removed || event.kind == Kind::expired) {
                                workers.erase(event.entry.key);
                              }
                              if (event.kind == Kind::snapshot_end) snapshot = true;
                              snapshot.notify_all();
                            });
  if (!watch) return watch.error();
  if (auto started = watch->wait_until_started(5s); !started) return started.error();
  snapshot.wait(false);  // `workers` is complete; from here on it changes.
  watch->close(1s);      // Says goodbye. The destructor does so, too.
  return {};
}

}  // namespace examples

namespace baton::client {
namespace {

TEST(KvExamples, TakeTheLead) {
  const RealBroker broker;
  EXPECT_TRUE(examples::take_the_lead(broker.client()).has_value());
  EXPECT_TRUE(examples::take_the_lead(broker.client()).has_value());
  EXPECT_EQ(broker.client().bucket("leases").get("leader")->value().revision, 2U);
}

TEST(KvExamples, WatchWorkers) {
  const RealBroker broker;
  Broker kv = broker.client();
  ASSERT_TRUE(kv.bucket("leases").create().has_value());
  ASSERT_TRUE(kv.bucket("leases").put("worker.1", "here").has_value());
  ASSERT_TRUE(kv.bucket("leases").put("other", "here").has_value());
  std::map<std::string, std::string> workers;
  std::atomic<bool> snapshot = false;
  EXPECT_TRUE(examples::watch_workers(kv.bucket("leases"), workers, snapshot).has_value());
  EXPECT_EQ(workers, (std::map<std::string, std::string>{{"worker.1", "here"}}));
}

}  // namespace
}  // namespace baton::client
