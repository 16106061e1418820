#include "pipeline/engine/marks.h"

#include <algorithm>
#include <cstdlib>

#include <fmt/format.h>

namespace baton::pipeline {

flow::SinkError layout_error(std::uint32_t partition, std::int64_t stored, std::int64_t ours) {
  const auto shown = [](std::int64_t layout) {
    return fmt::format("{}{}", std::abs(layout), layout < 0 ? " by partition" : "");
  };
  return {
      .error_class = flow::ErrorClass::config,
      .text = fmt::format("partition {} was written with {} lanes and not drained; it cannot go "
                          "on with {}: drain it with {} first",
                          partition, shown(stored), shown(ours), shown(stored))};
}

std::vector<MarkMove> moves_of(std::span<const Item> items) {
  std::vector<MarkMove> moves;
  for (const Item& item : items) {
    OwnedPartition* const assignment = item.assignment.get();
    if (!assignment->is_marked()) continue;
    auto move = std::ranges::find(moves, assignment, &MarkMove::assignment);
    if (move == moves.end()) {
      moves.push_back({.assignment = assignment,
                       .lane = item.lane,
                       .expected = assignment->mark(item.lane),
                       .next = 0,
                       .done_below = assignment->progress().committable});
      move = moves.end() - 1;
    }
    move->next = std::max(move->next, item.record.offset + 1);
  }
  // Lanes that write to several partitions lock their rows in one order.
  std::ranges::sort(moves, {}, [](const MarkMove& move) { return move.assignment->partition(); });
  return moves;
}

void moved(std::span<const MarkMove> moves) {
  for (const MarkMove& move : moves) move.assignment->set_mark(move.lane, move.next);
}

}  // namespace baton::pipeline
