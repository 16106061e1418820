#pragma once

#include <cstdint>
#include <string_view>

namespace baton {

/// CRC-32C (Castagnoli) of `bytes`, continuing from `crc` (0 to begin). Uses the CPU's instruction.
std::uint32_t crc32c(std::string_view bytes, std::uint32_t crc = 0);

}  // namespace baton
