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

}  // namespace baton::client::limits
