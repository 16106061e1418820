#pragma once

#include <cstddef>
#include <cstdint>

/// Bounds of the SDK that are not options.
namespace baton::client::limits {

/// Acks, nacks and extensions in one frame.
inline constexpr std::size_t kItemsPerFrame = 1024;
/// Confirmed frames whose memory is kept for the next ones.
inline constexpr std::size_t kFramesKept = 8;
inline constexpr std::size_t kReasonBytes = 1024;
inline constexpr std::size_t kConcurrencyMax = 1024;
/// Bytes counted for a message beside its content, in bounds on bytes.
inline constexpr std::size_t kMessageOverheadBytes = 64;

/// Bytes of batches in one frame to a stream; a single batch may be larger.
inline constexpr std::size_t kAppendFrameBytes = 1024UL * 1024;
inline constexpr std::size_t kAppendFrameBatches = 256;
/// Bytes counted for a record beside its content, in bounds on bytes.
inline constexpr std::size_t kRecordOverheadBytes = 64;
/// How often a batch is resent after the broker could not store it, or did not know the batch
/// before it.
inline constexpr int kBatchTriesMax = 10;
/// Consecutive protocol violations by the broker before the stream is given up.
inline constexpr int kViolationsMax = 10;

}  // namespace baton::client::limits
