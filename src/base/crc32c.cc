#include "base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace baton {
namespace {

constexpr std::array<std::uint32_t, 256> make_table() {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < table.size(); ++i) {
    std::uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) {
      value = (value & 1U) != 0 ? (value >> 1U) ^ 0x82f63b78U : value >> 1U;
    }
    table[i] = value;
  }
  return table;
}

std::uint32_t crc32c_portable(std::string_view bytes, std::uint32_t crc) {
  static constexpr auto kTable = make_table();
  for (const char c : bytes) {
    crc = kTable[(crc ^ static_cast<std::uint8_t>(c)) & 0xffU] ^ (crc >> 8U);
  }
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) std::uint32_t crc32c_hardware(std::string_view bytes,
                                                                std::uint32_t crc) {
  const char* data = bytes.data();
  std::size_t left = bytes.size();
  std::uint64_t wide = crc;
  while (left >= sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, sizeof word);
    wide = _mm_crc32_u64(wide, word);
    data += sizeof word;
    left -= sizeof word;
  }
  auto narrow = static_cast<std::uint32_t>(wide);
  for (; left > 0; --left, ++data) narrow = _mm_crc32_u8(narrow, static_cast<std::uint8_t>(*data));
  return narrow;
}
#endif

}  // namespace

std::uint32_t crc32c(std::string_view bytes, std::uint32_t crc) {
#if defined(__x86_64__)
  static const bool kHasInstruction = __builtin_cpu_supports("sse4.2") != 0;
  if (kHasInstruction) return ~crc32c_hardware(bytes, ~crc);
#endif
  return ~crc32c_portable(bytes, ~crc);
}

}  // namespace baton
