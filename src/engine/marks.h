#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/assignment.h"
#include "engine/record.h"

namespace baton::pipeline {

/// With exactly_once_effect, what a lane's transaction does to the mark of one partition: it moves
/// from `expected` to `next`, if `epoch` is still the owner's. No row: somebody else moved it.
struct MarkMove {
  Assignment* assignment = nullptr;
  std::uint32_t lane = 0;
  std::int64_t expected = 0;
  std::int64_t next = 0;
  std::int64_t done_below = 0;  // Of the whole partition, as known now; kept beside the mark.
};

/// The moves that go with writing `items`, which are of one lane, in their order. Empty without
/// exactly_once_effect.
std::vector<MarkMove> moves_of(std::span<const Item> items);
/// The transaction is in: the assignments know it, too.
void moved(std::span<const MarkMove> moves);

}  // namespace baton::pipeline
