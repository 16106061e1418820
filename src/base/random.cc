#include "base/random.h"

#include <bit>

#include "base/hash.h"

namespace baton {
namespace {

__extension__ using Wide = unsigned __int128;  // Not ISO C++: -Wpedantic wants __extension__.

std::uint64_t splitmix(std::uint64_t& state) {
  state += 0x9e3779b97f4a7c15ULL;
  std::uint64_t z = state;
  z = (z ^ (z >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  z = (z ^ (z >> 27U)) * 0x94d049bb133111ebULL;
  return z ^ (z >> 31U);
}

}  // namespace

Random::Random(std::uint64_t seed) : state_{} {
  for (auto& word : state_) word = splitmix(seed);
}

std::uint64_t Random::next() {
  const std::uint64_t result = std::rotl(state_[1] * 5, 7) * 9;
  const std::uint64_t shifted = state_[1] << 17U;
  state_[2] ^= state_[0];
  state_[3] ^= state_[1];
  state_[1] ^= state_[2];
  state_[0] ^= state_[3];
  state_[2] ^= shifted;
  state_[3] = std::rotl(state_[3], 45);
  return result;
}

std::uint64_t Random::below(std::uint64_t bound) {
  if (bound == 0) return 0;
  // The high half of a 64x64 product: uniform enough for tests and jitter, and free of division.
  return static_cast<std::uint64_t>((static_cast<Wide>(next()) * bound) >> 64U);
}

bool Random::chance(std::uint64_t numerator, std::uint64_t denominator) {
  return below(denominator) < numerator;
}

Random Random::fork(std::string_view label) const {
  return Random(state_[0] ^ std::rotl(state_[2], 32) ^ hash64(label));
}

}  // namespace baton
