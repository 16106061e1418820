#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace baton {

/// A random key that is kept secret.
using SipKey = std::array<std::uint8_t, 16>;

/// SipHash-2-4 of `bytes` under `key`: unpredictable without the key.
std::uint64_t siphash(const SipKey& key, std::string_view bytes);

}  // namespace baton
