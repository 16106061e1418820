#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "pipeline/engine/owned_partition.h"
#include "pipeline/engine/record.h"

namespace baton::pipeline {

/// With exactly_once_effect, what a lane's transaction does to the mark of one partition: it moves
/// the mark from `expected` to `next`, if `epoch` is still the owner's. If no row matches, another
/// process moved the mark.
struct MarkMove {
  OwnedPartition* assignment = nullptr;
  std::uint32_t lane = 0;
  std::int64_t expected = 0;
  std::int64_t next = 0;
  std::int64_t done_below = 0;  // Of the whole partition, as known now; stored beside the mark.
};

/// How records are spread over lanes, in the form that marks store: the number of lanes, by key;
/// negative if by partition. Marks of one layout mean nothing in another.
inline std::int64_t layout_of(std::uint32_t lanes, bool by_partition) {
  return by_partition ? -std::int64_t{lanes} : std::int64_t{lanes};
}
/// The error for marks of another layout that are not settled.
flow::SinkError layout_error(std::uint32_t partition, std::int64_t stored, std::int64_t ours);

/// The moves for writing `items`, which are records of one lane, in their order. Empty without
/// exactly_once_effect.
std::vector<MarkMove> moves_of(std::span<const Item> items);
/// Records in the assignments that the transaction is committed.
void moved(std::span<const MarkMove> moves);

}  // namespace baton::pipeline
