#include "core/lease/session_lease.h"

#include <array>

#include <gtest/gtest.h>

namespace baton {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr SessionTerms kTerms;
constexpr Instant at(Duration time) { return Instant{1'000'000'000'000} + time; }
constexpr Instant kBrokerTime{77};

// The rule that makes the lease safe: a slow answer must not lengthen it.
TEST(SessionHold, CountsFromTheSendingNotFromTheAnswer) {
  SessionHold hold;
  const auto number = hold.send(at(seconds{0}));
  EXPECT_FALSE(hold.granted());
  EXPECT_FALSE(hold.holds(at(seconds{0})));

  hold.acknowledged(number, kBrokerTime, kTerms, at(seconds{3}));

  EXPECT_TRUE(hold.holds(at(milliseconds{3'999})));
  EXPECT_FALSE(hold.holds(at(seconds{4})));
  EXPECT_TRUE(hold.has_ended(at(seconds{4})));
}

// A client that was stopped finds the answers to its heartbeats in the socket when it wakes.
TEST(SessionHold, ALateAnswerRevivesNothing) {
  SessionHold hold;
  hold.acknowledged(hold.send(at(seconds{0})), kBrokerTime, kTerms, at(milliseconds{1}));
  const auto second = hold.send(at(seconds{1}));
  const auto third = hold.send(at(seconds{2}));

  hold.acknowledged(second, kBrokerTime, kTerms, at(seconds{20}));
  EXPECT_FALSE(hold.holds(at(seconds{20})));
  // In time by its own count, but the program has been told by now that the lease is over.
  hold.acknowledged(third, kBrokerTime, kTerms, at(milliseconds{4'500}));
  EXPECT_FALSE(hold.holds(at(milliseconds{4'500})));
}

TEST(SessionHold, AFirstAnswerThatIsTooLateGrantsALeaseThatIsOver) {
  SessionHold hold;
  hold.acknowledged(hold.send(at(seconds{0})), kBrokerTime, kTerms, at(seconds{6}));
  EXPECT_TRUE(hold.granted());
  EXPECT_TRUE(hold.has_ended(at(seconds{6})));
}

TEST(SessionHold, AnswersToNothingChangeNothing) {
  SessionHold hold;
  hold.acknowledged(7, kBrokerTime, kTerms, at(seconds{0}));
  EXPECT_FALSE(hold.granted());
  const auto number = hold.send(at(seconds{0}));
  hold.acknowledged(number, kBrokerTime, kTerms, at(seconds{1}));
  hold.acknowledged(number, kBrokerTime, kTerms, at(seconds{3}));  // Acknowledged again.
  EXPECT_EQ(hold.until(), at(seconds{4}));
}

// A consumer that keeps messages beyond its connection relies on this: a deadline has not passed at
// the broker as long as this bound is below it.
TEST(SessionHold, KnowsHowLateItMayBeAtTheBroker) {
  SessionHold hold;
  EXPECT_EQ(hold.broker_time_at_most(at(seconds{0})), std::nullopt);
  // Received at the broker's 500 s, at some moment between the sending and the answer 2 s later.
  hold.acknowledged(hold.send(at(seconds{0})), Instant{} + seconds{500}, kTerms, at(seconds{2}));
  EXPECT_EQ(hold.broker_time_at_most(at(seconds{3})), Instant{} + seconds{503});
}

/// A clock that runs `rate` times as fast as the true time.
struct Clock {
  double rate = 1;
  [[nodiscard]] Instant read(Duration true_time) const {
    return at(Duration{static_cast<std::int64_t>(static_cast<double>(true_time.count()) * rate)});
  }
};

/// How much true time passes between the client's stop and the broker's hand-over, when the last
/// heartbeat took `latency` to arrive.
Duration margin(Clock client, Clock broker, Duration latency) {
  SessionHold hold;
  SessionGrant grant;
  hold.acknowledged(hold.send(client.read(Duration{0})), kBrokerTime, kTerms,
                    client.read(2 * latency));
  grant.heard(broker.read(latency));
  Duration stopped{0};
  Duration given_away{0};
  for (Duration now{0}; now < seconds{10}; now += milliseconds{1}) {
    if (hold.holds(client.read(now))) stopped = now;
    if (!grant.is_over(broker.read(now))) given_away = now;
  }
  return given_away - stopped;
}

// A slow clock at the client and a fast one at the broker are the worst case.
TEST(SessionLease, TheClientStopsBeforeTheBrokerGivesAwayThoughTheirClocksDiffer) {
  for (const auto latency : std::array{milliseconds{0}, milliseconds{200}, milliseconds{1'500}}) {
    EXPECT_GT(margin({1.0}, {1.0}, latency), milliseconds{990});
    EXPECT_GT(margin({0.995}, {1.005}, latency), milliseconds{940});  // 1 % apart.
    EXPECT_GT(margin({0.99}, {1.01}, latency), milliseconds{900});
    EXPECT_GT(margin({0.9}, {1.1}, latency), milliseconds{50});
  }
  // The bound that docs/adr/0010 names: 1 in 9.
  EXPECT_GT(margin({1 - 0.110}, {1 + 0.110}, {}), Duration{0});
  EXPECT_LT(margin({1 - 0.115}, {1 + 0.115}, {}), Duration{0});
}

TEST(SessionGrant, AClientWithoutHeartbeatsHasNone) {
  SessionGrant grant;
  EXPECT_FALSE(grant.granted());
  EXPECT_FALSE(grant.is_over(at(seconds{100})));
  grant.heard(at(seconds{0}));
  EXPECT_FALSE(grant.is_over(at(milliseconds{4'999})));
  EXPECT_TRUE(grant.is_over(at(seconds{5})));
}

}  // namespace
}  // namespace baton
