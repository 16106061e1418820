#include "base/hash.h"

#include <cstring>

#include <xxhash.h>

namespace baton {

std::uint64_t hash64(std::string_view bytes) { return XXH3_64bits(bytes.data(), bytes.size()); }

std::array<std::uint8_t, 16> hash128(std::string_view bytes) {
  XXH128_canonical_t canonical;
  XXH128_canonicalFromHash(&canonical, XXH3_128bits(bytes.data(), bytes.size()));
  std::array<std::uint8_t, 16> result{};
  std::memcpy(result.data(), canonical.digest, result.size());
  return result;
}

}  // namespace baton
