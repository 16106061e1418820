#include "pipeline/ends/text.h"

#include <algorithm>
#include <cstddef>
#include <optional>

namespace baton::pipeline {
namespace {

/// Which bytes may follow the first byte of a character, by RFC 3629: the range of the second byte
/// varies.
struct Character {
  std::size_t more = 0;
  unsigned char second_min = 0x80;
  unsigned char second_max = 0xbf;
};

std::optional<Character> character_of(unsigned char first) {
  if (first < 0x80) return Character{};
  if (first >= 0xc2 && first <= 0xdf) return Character{.more = 1};
  if (first == 0xe0) return Character{.more = 2, .second_min = 0xa0};
  if (first == 0xed) return Character{.more = 2, .second_max = 0x9f};
  if (first >= 0xe1 && first <= 0xef) return Character{.more = 2};
  if (first == 0xf0) return Character{.more = 3, .second_min = 0x90};
  if (first == 0xf4) return Character{.more = 3, .second_max = 0x8f};
  if (first >= 0xf1 && first <= 0xf3) return Character{.more = 3};
  return std::nullopt;
}

/// Whether `bytes` begin with a complete character.
bool begins_with(std::string_view bytes, const Character& character) {
  if (bytes.size() <= character.more) return false;
  if (character.more == 0) return true;
  const auto second = static_cast<unsigned char>(bytes[1]);
  return second >= character.second_min && second <= character.second_max &&
         std::ranges::all_of(bytes.substr(2, character.more - 1), [](char c) {
           return (static_cast<unsigned char>(c) & 0xc0U) == 0x80;
         });
}

}  // namespace

bool is_text(std::string_view bytes) {
  while (!bytes.empty()) {
    const auto character = character_of(static_cast<unsigned char>(bytes.front()));
    if (!character.has_value() || !begins_with(bytes, *character)) return false;
    bytes.remove_prefix(character->more + 1);
  }
  return true;
}

}  // namespace baton::pipeline
