#pragma once

#include <cstdint>
#include <limits>

#include <baton/numbers.h>

#include "base/time.h"

namespace baton {

/// The time of a record: milliseconds since 1970, as its producer set it.
using TimestampMs = Strong<struct TimestampMsTag, std::int64_t>;
/// Which life of the partition's leader wrote a batch. Kept for tools that read the files.
using LeaderEpoch = Strong<struct LeaderEpochTag, std::int32_t>;

/// An idempotent producer, as InitProducer named it.
using ProducerId = Strong<struct ProducerIdTag, std::int64_t>;
/// Grows whenever a producer starts again under its name.
using ProducerEpoch = Strong<struct ProducerEpochTag, std::int16_t>;
/// The number of a producer's record in one partition: from 0 to 2^31 - 1, then 0 again.
using Sequence32 = Strong<struct Sequence32Tag, std::int32_t>;

constexpr TimestampMs to_timestamp(Instant at) { return TimestampMs{at.ns / 1'000'000}; }
/// Saturates, as a timestamp may be any number that somebody sent.
constexpr Instant to_instant(TimestampMs at) {
  std::int64_t ns = 0;
  if (!__builtin_mul_overflow(at.value, std::int64_t{1'000'000}, &ns)) return {ns};
  return at.value < 0 ? Instant{std::numeric_limits<std::int64_t>::min()} : Instant::never();
}

/// Who sent a batch, and with which sequence number its first record comes.
struct ProducerStamp {
  ProducerId id;
  ProducerEpoch epoch;
  Sequence32 sequence;

  constexpr auto operator<=>(const ProducerStamp&) const = default;
};

}  // namespace baton
