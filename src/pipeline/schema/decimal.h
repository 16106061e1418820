#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace baton::schema {

/// An exact JSON number: digits x 10^exponent. 1.0, 1 and 10e-1 are equal. The time to compare or
/// divide depends on the digits, never on the exponent. A reused object stops allocating.
///
/// Invariant: no zeros at either end of `digits`; zero has no digits, exponent 0, and no sign.
struct Decimal {
  bool negative = false;
  std::string digits;
  std::int64_t exponent = 0;

  /// `number` must be in JSON's form.
  void assign(std::string_view number);
  static Decimal parse(std::string_view number);

  [[nodiscard]] bool is_integer() const { return exponent >= 0; }
  [[nodiscard]] bool is_positive() const { return !negative && !digits.empty(); }
  /// Asserts that the divisor is positive, with at most kMultipleOfDigitsMax digits.
  [[nodiscard]] bool is_multiple_of(const Decimal& divisor) const;
  /// nullopt if the number is not an integer, or too large.
  [[nodiscard]] std::optional<std::int64_t> to_int64() const;

  bool operator==(const Decimal&) const = default;
  friend bool operator<(const Decimal& a, const Decimal& b);
};

}  // namespace baton::schema
