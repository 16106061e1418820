#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace baton {

/// A key that is drawn by chance and kept secret.
using SipKey = std::array<std::uint8_t, 16>;

/// SipHash-2-4 of `bytes` under `key`: a hash that nobody can predict who does not know the key.
std::uint64_t siphash(const SipKey& key, std::string_view bytes);

}  // namespace baton
