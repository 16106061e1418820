#pragma once

#include <chrono>
#include <cstddef>

#include "base/limits.h"

/// The bounds of the api layer; those of the product are in base/limits.h.
namespace baton::limits {

// Each stream. A stream at one of the first two is not read until something is confirmed.
inline constexpr std::size_t kStreamBatches = 8;
inline constexpr std::size_t kStreamBytes = 8 * kMiB;
// One frame to a consumer: whatever waits, up to so much, and always at least one message.
inline constexpr std::size_t kFrameMessages = 256;
inline constexpr std::size_t kFrameBytes = 256 * kKiB;

// Operators' calls.
inline constexpr std::uint32_t kPeekDefault = 10;
inline constexpr std::uint32_t kPeekMax = 1000;
// Below the 4 MiB that a gRPC client accepts by default; at least one message is shown.
inline constexpr std::size_t kPeekBytes = 3 * kMiB;
inline constexpr double kRedriveRateMax = 1e9;

// The largest request, in bytes on the wire, unless configured.
inline constexpr std::size_t kRequestBytesDefault = 32 * kMiB;

// What a client that was turned away is told to wait.
inline constexpr std::chrono::milliseconds kRetryAfter{100};

}  // namespace baton::limits
