#include "pipeline/schema/json_reader.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/parse.h"
#include "pipeline/schema/json_text.h"

namespace baton::schema {
namespace {

constexpr std::uint32_t kKeysComparedOneByOne = 32;
constexpr std::size_t kOnHeapBytes = 64;
constexpr std::size_t kSmallDigits = 18;  // Always fits into 63 bits.

/// Reads a number in JSON's form. Each step returns false if the text does not match the grammar.
class NumberScanner {
 public:
  explicit NumberScanner(std::string_view token) : at_(token.data()), end_(at_ + token.size()) {}

  bool scan() {
    negative_ = take('-');
    if (!integer_part()) return false;
    if (at_ == end_) return true;
    integral_ = false;
    if (take('.') && !digits()) return false;
    if (take('e') || take('E')) return exponent();
    return at_ == end_;
  }
  /// Whether scan() failed because of an exponent beyond the limit.
  [[nodiscard]] bool is_too_large() const { return too_large_; }
  [[nodiscard]] bool is_small() const { return integral_ && count_ <= kSmallDigits; }
  [[nodiscard]] std::int64_t small() const {
    const auto value = static_cast<std::int64_t>(value_);
    return negative_ ? -value : value;
  }

 private:
  bool take(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  bool digits() {
    const char* const first = at_;
    while (at_ != end_ && is_digit(*at_)) ++at_;
    return at_ != first;
  }
  bool integer_part() {
    const char* const first = at_;
    for (; at_ != end_ && is_digit(*at_); ++at_) {
      value_ = value_ * 10 + static_cast<std::uint64_t>(*at_ - '0');  // May wrap: see is_small().
    }
    count_ = static_cast<std::size_t>(at_ - first);
    return count_ == 1 || (count_ > 1 && *first != '0');
  }
  bool exponent() {
    if (!take('-')) take('+');
    const char* const first = at_;
    if (!digits() || at_ != end_) return false;
    std::int64_t value = 0;
    for (const char* c = first; c != end_ && value <= kExponentMax; ++c) {
      value = value * 10 + (*c - '0');
    }
    too_large_ = value > kExponentMax;
    return !too_large_;
  }

  const char* at_;
  const char* end_;
  std::uint64_t value_ = 0;
  std::size_t count_ = 0;
  bool negative_ = false;
  bool integral_ = true;
  bool too_large_ = false;
};

}  // namespace

JsonReader::JsonReader(JsonDocument& document, std::string_view bytes,
                       std::span<const std::uint32_t> tokens)
    : document_(document),
      bytes_(bytes),
      tokens_(tokens),
      nodes_(document.nodes_.data()),
      backslash_(bytes.data() + std::min(bytes.find('\\'), bytes.size())) {
  document_.unescaped_.clear();
  // Nodes point into it, so it must not move while it is filled; unescaped text is never longer. On
  // the heap, so that it does not move with the document either.
  if (backslash_ != bytes.data() + bytes.size()) {
    document_.unescaped_.reserve(std::max(bytes.size(), kOnHeapBytes));
  }
}

Status JsonReader::run() {
  Step step = Step::value;
  while (true) {
    switch (step) {
      case Step::value: step = value(); break;
      case Step::member: step = member(); break;
      case Step::after: step = after(); break;
      case Step::end: document_.size_ = size_; return {};
      case Step::broken: return Error{Errc::malformed, std::move(error_)};
    }
  }
}

JsonReader::Step JsonReader::value() {
  switch (peek()) {
    case '"': return string();
    case '{': return open(JsonKind::object);
    case '[': return open(JsonKind::array);
    case 't': return literal("true", JsonKind::boolean, true);
    case 'f': return literal("false", JsonKind::boolean, false);
    case 'n': return literal("null", JsonKind::null, false);
    default:
      if (const char c = peek(); c == '-' || is_digit(c)) return number();
      return broken("a value is expected");
  }
}

JsonReader::Step JsonReader::member() {
  if (peek() != '"') return broken("a key in double quotes is expected");
  if (!add_string(JsonKind::key)) return Step::broken;
  JsonNode& key = nodes_[size_ - 1];
  key.word = name_hash(key.text());
  if (!key_is_new(key)) {
    --at_;
    return broken(fmt::format("the key \"{}\" is there twice", excerpt(key.text())));
  }
  if (peek() != ':') return broken("a colon is expected");
  ++at_;
  return value();
}

JsonReader::Step JsonReader::after() {
  if (depth_ == 0) {
    return exhausted() ? Step::end : broken("the document should end here");
  }
  Open& inside = opened_[depth_ - 1];
  ++inside.count;
  const char c = peek();
  if (c == ',') {
    ++at_;
    return inside.kind == JsonKind::object ? member() : value();
  }
  if (c == (inside.kind == JsonKind::object ? '}' : ']')) return close();
  return broken(inside.kind == JsonKind::object ? "a comma or } is expected"
                                                : "a comma or ] is expected");
}

JsonReader::Step JsonReader::open(JsonKind kind) {
  if (depth_ == kDepthMax) {
    return broken(fmt::format("arrays and objects may be {} deep, and no deeper", kDepthMax));
  }
  opened_[depth_++] = {.node = size_, .count = 0, .hashes = 0, .kind = kind};
  add(kind, bytes_.substr(tokens_[at_], 0));
  ++at_;
  if (kind == JsonKind::object) return peek() == '}' ? close() : Step::member;
  return peek() == ']' ? close() : Step::value;
}

JsonReader::Step JsonReader::close() {
  const Open& inside = opened_[--depth_];
  JsonNode& node = nodes_[inside.node];
  node.next = size_;
  node.count = inside.count;
  node.size = static_cast<std::uint32_t>(bytes_.data() + tokens_[at_] + 1 - node.data);
  const bool large = inside.kind == JsonKind::object && inside.count > kKeysComparedOneByOne;
  if (large && !keys_differ(inside.node)) return Step::broken;
  ++at_;
  return Step::after;
}

JsonReader::Step JsonReader::literal(std::string_view word, JsonKind kind, bool flag) {
  if (token() != word) return broken("a value is expected");
  add(kind, word).flag = flag;
  ++at_;
  return Step::after;
}

JsonReader::Step JsonReader::number() {
  const std::string_view written = token();
  NumberScanner scanner(written);
  if (!scanner.scan()) {
    return broken(scanner.is_too_large()
                      ? fmt::format("the exponent of a number is past {}", kExponentMax)
                      : "this is not a number as JSON writes it");
  }
  JsonNode& node = add(JsonKind::number, written);
  node.flag = scanner.is_small();
  if (node.flag) node.word = static_cast<std::uint64_t>(scanner.small());
  ++at_;
  return Step::after;
}

JsonReader::Step JsonReader::string() {
  return add_string(JsonKind::string) ? Step::after : Step::broken;
}

bool JsonReader::add_string(JsonKind kind) {
  const std::string_view quoted = token();
  if (quoted.size() < 2 || quoted.back() != '"') {
    broken("a string has no end");
    return false;
  }
  JsonNode& node = add(kind, {quoted.data() + 1, quoted.size() - 2});
  if (has_escapes(quoted) && !unescape_string(node, quoted)) {
    broken("a string has an escape that JSON does not know, or half a surrogate pair");
    return false;
  }
  ++at_;
  return true;
}

bool JsonReader::has_escapes(std::string_view token) {
  const char* const end = token.data() + token.size();
  if (backslash_ >= end) return false;
  const char* const bytes_end = bytes_.data() + bytes_.size();
  if (backslash_ < token.data()) {
    const auto left = static_cast<std::size_t>(bytes_end - token.data());
    const void* const next = std::memchr(token.data(), '\\', left);
    backslash_ = next == nullptr ? bytes_end : static_cast<const char*>(next);
  }
  return backslash_ < end;
}

bool JsonReader::unescape_string(JsonNode& node, std::string_view token) {
  std::string& out = document_.unescaped_;
  const std::size_t first = out.size();
  if (!unescape(node.text(), out)) return false;
  node.data = out.data() + first;
  node.size = static_cast<std::uint32_t>(out.size() - first);
  node.flag = true;
  node.word = std::bit_cast<std::uint64_t>(token.data());
  node.count = static_cast<std::uint32_t>(token.size());
  return true;
}

bool JsonReader::key_is_new(const JsonNode& key) {
  Open& inside = opened_[depth_ - 1];
  const std::uint64_t bit = std::uint64_t{1} << (key.word >> 58U);
  const bool surely_new = (inside.hashes & bit) == 0;
  inside.hashes |= bit;
  if (surely_new || inside.count >= kKeysComparedOneByOne) return true;
  JsonIndex other = inside.node + 1;
  for (std::uint32_t i = 0; i < inside.count; ++i) {
    if (nodes_[other].word == key.word && nodes_[other].text() == key.text()) return false;
    other = nodes_[other + 1].next;
  }
  return true;
}

bool JsonReader::keys_differ(JsonIndex object) {
  std::vector<std::string_view> keys;
  keys.reserve(nodes_[object].count);
  for (JsonIndex key = object + 1; key < nodes_[object].next; key = nodes_[key + 1].next) {
    keys.push_back(nodes_[key].text());
  }
  std::ranges::sort(keys);
  const auto twice = std::ranges::adjacent_find(keys);
  if (twice == keys.end()) return true;
  broken(
      fmt::format("the key \"{}\" is there twice in the object that ends here", excerpt(*twice)));
  return false;
}

JsonReader::Step JsonReader::broken(std::string text) {
  // The last token is the end of the document.
  error_ = exhausted() ? fmt::format("at the end: {}", text)
                       : fmt::format("at byte {}: {}", tokens_[at_], text);
  return Step::broken;
}

}  // namespace baton::schema
