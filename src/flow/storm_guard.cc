#include "flow/storm_guard.h"

namespace baton::flow {

bool StormGuard::record(bool poison) {
  row_ = poison ? row_ + 1 : 0;
  poison_ -= last_[next_] ? 1 : 0;
  poison_ += poison ? 1 : 0;
  last_[next_] = poison;
  next_ = (next_ + 1) % last_.size();
  ++seen_;
  const bool full = seen_ >= last_.size();
  return row_ >= options_.in_a_row ||
         (full && std::uint64_t{poison_} * 100 >= std::uint64_t{options_.percent} * last_.size());
}

void StormGuard::reset() {
  last_.assign(last_.size(), false);
  next_ = 0;
  seen_ = 0;
  poison_ = 0;
  row_ = 0;
}

}  // namespace baton::flow
