#include "base/time.h"

#include <cstdint>
#include <limits>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

namespace baton {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;
using std::chrono::nanoseconds;
using std::chrono::seconds;

constexpr Instant kNow{1'700'000'000'000'000'000};
constexpr Instant kFirst{std::numeric_limits<std::int64_t>::min()};

TEST(Instant, AddsAndSubtracts) {
  EXPECT_EQ((kNow + seconds{1}).ns, 1'700'000'001'000'000'000);
  EXPECT_EQ((kNow + -seconds{1}).ns, 1'699'999'999'000'000'000);
  EXPECT_EQ((kNow + seconds{5}) - kNow, seconds{5});
  EXPECT_EQ(kNow - (kNow + seconds{5}), -seconds{5});
}

// A wrap-around would turn the longest timeout into one that is over already.
TEST(Instant, HugeTimeoutSaturatesAtNever) {
  EXPECT_EQ(kNow + Duration::max(), Instant::never());
  EXPECT_EQ(Instant::never() + nanoseconds{1}, Instant::never());
  EXPECT_LT(kNow, kNow + Duration::max());
}

TEST(Instant, HugeStepBackSaturatesAtTheOtherEnd) {
  EXPECT_EQ(Instant{-2} + Duration::min(), kFirst);
  EXPECT_LT(Instant{-2} + Duration::min(), kNow);
}

TEST(Instant, DifferenceSaturates) {
  EXPECT_EQ(Instant::never() - Instant{-1}, Duration::max());
  EXPECT_EQ(kFirst - Instant{1}, Duration::min());
  EXPECT_EQ(Instant::never() - Instant::never(), Duration{0});
}

TEST(ParseDuration, ReadsEveryUnit) {
  EXPECT_EQ(parse_duration("7ns"), nanoseconds{7});
  EXPECT_EQ(parse_duration("10us"), nanoseconds{10'000});
  EXPECT_EQ(parse_duration("250ms"), milliseconds{250});
  EXPECT_EQ(parse_duration("5s"), seconds{5});
  EXPECT_EQ(parse_duration("2m"), seconds{120});
  EXPECT_EQ(parse_duration("1h"), hours{1});
  EXPECT_EQ(parse_duration("7d"), hours{24 * 7});
}

TEST(ParseDuration, ReadsZeroAndSums) {
  EXPECT_EQ(parse_duration("0"), Duration{0});
  EXPECT_EQ(parse_duration("0s"), Duration{0});
  EXPECT_EQ(parse_duration("1m30s"), seconds{90});
  EXPECT_EQ(parse_duration("1h1ms"), hours{1} + milliseconds{1});
}

TEST(ParseDuration, RefusesWhatIsNoDuration) {
  for (const char* text :
       {"",     " ",  "5",    "s",    "5 s",  " 5s",  "5s ", "-5s",      "-0s", "1m-30s", "+5s",
        "1.5s", "5S", "5sec", "5mss", "0x5s", "1e3s", "5s5", "infinite", "00",  "\0"}) {
    const Result<Duration> result = parse_duration(text);
    ASSERT_FALSE(result.has_value()) << text;
    EXPECT_EQ(result.error().code, Errc::invalid_argument) << text;
    EXPECT_NE(result.error().text.find("is not a duration"), std::string::npos) << text;
  }
}

TEST(ParseDuration, RefusesWhatDoesNotFit) {
  EXPECT_TRUE(parse_duration("9223372036854775807ns").has_value());
  EXPECT_FALSE(parse_duration("9223372036854775808ns").has_value());
  EXPECT_FALSE(parse_duration("9223372036854775807ns1ns").has_value());
  EXPECT_FALSE(parse_duration("106752d").has_value());
  EXPECT_FALSE(parse_duration("99999999999999999999s").has_value());
}

// The text may come from the network, and the error goes into logs.
TEST(ParseDuration, ErrorStaysShort) {
  EXPECT_LT(parse_duration(std::string(1'000'000, '9')).error().text.size(), 200U);
}

TEST(FormatDuration, PicksTheLargestUnitThatFits) {
  EXPECT_EQ(format_duration(Duration{0}), "0");
  EXPECT_EQ(format_duration(nanoseconds{1'001}), "1001ns");
  EXPECT_EQ(format_duration(milliseconds{1'500}), "1500ms");
  EXPECT_EQ(format_duration(seconds{90}), "90s");
  EXPECT_EQ(format_duration(hours{24}), "1d");
  EXPECT_EQ(format_duration(-seconds{5}), "-5s");
}

RC_GTEST_PROP(FormatDuration, IsReadBackToTheSameValue, ()) {
  const auto count = *rc::gen::nonNegative<std::int64_t>();
  const auto unit = *rc::gen::element<std::int64_t>(1, 1'000, 1'000'000'000, 86'400'000'000'000);
  const Duration duration{count / unit * unit};
  RC_ASSERT(parse_duration(format_duration(duration)).value() == duration);
}

}  // namespace
}  // namespace baton
