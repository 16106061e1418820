#include "core/workers/plan.h"

#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace baton::partition {
namespace {

/// A group as a test describes it.
class Group {
 public:
  explicit Group(std::uint32_t partitions) : partitions_(partitions), view_("g") {}

  Group& session(const SessionId& id, SessionState state, bool static_id = false,
                 bool stopped = false, std::uint32_t weight = 1) {
    WorkerSession session;
    session.state = state;
    session.static_id = static_id;
    session.stopped = stopped;
    session.weight = weight;
    session.lease = std::chrono::seconds(5);
    put(session_key("g", id), encode(session));
    return *this;
  }
  Group& active(const SessionId& id) { return session(id, SessionState::active); }
  /// "owner" or "owner>next" for each partition; "" for nobody. Epochs are 1.
  Group& holdings(const std::vector<std::string>& texts) {
    Assignment assignment{.partitions = partitions_, .first = 0, .holdings = {}};
    for (const std::string& text : texts) {
      const std::size_t arrow = text.find('>');
      Holding holding;
      holding.owner = text.substr(0, arrow);
      if (arrow != std::string::npos) holding.next = text.substr(arrow + 1);
      holding.epoch = 1;
      assignment.holdings.push_back(holding);
    }
    put(assignment_key("g", 0), encode(assignment));
    return *this;
  }

  [[nodiscard]] Plan plan(const SessionId& leaving = {}) const {
    return make_plan(view_, {.partitions = partitions_, .now = WallTime(7), .leaving = leaving});
  }
  /// The same texts; empty: nothing changes.
  [[nodiscard]] std::vector<std::string> planned(const SessionId& leaving = {}) const {
    std::vector<std::string> result;
    const Plan plan = this->plan(leaving);
    if (plan.empty()) return result;
    for (const Holding& holding : plan.at(0).holdings) {
      result.push_back(holding.owner + (holding.next.empty() ? "" : ">" + holding.next));
    }
    return result;
  }
  GroupView& view() { return view_; }

 private:
  void put(const std::string& key, const std::string& value) {
    EXPECT_TRUE(view_.put({key, value, ++revision_}, Instant{1}).has_value());
  }

