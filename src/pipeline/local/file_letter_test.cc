#include "pipeline/local/file_letter.h"

#include <array>

#include <gtest/gtest.h>

namespace baton::pipeline {
namespace {

StoredLetter there_and_back(const Record& record) {
  const std::string line = to_json_line(DeadLetter{.record = &record,
                                                   .code = "json",
                                                   .text = "no \xff UTF-8",
                                                   .stage = "decode",
                                                   .source = "kafka:orders",
                                                   .pipeline = "orders",
                                                   .redrives = 2});
  EXPECT_EQ(line.find('\n'), line.size() - 1);
  auto letter = from_json_line(line);
  EXPECT_TRUE(letter.has_value()) << line;
  return letter.value_or(StoredLetter{});
}

Record odd_record() {
  Record record;
  record.partition = 3;
  record.offset = 77;
  record.key = std::string("k\0y", 3);
  record.value = "v\n\xff";
  return record;
}

TEST(FileLetter, ComesBackByteForByte) {
  Record record = odd_record();
  record.headers = {{"baton-like", "x"}, {"trace", "1"}};
  StoredLetter letter = there_and_back(record);
  EXPECT_EQ(letter.id, "orders/kafka:orders/3/77");
  EXPECT_EQ(letter.record.key, record.key);
  EXPECT_EQ(letter.record.value, record.value);
  EXPECT_EQ(letter.record.headers, record.headers);
  EXPECT_EQ(letter.record.partition, 3U);
  EXPECT_EQ(letter.record.offset, 77);
  EXPECT_EQ(letter.what("baton-stage"), "decode");
  EXPECT_EQ(letter.redrives(), 2U);
}

// Headers that JSON cannot express are kept, too, or the record that goes back differs from the
// original.
TEST(FileLetter, HeadersThatAreNoObjectComeBackToo) {
  Record record = odd_record();
  for (const auto& odd : std::array<std::vector<std::pair<std::string, std::string>>, 4>{
           {{{"same", "1"}, {"same", "2"}},
            {{"bytes", "\xff"}},
            {{std::string("\0\xc0", 2), ""}},
            {{"baton-redrives", "1"}, {"baton-class", "of a former life"}}}}) {
    record.headers = odd;
    const StoredLetter letter = there_and_back(record);
    EXPECT_EQ(letter.record.headers, odd);
    EXPECT_EQ(letter.redrives(), 2U);
  }
}

TEST(FileLetter, AnythingElseIsRefused) {
  const std::string good = R"({"id":"a","headers":{"baton-pipeline":"p"},"key":"","value":"Zg=="})";
  EXPECT_TRUE(from_json_line(good).has_value());
  for (
      const std::string_view line :
      {"", "x", "[]", "{}", "\x18\"id\":\"a\"}",
       R"({"headers":{"baton-pipeline":"p"},"key":"","value":""})",
       R"({"id":"a","headers":{"baton-pipeline":"p"},"key":"","value":"Zg="})",
       R"({"id":"a","headers":{"baton-pipeline":"p"},"key":1,"value":""})",
       R"({"id":"a","headers":{"baton-pipeline":1},"key":"","value":""})",
       R"({"id":"a","headers":{},"key":"","value":""})",
       R"({"id":"a","headers":{"baton-pipeline":"p"},"key":"","value":"","record_headers":1})",
       R"({"id":"a","headers":{"baton-pipeline":"p"},"key":"","value":"","record_headers":[["Zg=="]]})"}) {
    const auto letter = from_json_line(line);
    ASSERT_FALSE(letter.has_value()) << line;
    EXPECT_EQ(letter.error().code, Errc::malformed);
  }
}

}  // namespace
}  // namespace baton::pipeline
