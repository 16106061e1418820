#include "base/base64.h"

#include <algorithm>
#include <array>
#include <cstdint>

namespace baton {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::uint8_t kNone = 0xff;

constexpr std::array<std::uint8_t, 256> values_of_digits() {
  std::array<std::uint8_t, 256> values{};
  values.fill(kNone);
  for (std::size_t i = 0; i < kDigits.size(); ++i) {
    values.at(static_cast<unsigned char>(kDigits[i])) = static_cast<std::uint8_t>(i);
  }
  return values;
}
constexpr std::array<std::uint8_t, 256> kValues = values_of_digits();

}  // namespace

std::string base64(std::string_view bytes) {
  std::string out;
  out.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t at = 0; at < bytes.size(); at += 3) {
    const auto byte = [&](std::size_t offset) {
      return at + offset < bytes.size() ? static_cast<std::uint8_t>(bytes[at + offset]) : 0U;
    };
    const std::uint32_t group = (byte(0) << 16U) | (byte(1) << 8U) | byte(2);
    const std::size_t digits = std::min<std::size_t>(bytes.size() - at, 3) + 1;
    for (std::size_t i = 0; i < 4; ++i) {
      out.push_back(i < digits ? kDigits[(group >> (18 - (6 * i))) & 63U] : '=');
    }
  }
  return out;
}

std::optional<std::string> from_base64(std::string_view text) {
  if (text.size() % 4 != 0) return std::nullopt;
  std::string out;
  out.reserve(text.size() / 4 * 3);
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  text.remove_suffix(padding);
  std::uint32_t bits = 0;
  unsigned count = 0;
  for (const char c : text) {
    const std::uint8_t value = kValues.at(static_cast<unsigned char>(c));
    if (value == kNone) return std::nullopt;
    bits = (bits << 6U) | value;
    count += 6;
    if (count < 8) continue;
    count -= 8;
    out.push_back(static_cast<char>((bits >> count) & 0xffU));
    bits &= (1U << count) - 1;
  }
  // The bits left over must be zero: otherwise encoding the bytes again would give another text.
  if (bits != 0) return std::nullopt;
  return out;
}

}  // namespace baton
