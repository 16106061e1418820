// A Watch call: snapshots, changes, and clients that read too slowly.

#include <algorithm>
#include <map>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "server/grpc/kv_calls.h"
#include "server/grpc/watch_fixture.h"

namespace baton::watch_test {
namespace {

using std::chrono::seconds;

TEST_F(WatchCallTest, ShowsWhatIsThereAndThenEveryChange) {
  create_bucket();
  put("a", "1");
  put("b", "2");
  Client client = watch(start());
  EXPECT_EQ(text(client.port->wait_for(has_ends(1))), "started a=1@1 b=2@2 end@2");
  put("c", "3", seconds{1});
  remove("a");
  broker_.pass(seconds{1});
  const Responses all = client.port->wait_for(says("~c@5"));
  EXPECT_EQ(text(all), "started a=1@1 b=2@2 end@2 +c=3@3 -a@4 ~c@5");
  EXPECT_EQ(all.back().complete_to(), 5U);
}

TEST_F(WatchCallTest, AnEmptyBucketHasAnEmptySnapshot) {
  create_bucket();
  Client client = watch(start());
  EXPECT_EQ(text(client.port->wait_for(has_ends(1))), "started end@0");
}

TEST_F(WatchCallTest, SeesItsPrefixOrItsKeyOnly) {
  create_bucket();
  put("a", "1");
  put("ab", "2");
  put("b", "3");
  Client prefix = watch(start("a"));
  v1::WatchKeysRequest request = start();
  request.mutable_start()->set_key("a");
  Client key = watch(request);
  EXPECT_EQ(text(prefix.port->wait_for(has_ends(1))), "started a=1@1 ab=2@2 end@3");
  EXPECT_EQ(text(key.port->wait_for(has_ends(1))), "started a=1@1 end@3");
  put("b", "4");
  put("ab", "5");
  put("a", "6");
  EXPECT_EQ(text(prefix.port->wait_for(says("+a=6@6"))),
            "started a=1@1 ab=2@2 end@3 +ab=5@5 +a=6@6");
  EXPECT_EQ(text(key.port->wait_for(says("+a=6@6"))), "started a=1@1 end@3 +a=6@6");
}

TEST_F(WatchCallTest, ResumesWithoutASnapshot) {
  create_bucket();
  put("a", "1");
  put("a", "2");
  put("a", "3");
  Client client = watch(start("", 1));
  EXPECT_EQ(text(client.port->wait_for(says("@3"))), "resumed +a=2@2 +a=3@3");
}

TEST_F(WatchCallTest, ARevisionTooOldToResumeFromIsToldAndGivesASnapshot) {
  create_bucket({.history_changes_max = 2});
  for (int i = 1; i <= 5; ++i) put("a", std::to_string(i));
  Client client = watch(start("", 1));
  EXPECT_EQ(text(client.port->wait_for(has_ends(1))), "started compacted:1 a=5@5 end@5");
  put("a", "6");
  client.port->wait_for(says("+a=6@6"));
  // Also a revision from another life of the data.
  Client ahead = watch(start("", 1000));
  EXPECT_EQ(text(ahead.port->wait_for(has_ends(1))), "started compacted:1 a=6@6 end@6");
}

// Unread changes wait in the history, not for the client; and the client is told if the history was
// too short.
TEST_F(WatchCallTest, ASlowClientFallsBehindIsToldAndBeginsAnew) {
  create_bucket({.history_changes_max = 50});
  Client client = watch(start());
  client.port->wait_for(has_ends(1));
  client.port->set_slow(true);
  for (int i = 1; i <= 2000; ++i) put("k" + std::to_string(i % 3), std::to_string(i));
  // Only the frame that is being written: the rest of the credit waits behind it.
  const auto has_changes = [](const auto& one) { return one.changes_size() > 0; };
  EXPECT_LE(std::ranges::count_if(client.port->now(), has_changes), 1);
  client.port->set_slow(false);
  const Responses all = client.port->wait_for(has_ends(2));
  EXPECT_NE(text(all).find("compacted:2 k0=1998@1998 k1=1999@1999 k2=2000@2000 end@2000"),
            std::string::npos)
      << text(all);
  int changes = 0;
  for (const auto& one : all) changes += one.changes_size();
  EXPECT_LE(changes, 600);
  EXPECT_GE(changes, 1);
  put("after", "x");
  client.port->wait_for(says("+after=x@2001"));
  EXPECT_EQ(broker_.stats(0).kv.totals.fell_behind_total, 1U);
}

TEST_F(WatchCallTest, ManyChangesReachAClientThatReads) {
  create_bucket();
  Client client = watch(start());
  client.port->wait_for(has_ends(1));
  constexpr int kChanges = 3000;
  for (int i = 1; i <= kChanges; ++i) put("k", std::to_string(i));
  const Responses all = client.port->wait_for(says(fmt::format("@{}", kChanges)));
  std::uint64_t last = 0;
  for (const auto& one : all) {
    for (const v1::WatchKeysResponse::Change& change : one.changes()) {
      EXPECT_EQ(change.entry().revision(), last + 1);
      last = change.entry().revision();
    }
  }
  EXPECT_EQ(last, static_cast<std::uint64_t>(kChanges));
}

// Large values use up the credit in bytes long before the credit in changes: what this client does
// not read stays in the history, which is soon too short for it.
TEST_F(WatchCallTest, LargeValuesWaitInTheShard) {
  create_bucket({.history_bytes_max = 2 * limits::kMiB});
  Client client = watch(start());
  client.port->wait_for(has_ends(1));
  client.port->set_slow(true);
  for (int i = 0; i < 40; ++i) put("k", std::string(limits::kMiB / 2, 'x'));
  EXPECT_EQ(broker_.stats(0).kv.totals.fell_behind_total, 1U);
  client.port->set_slow(false);
  const Responses all = client.port->wait_for(has_ends(2));
  EXPECT_NE(text(all).find("@40 end@40"), std::string::npos);
}

// A client that reads gets all of them, with no more than that on the way at any time.
TEST_F(WatchCallTest, LargeValuesReachAClientThatReads) {
  create_bucket({.history_bytes_max = 2 * limits::kMiB});
  Client client = watch(start());
  client.port->wait_for(has_ends(1));
  for (std::uint64_t i = 1; i <= 40; ++i) {
    put("k", std::string(limits::kMiB / 2, 'x'));
    client.port->wait_for(
        [i](const Responses& seen) { return !seen.empty() && seen.back().complete_to() == i; });
  }
  EXPECT_EQ(broker_.stats(0).kv.totals.fell_behind_total, 0U);
}

// A snapshot of many pages, while keys before and after the present page change, appear and
// disappear.
TEST_F(WatchCallTest, ALargeSnapshotIsThatOfOneRevision) {
  create_bucket();
  std::map<std::string, std::uint64_t> there;
  const auto key = [](int i) { return fmt::format("k{:05}", i); };
  for (int i = 0; i < 3500; ++i) there[key(i)] = put(key(i), "v").value;
  Client client = connect();
  client.port->set_slow(true);
  client.port->send(start());
  // The client has read nothing yet, so only the first page has left the shard.
  client.port->wait_for([](const Responses& all) { return !all.empty(); });
  for (const int i : {5, 999, 1500, 3400}) there[key(i)] = put(key(i), "new").value;
  for (const int i : {6, 1501, 3401}) {
    remove(key(i));
    there.erase(key(i));
  }
  there["a-new-one"] = put("a-new-one", "v").value;
  there["z-new-one"] = put("z-new-one", "v").value;
  client.port->set_slow(false);
  const Responses all = client.port->wait_for(has_ends(1));
  std::map<std::string, std::uint64_t> shown;
  std::uint64_t revision = 0;
  for (const auto& one : all) {
    for (const v1::KvEntry& entry : one.snapshot()) {
      EXPECT_TRUE(shown.emplace(entry.key(), entry.revision()).second) << entry.key();
    }
    if (one.has_snapshot_end()) revision = one.snapshot_end().revision();
    for (const v1::WatchKeysResponse::Change& change : one.changes()) {
      const v1::KvEntry& entry = change.entry();
      EXPECT_GT(entry.revision(), shown[entry.key()]) << "goes back: " << entry.key();
      shown[entry.key()] = entry.revision();
      if (change.kind() != v1::WatchKeysResponse::Change::KIND_PUT) shown.erase(entry.key());
    }
  }
  EXPECT_EQ(shown, there);
  EXPECT_EQ(revision, 3509U);
  put("after", "x");
  client.port->wait_for(says("+after=x@3510"));
}

TEST_F(WatchCallTest, FallingBehindInTheMiddleOfASnapshotBeginsItAnew) {
  create_bucket({.history_changes_max = 5});
  for (int i = 0; i < 1500; ++i) put(fmt::format("k{:05}", i), "v");
  Client client = connect();
  client.port->set_slow(true);
  client.port->send(start());
  client.port->wait_for([](const Responses& all) { return !all.empty(); });
  for (int i = 0; i < 20; ++i) put("k00000", "w");
  client.port->set_slow(false);
  const Responses all = client.port->wait_for(has_ends(1));
  std::map<std::string, std::uint64_t> shown;
  for (const auto& one : all) {
    if (one.has_compacted()) {
      EXPECT_EQ(one.compacted().reason(), v1::WatchKeysResponse::Compacted::REASON_FELL_BEHIND);
      shown.clear();
    }
    for (const v1::KvEntry& entry : one.snapshot()) shown[entry.key()] = entry.revision();
  }
  EXPECT_EQ(shown.size(), 1500U);
  EXPECT_EQ(shown["k00000"], 1520U);
}

}  // namespace
}  // namespace baton::watch_test
