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

inline constexpr std::size_t kVarintBytesMax = 10;

/// How many bytes a varint of `value` takes.
constexpr std::size_t varint_bytes(std::uint64_t value) {
  return (static_cast<std::size_t>(std::bit_width(value | 1U)) + 6) / 7;
}

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
    if (value < 0x80U) return u8(static_cast<std::uint8_t>(value));
    std::array<char, kVarintBytesMax> bytes;  // NOLINT(*-init)
    std::size_t size = 0;
    for (; value >= 0x80U; value >>= 7U) bytes[size++] = static_cast<char>(value | 0x80U);
    bytes[size++] = static_cast<char>(value);
    out_.append(bytes.data(), size);
  }
  void raw(std::string_view bytes) { out_.append(bytes); }
  /// A length as a varint, then the bytes.
  void blob(std::string_view bytes) {
    varint(bytes.size());
    raw(bytes);
  }
  /// A blob of what `write()` appends to this encoder. `about` is a guess at its length: a right
  /// one saves moving the bytes once they are known.
  template <class Write>
  void blob_of(std::size_t about, const Write& write) {
    const std::size_t begin = out_.size();
    const std::size_t width = varint_bytes(about);
    for (std::size_t i = 0; i < width; ++i) out_.push_back('\0');
    write();
    close_blob(begin, width);
  }

 private:
  /// Writes the length of what follows the `width` bytes at `begin` into them, making them more or
  /// fewer where the guess was wrong.
  void close_blob(std::size_t begin, std::size_t width) {
    std::uint64_t length = out_.size() - begin - width;
    if (const std::size_t needed = varint_bytes(length); needed != width) {
      out_.replace(begin, width, needed, '\0');
    }
    for (; length >= 0x80U; length >>= 7U) out_[begin++] = static_cast<char>(length | 0x80U);
    out_[begin] = static_cast<char>(length);
  }

  std::string& out_;
};

/// A part of stored bytes that this version does not know, and must not skip.
struct UnknownPart {
  std::uint64_t number = 0;
  std::uint64_t since = 0;  // The format that came with the part; 0 = there is no such part.
  std::string_view where;   // What the part belongs to, such as "settings"; a literal.
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
    for (std::size_t i = 0; i < rest_.size() && i < kVarintBytesMax; ++i) {
      const auto byte = static_cast<std::uint8_t>(rest_[i]);
      // The tenth byte has room for one bit only: more would be lost silently.
      if (i == kVarintBytesMax - 1 && byte > 1) break;
      value |= static_cast<std::uint64_t>(byte & 0x7fU) << (7 * i);
      if (byte < 0x80U) {
        rest_.remove_prefix(i + 1);
        return value;
      }
    }
    fail();
    return 0;
  }
  std::string_view raw(std::size_t count) {
    if (count > rest_.size()) {
      fail();
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
    if (size_min != 0 && value > rest_.size() / size_min) fail();
    return failed_ ? 0 : value;
  }

  [[nodiscard]] std::string_view rest() const { return rest_; }
  [[nodiscard]] bool empty() const { return rest_.empty(); }
  [[nodiscard]] bool ok() const { return !failed_; }
  void fail() {
    failed_ = true;
    rest_ = rest_.substr(0, 0);  // So that whatever is read next is missing.
  }
  /// Fails because of a part that must be understood; base/growing.h makes an error of it.
  void refuse(const UnknownPart& part) {
    fail();
    if (unknown_.since == 0) unknown_ = part;
  }
  /// Fails as `inner` did, which read a part of these bytes.
  void fail_as(const Decoder& inner, std::string_view where = {}) {
    fail();
    if (inner.unknown_.since == 0) return;
    refuse(inner.unknown_);
    if (unknown_.where.empty()) unknown_.where = where;
  }
  [[nodiscard]] const UnknownPart& unknown() const { return unknown_; }
  /// Whether every byte was read without a failure.
  [[nodiscard]] bool finish() const { return !failed_ && rest_.empty(); }

 private:
  std::string_view rest_;
  bool failed_ = false;
  UnknownPart unknown_;
};

}  // namespace baton
