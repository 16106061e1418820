#pragma once

#include <cstdint>
#include <string_view>

namespace baton {

/// The project's own generator (xoshiro256**): the same seed gives the same numbers with every
/// compiler and library, which std's distributions do not promise. Not for secrets.
class Random {
 public:
  explicit Random(std::uint64_t seed);

  std::uint64_t next();
  /// Uniform in [0, bound); 0 when bound is 0.
  std::uint64_t below(std::uint64_t bound);
  /// True with probability numerator/denominator.
  bool chance(std::uint64_t numerator, std::uint64_t denominator);
  /// A generator of its own for `label`: draws from one fork never shift those of another.
  [[nodiscard]] Random fork(std::string_view label) const;

 private:
  std::uint64_t state_[4];
};

}  // namespace baton
