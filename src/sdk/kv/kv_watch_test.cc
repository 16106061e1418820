// Watches of the SDK: against a real broker, and against one that is scripted by the test.

#include <baton/broker.h>
#include <gtest/gtest.h>

#include "sdk/kv/test_kv.h"

namespace baton::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using WatchCall = TestKv::WatchCall;

class KvWatchTest : public SharedBrokerTest {
 protected:
  void put(const std::string& key, const std::string& value) {
    const auto outcome = client_.bucket(bucket_).put(key, value);
    ASSERT_TRUE(outcome.has_value()) << outcome.error().text;
  }
  std::unique_ptr<KvWatch> watch(Seen& seen, KvWatchOptions options = {}) {
    auto watch = client_.bucket(bucket_).watch(std::move(options), seen.callback());
    EXPECT_TRUE(watch.has_value()) << watch.error().text;
    EXPECT_TRUE(watch->wait_until_started(seconds{20}).has_value());
    return std::make_unique<KvWatch>(*std::move(watch));
  }
};

TEST_F(KvWatchTest, ShowsWhatIsThereAndThenEveryChange) {
  put("a", "1");
  Seen seen;
  const auto running = watch(seen);
  EXPECT_EQ(seen.wait(2), "a=1@1 end@1");
  put("b", "2");
  ASSERT_TRUE(client_.bucket(bucket_).remove("a").has_value());
  EXPECT_EQ(seen.wait_for("-a@3"), "a=1@1 end@1 +b=2@2 -a@3");
  EXPECT_EQ(running->revision(), 3U);
}

TEST_F(KvWatchTest, OfOneKeyOrResumed) {
  put("a", "1");
  put("ab", "2");
  Seen key;
  const auto one = watch(key, {.key = "a"});
  EXPECT_EQ(key.wait(2), "a=1@1 end@2");
  Seen resumed;
  const auto later = watch(resumed, {.resume_after = 1});
  EXPECT_EQ(resumed.wait(1), "+ab=2@2");
}

TEST_F(KvWatchTest, ItsGoodbyeIsHeardAndItsCrashAsWell) {
  put("me", "1");
  Seen other;
  const auto observer = watch(other);
  other.wait(2);
  Seen mine;
  watch(mine, {.session = "me"}).reset();
  put("x", "1");
  EXPECT_EQ(other.wait_for("+x=1@2"), "me=1@1 end@1 +x=1@2");
  const auto crashing = watch(mine, {.session = "me"});
  crashing->abandon();
  EXPECT_EQ(other.wait_for("lost:me@1"), "me=1@1 end@1 +x=1@2 lost:me@1");
}

TEST_F(KvWatchTest, EndsWithItsBucketAndWhenThereIsNone) {
  Seen seen;
  const auto running = watch(seen);
  seen.wait(1);
  ASSERT_TRUE(client_.bucket(bucket_).drop().has_value());
  EXPECT_EQ(seen.wait_for("ended:bucket_not_found"), "end@0 ended:bucket_not_found");
  Seen none;
  auto nowhere = client_.bucket("none").watch({}, none.callback());
  ASSERT_TRUE(nowhere.has_value());
  EXPECT_EQ(nowhere->wait_until_started(seconds{20}).error().code, Errc::bucket_not_found);
  EXPECT_EQ(none.wait(1), "ended:bucket_not_found");
}

TEST_F(KvWatchTest, WrongOptionsAreRefusedAtOnce) {
  Seen seen;
  EXPECT_EQ(client_.bucket("b").watch({.prefix = "a", .key = "b"}, seen.callback()).error().code,
            Errc::invalid_argument);
  EXPECT_EQ(client_.bucket("b").watch({}, {}).error().code, Errc::invalid_argument);
}

TEST_F(KvWatchTest, OnceClosedItTellsNothing) {
  Seen seen;
  const auto running = watch(seen);
  seen.wait(1);
  running->close(seconds{20});
  put("a", "1");
  running->close(seconds{20});
  EXPECT_EQ(seen.now(), "end@0");
  EXPECT_TRUE(running->wait_until_started(seconds{1}).has_value());
}

TEST(KvWatchRestart, GoesOnWhereItWas) {
  RealBroker broker;
  Broker client = broker.client();
  ASSERT_TRUE(client.bucket("b").create().has_value());
  ASSERT_TRUE(client.bucket("b").put("a", "1").has_value());
  Seen seen;
  Seen once;
  auto running = client.bucket("b").watch({}, seen.callback());
  auto brief = client.bucket("b").watch({.reconnect = false}, once.callback());
  EXPECT_EQ(seen.wait(2), "a=1@1 end@1");
  EXPECT_EQ(once.wait(2), "a=1@1 end@1");
  for (int restart = 0; restart < 2; ++restart) {
    broker.stop();
    broker.start();
    ASSERT_TRUE(client.wait_until_ready(seconds{20}).has_value());
    ASSERT_TRUE(client.bucket("b").put("a", std::to_string(restart)).has_value());
    const std::string last = std::to_string(restart) + "@" + std::to_string(restart + 2);
    const std::string words = seen.wait_for("+a=" + last);
    EXPECT_TRUE(words.ends_with("disconnected +a=" + last)) << words;
  }
  EXPECT_EQ(once.now(), "a=1@1 end@1 ended:unavailable");
}

