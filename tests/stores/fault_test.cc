// What every store does while its server is away, stopped or frozen, and when it comes back.

#include <map>
#include <thread>

#include <nlohmann/json.hpp>

#include "stores/contract.h"
#include "worker/nats/nats_link.h"
#include "worker/stores/limits.h"

namespace baton::stores {
namespace {

using Clock = e2e::Clock;

class FaultContract : public Contract {
 protected:
  void TearDown() override {
    if (IsSkipped()) return;
    server().resume();
    server().start();
  }
};
BATON_FOR_EACH_STORE(FaultContract);

bool is_unknown_outcome(Errc code) {
  return code == Errc::unavailable || code == Errc::deadline_exceeded;
}

template <class Call>
milliseconds time_of(Call call) {
  const auto start = Clock::now();
  call();
  return std::chrono::duration_cast<milliseconds>(Clock::now() - start);
}

/// Every call fails, and within its timeout: a worker that waits longer misses its heartbeat.
void expect_errors_in_time(KvStore& store, KvRevision revision) {
  constexpr milliseconds kShort{200};
  constexpr milliseconds kSlack{2'000 + (250 * kSlower)};
  const auto expect_error = [&](const auto& call, const char* what) {
    const auto took = time_of([&] {
      const auto result = call();
      ASSERT_FALSE(result.has_value()) << what;
      EXPECT_TRUE(is_unknown_outcome(result.error().code)) << to_string(result.error());
      EXPECT_FALSE(result.error().text.empty());
    });
    EXPECT_LE(took, kShort + kSlack) << what;
  };
  expect_error([&] { return store.cas("a", revision, "x", std::nullopt, kShort); }, "cas");
  expect_error([&] { return store.get("a", kShort); }, "get");
  expect_error([&] { return store.remove("a", revision, kShort); }, "remove");
  expect_error([&] { return store.list("", kShort); }, "list");
  expect_error([&] { return store.watch({}, [](const auto&) {}, kShort); }, "watch");
}

TEST_P(FaultContract, AFrozenServerIsAnErrorWithinTheTimeoutAndNoneAfterwards) {
  const auto store = client();
  const KvRevision revision = must_write(*store, "a", 0, "before");
  auto other = client();
  auto watch = other->watch({}, [](const auto&) {}, kTimeout).value();

  server().pause();
  expect_errors_in_time(*store, revision);
  const auto took = time_of([&] {
    watch.reset();
    other.reset();
  });
  server().resume();

  // A shutdown does not wait for a dead server either.
  EXPECT_LE(took, seconds{4} * kSlower);

  // The frozen server may have received the write, and does it now; or it may not. Nothing else is
  // possible.
  EXPECT_TRUE(e2e::eventually([&] { return store->get("a", kTimeout).has_value(); }));
  const auto found = store->get("a", kTimeout).value();
  EXPECT_TRUE(!found || found->value == "before" || found->value == "x");
  must_write(*store, "b", 0, "after");
}

TEST_P(FaultContract, ARestartedServerHasKeptEverythingAndIsFoundAgain) {
  const auto store = client();
  const KvRevision first = must_write(*store, "a", 0, "one");
  const KvRevision kept = must_write(*store, "a", first, "two");
  must_remove(*store, "gone", must_write(*store, "gone", 0, "x"));

  server().kill();
  ASSERT_TRUE(server().start());

  // The very same client, within one call's timeout.
  const auto found = store->get("a", kTimeout);
  ASSERT_TRUE(found.has_value()) << to_string(found.error());
  ASSERT_TRUE(found->has_value());
  EXPECT_EQ((*found)->value, "two");
  EXPECT_EQ((*found)->revision, kept);
  EXPECT_EQ(value_of(*store, "gone"), "(none)");
  EXPECT_FALSE(store->cas("a", first, "x", std::nullopt, kTimeout).value().done);
  const KvRevision next = must_write(*store, "a", kept, "three");
  EXPECT_NE(next, first);
  EXPECT_NE(next, kept);
  Seen seen;
  const auto watch = store->watch({}, seen.callback(), kTimeout);
  ASSERT_TRUE(watch.has_value()) << to_string(watch.error());
  EXPECT_TRUE(seen.wait_for(Kinds::snapshot_end));
  EXPECT_EQ(seen.lines(), (std::vector<std::string>{"+a=three", "|"}));
}

TEST_P(FaultContract, AWatchOnAKilledServerSaysSoAtOnceAndThenNothing) {
  const auto store = client();
  Seen seen;
  const auto watch = store->watch({}, seen.callback(), kTimeout);
  ASSERT_TRUE(seen.wait_for(Kinds::snapshot_end));

  const auto took = time_of([&] {
    server().kill();
    EXPECT_TRUE(seen.wait_for(Kinds::broken));
  });

  EXPECT_LE(took, seconds{2} * kSlower);
  ASSERT_TRUE(server().start());
  must_write(*store, "a", 0, "x");
  std::this_thread::sleep_for(milliseconds{200});
  EXPECT_EQ(seen.lines(), (std::vector<std::string>{"|", "!"}));
  EXPECT_FALSE(seen.events().back().entry.value.empty());
}

/// A watch of each installed kind of store, all at once: these tests wait for seconds.
class QuietWatches : public testing::Test {
 protected:
  struct Quiet {
    Seen seen;
    std::unique_ptr<KvStore> store;
    std::unique_ptr<coord::Watch> watch;
  };

  void SetUp() override {
    for (const Kind kind : {Kind::broker, Kind::nats, Kind::etcd}) {
      if (!Server::missing({.kind = kind}).empty()) continue;
      ASSERT_TRUE(shared_server(kind).start());
      Quiet& quiet = all_[kind];
      quiet.store = open(shared_server(kind).url(new_bucket()));
      quiet.watch = quiet.store->watch({}, quiet.seen.callback(), kTimeout).value();
      ASSERT_TRUE(quiet.seen.wait_for(Kinds::snapshot_end));
    }
  }

  std::map<Kind, Quiet> all_;
};

// A server without changes must not be taken for dead. One that does not even answer must, though
// the connection shows nothing.
TEST_F(QuietWatches, StayAliveWithoutChangesAndBreakWithoutAServer) {
  std::this_thread::sleep_for(coord::limits::kWatchSilence + seconds{1});
  for (auto& [kind, quiet] : all_) {
    must_write(*quiet.store, "a", 0, "x");
    EXPECT_TRUE(quiet.seen.wait_for(Kinds::put, "a")) << name_of(kind);
    EXPECT_EQ(quiet.seen.lines(), (std::vector<std::string>{"|", "+a=x"})) << name_of(kind);
  }

  for (auto& [kind, quiet] : all_) shared_server(kind).pause();
  const auto paused = Clock::now();
  for (auto& [kind, quiet] : all_) {
    EXPECT_TRUE(quiet.seen.wait_for(Kinds::broken)) << name_of(kind);
    EXPECT_LE(Clock::now() - paused, seconds{5} * kSlower) << name_of(kind);
  }
  for (auto& [kind, quiet] : all_) shared_server(kind).resume();
}

TEST_P(FaultContract, AKilledServerIsAnErrorWithinTheTimeoutAndToldAtOnceToNewClients) {
  const std::string where = url();
  const auto old = client();
  const KvRevision revision = must_write(*old, "a", 0, "before");
  server().kill();
  expect_errors_in_time(*old, revision);
  Result<std::unique_ptr<KvStore>> store = Error{Errc::internal, ""};

  const auto took =
      time_of([&] { store = coord::open_store(where, {.connect_timeout = seconds{5}}); });

  ASSERT_FALSE(store.has_value());
  EXPECT_EQ(store.error().code, Errc::unavailable);
  EXPECT_NE(store.error().text.find(server().member(0).address()), std::string::npos)
      << store.error().text;
  EXPECT_LE(took, seconds{4} * kSlower);
}

// libnats closes a connection for good when it is told twice that it may not connect.
TEST_P(FaultContract, AConnectionToNatsThatIsClosedForGoodIsMadeAnew) {
  if (GetParam() != Kind::nats) return;
  const auto link =
      coord::NatsLink::connect({server().member(0).address()}, coord::Deadline(kTimeout));
  ASSERT_TRUE(link.has_value()) << to_string(link.error());
  natsConnection_Close((*link)->connection());
  const auto answer = (*link)->api("$JS.API.INFO", "", coord::Deadline(kTimeout));
  ASSERT_TRUE(answer.has_value()) << to_string(answer.error());
  EXPECT_TRUE(coord::nats_subscribe(*link, "any").has_value());
}

TEST_P(FaultContract, AServerThatDoesNotAnswerIsGivenUp) {
  const std::string where = url();
  server().pause();
  Result<std::unique_ptr<KvStore>> store = Error{Errc::internal, ""};

  const auto took =
      time_of([&] { store = coord::open_store(where, {.connect_timeout = milliseconds{800}}); });

  ASSERT_FALSE(store.has_value());
  EXPECT_TRUE(is_unknown_outcome(store.error().code)) << to_string(store.error());
  EXPECT_LE(took, seconds{4} * kSlower);
}

}  // namespace
}  // namespace baton::stores
