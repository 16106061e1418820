// Watches: every change once and in order, or a word that some are lost.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "core/kv/machine_fixture.h"

namespace baton::kv_test {
namespace {

constexpr KvWatchId kOne{1};
constexpr KvWatchId kTwo{2};

class KvWatchTest : public testing::Test {
 protected:
  void create(std::uint64_t history_changes, std::uint64_t history_bytes = 1 << 20) {
    world_.create("b",
                  {.history_changes_max = history_changes, .history_bytes_max = history_bytes});
  }
  void watch(KvWatchId id, const std::string& prefix, std::optional<std::uint64_t> after,
             std::uint64_t credit = 100) {
    KvWatchRequest request{.watch = id,
                           .bucket = "b",
                           .filter = {.text = prefix},
                           .after = {},
                           .credit = credit,
                           .session = {}};
    if (after.has_value()) request.after = Revision{*after};
    const Status started = world_.machine().watch(request);
    ASSERT_TRUE(started.has_value()) << to_string(started.error());
  }
  void watch_session(KvWatchId id, const std::string& session) {
    const Status started = world_.machine().watch({.watch = id,
                                                   .bucket = "b",
                                                   .filter = {.text = "g."},
                                                   .after = {},
                                                   .credit = 0,
                                                   .session = session});
    ASSERT_TRUE(started.has_value()) << to_string(started.error());
  }
  /// "1: put a=x@1 gone a@2 expired b@3; lost k@4; to 3; fell behind" for each watch.
  std::string told() {
    std::string text;
    for (const KvWatchEffect& effect : world_.machine().take_effects()) {
      if (!text.empty()) text += " | ";
      text += describe(effect);
    }
    return text;
  }

  World world_;

