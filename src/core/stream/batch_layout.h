#pragma once

#include <cstddef>
#include <cstdint>

/// Where the fields of a batch's header begin; drawn at the top of record_batch.h.
namespace baton::batch_layout {

inline constexpr std::size_t kBaseOffset = 0;
inline constexpr std::size_t kLength = 8;
inline constexpr std::size_t kLeaderEpoch = 12;
inline constexpr std::size_t kMagic = 16;
inline constexpr std::size_t kCrc = 17;
inline constexpr std::size_t kAttributes = 21;
inline constexpr std::size_t kLastOffsetDelta = 23;
inline constexpr std::size_t kFirstTimestamp = 27;
inline constexpr std::size_t kMaxTimestamp = 35;
inline constexpr std::size_t kProducerId = 43;
inline constexpr std::size_t kProducerEpoch = 51;
inline constexpr std::size_t kSequence = 53;
inline constexpr std::size_t kCount = 57;

inline constexpr std::int8_t kMagicValue = 2;

}  // namespace baton::batch_layout
