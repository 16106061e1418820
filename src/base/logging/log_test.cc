#include "base/logging/log.h"

#include <string>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace baton {
namespace {

using Json = nlohmann::json;

// Server, worker and pipeline write the same kind of line.
TEST(LogLine, BeginsWithTheTimeAndTheLevel) {
  const std::chrono::system_clock::time_point at{std::chrono::milliseconds{1'769'860'800'140}};
  EXPECT_EQ(log_line(at, "info", "event=ready", false),
            "2026-01-31T12:00:00.140Z info event=ready");
  EXPECT_EQ(log_line(at, "info", "event=ready", true),
            R"({"time":"2026-01-31T12:00:00.140Z","level":"info","event":"ready"})");
}

TEST(LogLine, FieldsBecomeMembers) {
  EXPECT_EQ(json_log_line("T", "info", "event=ready data=/d shards=2 listen=127.0.0.1:7470"),
            R"({"time":"T","level":"info","event":"ready","data":"/d","shards":2,)"
            R"("listen":"127.0.0.1:7470"})");
}

TEST(LogLine, WhatIsNoFieldIsText) {
  EXPECT_EQ(json_log_line("T", "error", "cannot write: No space = bad"),
            R"({"time":"T","level":"error","text":"cannot write: No space = bad"})");
}

TEST(LogLine, QuotedValuesComeBack) {
  for (const char* value : {"plain", "two words", "a\"b\\c", "", "12", "k=v"}) {
    const std::string line = json_log_line("T", "info", "x name=" + log_value(value) + " y=1");
    EXPECT_EQ(Json::parse(line)["y"], 1) << line;
    const Json name = Json::parse(line)["name"];
    EXPECT_EQ(name.is_string() ? name.get<std::string>() : name.dump(), value);
  }
}

// One event is one line, even if a path holds a newline.
TEST(LogLine, ValuesStayOnTheirLine) { EXPECT_EQ(log_value("a\nb").find('\n'), std::string::npos); }

TEST(LogLine, AFieldDoesNotReplaceTheLinesOwn) {
  EXPECT_EQ(json_log_line("T", "info", "event=x level=evil"),
            R"({"time":"T","level":"info","event":"x"})");
}

}  // namespace
}  // namespace baton
