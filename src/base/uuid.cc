#include "base/uuid.h"

#include <cstring>

#include <fmt/format.h>

#include "base/assert.h"

namespace baton {
namespace {

constexpr std::size_t kTextLength = 36;

bool is_dash_position(std::size_t i) { return i == 8 || i == 13 || i == 18 || i == 23; }

int hex_digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace

Uuid Uuid::make_v7(Instant now, Random& random) {
  Uuid uuid;
  const auto milliseconds = static_cast<std::uint64_t>(now.ns / 1'000'000);
  for (std::size_t i = 0; i < 6; ++i) {
    uuid.bytes[i] = static_cast<std::uint8_t>(milliseconds >> (8 * (5 - i)));
  }
  const std::uint64_t high = random.next();
  const std::uint64_t low = random.next();
  uuid.bytes[6] = static_cast<std::uint8_t>(0x70U | (high & 0x0fU));
  uuid.bytes[7] = static_cast<std::uint8_t>(high >> 8U);
  std::memcpy(&uuid.bytes[8], &low, sizeof low);
  uuid.bytes[8] = static_cast<std::uint8_t>(0x80U | (uuid.bytes[8] & 0x3fU));
  return uuid;
}

Result<Uuid> Uuid::parse(std::string_view text) {
  Uuid uuid;
  std::size_t digits = 0;
  for (std::size_t i = 0; i < text.size() && text.size() == kTextLength; ++i) {
    if (is_dash_position(i)) {
      if (text[i] != '-') break;
      continue;
    }
    const int digit = hex_digit(text[i]);
    if (digit < 0) break;
    auto& byte = uuid.bytes[digits / 2];
    byte = static_cast<std::uint8_t>((byte << 4U) | static_cast<std::uint8_t>(digit));
    ++digits;
  }
  if (digits != 32) {
    return Error{Errc::invalid_argument,
                 fmt::format("'{}' is not an id of the form xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx",
                             text.substr(0, 64))};
  }
  return uuid;
}

Uuid Uuid::from_raw(std::string_view raw) {
  Uuid uuid;
  BATON_ASSERT(raw.size() == uuid.bytes.size());
  std::memcpy(uuid.bytes.data(), raw.data(), raw.size());
  return uuid;
}

std::string Uuid::to_string() const {
  std::string text;
  text.reserve(kTextLength);
  for (const std::uint8_t byte : bytes) {
    if (is_dash_position(text.size())) text.push_back('-');
    fmt::format_to(std::back_inserter(text), "{:02x}", byte);
  }
  return text;
}

}  // namespace baton
