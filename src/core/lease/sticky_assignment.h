#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

namespace baton {

/// The index of a holder; none: nobody.
using HolderIndex = std::optional<std::size_t>;

/// Divides things among holders by weight: everybody gets its quota rounded down or up, and as few
/// things move as that allows. On equal choice a holder gives up its highest things, and keeps the
/// rounding-up that it has.
///
/// `holders` says who has each thing now; answers who is to have it (nobody, if there are no
/// weights). Each weight is at least 1. O(n + m log m).
std::vector<HolderIndex> assign_sticky(std::span<const HolderIndex> holders,
                                       std::span<const std::uint32_t> weights);

}  // namespace baton
