#include "cli/broker/kv_output.h"

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace baton::cli {
namespace {

using client::KvWatchEvent;

client::KvEntry entry(std::string value) {
  return {.key = "k",
          .value = std::move(value),
          .revision = 7,
          .created_revision = 3,
          .version = 2,
          .expires_at = client::BrokerTime(std::chrono::seconds(1'700'000'000))};
}

TEST(KvOutput, AnEntryHasTheFieldsOfTheSchema) {
  EXPECT_EQ(dump(to_json(entry("v"))),
            R"({"key":"k","value":"v","revision":7,"created_revision":3,"version":2,)"
            R"("expires_at_ns":1700000000000000000})");
  EXPECT_EQ(to_json(entry("\xff"))["value_base64"], "/w==");
}

TEST(KvOutput, ARefusalShowsWhatIsThere) {
  client::KvOutcome outcome;
  outcome.revision = 9;
  outcome.error = Error{.code = Errc::revision_mismatch, .text = "the key is at revision 7"};
  outcome.current = entry("v");
  const Json put = to_json(outcome, false);
  EXPECT_EQ(put["error"]["name"], "revision_mismatch");
  EXPECT_EQ(put["current"]["revision"], 7);
  EXPECT_FALSE(put.contains("deleted"));
  EXPECT_EQ(to_json(outcome, true)["deleted"], false);
  outcome = {.done = true, .revision = 10};
  EXPECT_EQ(dump(to_json(outcome, true)), R"({"revision":10,"deleted":true})");
  outcome.unchanged = true;
  EXPECT_EQ(to_json(outcome, true)["deleted"], false);
}

TEST(KvOutput, EventsOfAWatch) {
  KvWatchEvent event;
  event.entry = entry("v");
  event.in_snapshot = true;
  EXPECT_EQ(to_json(event)["event"], "put");
  EXPECT_EQ(to_json(event)["in_snapshot"], true);
  EXPECT_EQ(describe(event), "k@7  v  until 2023-11-14T22:13:20.000Z");
  event.kind = KvWatchEvent::Kind::removed;
  event.in_snapshot = false;
  EXPECT_FALSE(to_json(event).contains("value"));
  EXPECT_EQ(describe(event), "k@7  removed");
  event.kind = KvWatchEvent::Kind::session_lost;
  EXPECT_EQ(dump(to_json(event)), R"({"event":"session_lost","key":"k","revision":7})");
  event.kind = KvWatchEvent::Kind::snapshot_end;
  event.revision = 12;
  EXPECT_EQ(dump(to_json(event)), R"({"event":"snapshot_end","revision":12})");
}

// A value may hold any bytes: it must not move the reader's cursor, nor fill the screen.
TEST(KvOutput, ListsShowTheBeginningOfValues) {
  const std::string text = list_text(std::vector{entry("\x1b[2J"), entry(std::string(500, 'x')),
                                                 entry(std::string("\xff\xfe", 2))});
  EXPECT_EQ(text.find('\x1b'), std::string::npos);
  EXPECT_NE(text.find("xxx..."), std::string::npos);
  EXPECT_NE(text.find("(2 bytes)"), std::string::npos);
  EXPECT_EQ(text.find(std::string(100, 'x')), std::string::npos);
  EXPECT_EQ(list_text(std::vector<client::KvEntry>{}), "no keys");
  EXPECT_EQ(list_text(std::vector<client::BucketInfo>{}), "no buckets");
}

TEST(KvOutput, ABucketIsDescribed) {
  client::BucketInfo bucket;
  bucket.name = "leases";
  bucket.id = 3;
  bucket.settings = {.value_bytes_max = 1024,
                     .keys_max = 1000,
                     .history_changes_max = 10,
                     .history_bytes_max = 2048};
  bucket.revision = 12;
  bucket.keys = 4;
  const std::string text = describe(bucket);
  EXPECT_NE(text.find("leases  (id 3)"), std::string::npos);
  EXPECT_NE(text.find("4 of 1 000"), std::string::npos);
  EXPECT_EQ(to_json(bucket)["settings"]["history_changes_max"], 10);
}

// For `kv get` on a terminal.
TEST(KvText, ATerminalGetsNothingThatMovesItsCursor) {
  EXPECT_EQ(terminal_text("two\nlines\tü"), "two\nlines\tü");
  EXPECT_EQ(terminal_text("\x1b[2Jgone"), "\\x1b[2Jgone");
  EXPECT_EQ(terminal_text(std::string("\xff\x00", 2)),
            "(2 bytes that are not text; --raw writes them as they are)");
}

}  // namespace
}  // namespace baton::cli
