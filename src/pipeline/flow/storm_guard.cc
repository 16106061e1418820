#include "pipeline/flow/storm_guard.h"

#include <utility>

namespace baton::flow {

void StormGuard::Verdicts::add(bool is_poison) {
  row = is_poison ? row + 1 : 0;
  poison -= last[next] ? 1 : 0;
  poison += is_poison ? 1 : 0;
  last[next] = is_poison;
  next = (next + 1) % last.size();
  ++seen;
}

void StormGuard::good(Judge judge, std::size_t count) {
  Verdicts& verdicts = verdicts_.at(std::to_underlying(judge));
  for (std::size_t i = 0; i < count; ++i) verdicts.add(false);
}

bool StormGuard::poison(Judge judge) {
  Verdicts& verdicts = verdicts_.at(std::to_underlying(judge));
  verdicts.add(true);
  std::uint64_t of_last = 0;
  for (const Verdicts& each : verdicts_) of_last += each.poison_of_last();
  is_storm_ =
      is_storm_ || verdicts.row >= options_.in_a_row ||
      (of_last > 0 && of_last * 100 >= std::uint64_t{options_.percent} * verdicts.last.size());
  return is_storm_;
}

void StormGuard::reset() {
  verdicts_.fill(Verdicts{.last = std::vector<bool>(options_.of_last)});
  is_storm_ = false;
}

}  // namespace baton::flow
