#pragma once

#include <cstdint>
#include <map>

#include "core/workers/view.h"

namespace baton::partition {

/// Chunks of the assignment as they should become.
using Plan = std::map<std::uint32_t, Assignment>;

struct PlanRequest {
  std::uint32_t partitions = 0;
  WallTime now{};
  /// A worker that has stopped and gives everything away; empty: none leaves.
  SessionId leaving{};
};

/// The chunks that should change, and how: balanced, with the fewest moves.
///
/// The partitions of dead workers (and of the one that leaves) get their new owner at once, under a
/// new epoch; those of living workers get a `next`, and the owner hands them over when it has
/// stopped. Those of a worker that drains or restarts are left alone: it hands them over, returns,
/// or dies.
Plan make_plan(const GroupView& view, const PlanRequest& request);

}  // namespace baton::partition
