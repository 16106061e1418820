#include "worker/guardian/guarded_handlers.h"

#include <signal.h>

#include <chrono>
#include <vector>

#include <gtest/gtest.h>

namespace baton::worker {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Actions = std::vector<GuardedHandlers::Action>;
using Signal = GuardedHandlers::Signal;
using Spawn = GuardedHandlers::Spawn;

constexpr Instant kStart{seconds(100).count() * 1'000'000'000};
constexpr HandlerTask kFirst{.partition = 1, .epoch = 5};
constexpr HandlerTask kSecond{.partition = 2, .epoch = 6};
constexpr pid_t kFirstPid = 1001;
constexpr pid_t kSecondPid = 1002;

constexpr Instant after(milliseconds time) { return kStart + time; }

/// Two handlers at work under a lease that ends 5 s after the start.
class GuardedHandlersTest : public testing::Test {
 protected:
  void run_two(GuardedHandlers& handlers) {
    handlers.on(NewDeadline{after(seconds(5))}, kStart);
    handlers.on(StartHandler{kFirst}, kStart);
    handlers.on(StartHandler{kSecond}, kStart);
    handlers.spawned(kFirst, kFirstPid);
    handlers.spawned(kSecond, kSecondPid);
    handlers.take_actions();
  }

  GuardedHandlers handlers_{GuardedHandlers::Options{}};
};

TEST_F(GuardedHandlersTest, StartsAndReports) {
  handlers_.on(NewDeadline{after(seconds(5))}, kStart);
  handlers_.on(StartHandler{kFirst}, kStart);
  EXPECT_EQ(handlers_.take_actions(), (Actions{Spawn{kFirst}}));
  handlers_.spawned(kFirst, kFirstPid);
  EXPECT_EQ(handlers_.take_actions(), (Actions{GuardReport{HandlerStarted{kFirst, kFirstPid}}}));
  handlers_.ended(kFirstPid, 3);
  EXPECT_EQ(handlers_.take_actions(), (Actions{GuardReport{HandlerEnded{kFirst, 3}}}));
  EXPECT_TRUE(handlers_.empty());
}

// The runner is stopped or cut off: no handler may be at work when another worker takes over.
TEST_F(GuardedHandlersTest, EverythingIsKilledBeforeTheDeadline) {
  run_two(handlers_);
  const Instant due = handlers_.next_deadline();
  EXPECT_LT(due, after(seconds(5)));
  EXPECT_GE(due, after(milliseconds(4'950)));
  handlers_.tick(due);
  EXPECT_EQ(handlers_.take_actions(),
            (Actions{Signal{kFirstPid, SIGKILL}, Signal{kSecondPid, SIGKILL}}));
  // Once is enough.
  handlers_.tick(after(seconds(6)));
  EXPECT_TRUE(handlers_.take_actions().empty());
  EXPECT_EQ(handlers_.next_deadline(), Instant::never());
}

/// Handlers with some time to stop before a lease that is not renewed kills them.
class NoticedHandlers : public GuardedHandlersTest {
 protected:
  void SetUp() override { run_two(handlers_); }
  // They are killed 20 ms before it.
  static constexpr Instant kNoticeAt = after(milliseconds(5'000 - 20 - 600));

  GuardedHandlers handlers_{{.notice = milliseconds(600), .drain = seconds(2)}};
};

// An outage: the runner says nothing, and the handlers get a warning first.
TEST_F(NoticedHandlers, ALeaseThatIsNotRenewedTellsThemToStopBeforeItKills) {
  EXPECT_EQ(handlers_.next_deadline(), kNoticeAt);
  handlers_.tick(kNoticeAt);
  EXPECT_EQ(handlers_.take_actions(),
            (Actions{Signal{kFirstPid, SIGTERM}, Signal{kSecondPid, SIGTERM}}));
  EXPECT_EQ(handlers_.next_deadline(), after(milliseconds(4'980)));
  handlers_.ended(kFirstPid, 0);
  EXPECT_EQ(handlers_.take_actions(), (Actions{GuardReport{HandlerEnded{kFirst, 0, true}}}));
  handlers_.tick(after(milliseconds(4'980)));
  EXPECT_EQ(handlers_.take_actions(), (Actions{Signal{kSecondPid, SIGKILL}}));
  handlers_.ended(kSecondPid, 137);
  EXPECT_EQ(handlers_.take_actions(), (Actions{GuardReport{HandlerEnded{kSecond, 137, true}}}));
}

TEST_F(NoticedHandlers, ALeaseThatIsRenewedInTimeTellsThemNothing) {
  handlers_.on(NewDeadline{after(seconds(9))}, after(seconds(4)));
  handlers_.tick(kNoticeAt);
  EXPECT_TRUE(handlers_.take_actions().empty());
}

// It may have begun to stop, and would not work any more: it gets the same time as any other.
TEST_F(NoticedHandlers, OneThatWasToldEndsWithinTheDrainThoughTheLeaseIsRenewed) {
  handlers_.tick(kNoticeAt);
  handlers_.on(NewDeadline{after(seconds(9))}, after(milliseconds(4'900)));
  handlers_.take_actions();
  EXPECT_EQ(handlers_.next_deadline(), kNoticeAt + seconds(2));
  handlers_.tick(kNoticeAt + seconds(2));
  EXPECT_EQ(handlers_.take_actions(),
            (Actions{Signal{kFirstPid, SIGKILL}, Signal{kSecondPid, SIGKILL}}));
}

TEST_F(NoticedHandlers, NobodyIsToldTwice) {
  handlers_.on(StopHandler{1, after(seconds(8))}, after(seconds(1)));
  EXPECT_EQ(handlers_.take_actions(), (Actions{Signal{kFirstPid, SIGTERM}}));
  handlers_.tick(kNoticeAt);
  EXPECT_EQ(handlers_.take_actions(), (Actions{Signal{kSecondPid, SIGTERM}}));
  handlers_.on(StopHandler{2, after(seconds(8))}, kNoticeAt);
  EXPECT_TRUE(handlers_.take_actions().empty());
}

TEST_F(GuardedHandlersTest, ARenewalMovesTheDeadline) {
  run_two(handlers_);
  handlers_.on(NewDeadline{after(seconds(9))}, after(seconds(4)));
  handlers_.tick(after(seconds(8)));
  EXPECT_TRUE(handlers_.take_actions().empty());
  // An older deadline that comes late does not move it back.
  handlers_.on(NewDeadline{after(seconds(5))}, after(seconds(8)));
  EXPECT_TRUE(handlers_.take_actions().empty());
}

// A start that was long on its way (the runner was stopped between two lines) comes too late.
TEST_F(GuardedHandlersTest, NothingIsStartedPastTheDeadline) {
  handlers_.on(NewDeadline{after(seconds(5))}, kStart);
  handlers_.on(StartHandler{kFirst}, after(seconds(5)));
  EXPECT_EQ(handlers_.take_actions(), (Actions{GuardReport{HandlerEnded{kFirst, 137, true}}}));
  EXPECT_TRUE(handlers_.empty());
}

TEST_F(GuardedHandlersTest, NothingIsStartedBeforeTheFirstDeadline) {
  handlers_.on(StartHandler{kFirst}, kStart);
  EXPECT_EQ(handlers_.take_actions(), (Actions{GuardReport{HandlerEnded{kFirst, 137, true}}}));
}

TEST_F(GuardedHandlersTest, OneThatIsToStopGetsItsTime) {
  run_two(handlers_);
  handlers_.on(StopHandler{1, after(seconds(2))}, after(seconds(1)));
  EXPECT_EQ(handlers_.take_actions(), (Actions{Signal{kFirstPid, SIGTERM}}));
  EXPECT_EQ(handlers_.next_deadline(), after(seconds(2)));
  handlers_.tick(after(milliseconds(1'999)));
  EXPECT_TRUE(handlers_.take_actions().empty());
  handlers_.tick(after(seconds(2)));
  EXPECT_EQ(handlers_.take_actions(), (Actions{Signal{kFirstPid, SIGKILL}}));
}

// It needs time to die, and the partition time to be handed over, before the lease ends.
TEST_F(GuardedHandlersTest, OneThatIsToStopIsKilledSomeTimeBeforeTheDeadline) {
  run_two(handlers_);
  handlers_.on(StopHandler{1, after(seconds(30))}, after(seconds(1)));
  handlers_.take_actions();
  EXPECT_EQ(handlers_.next_deadline(), after(milliseconds(4'800)));
  handlers_.on(NewDeadline{after(seconds(8))}, after(seconds(4)));
  EXPECT_EQ(handlers_.next_deadline(), after(milliseconds(7'800)));
  handlers_.tick(after(milliseconds(7'800)));
  EXPECT_EQ(handlers_.take_actions(), (Actions{Signal{kFirstPid, SIGKILL}}));
}

TEST_F(GuardedHandlersTest, ASecondStopSendsNoSecondSignal) {
  run_two(handlers_);
  handlers_.on(StopHandler{1, after(seconds(3))}, kStart);
  handlers_.take_actions();
  handlers_.on(StopHandler{1, after(seconds(2))}, kStart);
  EXPECT_TRUE(handlers_.take_actions().empty());
  EXPECT_EQ(handlers_.next_deadline(), after(seconds(2)));
}

// The sink checks epochs: work goes on while the store is away.
TEST_F(GuardedHandlersTest, FencedHandlersOutliveTheDeadline) {
  GuardedHandlers fenced({.fenced = true});
  run_two(fenced);
  fenced.tick(after(seconds(60)));
  EXPECT_TRUE(fenced.take_actions().empty());
  EXPECT_EQ(fenced.next_deadline(), Instant::never());
  fenced.on(KillHandler{2}, after(seconds(60)));
  EXPECT_EQ(fenced.take_actions(), (Actions{Signal{kSecondPid, SIGKILL}}));
  fenced.on(StopHandler{1, after(seconds(90))}, after(seconds(60)));
  EXPECT_EQ(fenced.next_deadline(), after(seconds(90)));
}

TEST_F(GuardedHandlersTest, SignalsGoToThoseThatLive) {
  run_two(handlers_);
  handlers_.on(KillHandler{1}, kStart);
  handlers_.take_actions();
  handlers_.on(SignalHandlers{SIGHUP}, kStart);
  EXPECT_EQ(handlers_.take_actions(), (Actions{Signal{kSecondPid, SIGHUP}}));
}

TEST_F(GuardedHandlersTest, ARunnerThatIsGoneTakesEverythingWithIt) {
  run_two(handlers_);
  handlers_.kill_all();
  EXPECT_EQ(handlers_.take_actions(),
            (Actions{Signal{kFirstPid, SIGKILL}, Signal{kSecondPid, SIGKILL}}));
}

TEST_F(GuardedHandlersTest, WhatIsNotThereIsLeftAlone) {
  handlers_.on(StopHandler{1, kStart}, kStart);
  handlers_.on(KillHandler{1}, kStart);
  handlers_.ended(kFirstPid, 0);
  EXPECT_TRUE(handlers_.take_actions().empty());
  handlers_.on(NewDeadline{after(seconds(5))}, kStart);
  handlers_.on(StartHandler{kFirst}, kStart);
  handlers_.take_actions();
  handlers_.not_spawned(kFirst, 126);
  EXPECT_EQ(handlers_.take_actions(), (Actions{GuardReport{HandlerEnded{kFirst, 126}}}));
  EXPECT_TRUE(handlers_.empty());
}

}  // namespace
}  // namespace baton::worker