v1::WatchKeysResponse snapshot(const std::string& key, std::uint64_t revision, bool started) {
  v1::WatchKeysResponse response;
  if (started) response.mutable_started();
  v1::KvEntry& entry = *response.add_snapshot();
  entry.set_key(key);
  entry.set_revision(revision);
  return response;
}
v1::WatchKeysResponse end_of_snapshot(std::uint64_t revision) {
  v1::WatchKeysResponse response;
  response.mutable_snapshot_end()->set_revision(revision);
  return response;
}
/// Reads until the client says goodbye or has disconnected.
grpc::Status wait_for_goodbye(WatchCall& call) {
  v1::WatchKeysRequest request;
  while (call.Read(&request) && !request.goodbye()) continue;
  return grpc::Status::OK;
}

// Half a snapshot is not a state to resume from: a key shown there may be gone by now.
TEST(KvWatchScript, ASnapshotThatBreaksBeginsAnew) {
  TestKv broker;
  broker.on_watch = [](int number, WatchCall& call) {
    v1::WatchKeysRequest request;
    EXPECT_TRUE(call.Read(&request));
    EXPECT_FALSE(request.start().has_resume_after());
    if (number == 1) {
      call.Write(snapshot("gone", 1, true));
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "broken");
    }
    call.Write(snapshot("there", 5, true));
    call.Write(end_of_snapshot(6));
    return wait_for_goodbye(call);
  };
  Broker client = broker.client();
  Seen seen;
  auto watch = client.bucket("b").watch({}, seen.callback());
  EXPECT_EQ(seen.wait_for("end@6"), "gone=@1 disconnected compacted there=@5 end@6");
  EXPECT_EQ(watch->revision(), 6U);
}

// No key that it watches has changed for long: it resumes from the bucket's revision all the same.
TEST(KvWatchScript, ItResumesAfterTheLastRevisionThatWasComplete) {
  TestKv broker;
  broker.on_watch = [](int number, WatchCall& call) {
    v1::WatchKeysRequest request;
    EXPECT_TRUE(call.Read(&request));
    v1::WatchKeysResponse response;
    if (number == 1) {
      call.Write(snapshot("a", 1, true));
      call.Write(end_of_snapshot(1));
      response.set_complete_to(70);
      call.Write(response);
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "broken");
    }
    EXPECT_EQ(request.start().resume_after(), 70U);
    response.mutable_started()->set_resumed(true);
    v1::WatchKeysResponse::Change& change = *response.add_changes();
    change.set_kind(v1::WatchKeysResponse::Change::KIND_EXPIRED);
    change.mutable_entry()->set_key("a");
    change.mutable_entry()->set_revision(71);
    call.Write(response);
    return wait_for_goodbye(call);
  };
  Broker client = broker.client();
  Seen seen;
  auto watch = client.bucket("b").watch({}, seen.callback());
  EXPECT_EQ(seen.wait_for("~a@71"), "a=@1 end@1 disconnected ~a@71");
}

TEST(KvWatchScript, CompactedIsPassedOn) {
  TestKv broker;
  broker.on_watch = [](int /*number*/, WatchCall& call) {
    v1::WatchKeysRequest request;
    EXPECT_TRUE(call.Read(&request));
    EXPECT_EQ(request.start().resume_after(), 3U);
    v1::WatchKeysResponse response = snapshot("a", 9, true);
    response.mutable_compacted()->set_reason(v1::WatchKeysResponse::Compacted::REASON_RESUME);
    call.Write(response);
    call.Write(end_of_snapshot(9));
    return wait_for_goodbye(call);
  };
  Broker client = broker.client();
  Seen seen;
  auto watch = client.bucket("b").watch({.resume_after = 3}, seen.callback());
  EXPECT_EQ(seen.wait_for("end@9"), "compacted a=@9 end@9");
}

// A caller that closes a watch may already be destroying what the callback uses.
TEST(KvWatchScript, WhatComesAfterItsGoodbyeIsNotTold) {
  TestKv broker;
  broker.on_watch = [](int /*number*/, WatchCall& call) {
    call.Write(snapshot("a", 1, true));
    const grpc::Status status = wait_for_goodbye(call);
    call.Write(end_of_snapshot(1));
    return status;
  };
  Broker client = broker.client();
  Seen seen;
  auto watch = client.bucket("b").watch({}, seen.callback());
  EXPECT_EQ(seen.wait(1), "a=@1");
  watch->close(seconds{20});
  EXPECT_EQ(seen.now(), "a=@1");
}

TEST(KvWatchScript, ClosingBeforeTheBrokerAnsweredDoesNotWait) {
  TestKv broker;
  broker.on_watch = [](int /*number*/, WatchCall& call) { return wait_for_goodbye(call); };
  Broker client = broker.client();
  Seen seen;
  auto watch = client.bucket("b").watch({}, seen.callback());
  EXPECT_EQ(watch->wait_until_started(milliseconds{10}).error().code, Errc::deadline_exceeded);
  const auto before = std::chrono::steady_clock::now();
  watch->close(std::chrono::hours{1});
  EXPECT_LT(std::chrono::steady_clock::now() - before, seconds{20});
}

}  // namespace
}  // namespace baton::client