  std::uint32_t partitions_;
  GroupView view_;
  Revision revision_ = 0;
};

using Texts = std::vector<std::string>;

// As when a backup of the store was restored while workers run.
TEST(Plan, WhatAStoreThatWentBackHasForgottenIsWrittenAgain) {
  Group group(2);
  group.active("a.1").active("b.1").holdings({"a.1", "a.1"});
  Assignment newer = group.view().chunks().at(0).assignment;
  newer.holdings[1].owner = "b.1";
  newer.holdings[1].epoch = 2;
  ASSERT_TRUE(group.view().put({assignment_key("g", 0), encode(newer), 100}, Instant{1}));
  EXPECT_EQ(group.planned(), Texts{});

  group.view().start_over();
  group.active("a.1").active("b.1").holdings({"a.1", "a.1"});

  EXPECT_EQ(group.view().holding(1)->owner, "b.1");
  EXPECT_EQ(group.plan().at(0).holdings, newer.holdings);
}

TEST(Plan, TheFirstOneTakesEverything) {
  Group group(3);
  group.active("a.1");
  EXPECT_EQ(group.planned(), (Texts{"a.1", "a.1", "a.1"}));
  const Holding holding = group.plan().at(0).holdings.at(0);
  EXPECT_EQ(holding.epoch, 1U);
  EXPECT_EQ(holding.why, Why::first);
  EXPECT_EQ(holding.since, WallTime(7));
}

TEST(Plan, OneThatJoinsIsNextForItsShare) {
  Group group(4);
  group.active("a.1").active("b.1").holdings({"a.1", "a.1", "a.1", "a.1"});
  EXPECT_EQ(group.planned(), (Texts{"a.1", "a.1", "a.1>b.1", "a.1>b.1"}));
  EXPECT_EQ(group.plan().at(0).holdings.at(3).epoch, 1U);  // The owner has not changed yet.
}

TEST(Plan, WhatIsUnderWayIsNotPlannedAgain) {
  Group group(4);
  group.active("a.1").active("b.1").holdings({"a.1", "a.1", "a.1>b.1", "a.1>b.1"});
  EXPECT_EQ(group.planned(), Texts{});
}

TEST(Plan, NothingGoesToOneThatDrains) {
  Group group(4);
  group.active("a.1").session("b.1", SessionState::draining);
  group.holdings({"a.1", "a.1", "a.1>b.1", "b.1"});
  EXPECT_EQ(group.planned(), (Texts{"a.1", "a.1", "a.1", "b.1"}));
}

TEST(Plan, TheDeadLoseEverythingAtOnce) {
  Group group(4);
  group.active("a.1").session("b.1", SessionState::evicted);
  group.holdings({"a.1", "a.1", "b.1", "b.1"});
  EXPECT_EQ(group.planned(), (Texts{"a.1", "a.1", "a.1", "a.1"}));
  const Holding holding = group.plan().at(0).holdings.at(2);
  EXPECT_EQ(holding.epoch, 2U);
  EXPECT_EQ(holding.why, Why::evicted);
}

TEST(Plan, AnOwnerNobodyHasHeardOfIsLeftAlone) {
  Group group(2);
  group.active("a.1").holdings({"a.1", "x.1"});
  EXPECT_EQ(group.planned(), Texts{});
  EXPECT_EQ(group.view().unknown_owners(), (std::vector<SessionId>{"x.1"}));
  group.session("x.1", SessionState::evicted);
  EXPECT_EQ(group.planned(), (Texts{"a.1", "a.1"}));
}

TEST(Plan, OneThatLeavesGivesToThoseWhoStay) {
  Group group(4);
  group.session("a.1", SessionState::draining).active("b.1").active("c.1");
  group.holdings({"a.1", "a.1", "b.1", "c.1"});
  EXPECT_EQ(group.planned("a.1"), (Texts{"b.1", "c.1", "b.1", "c.1"}));
  EXPECT_EQ(group.plan("a.1").at(0).holdings.at(0).why, Why::leave);
}

TEST(Plan, TheLastOneLeavesThemToNobody) {
  Group group(2);
  group.session("a.1", SessionState::draining).holdings({"a.1", "a.1"});
  EXPECT_EQ(group.planned("a.1"), (Texts{"", ""}));
  EXPECT_EQ(group.plan("a.1").at(0).holdings.at(0).epoch, 2U);
}

TEST(Plan, OneThatRestartsKeepsItsPartitions) {
  Group group(4);
  group.session("a.1", SessionState::restarting, true, true).active("b.1");
  group.holdings({"a.1", "a.1", "b.1", "b.1"});
  EXPECT_EQ(group.planned(), Texts{});
  // Its next life exists, but the former one is not known to be over: still nothing moves.
  group.session("a.2", SessionState::active, true);
  EXPECT_EQ(group.planned(), Texts{});
  group.session("a.1", SessionState::gone, true, true);
  EXPECT_EQ(group.planned(), (Texts{"a.2", "a.2", "b.1", "b.1"}));
  EXPECT_EQ(group.plan().at(0).holdings.at(0).why, Why::restart);
}

TEST(Plan, TheHeirOnStandbyIsWaitedFor) {
  Group group(2);
  group.session("a.1", SessionState::evicted, true).active("b.1");
  group.session("a.2", SessionState::standby, true);
  group.holdings({"a.1", "b.1"});
  EXPECT_EQ(group.planned(), Texts{});
}

TEST(Plan, WeightsCount) {
  Group group(4);
  group.active("a.1").session("b.1", SessionState::active, false, false, 3);
  EXPECT_EQ(group.planned(), (Texts{"a.1", "b.1", "b.1", "b.1"}));
}

TEST(Plan, MoreWorkersThanPartitions) {
  Group group(1);
  group.active("a.1").active("b.1").holdings({"b.1"});
  EXPECT_EQ(group.planned(), Texts{});
}

TEST(Plan, ARemovedAssignmentIsWrittenAgainAndOnlyTheDeadLoseTheirs) {
  Group group(2);
  group.active("a.1").session("b.1", SessionState::evicted).holdings({"a.1", "b.1"});
  group.view().removed(assignment_key("g", 0), 99);
  EXPECT_EQ(group.planned(), (Texts{"a.1", "a.1"}));
  EXPECT_EQ(group.plan().at(0).holdings.at(0).epoch, 1U);
  EXPECT_EQ(group.plan().at(0).holdings.at(1).epoch, 2U);
}

TEST(Plan, ManyPartitionsAreCutIntoChunks) {
  Group group(kChunkPartitions + 10);
  group.active("a.1").active("b.1");
  const Plan plan = group.plan();
  ASSERT_EQ(plan.size(), 2U);
  EXPECT_EQ(plan.at(1).first, kChunkPartitions);
  EXPECT_EQ(plan.at(1).holdings.size(), 10U);
  std::size_t of_a = 0;
  for (const auto& [number, chunk] : plan) {
    of_a += static_cast<std::size_t>(std::ranges::count(chunk.holdings, "a.1", &Holding::owner));
  }
  EXPECT_EQ(of_a, (kChunkPartitions + 10) / 2);
}

TEST(View, TheHighestRevisionCounts) {
  GroupView view("g");
  WorkerSession session;
  session.lease = std::chrono::seconds(5);
  const auto write = [&](std::uint64_t beat, Revision revision) {
    session.beat = beat;
    return view.put({session_key("g", "a.1"), encode(session), revision},
                    Instant{std::int64_t(beat)});
  };
  ASSERT_TRUE(write(2, 20).has_value());
  ASSERT_TRUE(write(1, 10).has_value());
  EXPECT_EQ(view.find("a.1")->session.beat, 2U);
  EXPECT_EQ(view.find("a.1")->seen_at, Instant{2});
  view.removed(session_key("g", "a.1"), 15);  // An event that comes late.
  EXPECT_NE(view.find("a.1"), nullptr);
  view.removed(session_key("g", "a.1"), 25);
  EXPECT_EQ(view.find("a.1"), nullptr);
  ASSERT_TRUE(write(3, 22).has_value());  // A repetition of an entry that is gone.
  EXPECT_EQ(view.find("a.1"), nullptr);
}

TEST(View, AListForgetsOnlyWhatItCouldHaveShown) {
  GroupView view("g");
  WorkerSession session;
  session.lease = std::chrono::seconds(5);
  ASSERT_TRUE(view.put({session_key("g", "old.1"), encode(session), 1}, Instant{1}).has_value());
  ASSERT_TRUE(view.put({session_key("g", "new.1"), encode(session), 2}, Instant{9}).has_value());
  view.keep_only({}, Instant{5});
  EXPECT_EQ(view.find("old.1"), nullptr);
  EXPECT_NE(view.find("new.1"), nullptr);
  EXPECT_FALSE(view.is_dead("old.1"));  // Missing is not dead.
}

TEST(View, GarbageLeavesWhatWasKnown) {
  Group group(2);
  group.active("a.1").holdings({"a.1", "a.1"});
  const Status status = group.view().put({assignment_key("g", 0), "garbage", 50}, Instant{2});
  EXPECT_FALSE(status.has_value());
  EXPECT_EQ(group.view().holding(1)->owner, "a.1");
  EXPECT_FALSE(group.view().put({"g.g.zzz", "", 51}, Instant{2}).has_value());
}

}  // namespace
}  // namespace baton::partition
