#include "core/stream/murmur2.h"

#include <bit>
#include <cstring>

#include "base/assert.h"

namespace baton {
namespace {

constexpr std::uint32_t kSeed = 0x9747b28cU;
constexpr std::uint32_t kMultiplier = 0x5bd1e995U;
// Kafka clears the sign rather than taking the absolute value, which differs for half of the keys.
constexpr std::uint32_t kPositive = 0x7fffffffU;

}  // namespace

std::uint32_t murmur2(std::string_view bytes) {
  static_assert(std::endian::native == std::endian::little);
  std::uint32_t hash = kSeed ^ static_cast<std::uint32_t>(bytes.size());
  while (bytes.size() >= sizeof(std::uint32_t)) {
    std::uint32_t word = 0;
    std::memcpy(&word, bytes.data(), sizeof word);
    word *= kMultiplier;
    word ^= word >> 24U;
    hash = (hash * kMultiplier) ^ (word * kMultiplier);
    bytes.remove_prefix(sizeof word);
  }
  if (!bytes.empty()) {
    std::uint32_t last = 0;
    std::memcpy(&last, bytes.data(), bytes.size());
    hash = (hash ^ last) * kMultiplier;
  }
  hash = (hash ^ (hash >> 13U)) * kMultiplier;
  return hash ^ (hash >> 15U);
}

std::uint32_t partition_of(std::string_view key, std::uint32_t partitions) {
  BATON_ASSERT(partitions > 0);
  return (murmur2(key) & kPositive) % partitions;
}

}  // namespace baton
