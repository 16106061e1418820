#pragma once

#include <cstddef>
#include <cstdint>

/// Bounds of the SDK that are no option of its user.
namespace baton::client::limits {

/// Acks, nacks and extensions in one frame.
inline constexpr std::size_t kItemsPerFrame = 1024;
/// Confirmed frames whose memory is kept for the next ones.
inline constexpr std::size_t kFramesKept = 8;
inline constexpr std::size_t kReasonBytes = 1024;
inline constexpr std::size_t kConcurrencyMax = 1024;
/// What a message costs beside its bytes, for the bounds on bytes.
inline constexpr std::size_t kMessageOverheadBytes = 64;

/// Bytes of batches in one frame to a stream; a single batch may be larger.
inline constexpr std::size_t kAppendFrameBytes = 1024UL * 1024;
inline constexpr std::size_t kAppendFrameBatches = 256;
/// What a record costs beside its bytes, for the bounds on bytes.
inline constexpr std::size_t kRecordOverheadBytes = 64;
/// How often a batch is sent again after the broker could not take it, or knew nothing of the one
/// before it.
inline constexpr int kBatchTriesMax = 10;
/// How often in a row the broker may say what it may not say.
inline constexpr int kViolationsMax = 10;

}  // namespace baton::client::limits
