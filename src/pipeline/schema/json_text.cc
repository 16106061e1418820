#include "pipeline/schema/json_text.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "pipeline/schema/schema_limits.h"

namespace baton::schema {
namespace {

constexpr std::uint32_t kNoHex = 0x10000;

bool is_high_surrogate(std::uint32_t unit) { return unit >= 0xd800 && unit < 0xdc00; }
bool is_low_surrogate(std::uint32_t unit) { return unit >= 0xdc00 && unit < 0xe000; }

/// Removes and reads "XXXX", or "XXXX\uYYYY" for a pair, at the front of `rest`.
bool unescape_unicode(std::string_view& rest, std::string& out) {
  std::uint32_t unit = hex4(rest);
  if (unit == kNoHex || is_low_surrogate(unit)) return false;
  rest.remove_prefix(4);
  if (is_high_surrogate(unit)) {
    if (!rest.starts_with("\\u")) return false;
    const std::uint32_t low = hex4(rest.substr(2));
    if (low == kNoHex || !is_low_surrogate(low)) return false;
    rest.remove_prefix(6);
    unit = 0x10000 + ((unit - 0xd800) << 10U) + (low - 0xdc00);
  }
  append_utf8(out, unit);
  return true;
}

/// The meaning of the letter after a backslash; 0 if it is not one of the simple escapes.
char simple_escape(char letter) {
  switch (letter) {
    case '"':
    case '\\':
    case '/': return letter;
    case 'b': return '\b';
    case 'f': return '\f';
    case 'n': return '\n';
    case 'r': return '\r';
    case 't': return '\t';
    default: return 0;
  }
}

Result<std::string> decode_percents(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out.push_back(text[i]);
      continue;
    }
    const std::uint32_t byte = hex4(fmt::format("00{}", text.substr(i + 1, 2)));
    if (byte > 0xff) return Error{Errc::invalid_argument, "has a % without two digits after it"};
    out.push_back(static_cast<char>(byte));
    i += 2;
  }
  return out;
}

Result<std::string> decode_tildes(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '~') {
      out.push_back(text[i]);
      continue;
    }
    const char code = ++i < text.size() ? text[i] : ' ';
    if (code != '0' && code != '1') return Error{Errc::invalid_argument, "has a ~ without 0 or 1"};
    out.push_back(code == '0' ? '~' : '/');
  }
  return out;
}

}  // namespace

std::uint32_t hex4(std::string_view text) {
  if (text.size() < 4) return kNoHex;
  std::uint32_t value = 0;
  for (const char c : text.substr(0, 4)) {
    std::uint32_t digit = 0;
    if (c >= '0' && c <= '9') {
      digit = static_cast<std::uint32_t>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      digit = static_cast<std::uint32_t>(c - 'a' + 10);
    } else if (c >= 'A' && c <= 'F') {
      digit = static_cast<std::uint32_t>(c - 'A' + 10);
    } else {
      return kNoHex;
    }
    value = value << 4U | digit;
  }
  return value;
}

void append_utf8(std::string& out, std::uint32_t code_point) {
  const auto byte = [&](std::uint32_t value) { out.push_back(static_cast<char>(value)); };
  const auto more = [&](unsigned shift) { byte(0x80U | ((code_point >> shift) & 0x3fU)); };
  if (code_point < 0x80) {
    byte(code_point);
  } else if (code_point < 0x800) {
    byte(0xc0U | (code_point >> 6U));
    more(0);
  } else if (code_point < 0x10000) {
    byte(0xe0U | (code_point >> 12U));
    more(6);
    more(0);
  } else {
    byte(0xf0U | (code_point >> 18U));
    more(12);
    more(6);
    more(0);
  }
}

bool unescape(std::string_view inside, std::string& out) {
  while (true) {
    const std::size_t plain = inside.find('\\');
    out.append(inside.substr(0, plain));
    if (plain == std::string_view::npos) return true;
    inside.remove_prefix(plain + 1);
    if (inside.empty()) return false;
    const char letter = inside.front();
    inside.remove_prefix(1);
    if (letter == 'u') {
      if (!unescape_unicode(inside, out)) return false;
    } else if (const char meant = simple_escape(letter); meant != 0) {
      out.push_back(meant);
    } else {
      return false;
    }
  }
}

std::size_t code_points(std::string_view text) {
  // All bytes except continuation bytes of a code point.
  return static_cast<std::size_t>(std::ranges::count_if(
      text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

void append_pointer(std::string& pointer, std::string_view name) {
  pointer.push_back('/');
  for (const char c : name) {
    if (c == '~') {
      pointer.append("~0");
    } else if (c == '/') {
      pointer.append("~1");
    } else {
      pointer.push_back(c);
    }
  }
}

Result<std::vector<std::string>> pointer_steps(std::string_view fragment) {
  std::vector<std::string> steps;
  while (!fragment.empty()) {
    fragment.remove_prefix(1);  // The slash.
    const std::size_t size = std::min(fragment.find('/'), fragment.size());
    BATON_TRY(const std::string unquoted, decode_percents(fragment.substr(0, size)));
    BATON_TRY(std::string step, decode_tildes(unquoted));
    steps.push_back(std::move(step));
    fragment.remove_prefix(size);
  }
  return steps;
}

std::string excerpt(std::string_view text) {
  std::size_t size = std::min(text.size(), kExcerptBytes);
  while (size < text.size() && size > 0 &&
         (static_cast<unsigned char>(text[size]) & 0xc0U) == 0x80U) {
    --size;
  }
  std::string out;
  for (const char c : text.substr(0, size)) {
    if (static_cast<unsigned char>(c) < 0x20 || c == 0x7f) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", static_cast<unsigned char>(c));
    } else {
      out.push_back(c);
    }
  }
  if (size < text.size()) out.append("...");
  return out;
}

}  // namespace baton::schema
