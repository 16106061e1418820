#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "base/random.h"
#include "base/result.h"
#include "base/time.h"

namespace baton {

/// 16 bytes; made as version 7: the first 48 bits are milliseconds, so that ids sort by age.
struct Uuid {
  std::array<std::uint8_t, 16> bytes{};

  static Uuid make_v7(Instant now, Random& random);
  /// Reads the usual 36-character form.
  static Result<Uuid> parse(std::string_view text);
  /// Takes 16 raw bytes; asserts the length.
  static Uuid from_raw(std::string_view raw);

  [[nodiscard]] std::string to_string() const;
  [[nodiscard]] std::string_view raw() const {
    return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};  // NOLINT
  }
  [[nodiscard]] bool is_nil() const { return *this == Uuid{}; }
  auto operator<=>(const Uuid&) const = default;
};

}  // namespace baton

template <>
struct std::hash<baton::Uuid> {
  std::size_t operator()(const baton::Uuid& uuid) const noexcept {
    // The last eight bytes of a version 7 id are random.
    std::size_t value = 0;
    for (std::size_t i = 8; i < 16; ++i) value = (value << 8U) | uuid.bytes[i];
    return value;
  }
};
