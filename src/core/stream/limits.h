#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

#include "base/limits.h"

/// Bounds of streams. Those that come in from outside are checked where they enter; the error names
/// the field, the value and the limit.
namespace baton::limits {

// Streams.
inline constexpr std::size_t kStreamNameBytesMax = 200;
inline constexpr std::uint32_t kPartitionsPerStreamMax = 1024;
inline constexpr std::size_t kStreamsPerShard = 100'000;
inline constexpr std::size_t kProducerNameBytesMax = 200;
inline constexpr std::size_t kProducerNamesPerStream = 100'000;

// Batches.
inline constexpr std::size_t kStreamBatchBytesDefault = 1 * kMiB;
inline constexpr std::size_t kStreamBatchBytesMax = 16 * kMiB;
inline constexpr std::size_t kStreamBatchRecordsMax = 1'000'000;
inline constexpr std::size_t kRecordHeadersMax = 10'000;
// What a batch may grow to when it is decompressed: a small one must not fill the memory.
inline constexpr std::size_t kDecompressedBytesMax = 64 * kMiB;
inline constexpr Duration kTimestampAheadMax = hours{1};

// Segments of a partition. Positions in an index are signed 32-bit numbers, as offsets relative to
// the segment's first are.
inline constexpr std::uint64_t kSegmentBytesDefault = 256 * kMiB;
inline constexpr std::uint64_t kSegmentBytesMin = 4 * kKiB;
inline constexpr std::uint64_t kSegmentBytesMax = 1024 * kMiB;
inline constexpr std::uint64_t kIndexIntervalBytesDefault = 4 * kKiB;

// Idempotent producers. The SDK keeps at most as many batches in flight as are remembered.
inline constexpr std::size_t kProducerBatchesRemembered = 5;
inline constexpr std::size_t kProducersPerPartition = 100'000;
inline constexpr Duration kProducerExpiry = hours{24 * 7};

}  // namespace baton::limits
