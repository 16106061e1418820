#pragma once

#include <cstdint>

#include "base/result.h"
#include "core/stream/types.h"
#include "storage/log/partition_reader.h"

namespace baton {

/// Where a reader begins.
struct ReadFrom {
  enum class Place : std::uint8_t { first, last, next, offset, time };
  Place place = Place::first;
  Offset offset;
  TimestampMs time;
};

/// The offset that `from` names in a partition. Reads the disk if `from` is a time.
Result<Offset> resolve(const ReadFrom& from, const PartitionReader& reader);

}  // namespace baton
