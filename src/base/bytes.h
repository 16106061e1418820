#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "base/result.h"

namespace baton {

/// Appends values to a byte string. Fixed numbers are little-endian; those in keys, where order of
/// bytes must be order of numbers, are big-endian.
class Encoder {
 public:
  explicit Encoder(std::string& out) : out_(out) {}

  void u8(std::uint8_t value) { out_.push_back(static_cast<char>(value)); }
  template <std::integral T>
  void fixed(T value) {
    static_assert(std::endian::native == std::endian::little);
    out_.append(reinterpret_cast<const char*>(&value), sizeof value);  // NOLINT
  }
  void big_u16(std::uint16_t value) { fixed(static_cast<std::uint16_t>(__builtin_bswap16(value))); }
  void big_u64(std::uint64_t value) { fixed(static_cast<std::uint64_t>(__builtin_bswap64(value))); }
  void varint(std::uint64_t value) {
    while (value >= 0x80U) {
      u8(static_cast<std::uint8_t>(value | 0x80U));
      value >>= 7U;
    }
    u8(static_cast<std::uint8_t>(value));
  }
  void raw(std::string_view bytes) { out_.append(bytes); }
  /// A length as a varint, then the bytes.
  void blob(std::string_view bytes) {
    varint(bytes.size());
    raw(bytes);
  }

 private:
  std::string& out_;
};

/// Reads what Encoder wrote. Never reads past the end: the first bad read makes the decoder fail,
/// and every later read returns zero, so a caller checks ok() (or finish()) once, at the end.
class Decoder {
 public:
  explicit Decoder(std::string_view bytes) : rest_(bytes) {}

  std::uint8_t u8() { return static_cast<std::uint8_t>(fixed<std::uint8_t>()); }
  template <std::integral T>
  T fixed() {
    T value{};
    const std::string_view bytes = raw(sizeof value);
    if (bytes.size() == sizeof value) bytes.copy(reinterpret_cast<char*>(&value), sizeof value);
    return value;
  }
  std::uint16_t big_u16() { return __builtin_bswap16(fixed<std::uint16_t>()); }
  std::uint64_t big_u64() { return __builtin_bswap64(fixed<std::uint64_t>()); }
  std::uint64_t varint() {
    std::uint64_t value = 0;
    for (unsigned shift = 0; shift < 64; shift += 7) {
      const std::uint8_t byte = u8();
      // The tenth byte has room for one bit only: more would be lost silently.
      if (failed_ || (shift == 63 && byte > 1)) break;
      value |= static_cast<std::uint64_t>(byte & 0x7fU) << shift;
      if ((byte & 0x80U) == 0) return value;
    }
    failed_ = true;
    return 0;
  }
  std::string_view raw(std::size_t count) {
    if (failed_ || count > rest_.size()) {
      failed_ = true;
      return {};
    }
    const std::string_view bytes = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return bytes;
  }
  std::string_view blob() { return raw(varint()); }

  /// A count of items of at least `size_min` bytes each. Fails when the bytes left cannot hold that
  /// many, before a caller reserves memory for them.
  std::uint64_t count(std::size_t size_min) {
    const std::uint64_t value = varint();
    if (size_min != 0 && value > rest_.size() / size_min) failed_ = true;
    return failed_ ? 0 : value;
  }

  [[nodiscard]] std::string_view rest() const { return rest_; }
  [[nodiscard]] bool empty() const { return failed_ || rest_.empty(); }
  [[nodiscard]] bool ok() const { return !failed_; }
  void fail() { failed_ = true; }
  /// Whether every byte was read without a failure.
  [[nodiscard]] bool finish() const { return !failed_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool failed_ = false;
};

}  // namespace baton
