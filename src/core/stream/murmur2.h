#pragma once

#include <cstdint>
#include <string_view>

namespace baton {

/// The 32-bit Murmur2 hash under Kafka's seed, as its Java client computes it for keys.
std::uint32_t murmur2(std::string_view bytes);

/// The partition, of `partitions` (at least 1), that a record with this key belongs to: the one
/// that Kafka's default partitioner chooses.
std::uint32_t partition_of(std::string_view key, std::uint32_t partitions);

}  // namespace baton
