#include <chrono>
#include <map>
#include <set>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "pipeline/flow/backoff.h"
#include "pipeline/flow/breaker.h"
#include "pipeline/flow/error_class.h"
#include "pipeline/flow/offset_tracker.h"
#include "pipeline/flow/storm_guard.h"

namespace baton::flow {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

TEST(OffsetTracker, TheMarkWaitsForTheOldest) {
  OffsetTracker tracker(10);
  const auto a = tracker.delivered(10);
  const auto b = tracker.delivered(11);
  const auto c = tracker.delivered(15);  // 12 to 14 do not exist.
  tracker.done(b);
  EXPECT_EQ(tracker.committable(), 10);
  EXPECT_EQ(tracker.highest_done(), 11);
  EXPECT_EQ(tracker.waiting(), 1U);
  EXPECT_EQ(tracker.oldest_in_flight(), 10);
  tracker.done(a);
  EXPECT_EQ(tracker.committable(), 12);
  tracker.done(c);
  EXPECT_EQ(tracker.committable(), 16);
  EXPECT_EQ(tracker.in_flight(), 0U);
  EXPECT_EQ(tracker.oldest_in_flight(), std::nullopt);
}

RC_GTEST_PROP(OffsetTracker, NeverPassesOneThatIsNotTerminal, ()) {
  OffsetTracker tracker(0);
  std::map<OffsetTracker::Ticket, std::int64_t> in_flight;
  std::int64_t next = 0;
  const auto steps = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 100));
  for (const int step : steps) {
    if (step < 50) {
      next += step % 4;  // Holes.
      in_flight.emplace(tracker.delivered(next), next);
      ++next;
    } else if (!in_flight.empty()) {
      const auto at = std::next(in_flight.begin(), step % static_cast<int>(in_flight.size()));
      tracker.done(at->first);
      in_flight.erase(at);
    }
    std::int64_t oldest = next;
    for (const auto& [ticket, offset] : in_flight) oldest = std::min(oldest, offset);
    RC_ASSERT(tracker.committable() <= oldest);
    RC_ASSERT(tracker.in_flight() == in_flight.size());
    if (in_flight.empty() && next > 0) RC_ASSERT(tracker.committable() == next);
  }
}

TEST(ErrorClass, WhileConnectingNoRecordIsToBlame) {
  for (const auto error_class :
       {ErrorClass::outage, ErrorClass::poison, ErrorClass::duplicate, ErrorClass::unknown}) {
    const SinkError error =
        while_connecting({.error_class = error_class, .code = "55000", .halve_batch = true});
    EXPECT_EQ(error.error_class, ErrorClass::outage);
    EXPECT_EQ(error.code, "55000");
    EXPECT_FALSE(error.halve_batch);
  }
  for (const auto error_class : {ErrorClass::config, ErrorClass::retry}) {
    EXPECT_EQ(while_connecting({.error_class = error_class}).error_class, error_class);
  }
}

TEST(Backoff, DoublesUpToItsLimit) {
  const Backoff backoff{.first = milliseconds(100), .most = milliseconds(350)};
  EXPECT_EQ(backoff.limit(1), milliseconds(100));
  EXPECT_EQ(backoff.limit(2), milliseconds(200));
  EXPECT_EQ(backoff.limit(3), milliseconds(350));
  EXPECT_EQ(backoff.limit(1000), milliseconds(350));
  Random random(1);
  std::set<std::int64_t> seen;
  for (int i = 0; i < 100; ++i) {
    const Duration wait = backoff.wait(3, random);
    EXPECT_LE(wait, milliseconds(350));
    seen.insert(wait.count());
  }
  EXPECT_GT(seen.size(), 90U);
}

