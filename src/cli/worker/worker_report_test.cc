#include "cli/worker/worker_report.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "cli/base/terminal.h"
#include "core/workers/documents.h"

namespace baton::cli {
namespace {

using partition::Assignment;
using partition::Entry;
using partition::Holding;
using partition::SessionState;
using partition::WallTime;
using partition::Why;
using partition::WorkerSession;

constexpr WallTime kNow{1'000'000};

WorkerSession session(SessionState state, WallTime renewed = kNow - WallTime{200}) {
  WorkerSession made;
  made.state = state;
  made.lease = std::chrono::seconds{5};
  made.grace = std::chrono::seconds{30};
  made.since = kNow - WallTime{90'000};
  made.renewed = renewed;
  made.host = "here:1";
  return made;
}

Entry entry(const std::string& name, const WorkerSession& document) {
  return {"g.orders.m." + name, encode(document), 7};
}

Entry assignment(const std::vector<std::string>& owners) {
  Assignment made;
  made.partitions = static_cast<std::uint32_t>(owners.size());
  for (const std::string& owner : owners) {
    Holding holding;
    holding.owner = owner;
    holding.epoch = 4;
    holding.since = kNow - WallTime{5'000};
    holding.why = Why::rebalance;
    made.holdings.push_back(holding);
  }
  return {"g.orders.a", encode(made), 9};
}

WorkerReport report(const std::vector<Entry>& entries) {
  return make_report({.group = "orders", .store = "baton://here/baton-leases", .now = kNow},
                     entries);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST(WorkerReport, ShowsWhoHoldsWhatSinceWhenAndWhy) {
  const auto made =
      report({entry("w1.a", session(SessionState::active)),
              entry("w2.b", session(SessionState::active)), assignment({"w1.a", "w1.a", "w2.b"})});
  EXPECT_TRUE(alarms(made).empty());
  const std::string text = describe(made);
  EXPECT_TRUE(has(text, "group orders at baton://here/baton-leases: 3 partitions, 2 workers"))
      << text;
  EXPECT_TRUE(has(text, "rebalance")) << text;
  EXPECT_TRUE(has(text, "5.0s")) << text;
  const Json json = to_json(made);
  EXPECT_EQ(json["assignment"][2]["owner"], "w2");
  EXPECT_EQ(json["assignment"][2]["epoch"], 4);
  EXPECT_EQ(json["workers"][0]["holds"], 2);
}

// What a person must see is in capitals, and repeated above the tables.
TEST(WorkerReport, WhatIsNotOrdinaryIsLoud) {
  WorkerSession blind = session(SessionState::active);
  blind.blind = true;
  blind.fenced = true;
  WorkerSession restarting = session(SessionState::restarting, kNow - WallTime{20'000});
  restarting.stopped = true;
  const std::string text = describe(
      report({entry("w1.a", session(SessionState::draining)), entry("w2.b", blind),
              entry("w3.c", restarting), entry("w4.d", session(SessionState::active, WallTime{0})),
              entry("w5.e", session(SessionState::standby))}));
  for (const char* part :
       {"!! w1 is DRAINING", "!! w2 is BLIND", "active BLIND FENCED", "!! w3 is RESTARTING",
        "!! w4 is SILENT", "active SILENT", "!! w5 is on STANDBY"}) {
    EXPECT_TRUE(has(text, part)) << part << "\n" << text;
  }
  EXPECT_FALSE(has(text, "w3 is SILENT")) << text;
}

TEST(WorkerReport, PartitionsWithoutALivingOwnerAreLoud) {
  const auto made =
      report({entry("w1.a", session(SessionState::evicted)), assignment({"w1.a", "", "w9.z"})});
  const std::string text = describe(made);
  EXPECT_TRUE(has(text, "!! w1 was EVICTED")) << text;
  EXPECT_TRUE(has(text, "!! 2 of 3 partitions have NO OWNER")) << text;
  EXPECT_TRUE(has(text, "NOBODY")) << text;
}

// A terminal of 80 columns: the columns that matter least are left out, and no line wraps.
TEST(WorkerReport, TheTableFitsTheTerminal) {
  const auto made =
      report({entry("worker-with-a-long-name.0123456789abcdef", session(SessionState::active)),
              assignment({"worker-with-a-long-name.0123456789abcdef"})});
  EXPECT_TRUE(has(describe(made), "SESSION"));
  const std::string narrow = describe(made, 60);
  EXPECT_FALSE(has(narrow, "SESSION")) << narrow;
  EXPECT_TRUE(has(narrow, "HOLDS")) << narrow;
  const std::size_t begin = narrow.find("WORKER");
  EXPECT_LE(table_width(narrow.substr(begin, narrow.find("\n\n", begin) - begin)), 60U) << narrow;
}

TEST(WorkerReport, FormerSessionsThatHoldNothingAreOnlyCounted) {
  const std::string text =
      describe(report({entry("w1.a", session(SessionState::gone)),
                       entry("w1.b", session(SessionState::active)), assignment({"w1.b"})}));
  EXPECT_FALSE(has(text, "GONE")) << text;
  EXPECT_TRUE(has(text, "(1 former session not shown")) << text;
}

TEST(WorkerReport, GarbageIsNamed) {
  const auto made = report({{"g.orders.a", "\x1b[2Jrubbish", 3}, {"g.orders.m.w1.a", "{}", 4}});
  EXPECT_EQ(made.unreadable.size(), 2U);
  EXPECT_TRUE(made.workers.empty());
  EXPECT_TRUE(has(describe(made), "!! g.orders.a cannot be read"));
  EXPECT_FALSE(has(describe(made), "\x1b"));
}

// --watch prints when something happens, and a heartbeat does not count.
TEST(WorkerReport, HeartbeatsAreNoNews) {
  const auto first = report({entry("w1.a", session(SessionState::active))});
  auto second = report({entry("w1.a", session(SessionState::active, kNow))});
  second.at = kNow + WallTime{1'000};
  EXPECT_EQ(shape_of(first), shape_of(second));
  EXPECT_NE(shape_of(first), shape_of(report({entry("w1.a", session(SessionState::draining))})));
}

}  // namespace
}  // namespace baton::cli
