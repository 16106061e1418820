#include "cli/broker/stream_parse.h"

#include <gtest/gtest.h>

namespace baton::cli {
namespace {

using client::StartFrom;
using std::chrono::milliseconds;

constexpr client::RecordTime kNow{milliseconds{1'000'000'000}};

TEST(ParseRetention, IsAnAgeOrASize) {
  EXPECT_EQ(parse_retention("7d")->age, std::chrono::hours{24 * 7});
  EXPECT_FALSE(parse_retention("7d")->bytes.has_value());
  EXPECT_EQ(parse_retention("100GB")->bytes, 100'000'000'000U);
  EXPECT_FALSE(parse_retention("100GB")->age.has_value());
  EXPECT_EQ(parse_retention("0")->age, milliseconds{0});
  EXPECT_EQ(parse_retention("0")->bytes, 0U);
}

// 100 of what? A wrong guess would delete records.
TEST(ParseRetention, WithoutAUnitIsRefused) {
  for (const char* text : {"100", "", "7x", "-1d", "1.5GB"}) {
    const auto refused = parse_retention(text);
    ASSERT_FALSE(refused.has_value()) << text;
    EXPECT_NE(refused.error().text.find("an age as 7d"), std::string::npos);
  }
}

TEST(ParseFrom, KnowsThePlaces) {
  EXPECT_EQ(*parse_from("first", kNow), StartFrom::first());
  EXPECT_EQ(*parse_from("last", kNow), StartFrom::last());
  EXPECT_EQ(*parse_from("next", kNow), StartFrom::next());
  EXPECT_EQ(*parse_from("0", kNow), StartFrom::at(Offset{0}));
  EXPECT_EQ(*parse_from("9223372036854775807", kNow),
            StartFrom::at(Offset{std::numeric_limits<std::int64_t>::max()}));
  EXPECT_EQ(*parse_from("15m", kNow), StartFrom::at_time(kNow - std::chrono::minutes{15}));
  EXPECT_EQ(*parse_from("1970-01-02T00:00:01Z", kNow),
            StartFrom::at_time(client::RecordTime{milliseconds{86'401'000}}));
}

TEST(ParseFrom, SaysWhatIsAllowed) {
  for (const char* text : {"", "frist", "-1", "9223372036854775808", "1.5"}) {
    EXPECT_FALSE(parse_from(text, kNow).has_value()) << text;
  }
  EXPECT_EQ(parse_from("frist", kNow).error().text,
            "'frist' is not first, last, next, an offset, a time as 2026-01-31T08:30:00Z, or an "
            "age as 15m");
}

TEST(ParseTime, TakesUtcWithOrWithoutAFraction) {
  EXPECT_EQ(*parse_time("1970-01-01T00:00:00Z"), client::RecordTime{});
  EXPECT_EQ(*parse_time("1970-01-01 00:00:01.5Z"), client::RecordTime{milliseconds{1'500}});
  EXPECT_EQ(*parse_time("1970-01-01T00:00:01.123456Z"), client::RecordTime{milliseconds{1'123}});
  for (const char* text : {"1970-01-01", "1970-13-01T00:00:00Z", "1970-02-30T00:00:00Z",
                           "1970-01-01T24:00:00Z", "1970-01-01T00:00:00", "1970-01-01T00:00:00Zx",
                           "1970-01-01T00:00:00.Z", "70-01-01T00:00:00Z"}) {
    EXPECT_FALSE(parse_time(text).has_value()) << text;
  }
}

TEST(ParseFsync, KeepsWhatWasWritten) {
  EXPECT_EQ(*parse_fsync("interval:100"), "interval:100");
  EXPECT_EQ(parse_fsync("sometimes").error().text,
            "'sometimes' is not always, interval:MS (as interval:100) or never");
}

TEST(ParseCompression, NamesThemAll) {
  EXPECT_EQ(*parse_record_compression("zstd"), client::RecordCompression::zstd);
  EXPECT_EQ(parse_record_compression("rar").error().text,
            "'rar' is not none, lz4, zstd, gzip or snappy");
}

}  // namespace
}  // namespace baton::cli
