#include "server/shard/row_merge.h"

#include <algorithm>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

namespace baton {
namespace {

bool covers(const RowChange& range, const RowChange& change) {
  return range.table == change.table && range.key <= change.key && change.key < range.value;
}

}  // namespace

RowBatch surviving(const RowBatch& older, const RowBatch& newer) {
  std::set<std::pair<std::uint8_t, std::string_view>> places;
  std::vector<const RowChange*> ranges;
  for (const RowChange& change : newer.changes()) {
    if (change.kind == RowChange::Kind::erase_range) {
      ranges.push_back(&change);
    } else {
      places.emplace(change.table.value, change.key);
    }
  }
  RowBatch left;
  for (const RowChange& change : older.changes()) {
    const bool is_range = change.kind == RowChange::Kind::erase_range;
    const bool replaced = !is_range && places.contains({change.table.value, change.key});
    const bool erased = !is_range && std::ranges::any_of(ranges, [&](const RowChange* range) {
      return covers(*range, change);
    });
    if (!replaced && !erased) left.add(change);
  }
  return left;
}

}  // namespace baton
