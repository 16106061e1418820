#pragma once

#include <cstdint>

#include <baton/strong.h>  // IWYU pragma: export

namespace baton {

/// The number of a partition, of a stream or of a group of workers: 0, 1, 2 and so on.
using PartitionNumber = Strong<struct PartitionNumberTag, std::uint32_t>;

/// The number of a record in its partition: 0, 1, 2 and so on, without gaps.
using Offset = Strong<struct OffsetTag, std::int64_t>;
/// Stands for an offset that is not known.
inline constexpr Offset kNoOffset{-1};

/// Grows with each change of a partition's owner: the fencing token. A system that is written to
/// keeps the greatest epoch that it has seen, and refuses a smaller one.
using Epoch = Strong<struct EpochTag>;

}  // namespace baton
