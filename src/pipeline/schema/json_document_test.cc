#include "pipeline/schema/json_document.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pipeline/schema/json_text.h"
#include "pipeline/schema/json_values.h"

namespace baton::schema {
namespace {

std::string error_of(std::string_view text) {
  JsonDocument document;
  const Status status = document.read(text);
  return status.has_value() ? "good" : status.error().text;
}

TEST(JsonDocument, EveryKindOfValueIsANode) {
  JsonDocument document;
  const std::string text = R"( {"a": [1, -2.5e3, "x\ty", true, false, null], "b": {}} )";
  ASSERT_TRUE(document.read(text).has_value());

  EXPECT_EQ(document.root().kind, JsonKind::object);
  EXPECT_EQ(document.root().count, 2U);
  const JsonIndex array = document.member(0, "a");
  EXPECT_EQ(document.node(array).count, 6U);
  EXPECT_EQ(document.node(array).text(), R"([1, -2.5e3, "x\ty", true, false, null])");
  EXPECT_EQ(document.node(document.child(array, "0")).small(), 1);
  EXPECT_FALSE(document.node(document.child(array, "1")).is_small());
  EXPECT_EQ(document.node(document.child(array, "1")).text(), "-2.5e3");
  EXPECT_EQ(document.node(document.child(array, "2")).text(), "x\ty");
  EXPECT_EQ(document.source(document.child(array, "2")), R"("x\ty")");
  EXPECT_TRUE(document.node(document.child(array, "3")).flag);
  EXPECT_FALSE(document.node(document.child(array, "4")).flag);
  EXPECT_EQ(document.node(document.child(array, "5")).kind, JsonKind::null);
  EXPECT_EQ(document.child(array, "6"), 0U);
  EXPECT_EQ(document.child(array, "01"), 0U);
  EXPECT_EQ(document.node(document.member(0, "b")).count, 0U);
  EXPECT_EQ(document.member(0, "c"), 0U);
}

TEST(JsonDocument, APointerLeadsToEachValue) {
  JsonDocument document;
  ASSERT_TRUE(document.read(R"({"a/b": [{"~": 1}, [2, 3]], "": 4})").has_value());
  EXPECT_EQ(document.pointer(0), "");
  const JsonIndex array = document.member(0, "a/b");
  EXPECT_EQ(document.pointer(array), "/a~1b");
  EXPECT_EQ(document.pointer(document.member(document.child(array, "0"), "~")), "/a~1b/0/~0");
  EXPECT_EQ(document.pointer(document.child(document.child(array, "1"), "1")), "/a~1b/1/1");
  EXPECT_EQ(document.pointer(document.member(0, "")), "/");
  // A key means its value.
  EXPECT_EQ(document.pointer(array - 1), "/a~1b");
}

TEST(JsonDocument, WhatIsNotJsonIsRefusedWithThePlace) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"", "the document is empty"},
      {" \n", "the document is empty"},
      {"{", "at the end: a key in double quotes is expected"},
      {"[1", "at the end: a comma or ] is expected"},
      {"[1,", "at the end: a value is expected"},
      {"[1,]", "at byte 3: a value is expected"},
      {"{\"a\":1,}", "at byte 7: a key in double quotes is expected"},
      {"{\"a\" 1}", "at byte 5: a colon is expected"},
      {"{\"a\":}", "at byte 5: a value is expected"},
      {"{\"a\":1 \"b\":2}", "at byte 7: a comma or } is expected"},
      {"{a:1}", "at byte 1: a key in double quotes is expected"},
      {"{'a':1}", "at byte 1: a key in double quotes is expected"},
      {"{1:1}", "at byte 1: a key in double quotes is expected"},
      {"[1}", "at byte 2: a comma or ] is expected"},
      {"1 2", "at byte 2: the document should end here"},
      {"{}{}", "at byte 2: the document should end here"},
      {"tru", "at byte 0: a value is expected"},
      {"truee", "at byte 0: a value is expected"},
      {"nul", "at byte 0: a value is expected"},
      {"[fals e]", "at byte 1: a value is expected"},
      {"NaN", "at byte 0: a value is expected"},
      {"[+1]", "at byte 1: a value is expected"},
      {"[.5]", "at byte 1: a value is expected"},
      {"[01]", "at byte 1: this is not a number as JSON writes it"},
      {"[-]", "at byte 1: this is not a number as JSON writes it"},
      {"[1.]", "at byte 1: this is not a number as JSON writes it"},
      {"[1e]", "at byte 1: this is not a number as JSON writes it"},
      {"[1e+]", "at byte 1: this is not a number as JSON writes it"},
      {"[1x]", "at byte 1: this is not a number as JSON writes it"},
      {"[-01]", "at byte 1: this is not a number as JSON writes it"},
      {"[1e1000000000]", "at byte 1: the exponent of a number is past 999999999"},
      {"[1e-99999999999999999999]", "at byte 1: the exponent of a number is past 999999999"},
      {"[1e99999999999999999999x]", "at byte 1: this is not a number as JSON writes it"},
      {"\"abc", "a string has no end"},
      {"\"a\nb\"", "a string has a control character that is not escaped"},
      {"\"\\x\"",
       "at byte 0: a string has an escape that JSON does not know, or half a surrogate pair"},
      {"\"\\u12g4\"",
       "at byte 0: a string has an escape that JSON does not know, or half a surrogate pair"},
      {"\"\\ud800\"",
       "at byte 0: a string has an escape that JSON does not know, or half a surrogate pair"},
      {"\"\\udc00\\ud800\"",
       "at byte 0: a string has an escape that JSON does not know, or half a surrogate pair"},
      {"\"\xff\"", "the document is not UTF-8"},
      {"\"\xed\xa0\x80\"", "the document is not UTF-8"},
      {"{\"a\":1,\"a\":2}", "at byte 7: the key \"a\" is there twice"},
      {"{\"ab\":1,\"\\u0061b\":2}", "at byte 8: the key \"ab\" is there twice"},
      {"\xef\xbb\xbf{}", "at byte 0: a value is expected"},
      {"\"a\"b", "at byte 3: the document should end here"},
      {std::string("[1]\0", 4), "at byte 3: the document should end here"},
  };
  for (const auto& [text, expected] : cases) EXPECT_EQ(error_of(text), expected) << text;
}

