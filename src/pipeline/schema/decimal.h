#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace baton::schema {

/// A JSON number, exactly: digits x 10^exponent. 1.0, 1 and 10e-1 are the same one. Comparing and
/// dividing take time by the digits, never by the exponent. Assigned again and again it stops
/// allocating.
///
/// Invariant: no zeros at either end of `digits`; zero has none, exponent 0, and no sign.
struct Decimal {
  bool negative = false;
  std::string digits;
  std::int64_t exponent = 0;

  /// `number` must be one as JSON writes it.
  void assign(std::string_view number);
  static Decimal parse(std::string_view number);

  [[nodiscard]] bool is_integer() const { return exponent >= 0; }
  [[nodiscard]] bool is_positive() const { return !negative && !digits.empty(); }
  /// Asserts that the divisor is positive, with at most kMultipleOfDigitsMax digits.
  [[nodiscard]] bool is_multiple_of(const Decimal& divisor) const;
  /// Nothing when it is not an integer, or too large.
  [[nodiscard]] std::optional<std::int64_t> to_int64() const;

  bool operator==(const Decimal&) const = default;
  friend bool operator<(const Decimal& a, const Decimal& b);
};

}  // namespace baton::schema
