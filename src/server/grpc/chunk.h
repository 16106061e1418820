#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "core/stream/types.h"
#include "storage/log/partition_reader.h"

namespace baton {

enum class ChunkFormat : std::uint8_t { batches, records };

/// A piece of a partition on its way to a client, ready to be put into a response.
struct Chunk {
  std::string batches;  // Whole batches, or
  std::string records;  // fields `records` of a response, encoded: ReadRecords.
  std::uint32_t batch_count = 0;
  std::uint64_t record_count = 0;  // From the offset asked for on.
  std::size_t bytes = 0;           // As stored: what it costs of a credit.
  Offset next;                     // To read from afterwards.
  Offset end;                      // Of the partition, as the reader saw it.

  [[nodiscard]] bool empty() const { return batch_count == 0; }
};

/// What to read, and at most how much of it; always at least one batch, if there is one.
struct ChunkWanted {
  Offset from;
  std::size_t bytes_max = 0;
  std::uint64_t batches_max = 0;
  std::uint64_t records_max = 0;  // 0 = no limit. A batch that goes past it is the last.
  ChunkFormat format = ChunkFormat::batches;
  unsigned records_field = 0;  // The number of the field `records` in the response.
};

/// Reads from the disk, so no thread of gRPC or of a shard calls it.
Result<Chunk> read_chunk(PartitionReader& reader, const ChunkWanted& wanted);

}  // namespace baton
