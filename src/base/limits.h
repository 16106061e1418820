#pragma once

#include <chrono>
#include <cstdint>

#include "base/time.h"

/// Bounds of the product. Values that come in from outside are checked where they enter; the error
/// names the field and the limit.
namespace baton::limits {

using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

inline constexpr std::size_t kKiB = 1024;
inline constexpr std::size_t kMiB = 1024 * kKiB;

// Names and messages.
inline constexpr std::size_t kQueueNameBytes = 200;
inline constexpr std::size_t kConsumerIdBytes = 128;
inline constexpr std::size_t kFairnessKeyBytes = 256;
inline constexpr std::size_t kThrottleKeyBytes = 256;
inline constexpr std::size_t kThrottleKeysPerMessage = 8;
inline constexpr std::size_t kDedupIdBytes = 256;
inline constexpr std::size_t kHeadersPerMessage = 64;
inline constexpr std::size_t kHeaderBytes = 16 * kKiB;  // All names and values of a message.
inline constexpr std::size_t kReasonBytes = 1 * kKiB;
inline constexpr std::size_t kPayloadBytesDefault = 1 * kMiB;
inline constexpr std::size_t kPayloadBytesMax = 16 * kMiB;
inline constexpr std::size_t kBatchItems = 10'000;

// Settings of a queue.
inline constexpr Duration kVisibilityTimeoutMin = std::chrono::milliseconds{1};
inline constexpr Duration kVisibilityTimeoutMax = hours{12};
inline constexpr Duration kDelayMax = hours{24 * 365};
inline constexpr Duration kRetentionMax = hours{24 * 365 * 10};
inline constexpr Duration kDedupWindowMax = hours{24 * 7};
inline constexpr std::uint64_t kDedupIdsMax = 10'000'000;
inline constexpr std::uint32_t kAttemptsMax = 1'000'000;
inline constexpr std::uint32_t kWeightMax = 1'000;
inline constexpr std::size_t kWeightsPerQueue = 10'000;
inline constexpr std::size_t kThrottlesPerQueue = 10'000;
inline constexpr double kThrottleRateMax = 1e9;
inline constexpr std::uint64_t kThrottleBurstMax = 1'000'000'000;
inline constexpr std::size_t kQueuesPerShard = 100'000;

// Consumers.
inline constexpr std::uint32_t kInFlightDefault = 256;
inline constexpr std::uint32_t kInFlightMax = 100'000;
inline constexpr std::uint64_t kInFlightBytesDefault = 16 * kMiB;
inline constexpr std::uint64_t kInFlightBytesMax = 1024 * kMiB;
inline constexpr std::size_t kTurnMessages = 64;
inline constexpr Duration kReturnAfterRestart = seconds{5};

// Memory of a shard.
inline constexpr std::size_t kPayloadBudgetBytes = 64 * kMiB;
inline constexpr std::size_t kParkedPerKey = 1024;
inline constexpr Duration kDelayedHorizon = seconds{60};
inline constexpr std::size_t kRefillRows = 4096;
inline constexpr std::size_t kRefillBytes = 4 * kMiB;

// Rounds and checkpoints of a shard.
inline constexpr std::size_t kCommandsWaiting = 4096;
inline constexpr std::size_t kCommandBytesWaiting = 64 * kMiB;
inline constexpr std::size_t kRoundBytes = 8 * kMiB;
inline constexpr std::size_t kRoundDeliveries = 16'384;
inline constexpr std::uint64_t kCheckpointJournalBytes = 512 * kMiB;
inline constexpr std::uint64_t kCheckpointDeltaBytes = 32 * kMiB;
inline constexpr Duration kCheckpointInterval = seconds{60};
inline constexpr std::uint64_t kJournalBehindBytes = 4096 * kMiB;

// Messages that a peek shows.
inline constexpr std::uint32_t kPeekDefault = 10;
inline constexpr std::uint32_t kPeekMax = 1000;

}  // namespace baton::limits
