#include "sdk/base/times.h"

#include <gtest/gtest.h>

namespace baton::client {
namespace {

using std::chrono::milliseconds;
using std::chrono::nanoseconds;

TEST(ClientTimes, DurationsComeBackAsTheyWereSent) {
  for (const milliseconds sent : {milliseconds{0}, milliseconds{1}, milliseconds{-1500},
                                  milliseconds{30'000}, milliseconds{315'360'000'000}}) {
    EXPECT_EQ(duration_of(proto_duration(sent)), nanoseconds{sent});
  }
}

// The broker refuses these; on the way they must not turn into something small.
TEST(ClientTimes, AbsurdDurationsStayAbsurd) {
  EXPECT_GT(duration_of(proto_duration(milliseconds::max())), std::chrono::hours{24 * 365 * 200});
  EXPECT_LT(duration_of(proto_duration(milliseconds::min())), -std::chrono::hours{24 * 365 * 200});
  google::protobuf::Timestamp far;
  far.set_seconds(std::numeric_limits<std::int64_t>::max());
  EXPECT_GT(since_1970(far), std::chrono::hours{24 * 365 * 200});
}

}  // namespace
}  // namespace baton::client
