#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace baton {

/// A stable 64-bit hash (XXH3): the same on every machine and in every version, for shards depend
/// on it.
std::uint64_t hash64(std::string_view bytes);
/// A stable 128-bit hash (XXH3), big-endian.
std::array<std::uint8_t, 16> hash128(std::string_view bytes);

}  // namespace baton
