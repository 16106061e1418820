#include "core/stream/retention.h"

namespace baton {

bool is_past_age(const SegmentExtent& segment, const RetentionRules& rules, Instant now) {
  return rules.age && to_instant(segment.max_timestamp) + *rules.age < now;
}

std::size_t count_expired(std::span<const SegmentExtent> segments, const RetentionRules& rules,
                          Instant now) {
  if (segments.empty()) return 0;
  std::uint64_t rest = 0;
  for (const SegmentExtent& segment : segments) rest += segment.bytes;
  std::size_t count = 0;
  for (const SegmentExtent& segment : segments.first(segments.size() - 1)) {
    rest -= segment.bytes;
    const bool too_much = rules.bytes && rest >= *rules.bytes;
    if (!too_much && !is_past_age(segment, rules, now)) break;
    ++count;
  }
  return count;
}

}  // namespace baton
