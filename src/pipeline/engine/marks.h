#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pipeline/engine/owned_partition.h"
#include "pipeline/engine/record.h"

namespace baton::pipeline {

/// With exactly_once_effect, what a lane's transaction does to the mark of one partition: it moves
/// from `expected` to `next`, if `epoch` is still the owner's. No row: somebody else moved it.
struct MarkMove {
  OwnedPartition* assignment = nullptr;
  std::uint32_t lane = 0;
  std::int64_t expected = 0;
  std::int64_t next = 0;
  std::int64_t done_below = 0;  // Of the whole partition, as known now; kept beside the mark.
};

/// How records are spread over lanes, as marks keep it: so many lanes, by key; negative: by
/// partition. Marks of one layout say nothing to another.
inline std::int64_t layout_of(std::uint32_t lanes, bool by_partition) {
  return by_partition ? -std::int64_t{lanes} : std::int64_t{lanes};
}
/// Marks of another layout that are not settled.
flow::SinkError layout_error(std::uint32_t partition, std::int64_t stored, std::int64_t ours);

/// The moves that go with writing `items`, which are of one lane, in their order. Empty without
/// exactly_once_effect.
std::vector<MarkMove> moves_of(std::span<const Item> items);
/// The transaction is in: the assignments know it, too.
void moved(std::span<const MarkMove> moves);

}  // namespace baton::pipeline
