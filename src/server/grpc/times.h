#pragma once

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "core/stream/types.h"

/// Durations and times of the broker as the well-known types of protocol buffers.
namespace baton {

google::protobuf::Duration to_proto(Duration duration);
google::protobuf::Timestamp to_proto(Instant at);

/// A duration from outside: 0 to `limit`, in whole milliseconds.
Result<Duration> convert_duration(std::string_view field, const google::protobuf::Duration& in,
                                  Duration limit);

/// A time from outside for records, which have milliseconds: the first one that is not earlier.
Result<TimestampMs> convert_time(std::string_view field, const google::protobuf::Timestamp& in);

}  // namespace baton
