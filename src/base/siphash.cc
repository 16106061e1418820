#include "base/siphash.h"

#include <bit>
#include <cstddef>

/// As Aumasson and Bernstein describe it ("SipHash: a fast short-input PRF", 2012): four words of
/// state, two rounds for every eight bytes, four at the end.
namespace baton {
namespace {

struct State {
  std::uint64_t a;
  std::uint64_t b;
  std::uint64_t c;
  std::uint64_t d;

  void round() {
    a += b;
    c += d;
    b = std::rotl(b, 13) ^ a;
    d = std::rotl(d, 16) ^ c;
    a = std::rotl(a, 32);
    c += b;
    a += d;
    b = std::rotl(b, 17) ^ c;
    d = std::rotl(d, 21) ^ a;
    c = std::rotl(c, 32);
  }
  void absorb(std::uint64_t word) {
    d ^= word;
    round();
    round();
    a ^= word;
  }
};

/// Reads up to eight bytes, the lowest first.
template <class Bytes>
std::uint64_t word_of(const Bytes& bytes, std::size_t from, std::size_t count) {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < count; ++i) {
    word |= std::uint64_t{static_cast<std::uint8_t>(bytes[from + i])} << (8 * i);
  }
  return word;
}

}  // namespace

std::uint64_t siphash(const SipKey& key, std::string_view bytes) {
  const std::uint64_t first = word_of(key, 0, 8);
  const std::uint64_t second = word_of(key, 8, 8);
  State state{.a = first ^ 0x736f6d6570736575ULL,
              .b = second ^ 0x646f72616e646f6dULL,
              .c = first ^ 0x6c7967656e657261ULL,
              .d = second ^ 0x7465646279746573ULL};
  const std::size_t whole = bytes.size() / 8 * 8;
  for (std::size_t at = 0; at < whole; at += 8) state.absorb(word_of(bytes, at, 8));
  state.absorb(word_of(bytes, whole, bytes.size() - whole) | std::uint64_t{bytes.size()} << 56U);
  state.c ^= 0xffU;
  for (int i = 0; i < 4; ++i) state.round();
  return state.a ^ state.b ^ state.c ^ state.d;
}

}  // namespace baton
