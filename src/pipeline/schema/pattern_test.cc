#include "pipeline/schema/pattern.h"

#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace baton::schema {
namespace {

bool found(std::string_view pattern, std::string_view text) {
  const auto compiled = Pattern::compile(pattern);
  EXPECT_TRUE(compiled.has_value()) << pattern << ": " << compiled.error().text;
  return compiled.has_value() && compiled->matches(text);
}

std::string refusal(std::string_view pattern) {
  const auto compiled = Pattern::compile(pattern);
  return compiled.has_value() ? "good" : compiled.error().text;
}

TEST(Pattern, ItIsSearchedForUnlessItIsAnchored) {
  EXPECT_TRUE(found("es", "expression"));
  EXPECT_FALSE(found("^es", "expression"));
  EXPECT_TRUE(found("^ex.*on$", "expression"));
  EXPECT_FALSE(found("^abc$", "abc\n"));
  EXPECT_TRUE(found("", ""));
}

TEST(Pattern, TheDotStopsAtLineEndsAndTakesWholeCodePoints) {
  EXPECT_TRUE(found("^.$", "\U0001f600"));
  for (const auto* end : {"\n", "\r", "\u2028", "\u2029"}) EXPECT_FALSE(found("^.$", end));
}

TEST(Pattern, EscapesMeanWhatEcmaSays) {
  EXPECT_TRUE(found("^\\x41\\u0042\\u{43}\\cJ\\0$", std::string("ABC\n\0", 5)));
  EXPECT_TRUE(found("^\\ud83d\\ude00$", "\U0001f600"));
  EXPECT_TRUE(found("^\\^\\$\\\\\\.\\*\\+\\?\\(\\)\\[\\]\\{\\}\\|\\/$", "^$\\.*+?()[]{}|/"));
  EXPECT_TRUE(found("^[\\b\\-\\]]+$", "\b-]"));
  EXPECT_TRUE(found("\\bb\\b", "a b c"));
  EXPECT_TRUE(found("^\\p{Lu}\\p{Script=Greek}\\P{L}$", "A\u03b11"));
  EXPECT_TRUE(found("^[^\\s]+$", "abc"));
  EXPECT_FALSE(found("^[^\\s]+$", "a\u00a0c"));
  EXPECT_TRUE(found("^[a\\S]+$", "xyz"));
  EXPECT_FALSE(found("^[a\\S]+$", "x z"));
  EXPECT_TRUE(found("^[\\s,-]+$", " ,-\u2003"));
  EXPECT_TRUE(found("^[-\\s]+$", " -"));
}

TEST(Pattern, ClassesAreEcmasAndNotPosixs) {
  // A [ in a class means itself: these are the characters [ : a l p h, then a ].
  EXPECT_TRUE(found("^[[:alpha:]]$", "l]"));
  EXPECT_FALSE(found("^[[:alpha:]]$", "b"));
  EXPECT_FALSE(found("[]", "a"));
  EXPECT_TRUE(found("^[^]$", "\n"));
  EXPECT_TRUE(found("^a]$", "a]"));
}

TEST(Pattern, GroupsMayHaveNames) { EXPECT_TRUE(found("^(?<year>[0-9]{4})-(?:a|b)$", "2024-b")); }

TEST(Pattern, WhatIsNotSupportedIsRefused) {
  EXPECT_EQ(refusal("a(?=b)"), "look-around and flags are not supported (at character 3)");
  EXPECT_EQ(refusal("a(?!b)"), "look-around and flags are not supported (at character 3)");
  EXPECT_EQ(refusal("(?<=a)b"), "look-around and flags are not supported (at character 3)");
  EXPECT_EQ(refusal("(?<!a)b"), "look-around and flags are not supported (at character 3)");
  EXPECT_EQ(refusal("(?i)a"), "look-around and flags are not supported (at character 2)");
  EXPECT_EQ(refusal("(a)\\1"), "back-references are not supported (at character 5)");
  EXPECT_EQ(refusal("\\a"), "ECMA-262 has no escape \\a (at character 2)");
  EXPECT_EQ(refusal("a\\Z"), "ECMA-262 has no escape \\Z (at character 3)");
  EXPECT_EQ(refusal("\\Qa\\E"), "ECMA-262 has no escape \\Q (at character 2)");
  EXPECT_EQ(refusal("\\"), "a backslash ends the pattern (at character 1)");
  EXPECT_EQ(refusal("[a"), "a character class has no ] (at character 2)");
  EXPECT_EQ(refusal("[\\B]"), "\\B has no meaning in a character class (at character 3)");
  EXPECT_EQ(refusal("\\c1"), "\\c wants a letter (at character 2)");
  EXPECT_EQ(refusal("\\pL"), "\\p wants a name in braces (at character 2)");
  EXPECT_EQ(refusal("\\p{x=y}"), "\\p wants the name of a property (at character 7)");
  EXPECT_EQ(refusal("\\x4"), "an escape does not name a code point (at character 2)");
  EXPECT_EQ(refusal("\\ud83d"), "an escape does not name a code point (at character 6)");
  EXPECT_EQ(refusal("\\u{110000}"), "an escape does not name a code point (at character 10)");
  EXPECT_EQ(refusal("[a-\\s]"), "a class of characters cannot bound a range (at character 5)");
  EXPECT_EQ(refusal("[\\s-z]"), "a class of characters cannot bound a range (at character 3)");
  EXPECT_EQ(refusal("a**"),
            "it is not a regular expression that RE2 takes: bad repetition operator: **");
  EXPECT_EQ(refusal("a{2000}"),
            "it is not a regular expression that RE2 takes: invalid repetition size: {2000}");
  EXPECT_EQ(refusal(std::string(1025, 'a')), "it has 1025 bytes; the limit is 1024");
}

// A backtracking engine needs 2^n steps for this expression.
TEST(Pattern, TimeIsLinear) { EXPECT_FALSE(found("^(a+)+$", std::string(100'000, 'a') + "b")); }

}  // namespace
}  // namespace baton::schema
