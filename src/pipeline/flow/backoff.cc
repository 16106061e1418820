#include "pipeline/flow/backoff.h"

#include <algorithm>

namespace baton::flow {

Duration Backoff::limit(std::uint32_t attempt) const {
  Duration result = first;
  for (std::uint32_t i = 1; i < attempt && result < most; ++i) result *= 2;
  return std::min(result, most);
}

Duration Backoff::steady(std::uint32_t attempt, Random& random) const {
  const Duration whole = limit(attempt);
  const auto tenth = static_cast<std::uint64_t>(whole.count() / 10);
  return whole - Duration(tenth) + Duration(random.below((2 * tenth) + 1));
}

Duration Backoff::wait(std::uint32_t attempt, Random& random) const {
  return Duration(random.below(static_cast<std::uint64_t>(limit(attempt).count()) + 1));
}

}  // namespace baton::flow
