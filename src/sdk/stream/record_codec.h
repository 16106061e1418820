#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <baton/stream.h>

#include "base/result.h"
#include "core/stream/record_batch.h"

/// Conversions between the public records and the bytes of batches. Pure.
namespace baton::client {

/// From where on the records of a batch count: batches arrive whole, and the first one may begin
/// before what was asked for.
struct ReadFloor {
  Offset offset = kNoOffset;  // Records below this offset do not count.
  /// Records do not count before the first one that is not older; later ones may be older.
  std::optional<RecordTime> time{};
};

/// The records of whole batches, one after the other, that are not below `floor`; its time is
/// cleared once a record was young enough. Fails with malformed when a checksum does not fit or
/// anything else is wrong: what cannot be read must not be skipped.
Result<std::vector<Record>> decode_batches(std::string_view bytes, PartitionNumber partition,
                                           ReadFloor& floor);

/// Writes the producer's numbers into a finished batch, and updates the checksum.
void stamp_batch(std::string& batch, const ProducerStamp& stamp);

}  // namespace baton::client
