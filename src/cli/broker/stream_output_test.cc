#include "cli/broker/stream_output.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace baton::cli {
namespace {

client::Record record() {
  client::Record made{.partition = PartitionNumber{1}, .offset = Offset{42}, .value = "hello"};
  made.timestamp = client::RecordTime(std::chrono::milliseconds{1'500});
  return made;
}

client::GroupInfo group() {
  client::GroupInfo made{.stream = "events", .partition = PartitionNumber{2}, .group = "billing"};
  made.single_active = true;
  made.generation = 7;
  made.offset = Offset{1'000};
  made.lag = 5;
  made.reason = "consumer left";
  made.last_hand_over = std::chrono::microseconds{1'500};
  made.members.push_back({.connection = 3,
                          .subscription = 1,
                          .owner = "a",
                          .connectivity = client::Connectivity::connected,
                          .activity = client::Activity::active,
                          .lease_left = std::chrono::milliseconds{4'500}});
  made.members.push_back({.connection = 4,
                          .subscription = 1,
                          .owner = "",
                          .connectivity = client::Connectivity::disconnected,
                          .activity = client::Activity::waiting});
  return made;
}

TEST(RecordJson, HasTheNamesOfTheSchema) {
  EXPECT_EQ(dump(to_json(record())),
            R"({"partition":1,"offset":42,"timestamp_ms":1500,"value":"hello","headers":[]})");
}

// An absent key differs from an empty one; bytes must arrive whole.
TEST(RecordJson, TellsAbsentFromEmptyAndBytesFromText) {
  client::Record made = record();
  made.key = "";
  made.value = "\xff";
  made.headers = {{.name = "h", .value = std::nullopt}};
  EXPECT_EQ(dump(to_json(made)),
            R"({"partition":1,"offset":42,"timestamp_ms":1500,"key":"","value_base64":"/w==",)"
            R"("headers":[{"name":"h"}]})");
}

TEST(RecordText, ShowsPlaceTimeKeyAndValue) {
  client::Record made = record();
  made.key = "k\n";
  made.headers = {{.name = "type", .value = "greeting"}};
  EXPECT_EQ(describe(made),
            "1@42  1970-01-01T00:00:01.500Z  key k\\x0a  5 bytes\n  type: greeting\n    hello");
  made.value.reset();
  EXPECT_TRUE(describe(made).ends_with("no value"));
}

TEST(StreamText, ShowsPartitionsGroupsAndDamage) {
  client::StreamInfo stream{.name = "events", .id = 3, .partitions = 1};
  stream.settings = {.retention = std::chrono::hours{24 * 7},
                     .retention_bytes = 0,
                     .segment_bytes = 1 << 20,
                     .fsync = "never",
                     .batch_bytes_max = 1 << 20};
  stream.details.push_back({.partition = PartitionNumber{0},
                            .first_offset = Offset{10},
                            .next_offset = Offset{1'500},
                            .bytes = 2'048,
                            .segments = 2,
                            .read_only = "bad CRC",
                            .damaged = "7.log at position 9",
                            .groups = {{.group = "billing", .offset = std::nullopt, .lag = 9}}});
  EXPECT_EQ(describe(stream),
            "events  (id 3)\n"
            "  partitions      1\n"
            "  retention       7d\n"
            "  segment size    1 MiB\n"
            "  fsync           never\n"
            "  batch max       1 MiB\n"
            "  created         -\n"
            "PARTITION  FIRST   NEXT  BYTES  SEGMENTS\n"
            "        0     10  1 500  2 KiB         2\n"
            "PARTITION  GROUP    OFFSET  LAG\n"
            "        0  billing  none      9\n"
            "partition 0 is read-only: bad CRC\n"
            "partition 0 has damaged records: 7.log at position 9");
  EXPECT_EQ(to_json(stream)["settings"]["retention_ms"], 604'800'000);
  EXPECT_FALSE(to_json(stream)["details"][0]["groups"][0].contains("offset"));
}

TEST(GroupText, ShowsWhoIsActiveWhoWaitsAndWhy) {
  EXPECT_EQ(describe(std::vector{group()}),
            "events / billing  single active\n"
            "PARTITION  ACTIVE  SINCE  EPOCH  OFFSET  LAG  HAND-OVER  WHY\n"
            "        2  a       -          7   1 000    5     1.5 ms  consumer left\n"
            "PARTITION  OWNER  STATUS                LEASE  CONNECTION  TICKET  SINCE\n"
            "        2  a      active                4.5 s         3.1       0  -\n"
            "        2  4.1    disconnected waiting  none          4.1       0  -");
  EXPECT_EQ(list_text(std::vector{group()}),
            "STREAM  GROUP    PARTITION  ACTIVE  WAITING  OFFSET  LAG\n"
            "events  billing          2  a             1   1 000    5");
}

// As in `worker status`, what must be noticed stands above the table.
TEST(GroupText, AGroupThatLagsWithoutAConsumerIsLoud) {
  client::GroupInfo idle = group();
  idle.members.clear();
  idle.lag = 20'000;
  const std::string alarm = "!! events / billing has no consumer and is 20 000 records behind\n";
  EXPECT_TRUE(list_text(std::vector{idle}).starts_with(alarm)) << list_text(std::vector{idle});
  EXPECT_NE(describe(std::vector{idle}).find(alarm), std::string::npos);
  idle.single_active = false;
  EXPECT_TRUE(list_text(std::vector{idle}).starts_with(alarm));
  idle.lag = 0;
  EXPECT_EQ(list_text(std::vector{idle}).find("!!"), std::string::npos);
}

TEST(GroupJson, HasTheNamesOfTheSchema) {
  const Json json = to_json(group());
  EXPECT_EQ(json["last_hand_over_us"], 1'500);
  EXPECT_EQ(json["members"][0]["activity"], "ACTIVITY_ACTIVE");
  EXPECT_EQ(json["members"][1]["connectivity"], "CONNECTIVITY_DISCONNECTED");
}

}  // namespace
}  // namespace baton::cli
