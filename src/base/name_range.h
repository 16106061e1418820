#pragma once

#include <string_view>

namespace baton {

/// Names that begin with `prefix` and come behind `after`; each may be empty.
struct NameRange {
  std::string_view prefix;
  std::string_view after;
};

/// Calls `take(name, value)` with the entries of an ordered map whose names are in the range, in
/// their order, until it answers false: then there was no room for that entry. Returns whether
/// entries are left.
template <class Map, class Take>
bool take_names(const Map& map, NameRange range, Take take) {
  auto entry =
      range.after < range.prefix ? map.lower_bound(range.prefix) : map.upper_bound(range.after);
  for (; entry != map.end() && entry->first.starts_with(range.prefix); ++entry) {
    if (!take(entry->first, entry->second)) return true;
  }
  return false;
}

}  // namespace baton