TEST(JsonDocument, GoodOddities) {
  for (const std::string_view text :
       {"0", "-0", "0.0", "1E+2", "-1.5e-07", "\"\"", "[]", "{}", " [ ] ", "{\"\":0}",
        "\"\\u0000\\/\\b\\f\\n\\r\\t\\\"\\\\\"", "\"\\ud83d\\ude00\"", "\"\x7f\"", "1e999999999",
        "12345678901234567890123456789012345678901234567890"}) {
    EXPECT_EQ(error_of(text), "good") << text;
  }
}

TEST(JsonDocument, ASmallIntegerIsKeptAsANumber) {
  JsonDocument document;
  ASSERT_TRUE(document.read("[999999999999999999,-999999999999999999,1000000000000000000,1.0,-0]")
                  .has_value());
  EXPECT_EQ(document.node(1).small(), 999999999999999999);
  EXPECT_EQ(document.node(2).small(), -999999999999999999);
  EXPECT_FALSE(document.node(3).is_small());
  EXPECT_FALSE(document.node(4).is_small());
  EXPECT_EQ(document.node(5).small(), 0);
}

TEST(JsonDocument, DepthHasALimit) {
  const std::string deep = std::string(kDepthMax, '[') + std::string(kDepthMax, ']');
  EXPECT_EQ(error_of(deep), "good");
  EXPECT_EQ(error_of("[" + deep + "]"),
            "at byte 64: arrays and objects may be 64 deep, and no deeper");
  std::string objects;
  for (std::size_t i = 0; i < kDepthMax + 1; ++i) objects += "{\"a\":";
  EXPECT_EQ(error_of(objects), "at byte 320: arrays and objects may be 64 deep, and no deeper");
}

TEST(JsonDocument, SizeHasALimit) {
  JsonDocument document(10);
  EXPECT_TRUE(document.read("[1,2,3,45]").has_value());
  const Status status = document.read("[1,2,3,456]");
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().text, "the document has 11 bytes; the limit is 10");
  EXPECT_EQ(status.error().code, Errc::malformed);
}

// Few keys are compared when they are read, many are sorted at the end: both must find it.
TEST(JsonDocument, AKeyTwiceIsFoundInObjectsOfEverySize) {
  for (int keys = 1; keys < 100; ++keys) {
    std::string text = "{";
    for (int i = 0; i < keys; ++i) text += fmt::format("\"key{}\":{},", i, i);
    EXPECT_EQ(error_of(text + "\"last\":0}"), "good");
    for (const int again : {0, keys / 2, keys - 1}) {
      const std::string error = error_of(text + fmt::format("\"key{}\":0}}", again));
      EXPECT_NE(error.find(fmt::format("the key \"key{}\" is there twice", again)),
                std::string::npos)
          << keys << error;
    }
  }
}

