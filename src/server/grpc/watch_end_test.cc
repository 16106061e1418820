// How a Watch call ends, and which clients are told.

#include <string>

#include <gtest/gtest.h>

#include "server/grpc/status.h"
#include "server/grpc/watch_fixture.h"
#include "server/session/limits.h"

namespace baton::watch_test {
namespace {

TEST_F(WatchCallTest, AGoodbyeEndsItAndNobodyIsTold) {
  create_bucket();
  put("me", "1");
  Client other = watch(start());
  other.port->wait_for(has_ends(1));
  Client client = watch(start("", {}, "me"));
  client.port->wait_for(has_ends(1));
  EXPECT_EQ(watches(), 2U);
  client.port->send(goodbye());
  EXPECT_TRUE(client.port->wait_for_end().ok());
  EXPECT_EQ(watches(), 1U);
  put("x", "1");
  EXPECT_EQ(text(other.port->wait_for(says("+x=1@2"))), "started me=1@1 end@1 +x=1@2");
}

TEST_F(WatchCallTest, ACallThatBreaksTellsTheOthersOfItsSession) {
  create_bucket();
  put("me", "1");
  Client other = watch(start());
  Client elsewhere = watch(start("other."));
  other.port->wait_for(has_ends(1));
  elsewhere.port->wait_for(has_ends(1));
  {
    Client client = watch(start("", {}, "me"));
    client.port->wait_for(has_ends(1));
    client.port->cancel();
    client.port->wait_for_end();
  }
  other.port->wait_for(says("lost:me@1"));
  // A client that only stops sending has not said goodbye either.
  Client client = watch(start("", {}, "me"));
  client.port->wait_for(has_ends(1));
  client.port->half_close();
  client.port->wait_for_end();
  other.port->wait_for(says("lost:me@1 lost:me@1"));
  put("other.x", "1");
  EXPECT_EQ(text(elsewhere.port->wait_for(says("@2"))), "started end@1 +other.x=1@2");
}

// Cut off silently: the others are told when its lease ends, and not before.
TEST_F(WatchCallTest, ACallThatFallsSilentIsLostWhenItsLeaseIsOver) {
  create_bucket();
  put("me", "1");
  Client other = watch(start());
  other.port->wait_for(has_ends(1));
  v1::WatchKeysRequest request = start("", {}, "me");
  request.mutable_heartbeat()->set_number(1);
  Client client = watch(request);
  const Responses told = client.port->wait_for(has_ends(1));
  EXPECT_EQ(told.front().heartbeat().number(), 1U);
  EXPECT_EQ(told.front().heartbeat().client_lease().seconds(), 4);
  broker_.pass(std::chrono::seconds{4});
  v1::WatchKeysRequest beat;
  beat.mutable_heartbeat()->set_number(2);
  client.port->send(beat);
  broker_.pass(std::chrono::milliseconds{4'900});
  let_background_finish();
  EXPECT_FALSE(client.port->finished());
  EXPECT_EQ(text(other.port->now()), "started me=1@1 end@1");

  broker_.pass(std::chrono::milliseconds{100});
  other.port->wait_for(says("lost:me@1"));
  EXPECT_EQ(client.port->wait_for_end().error_code(), grpc::StatusCode::UNAVAILABLE);
}

// A broker that shuts down must not make its clients evict each other.
TEST_F(WatchCallTest, ABrokerThatEndsTheCallsTellsNobodyOfLostSessions) {
  create_bucket();
  put("me", "1");
  Client other = watch(start());
  other.port->wait_for(has_ends(1));
  Client client = watch(start("", {}, "me"));
  client.port->wait_for(has_ends(1));
  client.stream->session()->end(shutting_down());
  EXPECT_EQ(client.port->wait_for_end().error_code(), grpc::StatusCode::UNAVAILABLE);
  client.port.reset();
  EXPECT_EQ(watches(), 1U);
  put("x", "1");
  EXPECT_EQ(text(other.port->wait_for(says("@2"))), "started me=1@1 end@1 +x=1@2");
}

// A client that is blocked for ever must not cost more than its credit, however many sessions are
// lost.
TEST_F(WatchCallTest, HintsToAClientThatDoesNotReadAreBounded) {
  create_bucket();
  Client slow = watch(start());
  slow.port->wait_for(has_ends(1));
  slow.port->set_slow(true);
  KvWatchEffect effect;
  effect.watch = KvWatchId{1};  // The first watch of this broker.
  effect.sessions_lost.assign(3 * limits::kWatchPieces, {.key = "me", .revision = Revision{1}});
  auto& session = dynamic_cast<WatchSession&>(*slow.stream->session());
  session.told(effect);
  session.told(effect);
  slow.port->set_slow(false);
  const auto lost = [](const Responses& all) {
    std::size_t count = 0;
    for (const auto& one : all) count += static_cast<std::size_t>(one.sessions_lost_size());
    return count;
  };
  put("last", "1");
  const Responses all = slow.port->wait_for(says("+last=1@1"));
  EXPECT_GE(lost(all), 1U);
  // One frame, and what may wait behind it.
  EXPECT_LE(lost(all), 2 * limits::kWatchPieces + limits::kFrameBytes / 32);
}

TEST_F(WatchCallTest, ADeletedBucketEndsItAfterItsLastChange) {
  create_bucket();
  Client client = watch(start());
  client.port->wait_for(has_ends(1));
  put("a", "1");
  delete_bucket();
  const grpc::Status status = client.port->wait_for_end();
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(status.error_message(), "bucket_not_found: bucket 'b' was deleted");
  EXPECT_EQ(text(client.port->now()), "started end@0 +a=1@1");
}

TEST_F(WatchCallTest, WrongRequestsAreRefusedByName) {
  create_bucket();
  const auto refusal = [&](const v1::WatchKeysRequest& request) {
    Client client = watch(request);
    return client.port->wait_for_end();
  };
  EXPECT_EQ(refusal({}).error_message(), "invalid_argument: start is missing in the first request");
  v1::WatchKeysRequest request = start();
  request.mutable_start()->set_bucket("none");
  EXPECT_EQ(refusal(request).error_message(), "bucket_not_found: there is no bucket 'none'");
  request.mutable_start()->set_bucket("a b");
  EXPECT_EQ(refusal(request).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  request = start(std::string(limits::kKvKeyBytes + 1, 'k'));
  EXPECT_EQ(refusal(request).error_message(),
            "invalid_argument: prefix has 513 bytes; the limit is 512");
  request = start();
  request.mutable_start()->set_key("");
  EXPECT_EQ(refusal(request).error_message(), "invalid_argument: key is empty");
  request = start("", {}, "no key");
  EXPECT_EQ(refusal(request).error_message(),
            "invalid_argument: session may hold only letters, digits and . _ - / :");
  Client twice = watch(start());
  twice.port->wait_for(has_ends(1));
  twice.port->send(start());
  EXPECT_EQ(twice.port->wait_for_end().error_message(),
            "invalid_argument: start was sent twice; a call is one watch");
  EXPECT_EQ(watches(), 0U);
}

TEST_F(WatchCallTest, ACancelledStartLeavesNothingBehind) {
  create_bucket();
  for (int i = 0; i < 10; ++i) {
    Client client = watch(start());
    client.port->cancel();
    client.port->wait_for_end();
  }
  broker_.turn();
  EXPECT_EQ(watches(), 0U);
}

TEST_F(WatchCallTest, ABrokerThatIsStoppingEndsItAsUnavailable) {
  create_bucket();
  Client client = connect();
  broker_.refuse();
  client.port->send(start());
  EXPECT_EQ(client.port->wait_for_end().error_code(), grpc::StatusCode::UNAVAILABLE);
}

}  // namespace
}  // namespace baton::watch_test
