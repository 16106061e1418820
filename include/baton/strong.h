#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>

namespace baton {

/// A number with a meaning: numbers of different tags never mix, and only `.value` is a plain
/// number. `Strong<struct QueueIdTag> id{7}`.
template <class Tag, class Rep = std::uint64_t>
struct Strong {
  Rep value{};

  constexpr Strong() = default;
  constexpr explicit Strong(Rep number) : value(number) {}
  constexpr auto operator<=>(const Strong&) const = default;
};

}  // namespace baton

template <class Tag, class Rep>
struct std::hash<baton::Strong<Tag, Rep>> {
  std::size_t operator()(const baton::Strong<Tag, Rep>& number) const noexcept {
    return std::hash<Rep>{}(number.value);
  }
};
