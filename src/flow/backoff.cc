#include "flow/backoff.h"

#include <algorithm>

namespace baton::flow {

Duration Backoff::limit(std::uint32_t attempt) const {
  Duration result = first;
  for (std::uint32_t i = 1; i < attempt && result < most; ++i) result *= 2;
  return std::min(result, most);
}

Duration Backoff::wait(std::uint32_t attempt, Random& random) const {
  return Duration(random.below(static_cast<std::uint64_t>(limit(attempt).count()) + 1));
}

}  // namespace baton::flow
