#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "base/result.h"
#include "core/stream/records.h"
#include "core/stream/types.h"
#include "storage/log/partition_reader.h"

namespace baton {

/// Appends a record to `out` in a protocol's form. Null if the client takes whole batches.
using RecordEncoder = void (*)(std::string& out, RecordView record);

/// A part of a partition on its way to a client.
struct Chunk {
  std::string batches;  // Whole batches, or
  std::string records;  // records, each encoded.
  std::uint32_t batch_count = 0;
  std::uint64_t record_count = 0;  // From the requested offset on.
  std::size_t bytes = 0;           // As stored: its cost in credit.
  Offset next;                     // Where to read next.
  Offset end;                      // The end of the partition, as the reader saw it.

  [[nodiscard]] bool empty() const { return batch_count == 0; }
};

/// What to read, and its limits; at least one batch, if there is one.
struct ChunkWanted {
  Offset from;
  std::size_t bytes_max = 0;
  std::uint64_t batches_max = 0;
  std::uint64_t records_max = 0;  // 0 = no limit. A batch that exceeds it is the last.
  RecordEncoder encode_record = nullptr;
};

/// Reads from the disk, so no thread of a protocol or of a shard may call it.
Result<Chunk> read_chunk(PartitionReader& reader, const ChunkWanted& wanted);

}  // namespace baton
