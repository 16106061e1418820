#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>
#include <google/protobuf/util/time_util.h>

/// Durations and times as the well-known types of protocol buffers. What does not fit into 64 bits
/// of nanoseconds (292 years) becomes the nearest value that does: the broker refuses such a
/// duration, and names the field.
namespace baton::client {

namespace times_internal {

using std::chrono::nanoseconds;
using std::chrono::seconds;

inline nanoseconds from_parts(std::int64_t whole, std::int32_t nanos) {
  constexpr seconds kMost = std::chrono::floor<seconds>(nanoseconds::max()) - seconds{1};
  return std::clamp(seconds{whole}, -kMost, kMost) + nanoseconds{nanos};
}

}  // namespace times_internal

inline google::protobuf::Duration proto_duration(std::chrono::milliseconds duration) {
  using std::chrono::milliseconds;
  constexpr milliseconds kMost = std::chrono::floor<milliseconds>(std::chrono::nanoseconds::max());
  const std::chrono::nanoseconds fitting = std::clamp(duration, -kMost, kMost);
  return google::protobuf::util::TimeUtil::NanosecondsToDuration(fitting.count());
}
inline std::chrono::nanoseconds duration_of(const google::protobuf::Duration& duration) {
  return times_internal::from_parts(duration.seconds(), duration.nanos());
}
inline std::chrono::nanoseconds since_1970(const google::protobuf::Timestamp& time) {
  return times_internal::from_parts(time.seconds(), time.nanos());
}

}  // namespace baton::client
