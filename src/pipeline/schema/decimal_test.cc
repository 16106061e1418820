#include "pipeline/schema/decimal.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace baton::schema {
namespace {

Decimal d(std::string_view text) { return Decimal::parse(text); }

TEST(Decimal, WritingsOfOneNumberAreOne) {
  EXPECT_EQ(d("1"), d("1.0"));
  EXPECT_EQ(d("1"), d("10e-1"));
  EXPECT_EQ(d("1"), d("0.01E+2"));
  EXPECT_EQ(d("-120"), d("-1.2e2"));
  EXPECT_EQ(d("0"), d("-0"));
  EXPECT_EQ(d("0"), d("0.000e99"));
  EXPECT_FALSE(d("1") == d("-1"));
  EXPECT_FALSE(d("1") == d("10"));
}

TEST(Decimal, TheOrderIsExact) {
  const std::vector<std::string> ascending = {"-1e999999999",
                                              "-972783798187987123879878123.188781371",
                                              "-972783798187987123879878123.18878137",
                                              "-2",
                                              "-1.0000000000000000000000000001",
                                              "-1",
                                              "-0.1",
                                              "-1e-999999999",
                                              "0",
                                              "1e-999999999",
                                              "0.1",
                                              "0.10000000000000000000001",
                                              "1",
                                              "9.99",
                                              "10",
                                              "18446744073709551600",
                                              "18446744073709551615",
                                              "1e20",
                                              "1e999999999"};
  for (std::size_t i = 0; i < ascending.size(); ++i) {
    for (std::size_t j = 0; j < ascending.size(); ++j) {
      EXPECT_EQ(d(ascending[i]) < d(ascending[j]), i < j) << ascending[i] << " " << ascending[j];
    }
  }
}

TEST(Decimal, IntegersAreSeenHoweverTheyAreWritten) {
  for (const auto* text : {"1", "1.0", "1e3", "12.50e1", "0.0", "1e999999999"}) {
    EXPECT_TRUE(d(text).is_integer()) << text;
  }
  for (const auto* text : {"0.5", "1.01", "1e-1", "12.55e1"}) {
    EXPECT_FALSE(d(text).is_integer()) << text;
  }
}

TEST(Decimal, MultiplesAreExact) {
  EXPECT_TRUE(d("0.0075").is_multiple_of(d("0.0001")));
  EXPECT_FALSE(d("0.00751").is_multiple_of(d("0.0001")));
  EXPECT_TRUE(d("4.5").is_multiple_of(d("1.5")));
  EXPECT_FALSE(d("35").is_multiple_of(d("1.5")));
  EXPECT_TRUE(d("1e308").is_multiple_of(d("0.5")));
  EXPECT_FALSE(d("1e308").is_multiple_of(d("0.123456789")));
  EXPECT_TRUE(d("0").is_multiple_of(d("7")));
  EXPECT_TRUE(d("-21").is_multiple_of(d("7")));
  EXPECT_FALSE(d("5").is_multiple_of(d("10")));
  EXPECT_TRUE(d("1e999999999").is_multiple_of(d("1e-999999999")));
  EXPECT_TRUE(d("999999999999999999000").is_multiple_of(d("999999999999999999")));
}

TEST(Decimal, Int64HasItsLimits) {
  EXPECT_EQ(d("9223372036854775807").to_int64(), 9223372036854775807);
  EXPECT_EQ(d("-9223372036854775808").to_int64(), std::numeric_limits<std::int64_t>::min());
  EXPECT_EQ(d("12.0e1").to_int64(), 120);
  EXPECT_EQ(d("-0.0").to_int64(), 0);
  EXPECT_FALSE(d("9223372036854775808").to_int64().has_value());
  EXPECT_FALSE(d("-9223372036854775809").to_int64().has_value());
  EXPECT_FALSE(d("1e19").to_int64().has_value());
  EXPECT_FALSE(d("1e999999999").to_int64().has_value());
  EXPECT_FALSE(d("0.5").to_int64().has_value());
}

// Shifted integers: the results must agree with integer arithmetic.
RC_GTEST_PROP(Decimal, AgreesWithIntegers, (std::int32_t a, std::int32_t b)) {
  const auto shifted = [](std::int32_t value) {
    return Decimal::parse(fmt::format("{}e-3", value));
  };
  RC_ASSERT((shifted(a) < shifted(b)) == (a < b));
  RC_ASSERT((shifted(a) == shifted(b)) == (a == b));
  RC_ASSERT(shifted(a).is_integer() == (a % 1000 == 0));
  if (b > 0) RC_ASSERT(shifted(a).is_multiple_of(shifted(b)) == (std::int64_t{a} % b == 0));
  RC_ASSERT(Decimal::parse(fmt::format("{}", a)).to_int64() == a);
}

}  // namespace
}  // namespace baton::schema
