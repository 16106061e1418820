#pragma once

#include <bit>
#include <concepts>
#include <cstring>
#include <type_traits>

namespace baton {

static_assert(std::endian::native == std::endian::little);

template <std::integral T>
constexpr T swap_bytes(T value) {
  using Unsigned = std::make_unsigned_t<T>;
  const auto bits = static_cast<Unsigned>(value);
  if constexpr (sizeof(T) == 2) return static_cast<T>(__builtin_bswap16(bits));
  if constexpr (sizeof(T) == 4) return static_cast<T>(__builtin_bswap32(bits));
  if constexpr (sizeof(T) == 8) return static_cast<T>(__builtin_bswap64(bits));
}

/// The big-endian number at `from`, which needs no alignment. The caller has checked that it is
/// there.
template <std::integral T>
T load_big(const char* from) {
  T value{};
  std::memcpy(&value, from, sizeof value);
  return swap_bytes(value);
}

template <std::integral T>
void store_big(char* to, T value) {
  value = swap_bytes(value);
  std::memcpy(to, &value, sizeof value);
}

}  // namespace baton
