#pragma once

#include <string_view>

#include <google/protobuf/duration.pb.h>
#include <google/protobuf/timestamp.pb.h>

#include "base/result.h"
#include "base/time.h"
#include "core/stream/types.h"

/// Converts durations and times of the broker to the well-known types of protocol buffers, and
/// back.
namespace baton {

google::protobuf::Duration to_proto(Duration duration);
google::protobuf::Timestamp to_proto(Instant at);

/// A duration from a client: 0 to `limit`, in whole milliseconds.
Result<Duration> convert_duration(std::string_view field, const google::protobuf::Duration& in,
                                  Duration limit);

/// A record's time from a client. Records have milliseconds: a fraction is rounded up.
Result<TimestampMs> convert_time(std::string_view field, const google::protobuf::Timestamp& in);

}  // namespace baton
