#pragma once

#include <chrono>
#include <cstddef>

#include "base/limits.h"

/// Limits of sessions and requests; those of the product are in base/limits.h.
namespace baton::limits {

// Requests of one session under way. A session at one of these limits reads no request until
// another is confirmed.
inline constexpr std::size_t kStreamBatches = 8;
inline constexpr std::size_t kStreamBytes = 8 * kMiB;
// One output to a client: what waits, up to these limits, but at least one message.
inline constexpr std::size_t kFrameMessages = 256;
inline constexpr std::size_t kFrameBytes = 256 * kKiB;

// Streams: the bytes of one read from the disk, and the bytes that may wait to be written to a
// connection.
inline constexpr std::size_t kChunkBytes = 1 * kMiB;
inline constexpr std::uint64_t kChunkBatches = 4096;
inline constexpr std::size_t kConnectionOutputBytes = 4 * kMiB;
inline constexpr std::size_t kSubscriptionsPerConnection = 2000;
inline constexpr std::size_t kItemsPerRequest = 100'000;
inline constexpr std::uint64_t kCreditMax = std::uint64_t{1} << 40U;
// Threads that may wait for the disk.
inline constexpr std::size_t kBackgroundThreads = 2;

// A page of a list, or of a snapshot of keys: below the 4 MiB that a gRPC client accepts by
// default.
inline constexpr std::size_t kPageItems = 1000;
inline constexpr std::size_t kPageBytes = 1 * kMiB;
// A shard adds no further stream to a page once the page has this many partitions.
inline constexpr std::size_t kPagePartitions = 10'000;
inline constexpr std::size_t kPageTokenBytes = 4 * kKiB;
// Credit of one watch: changes and bytes that the shard may send before they are written. At least
// half of the credit is always with the shard or on its way there.
inline constexpr std::uint64_t kWatchChanges = 256;
inline constexpr std::int64_t kWatchBytes = 1 * kMiB;
// Hints of lost sessions that may wait; more are dropped.
inline constexpr std::size_t kWatchPieces = 4096;

// Queues and groups that /metrics shows individually.
inline constexpr std::uint64_t kQueuesInMetrics = 1000;
inline constexpr std::uint64_t kGroupsInMetrics = 1000;

// Operators' calls.
// Below the 4 MiB that a gRPC client accepts by default; at least one message is shown.
inline constexpr std::size_t kPeekBytes = 3 * kMiB;
inline constexpr double kRedriveRateMin = 0.001;
inline constexpr double kRedriveRateMax = 1e9;

// The largest request, in bytes on the wire, unless configured.
inline constexpr std::size_t kRequestBytesDefault = 32 * kMiB;

// How long a refused client is told to wait.
inline constexpr std::chrono::milliseconds kRetryAfter{100};

}  // namespace baton::limits
