#include "cli/base/parse.h"

#include <limits>

#include <gtest/gtest.h>

namespace baton::cli {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint64_t kAny = std::numeric_limits<std::uint64_t>::max();

TEST(ParseNumber, TakesWholeNumbersInTheirRange) {
  EXPECT_EQ(parse_number("0", 0, kAny).value(), 0U);
  EXPECT_EQ(parse_number("18446744073709551615", 0, kAny).value(), kAny);
  for (const char* text :
       {"", " 1", "1 ", "-1", "+1", "1.5", "0x10", "18446744073709551616", "one"}) {
    EXPECT_FALSE(parse_number(text, 0, kAny).has_value()) << text;
  }
  EXPECT_FALSE(parse_number("0", 1, 9).has_value());
  EXPECT_FALSE(parse_number("10", 1, 9).has_value());
}

// A user who mistypes should not have to look anything up.
TEST(ParseNumber, TheErrorSaysWhatIsAllowed) {
  EXPECT_EQ(parse_number("ten", 1, 9).error().text, "'ten' is not a whole number from 1 to 9");
  EXPECT_EQ(parse_number("-1", 0, kAny).error().text, "'-1' is not a whole number of at least 0");
  EXPECT_EQ(parse_number("99999999999999999999", 0, kAny).error().text,
            "'99999999999999999999' is not a whole number from 0 to 18446744073709551615");
}

TEST(ParseBool, TakesTrueAndFalseOnly) {
  EXPECT_TRUE(parse_bool("true").value());
  EXPECT_FALSE(parse_bool("false").value());
  for (const char* text : {"", "yes", "1", "True", "on"}) {
    EXPECT_FALSE(parse_bool(text).has_value()) << text;
  }
}

TEST(ParseSize, KnowsBothKindsOfUnits) {
  EXPECT_EQ(parse_size("0").value(), 0U);
  EXPECT_EQ(parse_size("1024").value(), 1024U);
  EXPECT_EQ(parse_size("7B").value(), 7U);
  EXPECT_EQ(parse_size("1KiB").value(), 1024U);
  EXPECT_EQ(parse_size("1kB").value(), 1000U);
  EXPECT_EQ(parse_size("3MiB").value(), 3U << 20U);
  EXPECT_EQ(parse_size("2GB").value(), 2'000'000'000U);
}

TEST(ParseSize, RefusesNonsenseAndOverflow) {
  for (const char* text : {"", "KiB", "1 KiB", "1.5MiB", "-1", "1XB", "99999999999999TiB"}) {
    EXPECT_FALSE(parse_size(text).has_value()) << text;
  }
}

TEST(ParseMilliseconds, TakesWholeMilliseconds) {
  EXPECT_EQ(parse_milliseconds("30s").value(), seconds{30});
  EXPECT_EQ(parse_milliseconds("1m30s").value(), seconds{90});
  EXPECT_EQ(parse_milliseconds("0").value(), milliseconds{0});
  // The wire has no smaller unit: rounding to 0 would turn "soon" into "at once".
  EXPECT_FALSE(parse_milliseconds("10us").has_value());
  for (const char* text : {"", "5", "-5s", "5 s", "soon", "99999999999d"}) {
    EXPECT_FALSE(parse_milliseconds(text).has_value()) << text;
  }
}

TEST(ParseMilliseconds, NamesTheRange) {
  EXPECT_EQ(parse_milliseconds("1s", seconds{1}, hours{1}).value(), seconds{1});
  EXPECT_EQ(parse_milliseconds("2h", seconds{1}, hours{1}).error().text,
            "'2h' is not from 1s to 1h");
}

TEST(ParseRate, TakesNumbersOfAtLeastZero) {
  EXPECT_DOUBLE_EQ(parse_rate("0.5").value(), 0.5);
  EXPECT_DOUBLE_EQ(parse_rate("1e3").value(), 1000);
  for (const char* text : {"", "-1", "nan", "inf", "1/s", "1e300"}) {
    EXPECT_FALSE(parse_rate(text).has_value()) << text;
  }
}

TEST(ParseHeader, CutsAtTheFirstEqualsSign) {
  EXPECT_EQ(parse_header("a=b").value(), std::pair(std::string("a"), std::string("b")));
  EXPECT_EQ(parse_header("a=b=c").value(), std::pair(std::string("a"), std::string("b=c")));
  EXPECT_EQ(parse_header("a=").value(), std::pair(std::string("a"), std::string()));
  EXPECT_FALSE(parse_header("=b").has_value());
  EXPECT_FALSE(parse_header("a").has_value());
}

// Keys are the user's own text, often ids with equals signs in them.
TEST(ParseWeight, CutsAtTheLastEqualsSign) {
  EXPECT_EQ(parse_weight("vip=10").value(), std::pair(std::string("vip"), std::uint32_t{10}));
  EXPECT_EQ(parse_weight("a=b=3").value(), std::pair(std::string("a=b"), std::uint32_t{3}));
  EXPECT_EQ(parse_weight("=2").value(), std::pair(std::string(), std::uint32_t{2}));
  EXPECT_EQ(parse_weight("gone=0").value().second, 0U);
  for (const char* text : {"", "vip", "vip=", "vip=-1", "vip=1001", "vip=x"}) {
    EXPECT_FALSE(parse_weight(text).has_value()) << text;
  }
}

TEST(ParseThrottle, TakesRateAndBurst) {
  const auto [key, throttle] = parse_throttle("smtp=100/20").value();
  EXPECT_EQ(key, "smtp");
  EXPECT_EQ(throttle, (client::Throttle{.rate = 100, .burst = 20}));
  EXPECT_EQ(parse_throttle("a=b=0.5/3").value().first, "a=b");
}

TEST(ParseThrottle, WithoutABurstSavesUpOneSecond) {
  EXPECT_EQ(parse_throttle("smtp=2.5").value().second.burst, 3U);
  EXPECT_EQ(parse_throttle("smtp=0.1").value().second.burst, 1U);
}

TEST(ParseThrottle, OffRemovesIt) { EXPECT_EQ(parse_throttle("smtp=off").value().second.rate, 0); }

TEST(ParseThrottle, RefusesNonsense) {
  for (const char* text : {"", "smtp", "=1/1", "smtp=", "smtp=/1", "smtp=1/", "smtp=1/0",
                           "smtp=-1/1", "smtp=1/1/1", "smtp=1/99999999999"}) {
    EXPECT_FALSE(parse_throttle(text).has_value()) << text;
  }
}

TEST(ParseFairnessCost, TakesItsTwoWords) {
  EXPECT_EQ(parse_fairness_cost("message").value(), client::FairnessCost::message);
  EXPECT_EQ(parse_fairness_cost("byte").value(), client::FairnessCost::byte);
  EXPECT_FALSE(parse_fairness_cost("bytes").has_value());
}

}  // namespace
}  // namespace baton::cli
