#include "worker/guardian/handler_book.h"

#include <signal.h>

#include <chrono>
#include <vector>

#include <gtest/gtest.h>

namespace baton::worker {
namespace {

using std::chrono::seconds;
using Actions = std::vector<HandlerBook::Action>;
using Stopped = HandlerBook::Stopped;
using WillRestart = HandlerBook::WillRestart;

constexpr Instant kStart{1'000'000'000'000};
constexpr HandlerTask kTask{.partition = 3, .epoch = 7};

constexpr Instant after(Duration time) { return kStart + time; }
GuardCommand start(const HandlerTask& task) { return StartHandler{task}; }

class HandlerBookTest : public testing::Test {
 protected:
  void SetUp() override {
    book_.acquired(kTask, kStart);
    EXPECT_EQ(book_.take_actions(), (Actions{start(kTask)}));
  }

  HandlerBook book_;
};

TEST_F(HandlerBookTest, APartitionIsGivenUpOnlyWhenItsHandlerHasEnded) {
  book_.revoking(3, after(seconds(30)));
  EXPECT_EQ(book_.take_actions(), (Actions{GuardCommand{StopHandler{3, after(seconds(30))}}}));
  book_.ended({kTask, 0}, after(seconds(1)));
  EXPECT_EQ(book_.take_actions(), (Actions{Stopped{kTask}}));
  EXPECT_EQ(book_.next_deadline(), Instant::never());
}

TEST_F(HandlerBookTest, ALostOneIsKilledAtOnce) {
  book_.lost(3);
  EXPECT_EQ(book_.take_actions(), (Actions{GuardCommand{KillHandler{3}}}));
  book_.ended({kTask, 137}, kStart);
  EXPECT_EQ(book_.take_actions(), (Actions{Stopped{kTask}}));
}

// It has done nothing wrong: it waits for the lease only, without a backoff.
TEST_F(HandlerBookTest, OneThatEndedWithTheLeaseIsStartedWhenThatIsRenewed) {
  book_.ended({kTask, 143, true}, after(seconds(2)));
  EXPECT_EQ(book_.take_actions(),
            (Actions{WillRestart{.task = kTask, .code = 143, .lease_over = true}}));
  book_.tick(after(seconds(100)));
  EXPECT_TRUE(book_.take_actions().empty());
  book_.renewed(after(seconds(105)));
  EXPECT_EQ(book_.take_actions(), (Actions{GuardCommand{NewDeadline{after(seconds(105))}}}));
  book_.tick(after(seconds(100)));
  EXPECT_EQ(book_.take_actions(), (Actions{start(kTask)}));
}

TEST_F(HandlerBookTest, OneThatEndedWithTheLeaseIsStoppedWhenThatIsLost) {
  book_.ended({kTask, 137, true}, after(seconds(2)));
  book_.take_actions();
  book_.lost(3);
  EXPECT_EQ(book_.take_actions(), (Actions{Stopped{kTask}}));
}

TEST_F(HandlerBookTest, ACrashedHandlerIsStartedAgain) {
  book_.ended({kTask, 1}, after(seconds(2)));
  EXPECT_EQ(book_.take_actions(), (Actions{WillRestart{kTask, 1, seconds(1)}}));
  EXPECT_EQ(book_.next_deadline(), after(seconds(3)));
  book_.tick(after(seconds(2)));
  EXPECT_TRUE(book_.take_actions().empty());
  book_.tick(after(seconds(3)));
  EXPECT_EQ(book_.take_actions(), (Actions{start(kTask)}));
}

// Between two runs no handler works on the partition: it can be given up at once.
TEST_F(HandlerBookTest, APartitionThatWaitsForItsHandlerGoesAtOnce) {
  book_.ended({kTask, 1}, kStart);
  book_.take_actions();
  book_.revoking(3, after(seconds(30)));
  EXPECT_EQ(book_.take_actions(), (Actions{Stopped{kTask}}));
  book_.tick(after(seconds(60)));
  EXPECT_TRUE(book_.take_actions().empty());
}

TEST_F(HandlerBookTest, ALostPartitionIsNotStartedAgain) {
  book_.ended({kTask, 137}, kStart);
  book_.take_actions();
  book_.lost(3);
  EXPECT_EQ(book_.take_actions(), (Actions{Stopped{kTask}}));
}

// A report about an earlier life says nothing about this one.
TEST_F(HandlerBookTest, AnEndUnderAnotherEpochIsNotThisOne) {
  book_.ended({{.partition = 3, .epoch = 6}, 137}, kStart);
  EXPECT_TRUE(book_.take_actions().empty());
}

TEST_F(HandlerBookTest, WhoIsInAHurryKillsThoseThatAreStopping) {
  book_.acquired({.partition = 4, .epoch = 1}, kStart);
  book_.revoking(3, after(seconds(30)));
  book_.take_actions();
  book_.hurry();
  EXPECT_EQ(book_.take_actions(), (Actions{GuardCommand{KillHandler{3}}}));
}

TEST_F(HandlerBookTest, WithoutAGuardianNothingRuns) {
  book_.acquired({.partition = 4, .epoch = 1}, kStart);
  book_.take_actions();
  book_.guardian_gone();
  EXPECT_EQ(book_.take_actions(), (Actions{Stopped{kTask}, Stopped{{.partition = 4, .epoch = 1}}}));
}

TEST_F(HandlerBookTest, DeadlinesAndSignalsAreHandedOn) {
  book_.renewed(after(seconds(5)));
  book_.signal(SIGUSR1);
  EXPECT_EQ(book_.take_actions(), (Actions{GuardCommand{NewDeadline{after(seconds(5))}},
                                           GuardCommand{SignalHandlers{SIGUSR1}}}));
}

TEST(RestartBackoff, DoublesUpToItsLimit) {
  RestartBackoff backoff;
  std::vector<Duration> delays;
  for (int i = 0; i < 7; ++i) delays.push_back(backoff.next(seconds(1), 1));
  EXPECT_EQ(delays, (std::vector<Duration>{seconds(1), seconds(2), seconds(4), seconds(8),
                                           seconds(16), seconds(30), seconds(30)}));
}

TEST(RestartBackoff, BeginsAnewAfterALongRunOrAGoodEnd) {
  RestartBackoff backoff;
  for (int i = 0; i < 4; ++i) (void)backoff.next(seconds(1), 1);
  EXPECT_EQ(backoff.next(seconds(60), 1), seconds(1));
  EXPECT_EQ(backoff.next(seconds(59), 1), seconds(2));
  EXPECT_EQ(backoff.next(seconds(1), 0), seconds(1));
}

}  // namespace
}  // namespace baton::worker
