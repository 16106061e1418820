#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "base/time.h"
#include "core/stream/types.h"

namespace baton {

/// How long a partition keeps its records. What is not set has no limit.
struct RetentionRules {
  std::optional<Duration> age = {};         // By the records' own timestamps.
  std::optional<std::uint64_t> bytes = {};  // At least this much is kept, if it is there.

  bool operator==(const RetentionRules&) const = default;
};

/// What retention knows of one segment.
struct SegmentExtent {
  std::uint64_t bytes = 0;
  TimestampMs max_timestamp;
};

/// How many of the oldest segments may go. `segments` is in order, oldest first; a segment goes
/// only together with all before it, and the last one, which is being written, never goes.
std::size_t count_expired(std::span<const SegmentExtent> segments, const RetentionRules& rules,
                          Instant now);
/// True when even the newest record of `segment` is past its age.
bool is_past_age(const SegmentExtent& segment, const RetentionRules& rules, Instant now);

}  // namespace baton
