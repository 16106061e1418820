#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace baton::schema {

/// Appends the unescaped inside of a JSON string. False, with `out` half written, if it has an
/// unknown escape, or half of a surrogate pair, which UTF-8 cannot express.
bool unescape(std::string_view inside, std::string& out);
/// Appends one code point as UTF-8. It must not be a surrogate or beyond U+10FFFF.
void append_utf8(std::string& out, std::uint32_t code_point);
/// The value of the four hexadecimal digits at the front of `text`; more than 0xffff if they are
/// not.
std::uint32_t hex4(std::string_view text);

/// The number of code points in valid UTF-8.
std::size_t code_points(std::string_view text);

/// Appends "/name" with ~ and / escaped as RFC 6901 says.
void append_pointer(std::string& pointer, std::string_view name);

/// The names in a JSON pointer in a URI's fragment: "/a~1b/c%25" is "a/b" and "c%". The fragment
/// must be empty or begin with a slash.
Result<std::vector<std::string>> pointer_steps(std::string_view fragment);

/// The text that an error quotes: the first kExcerptBytes, cut between code points, on one line.
std::string excerpt(std::string_view text);

/// The same as ==, for names, which are short.
inline bool same_name(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  const std::size_t size = a.size();
  const auto differ = [&]<class Word>(Word, std::size_t at) {
    Word left = 0;
    Word right = 0;
    std::memcpy(&left, a.data() + at, sizeof(Word));
    std::memcpy(&right, b.data() + at, sizeof(Word));
    return left != right;
  };
  if (size < 4) {
    for (std::size_t at = 0; at < size; ++at) {
      if (a[at] != b[at]) return false;
    }
    return true;
  }
  if (size < 8) return !differ(std::uint32_t{}, 0) && !differ(std::uint32_t{}, size - 4);
  for (std::size_t at = 0; at + 8 < size; at += 8) {
    if (differ(std::uint64_t{}, at)) return false;
  }
  return !differ(std::uint64_t{}, size - 8);
}

/// A hash for tables of names. Not stable, and weak: its users bound their chains in other ways.
inline std::uint64_t name_hash(std::string_view name) {
  constexpr std::uint64_t kMultiplier = 0x9e3779b97f4a7c15ULL;
  std::uint64_t head = 0;
  std::uint64_t tail = 0;
  const std::size_t size = name.size();
  if (size >= 8) {
    std::memcpy(&head, name.data(), 8);
    std::memcpy(&tail, name.data() + size - 8, 8);
  } else if (size >= 4) {
    std::memcpy(&head, name.data(), 4);
    std::memcpy(&tail, name.data() + size - 4, 4);
  } else if (size > 0) {
    head = static_cast<unsigned char>(name[0]);
    tail = static_cast<std::uint64_t>(static_cast<unsigned char>(name[size / 2])) << 8U |
           static_cast<unsigned char>(name[size - 1]);
  }
  std::uint64_t hash = (head + size) * kMultiplier;
  hash = (hash ^ (hash >> 29U) ^ tail) * kMultiplier;
  return hash ^ (hash >> 32U);
}

}  // namespace baton::schema
