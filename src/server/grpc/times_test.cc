#include "server/grpc/times.h"

#include <chrono>
#include <limits>

#include <gtest/gtest.h>

namespace baton {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

constexpr std::int64_t kLargest = std::numeric_limits<std::int64_t>::max();

google::protobuf::Duration duration(std::int64_t seconds, std::int32_t nanos) {
  google::protobuf::Duration out;
  out.set_seconds(seconds);
  out.set_nanos(nanos);
  return out;
}
google::protobuf::Timestamp time(std::int64_t seconds, std::int32_t nanos) {
  google::protobuf::Timestamp out;
  out.set_seconds(seconds);
  out.set_nanos(nanos);
  return out;
}
std::string refused(const google::protobuf::Duration& in) {
  const Result<Duration> converted = convert_duration("retention", in, hours{1});
  return converted.has_value() ? "" : to_string(converted.error());
}

TEST(Times, DurationsAreTakenAsTheyWereShown) {
  for (const Duration shown : {Duration{0}, Duration{milliseconds{1}}, Duration{hours{1}}}) {
    EXPECT_EQ(convert_duration("retention", to_proto(shown), hours{1}).value(), shown);
  }
  EXPECT_EQ(to_proto(Duration{milliseconds{1500}}).seconds(), 1);
  EXPECT_EQ(to_proto(Duration{milliseconds{1500}}).nanos(), 500'000'000);
}

TEST(Times, AnInstantThatNeverComesHasAForm) {
  const google::protobuf::Timestamp never = to_proto(Instant::never());
  EXPECT_EQ(never.seconds(), kLargest / 1'000'000'000);
  EXPECT_EQ(never.nanos(), kLargest % 1'000'000'000);
}

// A large number must not become a small one by overflow.
TEST(Times, ADurationBeyondItsLimitIsRefusedWithFieldAndLimit) {
  EXPECT_EQ(refused(duration(3601, 0)), "invalid_argument: retention is 3601 s; the limit is 1h");
  EXPECT_NE(refused(duration(3600, 1'000'000)), "");
  EXPECT_NE(refused(duration(kLargest, 999'000'000)).find("the limit is 1h"), std::string::npos);
  EXPECT_NE(refused(duration(18'446'744'074, 0)), "");  // 2^64 ns and a little more.
}

TEST(Times, ADurationIsWholeMillisecondsAndNotNegative) {
  EXPECT_EQ(refused(duration(0, 1)),
            "invalid_argument: retention is 0 s and 1 ns; it must be 0 or more, in whole "
            "milliseconds");
  EXPECT_NE(refused(duration(-1, 0)), "");
  EXPECT_NE(refused(duration(0, -1'000'000)), "");
  EXPECT_NE(refused(duration(0, 1'000'000'000)), "");
  EXPECT_NE(refused(duration(std::numeric_limits<std::int64_t>::min(), 0)), "");
}

TEST(Times, ATimeForRecordsIsTheFirstMillisecondThatIsNotEarlier) {
  EXPECT_EQ(convert_time("from.time", time(1, 0)).value(), TimestampMs{1000});
  EXPECT_EQ(convert_time("from.time", time(1, 1)).value(), TimestampMs{1001});
  EXPECT_EQ(convert_time("from.time", time(1, 1'000'000)).value(), TimestampMs{1001});
  EXPECT_EQ(convert_time("from.time", time(-1, 0)).value(), TimestampMs{-1000});
}

TEST(Times, ATimeOutsideOfTheCalendarIsRefused) {
  for (const auto& in :
       {time(kLargest, 0), time(-kLargest, 0), time(0, -1), time(0, 1'000'000'000)}) {
    const Result<TimestampMs> converted = convert_time("from.time", in);
    ASSERT_FALSE(converted.has_value());
    EXPECT_EQ(converted.error().code, Errc::invalid_argument);
    EXPECT_NE(converted.error().text.find("from.time"), std::string::npos);
  }
}

}  // namespace
}  // namespace baton
