#include "server/session/watch_session.h"

#include <algorithm>
#include <string>

#include <fmt/format.h>

#include "server/session/limits.h"
#include "server/session/session_fixture.h"

namespace baton {
namespace {

using Connection = TestConnection<WatchSession>;

// The form of a piece in a transcript.
std::string text(const WatchSession::Started& piece) {
  return piece.resumed ? "resumed" : "started";
}
std::string text(const WatchSession::Compacted& /*piece*/) { return "compacted"; }
std::string text(const KvEntryRef& piece) { return piece->key + "=" + piece->value; }
std::string text(const WatchSession::SnapshotEnd& piece) {
  return fmt::format("end@{}", piece.revision.value);
}
std::string text(const KvChange& piece) {
  return (piece.kind == KvChange::Kind::put ? "+" : "-") + piece.entry->key;
}
std::string text(const KvSessionLost& piece) { return "lost:" + piece.key; }
std::string text(const WatchSession::CompleteTo& /*piece*/) { return ""; }
std::string text(const HeartbeatAnswer& piece) { return fmt::format("beat{}", piece.number); }

class WatchSessionTest : public SessionTest {
 protected:
  WatchSessionTest() {
    CreateBucketCommand create;
    create.bucket = "b";
    broker_.execute(std::move(create));
  }

  void put(const std::string& key, const std::string& value) {
    KvPutCommand command;
    command.request = {.bucket = "b", .key = key, .value = value, .expected = {}, .ttl = {}};
    broker_.execute(std::move(command));
  }
  std::unique_ptr<Connection> connect() {
    return std::make_unique<Connection>(broker_, std::make_shared<WatchSession>(state_));
  }
  static void say(Connection& client, WatchSession::Request request) {
    client.request([&](WatchSession& session) { session.take(std::move(request)); });
  }
  static WatchSession::Request start(const std::string& session = {}) {
    WatchWanted wanted;
    wanted.bucket = "b";
    wanted.session = session;
    return {.start = std::move(wanted)};
  }
  /// "started a=1 end@1 +b", once it ends with `last`.
  static std::string hear(Connection& client, const std::string& last) {
    std::string heard;
    while (!heard.ends_with(last) && !testing::Test::HasFailure()) {
      for (const WatchSession::Output& output : client.take(1)) {
        for (const WatchSession::Piece& piece : output) {
          const std::string word = std::visit([](const auto& one) { return text(one); }, piece);
          if (!word.empty()) heard += (heard.empty() ? "" : " ") + word;
        }
      }
    }
    return heard;
  }
  std::size_t watches() {
    DescribeBucketCommand describe;
    describe.bucket = "b";
    return broker_.execute(std::move(describe)).description.watches;
  }
};

TEST_F(WatchSessionTest, ShowsWhatIsThereAndThenEveryChange) {
  put("a", "1");
  const auto client = connect();
  say(*client, start());
  EXPECT_EQ(hear(*client, "end@1"), "started a=1 end@1");
  put("b", "2");
  put("a", "3");
  EXPECT_EQ(hear(*client, "+a"), "+b +a");
}

TEST_F(WatchSessionTest, KindsNeverGoBackWithinAnOutput) {
  put("me", "1");
  auto other = connect();
  say(*other, start("me"));
  const auto client = connect();
  say(*client, start());
  hear(*client, "end@1");
  client->set_slow(true);
  put("a", "1");  // Is being written; what follows waits behind it.
  other->lose();
  EXPECT_FALSE(other->wait_for_end().has_value());
  other.reset();
  broker_.turn();
  put("b", "1");
  client->now();
  client->set_slow(false);
  std::string heard;
  for (const WatchSession::Output& output : client->take(2)) {
    for (const WatchSession::Piece& piece : output) {
      heard += std::visit([](const auto& one) { return text(one); }, piece);
    }
    EXPECT_TRUE(std::ranges::is_sorted(output, {}, [](const auto& piece) { return piece.index(); }))
        << heard;
  }
  EXPECT_EQ(heard, "lost:me+b");
}

// The shard, and not the session, keeps the changes of a watch without credit.
TEST_F(WatchSessionTest, ASlowClientIsGivenNoMoreThanItsCreditAndBeginsAnew) {
  const auto client = connect();
  say(*client, start());
  hear(*client, "end@0");
  client->set_slow(true);
  for (std::size_t i = 0; i < 3 * limits::kWatchChanges; ++i) put("k", std::to_string(i));
  client->set_slow(false);
  put("last", "1");
  const std::string heard = hear(*client, "+last");
  const auto changes = static_cast<std::size_t>(std::ranges::count(heard, '+'));
  EXPECT_TRUE(changes == 3 * limits::kWatchChanges + 1 ||
              heard.find("compacted") != std::string::npos)
      << changes;
}

TEST_F(WatchSessionTest, AGoodbyeIsNoLossAndABreakIs) {
  const auto other = connect();
  say(*other, start());
  hear(*other, "end@0");
  put("me", "1");
  EXPECT_EQ(hear(*other, "+me"), "+me");
  auto polite = connect();
  say(*polite, start("me"));
  hear(*polite, "end@1");
  say(*polite, {.goodbye = true});
  EXPECT_TRUE(polite->wait_for_end().has_value());
  polite.reset();
  auto broken = connect();
  say(*broken, start("me"));
  hear(*broken, "end@1");
  broken->lose();
  EXPECT_EQ(broken->wait_for_end().error().code, Errc::cancelled);
  EXPECT_EQ(hear(*other, "lost:me"), "lost:me") << "once, and not for the goodbye";
  broken.reset();
  broker_.turn();
  EXPECT_EQ(watches(), 1U);
}

TEST_F(WatchSessionTest, AHeartbeatIsAnsweredFirstAndItsSilenceEndsTheSession) {
  const auto client = connect();
  WatchSession::Request request = start();
  request.heartbeat = 7;
  say(*client, std::move(request));
  EXPECT_EQ(hear(*client, "end@0"), "beat7 started end@0");
  client->set_slow(true);
  put("a", "1");  // Is being written; b waits behind it.
  put("b", "1");
  say(*client, {.heartbeat = 8});
  client->now();
  client->set_slow(false);
  EXPECT_EQ(hear(*client, "+b"), "beat8 +b");
  broker_.pass(SessionTerms{}.broker_lease + std::chrono::milliseconds{1});
  EXPECT_EQ(client->wait_for_end().error().code, Errc::unavailable);
}

TEST_F(WatchSessionTest, WrongRequestsEndIt) {
  const auto without_start = connect();
  say(*without_start, {});
  EXPECT_EQ(without_start->wait_for_end().error().code, Errc::invalid_argument);
  const auto twice = connect();
  say(*twice, start());
  say(*twice, start());
  EXPECT_EQ(twice->wait_for_end().error().code, Errc::invalid_argument);
}

}  // namespace
}  // namespace baton
