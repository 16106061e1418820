#pragma once

#include <cstdint>
#include <map>

#include "core/workers/view.h"

namespace baton::partition {

/// Chunks of the assignment as they should be.
using Plan = std::map<std::uint32_t, Assignment>;

struct PlanRequest {
  std::uint32_t partitions = 0;
  WallTime now{};
  /// A worker that has stopped and gives away all it has; empty: nobody leaves.
  SessionId leaving{};
};

/// The chunks that should change, and how: balanced, with the fewest moves.
///
/// The partitions of the dead (and of the one who leaves) get their new owner at once, under a new
/// epoch; those of the living get a `next`, and the owner hands them over when it has stopped.
/// Those of a worker that drains or restarts are left alone: it hands them over, comes back, or
/// dies.
Plan make_plan(const GroupView& view, const PlanRequest& request);

}  // namespace baton::partition
