#pragma once

#include <cstddef>
#include <cstdint>
#include <variant>

namespace baton {

/// Makes `variant` hold its alternative number `tag`, and calls `read` with it. Returns false if
/// there is no such alternative.
template <std::size_t I = 0, class Read, class... Alternatives>
bool read_tagged(std::uint8_t tag, std::variant<Alternatives...>& variant, const Read& read) {
  if constexpr (I == sizeof...(Alternatives)) {
    return false;
  } else {
    if (tag != I) return read_tagged<I + 1>(tag, variant, read);
    read(variant.template emplace<I>());
    return true;
  }
}

}  // namespace baton
