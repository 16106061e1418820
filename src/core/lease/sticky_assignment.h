#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace baton {

/// The index of a holder; nullopt: no holder.
using HolderIndex = std::optional<std::size_t>;

/// Divides items among holders by weight: each holder gets its quota rounded down or up, and as few
/// items move as that allows. On equal choice a holder gives up its highest items, and keeps the
/// rounding-up that it has.
///
/// `holders` says who has each item now; returns who is to have it (no holder, if there are no
/// weights). Each weight is at least 1. O(n + m log m).
std::vector<HolderIndex> assign_sticky(std::span<const HolderIndex> holders,
                                       std::span<const std::uint32_t> weights);

}  // namespace baton
