#include "core/lease/sticky_assignment.h"

#include <algorithm>
#include <numeric>

#include "base/assert.h"

namespace baton {
namespace {

/// How many items each holder is to have.
std::vector<std::size_t> shares(std::size_t things, std::span<const std::uint32_t> weights,
                                std::span<const std::size_t> had) {
  const auto total = std::accumulate(weights.begin(), weights.end(), std::uint64_t{0});
  BATON_ASSERT(total > 0);
  struct Candidate {
    std::size_t holder;
    std::uint64_t fraction;  // Of the quota, in units of 1/total.
    bool has_more;           // Rounding up saves a move.
  };
  std::vector<std::size_t> result(weights.size());
  std::vector<Candidate> candidates;
  std::size_t given = 0;
  for (std::size_t i = 0; i < weights.size(); ++i) {
    const std::uint64_t scaled = std::uint64_t{things} * weights[i];
    result[i] = static_cast<std::size_t>(scaled / total);
    given += result[i];
    if (scaled % total != 0) candidates.push_back({i, scaled % total, had[i] > result[i]});
  }
  std::ranges::sort(candidates, [](const Candidate& a, const Candidate& b) {
    if (a.has_more != b.has_more) return a.has_more;
    if (a.fraction != b.fraction) return a.fraction > b.fraction;
    return a.holder < b.holder;
  });
  for (std::size_t i = 0; given < things; ++i, ++given) ++result[candidates[i].holder];
  return result;
}

}  // namespace

std::vector<HolderIndex> assign_sticky(std::span<const HolderIndex> holders,
                                       std::span<const std::uint32_t> weights) {
  std::vector<HolderIndex> result(holders.size());
  if (weights.empty()) return result;
  std::vector<std::size_t> had(weights.size());
  for (const HolderIndex& holder : holders) {
    if (holder.has_value()) ++had[*holder];
  }
  std::vector<std::size_t> room = shares(holders.size(), weights, had);

  // From the lowest on, each holder keeps the items it has room for; the rest goes to holders with
  // room left.
  for (std::size_t thing = 0; thing < holders.size(); ++thing) {
    const HolderIndex& holder = holders[thing];
    if (!holder.has_value() || room[*holder] == 0) continue;
    --room[*holder];
    result[thing] = holder;
  }
  std::size_t next = 0;
  for (HolderIndex& holder : result) {
    if (holder.has_value()) continue;
    while (room[next] == 0) ++next;
    --room[next];
    holder = next;
  }
  return result;
}

}  // namespace baton
