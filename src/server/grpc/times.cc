#include "server/grpc/times.h"

#include <chrono>

#include <fmt/format.h>
#include <google/protobuf/util/time_util.h>

namespace baton {
namespace {

using google::protobuf::util::TimeUtil;

constexpr std::int64_t kNsPerMs = 1'000'000;
constexpr std::int32_t kNanosMax = 999'999'999;

}  // namespace

google::protobuf::Duration to_proto(Duration duration) {
  return TimeUtil::NanosecondsToDuration(duration.count());
}

google::protobuf::Timestamp to_proto(Instant at) { return TimeUtil::NanosecondsToTimestamp(at.ns); }

Result<Duration> convert_duration(std::string_view field, const google::protobuf::Duration& in,
                                  Duration limit) {
  const bool well_formed = in.seconds() >= 0 && in.nanos() >= 0 && in.nanos() <= kNanosMax;
  if (!well_formed || in.nanos() % kNsPerMs != 0) {
    return Error{Errc::invalid_argument,
                 fmt::format("{} is {} s and {} ns; it must be 0 or more, in whole milliseconds",
                             field, in.seconds(), in.nanos())};
  }
  // Checked before the multiplication, so that a huge number is an error and does not overflow.
  const std::chrono::seconds most = std::chrono::floor<std::chrono::seconds>(limit);
  if (in.seconds() > most.count() ||
      std::chrono::seconds{in.seconds()} + Duration{in.nanos()} > limit) {
    return Error{Errc::invalid_argument, fmt::format("{} is {} s; the limit is {}", field,
                                                     in.seconds(), format_duration(limit))};
  }
  return std::chrono::seconds{in.seconds()} + Duration{in.nanos()};
}

Result<TimestampMs> convert_time(std::string_view field, const google::protobuf::Timestamp& in) {
  if (in.seconds() < TimeUtil::kTimestampMinSeconds ||
      in.seconds() > TimeUtil::kTimestampMaxSeconds || in.nanos() < 0 || in.nanos() > kNanosMax) {
    return Error{Errc::invalid_argument,
                 fmt::format("{} is {} s and {} ns since 1970; it must be in the years 1 to 9999",
                             field, in.seconds(), in.nanos())};
  }
  return TimestampMs{in.seconds() * 1000 + (in.nanos() + kNsPerMs - 1) / kNsPerMs};
}

}  // namespace baton
