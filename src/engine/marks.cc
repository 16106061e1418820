#include "engine/marks.h"

#include <algorithm>

namespace baton::pipeline {

std::vector<MarkMove> moves_of(std::span<const Item> items) {
  std::vector<MarkMove> moves;
  for (const Item& item : items) {
    Assignment* const assignment = item.assignment.get();
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
  // Lanes that touch several partitions lock their rows in one order.
  std::ranges::sort(moves, {}, [](const MarkMove& move) { return move.assignment->partition(); });
  return moves;
}

void moved(std::span<const MarkMove> moves) {
  for (const MarkMove& move : moves) move.assignment->set_mark(move.lane, move.next);
}

}  // namespace baton::pipeline
