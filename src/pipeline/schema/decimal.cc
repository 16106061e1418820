#include "pipeline/schema/decimal.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/assert.h"
#include "pipeline/schema/schema_limits.h"

namespace baton::schema {
namespace {

__extension__ using Wide = unsigned __int128;  // Not ISO C++: -Wpedantic needs the mark.

/// Whether |a| < |b|.
bool is_smaller(const Decimal& a, const Decimal& b) {
  if (a.digits.empty() || b.digits.empty()) return a.digits.empty() && !b.digits.empty();
  // The power of ten of the first digit.
  const std::int64_t top_a = static_cast<std::int64_t>(a.digits.size()) + a.exponent;
  const std::int64_t top_b = static_cast<std::int64_t>(b.digits.size()) + b.exponent;
  return top_a != top_b ? top_a < top_b : a.digits < b.digits;
}

std::uint64_t multiply(std::uint64_t a, std::uint64_t b, std::uint64_t modulus) {
  return static_cast<std::uint64_t>(static_cast<Wide>(a) * b % modulus);
}

std::uint64_t power_of_ten(std::uint64_t exponent, std::uint64_t modulus) {
  std::uint64_t result = 1 % modulus;
  for (std::uint64_t base = 10 % modulus; exponent != 0; exponent >>= 1U) {
    if ((exponent & 1U) != 0) result = multiply(result, base, modulus);
    base = multiply(base, base, modulus);
  }
  return result;
}

}  // namespace

void Decimal::assign(std::string_view number) {
  negative = number.starts_with('-');
  if (negative) number.remove_prefix(1);
  digits.clear();
  exponent = 0;
  if (const std::size_t e = number.find_first_of("eE"); e != std::string_view::npos) {
    std::string_view written = number.substr(e + 1);
    if (written.starts_with('+')) written.remove_prefix(1);
    std::from_chars(written.data(), written.data() + written.size(), exponent);
    number = number.substr(0, e);
  }
  const std::size_t point = number.find('.');
  digits.append(number.substr(0, point));
  if (point != std::string_view::npos) {
    digits.append(number.substr(point + 1));
    exponent -= static_cast<std::int64_t>(number.size() - point - 1);
  }
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  if (digits.empty()) {
    negative = false;
    exponent = 0;
    return;
  }
  const std::size_t zeros = digits.size() - 1 - digits.find_last_not_of('0');
  digits.resize(digits.size() - zeros);
  exponent += static_cast<std::int64_t>(zeros);
}

Decimal Decimal::parse(std::string_view number) {
  Decimal result;
  result.assign(number);
  return result;
}

bool Decimal::is_multiple_of(const Decimal& divisor) const {
  BATON_ASSERT(divisor.is_positive() && divisor.digits.size() <= kMultipleOfDigitsMax);
  if (digits.empty()) return true;
  // The last digit is not zero, so no power of ten divides the digits: the divisor's exponent must
  // not be larger than this one's.
  if (exponent < divisor.exponent) return false;
  std::uint64_t modulus = 0;
  for (const char c : divisor.digits) modulus = modulus * 10 + static_cast<std::uint64_t>(c - '0');
  BATON_ASSERT(modulus > 0);
  std::uint64_t rest = 0;
  for (const char c : digits) {
    rest = (multiply(rest, 10, modulus) + static_cast<std::uint64_t>(c - '0')) % modulus;
  }
  const auto shift = static_cast<std::uint64_t>(exponent - divisor.exponent);
  return multiply(rest, power_of_ten(shift, modulus), modulus) == 0;
}

std::optional<std::int64_t> Decimal::to_int64() const {
  constexpr std::int64_t kDigitsMax = std::numeric_limits<std::int64_t>::digits10 + 1;
  if (!is_integer() || static_cast<std::int64_t>(digits.size()) + exponent > kDigitsMax) {
    return std::nullopt;
  }
  if (digits.empty()) return 0;
  std::string written = negative ? "-" : "";
  written.append(digits).append(static_cast<std::size_t>(exponent), '0');
  std::int64_t value = 0;
  const auto [end, failure] =
      std::from_chars(written.data(), written.data() + written.size(), value);
  if (failure != std::errc{} || end != written.data() + written.size()) return std::nullopt;
  return value;
}

bool operator<(const Decimal& a, const Decimal& b) {
  if (a.negative != b.negative) return a.negative;
  return a.negative ? is_smaller(b, a) : is_smaller(a, b);
}

}  // namespace baton::schema
