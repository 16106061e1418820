#include "core/workers/documents.h"

#include <string>
#include <utility>

#include <gtest/gtest.h>

#include "core/workers/names.h"
#include "core/workers/settings.h"

namespace baton::partition {
namespace {

using std::chrono::milliseconds;

TEST(Documents, ASessionComesBackAsItWas) {
  const WorkerSession session{.state = SessionState::restarting,
                              .beat = 17,
                              .weight = 3,
                              .static_id = true,
                              .fenced = true,
                              .blind = true,
                              .stopped = true,
                              .lease = milliseconds(5000),
                              .grace = milliseconds(30'000),
                              .since = milliseconds(1),
                              .renewed = milliseconds(2),
                              .host = "host:7"};
  EXPECT_EQ(decode_session(encode(session)).value(), session);
}

TEST(Documents, AnAssignmentComesBackAsItWas) {
  const Assignment assignment{.partitions = 3,
                              .first = 0,
                              .holdings = {{"w1.a", 4, "w2.b", milliseconds(9), Why::rebalance},
                                           {"", 0, "", milliseconds(0), Why::none},
                                           {"w2.b", 1, "", milliseconds(8), Why::evicted}}};
  EXPECT_EQ(decode_assignment(encode(assignment)).value(), assignment);
}

TEST(Documents, AnErrorSaysWhatIsWrong) {
  const auto says = [](const auto& result, const std::string& text) {
    return !result.has_value() && result.error().text.contains(text);
  };
  EXPECT_TRUE(says(decode_session("no"), "is no JSON object"));
  EXPECT_TRUE(says(decode_session("[]"), "is no JSON object"));
  EXPECT_TRUE(says(decode_session("{}"), "no number \"version\""));
  EXPECT_TRUE(says(decode_session(R"({"version":9})"), "has version 9"));
  EXPECT_TRUE(says(decode_session(R"({"version":1,"state":"odd"})"), "no known \"state\""));
  WorkerSession heavy;
  heavy.lease = milliseconds(1);
  heavy.weight = kWeightMax + 1;
  EXPECT_TRUE(says(decode_session(encode(heavy)), "\"weight\" must be 1 to 1000"));
  WorkerSession endless;
  endless.lease = std::chrono::hours(24) + milliseconds(1);
  EXPECT_TRUE(says(decode_session(encode(endless)), "\"lease_ms\" must be 1 to 86400000"));
  endless.grace = std::exchange(endless.lease, milliseconds(1));
  EXPECT_TRUE(says(decode_session(encode(endless)), "\"grace_ms\" must be 0 to 86400000"));
  EXPECT_TRUE(says(decode_assignment(R"({"version":1,"partitions":0,"first":0,"sessions":[]})"),
                   "\"partitions\" must be 1 to 65536"));
  EXPECT_TRUE(
      says(decode_assignment(
               R"({"version":1,"partitions":1,"first":0,"sessions":[],"holdings":[[0,1,-1,0,0]]})"),
           "session"));
  EXPECT_TRUE(says(
      decode_assignment(
          R"({"version":1,"partitions":2,"first":0,"sessions":[],"holdings":[[-1,1,-1,0,0]]})"),
      "does not hold the partitions"));
  EXPECT_TRUE(says(decode_session(std::string((1U << 20U) + 1, ' ')), "the limit is"));
}

TEST(Names, KeysAndWhatTheyAreAbout) {
  EXPECT_EQ(session_key("orders", "w1.5f"), "g.orders.m.w1.5f");
  EXPECT_EQ(session_of_key("orders", "g.orders.m.w1.5f"), "w1.5f");
  EXPECT_EQ(session_of_key("orders", "g.orders.m.w1"), std::nullopt);
  EXPECT_EQ(session_of_key("orders", "g.orders.m.w1.a.b"), std::nullopt);
  EXPECT_EQ(session_of_key("orders", "g.other.m.w1.a"), std::nullopt);
  EXPECT_EQ(assignment_key("orders", 0), "g.orders.a");
  EXPECT_EQ(chunk_of_key("orders", "g.orders.a"), 0U);
  EXPECT_EQ(chunk_of_key("orders", "g.orders.a.3"), 3U);
  EXPECT_EQ(chunk_of_key("orders", "g.orders.a.03"), std::nullopt);
  EXPECT_EQ(chunk_of_key("orders", "g.orders.a.64"), std::nullopt);
  EXPECT_EQ(chunk_of_key("orders", "g.orders.a.x"), std::nullopt);
  EXPECT_EQ(worker_of("w1.5f"), "w1");
}

TEST(Names, AreChecked) {
  EXPECT_TRUE(check_name("group", "Orders_1-a").has_value());
  for (const std::string& bad : {std::string(), std::string("a.b"), std::string("a b"),
                                 std::string("\xc3\xa4"), std::string(65, 'a')}) {
    const Status status = check_name("group", bad);
    ASSERT_FALSE(status.has_value()) << bad;
    EXPECT_TRUE(status.error().text.starts_with("group ")) << status.error().text;
  }
}

TEST(Settings, AreChecked) {
  Settings good;
  good.group = "orders";
  good.worker = "w1";
  good.partitions = 4;
  EXPECT_TRUE(check(good).has_value());

  const auto refuses = [&](auto change, const std::string& text) {
    Settings bad = good;
    change(bad);
    const Status status = check(bad);
    return !status.has_value() && status.error().text.contains(text);
  };
  EXPECT_TRUE(refuses([](Settings& s) { s.partitions = 0; }, "partitions 0 must be 1 to 65536"));
  EXPECT_TRUE(refuses([](Settings& s) { s.partitions = 65'537; }, "must be 1 to 65536"));
  EXPECT_TRUE(refuses([](Settings& s) { s.weight = 0; }, "weight 0 must be 1 to 1000"));
  EXPECT_TRUE(refuses([](Settings& s) { s.group = "a.b"; }, "group"));
  EXPECT_TRUE(refuses([](Settings& s) { s.worker = ""; }, "id"));
  EXPECT_TRUE(refuses([](Settings& s) { s.timing.lease = milliseconds(299); }, "lease-ttl"));
  EXPECT_TRUE(refuses([](Settings& s) { s.timing.heartbeat = s.timing.lease / 2; },
                      "at most two fifths of the lease-ttl 5s"));
  EXPECT_TRUE(refuses([](Settings& s) { s.timing.resync = Duration(0); }, "resync"));
  EXPECT_TRUE(refuses([](Settings& s) { s.timing.drain = Duration(-1); }, "drain"));
}

TEST(Settings, ProfilesAreWithinTheLimits) {
  for (const char* name : {"default", "reference", "fast"}) {
    Settings settings;
    settings.group = settings.worker = "a";
    settings.partitions = 1;
    settings.timing = timing_of(parse_profile(name).value(), false);
    EXPECT_TRUE(check(settings).has_value()) << name;
  }
  EXPECT_EQ(timing_of(Profile::standard, true).lease, std::chrono::seconds(10));
  EXPECT_EQ(timing_of(Profile::reference, true).heartbeat, std::chrono::seconds(2));
  EXPECT_FALSE(parse_profile("slow").has_value());
}

}  // namespace
}  // namespace baton::partition
