#include "base/uuid.h"

#include <cstdint>
#include <set>
#include <string>
#include <unordered_set>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace baton {
namespace {

constexpr Instant kNow{0x0123456789abLL * 1'000'000};
constexpr const char* kText = "01234567-89ab-7cde-8f01-23456789abcd";

TEST(Uuid, Version7HoldsTheMilliseconds) {
  Random random(1);
  const std::string text = Uuid::make_v7(kNow, random).to_string();
  EXPECT_EQ(text.substr(0, 13), "01234567-89ab");
  EXPECT_EQ(text[14], '7') << "the version";
  EXPECT_NE(std::string("89ab").find(text[19]), std::string::npos) << "the variant";
}

TEST(Uuid, LaterIdsSortLater) {
  Random random(1);
  Uuid last = Uuid::make_v7(kNow, random);
  for (int i = 1; i < 1'000; ++i) {
    const Uuid next = Uuid::make_v7(kNow + std::chrono::milliseconds{i}, random);
    EXPECT_LT(last, next);
    EXPECT_LT(last.raw(), next.raw());
    last = next;
  }
}

TEST(Uuid, SameMillisecondGivesDifferentIds) {
  Random random(1);
  std::set<Uuid> ids;
  for (int i = 0; i < 10'000; ++i) ids.insert(Uuid::make_v7(kNow, random));
  EXPECT_EQ(ids.size(), 10'000U);
}

TEST(Uuid, SameSeedGivesTheSameId) {
  Random one(7);
  Random other(7);
  EXPECT_EQ(Uuid::make_v7(kNow, one), Uuid::make_v7(kNow, other));
}

TEST(Uuid, TextIsReadBack) {
  const Result<Uuid> uuid = Uuid::parse(kText);
  ASSERT_TRUE(uuid.has_value());
  EXPECT_EQ(uuid->to_string(), kText);
  EXPECT_EQ(Uuid::parse("01234567-89AB-7CDE-8F01-23456789ABCD"), *uuid);
}

RC_GTEST_PROP(Uuid, EveryIdSurvivesTextAndRaw, (std::array<std::uint8_t, 16> bytes)) {
  const Uuid uuid{bytes};
  RC_ASSERT(Uuid::parse(uuid.to_string()).value() == uuid);
  RC_ASSERT(Uuid::from_raw(uuid.raw()) == uuid);
}

TEST(Uuid, ParseRefusesEverythingElse) {
  for (const char* text :
       {"", "0", "01234567-89ab-7cde-8f01-23456789abc", "01234567-89ab-7cde-8f01-23456789abcde",
        "0123456789ab7cde8f0123456789abcd0000", "01234567-89ab-7cde-8f01-23456789abcg",
        "01234567-89ab-7cde-8f01+23456789abcd", "{1234567-89ab-7cde-8f01-23456789abc}",
        "-1234567-89ab-7cde-8f01-23456789abcd", "01234567-89ab-7cde-8f01-23456789abc "}) {
    const Result<Uuid> uuid = Uuid::parse(text);
    ASSERT_FALSE(uuid.has_value()) << text;
    EXPECT_EQ(uuid.error().code, Errc::invalid_argument);
  }
  EXPECT_LT(Uuid::parse(std::string(1'000'000, 'a')).error().text.size(), 200U);
}

TEST(Uuid, NilIsTheOneOfZeros) {
  EXPECT_TRUE(Uuid{}.is_nil());
  EXPECT_FALSE(Uuid::parse(kText)->is_nil());
}

TEST(Uuid, RawOfAnotherLengthIsABug) { EXPECT_DEATH(Uuid::from_raw("short"), "assertion failed"); }

TEST(Uuid, HashSpreads) {
  Random random(1);
  std::unordered_set<std::size_t> hashes;
  for (int i = 0; i < 1'000; ++i) {
    hashes.insert(std::hash<Uuid>{}(Uuid::make_v7(kNow, random)));
  }
  EXPECT_EQ(hashes.size(), 1'000U);
}

}  // namespace
}  // namespace baton