class BreakerTest : public ::testing::Test {
 protected:
  static Breaker::Options options() {
    Breaker::Options options;
    options.outage_max = seconds(60);
    return options;
  }
  Breaker breaker_{options(), Random(7)};
  Instant now_{1'000'000'000};
};

TEST_F(BreakerTest, AnOutageOpensItAndARealBatchClosesIt) {
  EXPECT_TRUE(breaker_.may_send());
  breaker_.open("connection refused", now_);
  EXPECT_FALSE(breaker_.may_send());
  EXPECT_EQ(breaker_.why(), "connection refused");
  ASSERT_TRUE(breaker_.probe_at().has_value());
  breaker_.probed(false, "still refused", now_);
  EXPECT_FALSE(breaker_.may_send());
  breaker_.probed(true, "", now_);
  EXPECT_TRUE(breaker_.may_send());
  EXPECT_FALSE(breaker_.may_send()) << "one lane, one batch";
  breaker_.succeeded(now_);
  EXPECT_EQ(breaker_.state(), Breaker::State::closed);
  EXPECT_EQ(breaker_.outage_since(), std::nullopt);
}

TEST_F(BreakerTest, ATrialThatFailsOpensItAgainAndTheOutageGoesOn) {
  breaker_.open("read-only", now_);
  breaker_.probed(true, "", now_ + seconds(1));
  EXPECT_TRUE(breaker_.may_send());
  EXPECT_TRUE(breaker_.failed("read-only", now_ + seconds(2)));
  EXPECT_EQ(breaker_.state(), Breaker::State::open);
  EXPECT_EQ(breaker_.outage_since(), now_);
  EXPECT_FALSE(breaker_.outage_is_too_long(now_ + seconds(59)));
  EXPECT_TRUE(breaker_.outage_is_too_long(now_ + seconds(60)));
}

// A sink that answers every probe may still ask not to be called.
TEST_F(BreakerTest, NoProbeComesBeforeTheSinkAllowsIt) {
  breaker_.open("429", now_, seconds(30));
  EXPECT_EQ(breaker_.probe_at(), now_ + seconds(30));
  breaker_.probed(true, "", now_ + seconds(30));
  EXPECT_TRUE(breaker_.may_send());
  EXPECT_TRUE(breaker_.failed("429", now_ + seconds(31), seconds(20)));
  EXPECT_EQ(breaker_.probe_at(), now_ + seconds(51));
}

// At the interval of the setting: with full jitter the next probe could come at any time.
TEST_F(BreakerTest, ProbesComeRegularly) {
  Breaker::Options every = options();
  every.probe = {.first = seconds(1), .most = seconds(10)};
  Breaker breaker(every, Random(7));
  breaker.open("connection refused", now_);
  Instant last = now_;
  for (const int wait : {1, 2, 4, 8, 10, 10, 10, 10, 10, 10}) {
    const Instant next = breaker.probe_at().value();
    EXPECT_GE(next - last, milliseconds(900 * wait));
    EXPECT_LE(next - last, milliseconds(1100 * wait));
    breaker.probed(false, "still refused", next);
    last = next;
  }
}

// An operator who sets a shorter interval does not wait for the probe that was planned before.
TEST_F(BreakerTest, OtherLimitsBringTheProbeForward) {
  Breaker::Options rare = options();
  rare.probe = {.first = std::chrono::hours(24), .most = std::chrono::hours(24)};
  Breaker breaker(rare, Random(7));
  breaker.open("connection refused", now_);
  ASSERT_GT(breaker.probe_at().value(), now_ + seconds(1));
  Breaker::Options often = options();
  often.probe = {.first = milliseconds(100), .most = milliseconds(100)};
  breaker.set_options(often, now_);
  EXPECT_LE(breaker.probe_at().value(), now_ + milliseconds(110));
  const Instant planned = breaker.probe_at().value();
  breaker.set_options(rare, now_);
  EXPECT_EQ(breaker.probe_at(), planned);
}

TEST_F(BreakerTest, HalfOfTheCallsFailing) {
  for (int i = 0; i < 10; ++i) breaker_.succeeded(now_);
  for (int i = 0; i < 9; ++i) EXPECT_FALSE(breaker_.failed("x", now_));
  EXPECT_TRUE(breaker_.failed("x", now_));
  EXPECT_EQ(breaker_.state(), Breaker::State::open);
}

TEST_F(BreakerTest, OldCallsDoNotCount) {
  for (int i = 0; i < 19; ++i) breaker_.failed("x", now_);
  EXPECT_FALSE(breaker_.failed("x", now_ + seconds(11)));
  EXPECT_EQ(breaker_.state(), Breaker::State::closed);
}

TEST_F(BreakerTest, HaltedUntilSomebodyLooks) {
  breaker_.halt("no such table", now_);
  EXPECT_FALSE(breaker_.may_send());
  EXPECT_EQ(breaker_.probe_at(), std::nullopt);
  EXPECT_FALSE(breaker_.outage_is_too_long(now_ + seconds(1000)));
  breaker_.open("late news of a lane", now_);
  EXPECT_EQ(breaker_.state(), Breaker::State::halted);
  breaker_.resume(now_);
  EXPECT_EQ(breaker_.probe_at(), now_);
}

// An idle source has no batch to try, so it is not known whether the sink is still unavailable.
TEST_F(BreakerTest, AnOutageThatWaitsForABatchIsNoneThatIsTooLong) {
  breaker_.open("gone", now_);
  breaker_.probed(true, "", now_ + seconds(1));
  EXPECT_FALSE(breaker_.outage_is_too_long(now_ + seconds(100)));
  EXPECT_TRUE(breaker_.may_send());
  EXPECT_TRUE(breaker_.outage_is_too_long(now_ + seconds(100)));
}

TEST_F(BreakerTest, StartsSlowlyAfterAnOutage) {
  EXPECT_EQ(breaker_.batch_percent(now_), 100U);
  breaker_.open("x", now_);
  breaker_.probed(true, "", now_);
  EXPECT_TRUE(breaker_.may_send());
  breaker_.succeeded(now_);
  EXPECT_EQ(breaker_.batch_percent(now_), 10U);
  EXPECT_EQ(breaker_.batch_percent(now_ + seconds(1)), 50U);
  EXPECT_EQ(breaker_.batch_percent(now_ + seconds(2)), 100U);
}

using Judge = StormGuard::Judge;

/// Every `each`th record is poison, for this judge.
bool is_storm(StormGuard& guard, Judge judge, int count, int each) {
  bool storm = false;
  for (int i = 0; i < count; ++i) {
    if (i % each == 0) {
      storm |= guard.poison(judge);
    } else {
      guard.good(judge, 1);
    }
  }
  return storm;
}

TEST(StormGuard, ManyInARow) {
  for (const Judge judge : {Judge::decoder, Judge::sink}) {
    StormGuard guard({});
    for (int i = 0; i < 99; ++i) EXPECT_FALSE(guard.poison(judge));
    EXPECT_TRUE(guard.poison(judge));
    guard.reset();
    EXPECT_FALSE(guard.poison(judge));
  }
}

// The decoder accepts many records before the sink refuses all of them.
TEST(StormGuard, WhatWasDecodedIsNotWritten) {
  StormGuard guard({});
  for (int i = 0; i < 99; ++i) {
    guard.good(Judge::decoder, 1);
    EXPECT_FALSE(guard.poison(Judge::sink));
  }
  guard.good(Judge::decoder, 500);
  EXPECT_TRUE(guard.poison(Judge::sink));
}

TEST(StormGuard, ItLastsUntilSomebodyLooks) {
  StormGuard guard({});
  EXPECT_TRUE(is_storm(guard, Judge::decoder, 100, 1));
  guard.good(Judge::decoder, 1000);
  guard.good(Judge::sink, 1000);
  EXPECT_TRUE(guard.poison(Judge::decoder));
  EXPECT_TRUE(guard.poison(Judge::sink));
  guard.reset();
  EXPECT_FALSE(guard.poison(Judge::sink));
}

TEST(StormGuard, ManyOfTheLast) {
  StormGuard guard({});
  EXPECT_FALSE(is_storm(guard, Judge::sink, 999, 5)) << "too few to judge";
  EXPECT_TRUE(guard.poison(Judge::sink));
}

TEST(StormGuard, OfTheLastBothCount) {
  StormGuard guard({});
  EXPECT_FALSE(is_storm(guard, Judge::decoder, 1000, 8));
  EXPECT_FALSE(is_storm(guard, Judge::sink, 999, 8));
  EXPECT_TRUE(guard.poison(Judge::sink));
}

TEST(StormGuard, AFewNowAndThenAreNoStorm) {
  StormGuard guard({});
  EXPECT_FALSE(is_storm(guard, Judge::decoder, 10'000, 20));
  EXPECT_FALSE(is_storm(guard, Judge::sink, 10'000, 10));
}

}  // namespace
}  // namespace baton::flow