TEST(JsonDocument, ItIsReusedAfterGoodAndBad) {
  JsonDocument document;
  const std::string large = fmt::format("[\"{}\",\"\\n\"]", std::string(100'000, 'x'));
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(document.read("{\"a\":").has_value());
    EXPECT_EQ(document.size(), 0U);
    ASSERT_TRUE(document.read(large).has_value());
    EXPECT_EQ(document.node(1).size, 100'000U);
    EXPECT_EQ(document.node(2).text(), "\n");
    ASSERT_TRUE(document.read("7").has_value());
    EXPECT_EQ(document.size(), 1U);
  }
}

TEST(JsonDocument, ItMoves) {
  JsonDocument first;
  ASSERT_TRUE(first.read(R"(["\n"])").has_value());
  JsonDocument second = std::move(first);
  first = JsonDocument();
  ASSERT_TRUE(first.read(R"(["\t"])").has_value());
  EXPECT_EQ(second.node(1).text(), "\n");
  EXPECT_EQ(first.node(1).text(), "\t");
}

TEST(JsonDocument, WhatIsSettledIsStillThereAndCanReadAgain) {
  JsonDocument document;
  ASSERT_TRUE(document.read(R"(["a","\n"])").has_value());
  document.settle();
  EXPECT_EQ(document.node(2).text(), "\n");
  ASSERT_TRUE(document.read("[1,2,3,4,5,6,7,8,9]").has_value());
  EXPECT_EQ(document.root().count, 9U);
}

TEST(JsonText, CodePointsAreCountedNotBytes) {
  EXPECT_EQ(code_points(""), 0U);
  EXPECT_EQ(code_points("abc"), 3U);
  EXPECT_EQ(code_points("\u00fc\u7530\U0001f600"), 3U);
}

TEST(JsonText, AnExcerptIsShortAndOnOneLine) {
  EXPECT_EQ(excerpt("a\nb"), "a\\x0ab");
  EXPECT_EQ(excerpt(std::string(100, 'x')), std::string(64, 'x') + "...");
  // Never a part of a code point.
  EXPECT_EQ(excerpt(std::string(63, 'x') + "\u7530"), std::string(63, 'x') + "...");
}

TEST(JsonText, NamesOfEveryLengthAreTheSameOrNot) {
  const std::string alphabet = "abcdefghijklmnopqrstuvwxyzABCDEF";
  for (std::size_t size = 0; size <= alphabet.size(); ++size) {
    const std::string name = alphabet.substr(0, size);
    EXPECT_TRUE(same_name(name, std::string(name)));
    EXPECT_FALSE(same_name(name, name + "x"));
    for (std::size_t i = 0; i < size; ++i) {
      std::string other = name;
      other[i] = '_';
      EXPECT_FALSE(same_name(name, other)) << name << " " << other;
    }
  }
}

bool same(std::string_view a, std::string_view b) {
  JsonDocument one;
  JsonDocument other;
  EXPECT_TRUE(one.read(a).has_value() && other.read(b).has_value());
  std::uint64_t steps = 1000;
  const bool result = equal(one, 0, other, 0, steps);
  // Equal values have equal hashes.
  ValueHasher hasher;
  EXPECT_TRUE(!result || hasher.hash(one, 0) == hasher.hash(other, 0)) << a << b;
  return result;
}

TEST(JsonValues, EqualityIsOfMeaningNotOfWriting) {
  EXPECT_TRUE(same("1", "1.0"));
  EXPECT_TRUE(same("100", "1e2"));
  EXPECT_TRUE(same("0", "-0.0"));
  EXPECT_TRUE(same("\"a\"", "\"\\u0061\""));
  EXPECT_TRUE(same("{\"a\":1,\"b\":[2]}", "{\"b\":[2.0],\"a\":1}"));
  EXPECT_TRUE(same("[[],{},null]", "[ [], {}, null ]"));
  EXPECT_FALSE(same("1", "true"));
  EXPECT_FALSE(same("0", "false"));
  EXPECT_FALSE(same("0", "null"));
  EXPECT_FALSE(same("\"1\"", "1"));
  EXPECT_FALSE(same("[1,2]", "[2,1]"));
  EXPECT_FALSE(same("[]", "{}"));
  EXPECT_FALSE(same("{\"a\":1}", "{\"b\":1}"));
  EXPECT_FALSE(same("{\"a\":1}", "{\"a\":1,\"b\":1}"));
  EXPECT_FALSE(same("true", "false"));
}

// Members in the opposite order make the search long: it must end when the steps are used up.
TEST(JsonValues, ComparingEndsWithTheSteps) {
  std::string forth = "{";
  std::string back = "{";
  for (int i = 0; i < 200; ++i) {
    forth += fmt::format("{}\"k{}\":1", i == 0 ? "" : ",", i);
    back += fmt::format("{}\"k{}\":1", i == 0 ? "" : ",", 199 - i);
  }
  JsonDocument one;
  JsonDocument other;
  const std::string a = forth + "}";
  const std::string b = back + "}";
  ASSERT_TRUE(one.read(a).has_value() && other.read(b).has_value());
  std::uint64_t steps = 100;
  EXPECT_FALSE(equal(one, 0, other, 0, steps));
  EXPECT_EQ(steps, 0U);
  steps = 1'000'000;
  EXPECT_TRUE(equal(one, 0, other, 0, steps));
}

}  // namespace
}  // namespace baton::schema
