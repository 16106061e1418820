#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <baton/stream.h>

#include "base/result.h"
#include "core/stream/record_batch.h"

/// Between the public records and the bytes of batches. Pure.
namespace baton::client {

/// The SDK's form of an error of the layers below.
Error to_public(const baton::Error& error);

/// From where on the records of a batch count: batches come whole, and the first one may begin
/// before what was asked for.
struct ReadFloor {
  std::int64_t offset = -1;  // Below it nothing counts.
  /// Nothing counts before the first record that is not older; later ones may be.
  std::optional<RecordTime> time{};
};

/// The records of whole batches, one after the other, that do not lie below `floor`, whose time is
/// cleared once a record was young enough. Fails with malformed when a checksum does not fit or
/// anything else is wrong: what cannot be read must not be skipped.
Result<std::vector<Record>> decode_batches(std::string_view bytes, std::uint32_t partition,
                                           ReadFloor& floor);

/// Writes the producer's numbers into a finished batch, and the checksum that follows from them.
void stamp_batch(std::string& batch, const ProducerStamp& stamp);

}  // namespace baton::client