 private:
  static std::string describe(const KvWatchEffect& effect) {
    std::string text = fmt::format("{}:", effect.watch.value);
    for (const KvChange& change : effect.changes) {
      const KvEntry& entry = *change.entry;
      const std::uint64_t revision = entry.revision.value;
      switch (change.kind) {
        case KvChange::Kind::put:
          text += fmt::format(" {}={}@{}", entry.key, entry.value, revision);
          break;
        case KvChange::Kind::removed: text += fmt::format(" -{}@{}", entry.key, revision); break;
        case KvChange::Kind::expired: text += fmt::format(" ~{}@{}", entry.key, revision); break;
      }
    }
    for (const KvSessionLost& lost : effect.sessions_lost) {
      text += fmt::format(" lost {}@{}", lost.key, lost.revision.value);
    }
    text += fmt::format(" to {}", effect.complete_to.value);
    if (effect.end == KvWatchEnd::fell_behind) text += " fell behind";
    if (effect.end == KvWatchEnd::bucket_deleted) text += " bucket deleted";
    return text;
  }
};

TEST_F(KvWatchTest, SeesPutsRemovalsAndExpiriesInOrder) {
  create(10);
  watch(kOne, "", 0);
  EXPECT_EQ(told(), "1: to 0");  // It has begun.
  world_.put("a", "x");
  world_.put("b", "y", seconds{1});
  world_.remove("a");
  world_.advance(seconds{1});
  world_.machine().expire(world_.now(), 1);
  EXPECT_EQ(told(), "1: a=x@1 b=y@2 -a@3 ~b@4 to 4");
  EXPECT_EQ(told(), "");
}

TEST_F(KvWatchTest, AGetThatMeetsADueKeyTellsTheWatchers) {
  create(10);
  world_.put("a", "x", seconds{1});
  watch(kOne, "a", {});
  told();
  world_.advance(seconds{1});
  EXPECT_EQ(world_.get("a"), nullptr);
  EXPECT_EQ(told(), "1: ~a@2 to 2");
}

TEST_F(KvWatchTest, SeesOnlyItsPrefixAndOnlyItsBucket) {
  create(10);
  world_.create("other");
  watch(kOne, "g.a.", 0);
  ASSERT_TRUE(world_.machine()
                  .watch({.watch = kTwo,
                          .bucket = "b",
                          .filter = {.text = "g.a", .exact = true},
                          .after = {},
                          .credit = 5,
                          .session = {}})
                  .has_value());
  told();
  world_.write({.bucket = "other", .key = "g.a.1", .value = "no", .expected = {}, .ttl = {}});
  world_.put("g.b.1", "no");
  EXPECT_EQ(told(), "");
  world_.put("g.a.1", "yes");
  EXPECT_EQ(told(), "1: g.a.1=yes@2 to 2");
  world_.put("g.a", "exact");
  EXPECT_EQ(told(), "2: g.a=exact@3 to 3");
}

TEST_F(KvWatchTest, ResumesAfterARevisionWithNothingMissingAndNothingTwice) {
  create(10);
  for (const char* value : {"1", "2", "3"}) world_.put("k", value);
  watch(kOne, "", 1);
  EXPECT_EQ(told(), "1: k=2@2 k=3@3 to 3");
  world_.put("k", "4");
  EXPECT_EQ(told(), "1: k=4@4 to 4");
}

TEST_F(KvWatchTest, WithoutARevisionItSeesOnlyWhatIsToCome) {
  create(10);
  world_.put("k", "1");
  watch(kOne, "", {});
  EXPECT_EQ(told(), "1: to 1");
  world_.put("k", "2");
  EXPECT_EQ(told(), "1: k=2@2 to 2");
}

TEST_F(KvWatchTest, ARevisionOlderThanTheHistoryFallsBehindAtOnce) {
  create(3);
  for (int i = 0; i < 5; ++i) world_.put("k", "x");
  watch(kOne, "", 1);
  EXPECT_EQ(told(), "1: to 5 fell behind");
  watch(kTwo, "", 2);  // The oldest it can be: 3, 4 and 5 are there.
  EXPECT_EQ(told(), "2: k=x@3 k=x@4 k=x@5 to 5");
  EXPECT_EQ(world_.machine().totals().fell_behind_total, 1U);
  world_.put("k", "x");
  EXPECT_EQ(told(), "2: k=x@6 to 6");  // The other one has ended.
}

// From another life of the data, say a restored backup: going on would hide what differs.
TEST_F(KvWatchTest, ARevisionFromTheFutureFallsBehind) {
  create(3);
  world_.put("k", "x");
  watch(kOne, "", 2);
  EXPECT_EQ(told(), "1: to 1 fell behind");
}

TEST_F(KvWatchTest, TheHistoryIsBoundedInBytesToo) {
  create(1000, 500);
  for (int i = 0; i < 10; ++i) world_.put("k", std::string(100, 'x'));
  EXPECT_EQ(world_.machine().describe("b")->history_floor, Revision{7});
  world_.put("k", std::string(10'000, 'x'));  // Larger than all of it: kept, alone.
  EXPECT_EQ(world_.machine().describe("b")->history_floor, Revision{10});
}

TEST_F(KvWatchTest, WithoutCreditItWaitsAndGoesOnWhereItStopped) {
  create(10);
  watch(kOne, "k", 0, 1);
  world_.put("k", "1");
  world_.put("other", "x");
  world_.put("k", "2");
  world_.put("k", "3");
  EXPECT_EQ(told(), "1: k=1@1 to 2");  // It may resume after 2: 3 is the first it lacks.
  world_.machine().grant(kOne, 1);
  EXPECT_EQ(told(), "1: k=2@3 to 3");
  world_.machine().grant(kOne, 5);
  world_.put("k", "4");
  EXPECT_EQ(told(), "1: k=3@4 k=4@5 to 5");
}

// Few changes can be many bytes: what is on its way to a slow watch must be bounded in both.
TEST_F(KvWatchTest, CreditOfBytesIsSpentAsWell) {
  create(10);
  KvWatchRequest request{.watch = kOne,
                         .bucket = "b",
                         .filter = {},
                         .after = {},
                         .credit = 100,
                         .credit_bytes = 15,
                         .session = {}};
  ASSERT_TRUE(world_.machine().watch(request).has_value());
  for (int i = 0; i < 4; ++i) world_.put("k", std::string(9, static_cast<char>('0' + i)));
  // The second one uses up more than is left, and is sent whole.
  EXPECT_EQ(told(), "1: k=000000000@1 k=111111111@2 to 2");
  world_.machine().grant(kOne, 2, 5);  // Back to 0, which is not enough.
  EXPECT_EQ(told(), "");
  world_.machine().grant(kOne, 0, 1);
  EXPECT_EQ(told(), "1: k=222222222@3 to 3");
}

TEST_F(KvWatchTest, AReportSaysHowFarItIs) {
  create(10);
  watch(kOne, "k", 0, 0);
  told();
  world_.put("other", "x");
  world_.machine().report(kOne);
  EXPECT_EQ(told(), "1: to 1");
  world_.put("k", "1");
  world_.machine().report(kOne);
  world_.machine().report(kTwo);  // Nobody.
  EXPECT_EQ(told(), "1: to 1");
}

TEST_F(KvWatchTest, OneThatDoesNotKeepUpIsToldAndEndedNeverSkipped) {
  create(3);
  watch(kOne, "k", 0, 1);
  watch(kTwo, "k", 0);
  for (int i = 0; i < 5; ++i) world_.put("k", std::to_string(i));
  EXPECT_EQ(told(), "1: k=0@1 to 5 fell behind | 2: k=0@1 k=1@2 k=2@3 k=3@4 k=4@5 to 5");
  world_.machine().grant(kOne, 100);
  world_.put("k", "5");
  EXPECT_EQ(told(), "2: k=5@6 to 6");
}

// Its history may go on without it as long as nothing that it asked for is lost.
TEST_F(KvWatchTest, ChangesItDoesNotMatchNeverMakeItFallBehind) {
  create(3);
  watch(kOne, "k", 0, 0);
  for (int i = 0; i < 20; ++i) world_.put("other", "x");
  EXPECT_EQ(told(), "1: to 20");
  world_.put("k", "1");
  EXPECT_EQ(told(), "");
  world_.machine().grant(kOne, 1);
  EXPECT_EQ(told(), "1: k=1@21 to 21");
}

TEST_F(KvWatchTest, AfterARestartItResumesFromWhatTheJournalHolds) {
  create(100);
  world_.put("k", "1");
  world_.put("k", "2");
  world_.checkpoint();
  world_.put("k", "3");
  world_.restart();
  watch(kOne, "", 2);
  EXPECT_EQ(told(), "1: k=3@3 to 3");
  watch(kTwo, "", 1);  // Before the checkpoint: no longer known, and it is told.
  EXPECT_EQ(told(), "2: to 3 fell behind");
}

TEST_F(KvWatchTest, ADeletedBucketEndsItsWatches) {
  create(10);
  watch(kOne, "", 0);
  world_.put("k", "1");
  ASSERT_TRUE(world_.machine().delete_bucket("b").has_value());
  EXPECT_EQ(told(), "1: k=1@1 to 1 bucket deleted");
  world_.machine().grant(kOne, 1);
  world_.machine().unwatch(kOne);
}

// All its keys have gone: that must not pass as "nothing has changed since".
TEST_F(KvWatchTest, AResumeInTheNextBucketOfTheNameFallsBehind) {
  create(10);
  world_.put("k", "1");
  ASSERT_TRUE(world_.machine().delete_bucket("b").has_value());
  create(10);
  watch(kOne, "", 1);
  EXPECT_EQ(told(), "1: to 2 fell behind");
  watch(kTwo, "", 2);
  world_.put("k", "1");
  EXPECT_EQ(told(), "2: k=1@3 to 3");
}

TEST_F(KvWatchTest, UnwatchDropsWhatWasNotTaken) {
  create(10);
  watch(kOne, "", 0, 1);
  world_.put("k", "1");
  world_.put("k", "2");
  world_.machine().unwatch(kOne);
  world_.put("k", "3");
  EXPECT_EQ(told(), "");
  EXPECT_EQ(world_.machine().describe("b")->watches, 0U);
  world_.machine().unwatch(kOne);
}

// The snapshot that a client makes after it fell behind: list, then watch after the first page.
TEST_F(KvWatchTest, ListThenWatchMissesNothingThatChangesInBetween) {
  create(10);
  world_.put("a", "1");
  world_.put("c", "1");
  const KvPage first = world_.list({.bucket = "b", .prefix = {}, .after = {}, .entries_max = 1});
  world_.put("a", "2");
  const KvPage rest =
      world_.list({.bucket = "b", .prefix = {}, .after = first.next, .entries_max = 1});
  EXPECT_EQ(rest.entries[0]->key, "c");
  watch(kOne, "", first.revision.value);
  EXPECT_EQ(told(), "1: a=2@3 to 3");
}

// The fast kill: the others learn in milliseconds that a worker's connection broke.
TEST_F(KvWatchTest, ABrokenWatchHintsTheOthersOfItsSession) {
  create(10);
  world_.put("g.m.one", "active");
  watch_session(kOne, "g.m.one");
  watch(kTwo, "g.m.", {}, 0);
  watch(KvWatchId{3}, "elsewhere", {});
  told();
  world_.facts.clear();
  world_.machine().watch_broken(kOne, world_.now());
  EXPECT_EQ(told(), "2: lost g.m.one@1 to 1");
  EXPECT_TRUE(world_.facts.empty());
}

TEST_F(KvWatchTest, NoHintForOneThatLeftOrIsBackOrHasNoSession) {
  create(10);
  watch(KvWatchId{9}, "g.", {});
  watch_session(kOne, "g.m.one");
  told();
  world_.machine().watch_broken(kOne, world_.now());  // No such key: it never registered.
  EXPECT_EQ(told(), "");
  world_.put("g.m.one", "active");
  watch_session(kOne, "g.m.one");
  told();
  world_.machine().unwatch(kOne);
  EXPECT_EQ(told(), "");
  watch_session(kOne, "g.m.one");
  watch_session(kTwo, "g.m.one");
  told();
  world_.machine().watch_broken(kOne, world_.now());  // Its successor is here already.
  EXPECT_EQ(told(), "");
  world_.machine().watch_broken(kOne, world_.now());
}

TEST_F(KvWatchTest, RefusesWhatItCannotServe) {
  create(10);
  watch(kOne, "", {});
  KvWatchRequest request{
      .watch = kOne, .bucket = "b", .filter = {}, .after = {}, .credit = 1, .session = {}};
  EXPECT_EQ(world_.machine().watch(request).error().code, Errc::already_exists);
  request.watch = kTwo;
  request.bucket = "none";
  EXPECT_EQ(world_.machine().watch(request).error().code, Errc::bucket_not_found);
  request.bucket = "b";
  request.filter.text = std::string(limits::kKvKeyBytes + 1, 'x');
  EXPECT_EQ(world_.machine().watch(request).error().code, Errc::invalid_argument);
}

TEST(KvWatchLimits, AShardHasOnlySoManyWatches) {
  World world({.watches_max = 1});
  world.create();
  KvWatchRequest request{
      .watch = kOne, .bucket = "b", .filter = {}, .after = {}, .credit = 1, .session = {}};
  EXPECT_TRUE(world.machine().watch(request).has_value());
  request.watch = kTwo;
  EXPECT_EQ(world.machine().watch(request).error().code, Errc::resource_exhausted);
}

}  // namespace
}  // namespace baton::kv_test
