#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/result.h"
#include "pipeline/schema/json_document.h"

namespace baton::schema {

/// Makes the nodes of a document from the offsets of tokens: JSON's grammar as a machine with an
/// explicit stack. Lives for one document.
class JsonReader {
 public:
  /// `tokens` ends with the length of `bytes`.
  JsonReader(JsonDocument& document, std::string_view bytes, std::span<const std::uint32_t> tokens);
  Status run();

 private:
  enum class Step : std::uint8_t { value, member, after, end, broken };
  /// An array or object that is not closed yet.
  struct Open {
    JsonIndex node;
    std::uint32_t count;
    std::uint64_t hashes;  // A bit for each hash of its keys.
    JsonKind kind;
  };

  Step value();
  Step member();
  Step after();
  Step open(JsonKind kind);
  Step close();
  Step literal(std::string_view word, JsonKind kind, bool flag);
  Step number();
  Step string();
  /// Adds a node for the present string. False if the string is invalid.
  bool add_string(JsonKind kind);
  bool has_escapes(std::string_view token);
  bool unescape_string(JsonNode& node, std::string_view token);
  /// Whether the last key is new in its object. Large objects are checked when they close.
  bool key_is_new(const JsonNode& key);
  bool keys_differ(JsonIndex object);
  Step broken(std::string text);

  [[nodiscard]] bool exhausted() const { return at_ + 1 >= tokens_.size(); }
  /// The first character of the present token; 0 at the end.
  [[nodiscard]] char peek() const { return exhausted() ? '\0' : bytes_[tokens_[at_]]; }
  /// The present token, without the white space after it.
  [[nodiscard]] std::string_view token() const {
    const char* const begin = bytes_.data() + tokens_[at_];
    const char* end = bytes_.data() + tokens_[at_ + 1];
    while (end > begin && is_space(end[-1])) --end;
    return {begin, static_cast<std::size_t>(end - begin)};
  }
  static bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
  JsonNode& add(JsonKind kind, std::string_view text) {
    JsonNode& node = nodes_[size_];
    node = {.data = text.data(),
            .size = static_cast<std::uint32_t>(text.size()),
            .next = size_ + 1,
            .word = 0,
            .count = 0,
            .kind = kind,
            .flag = false};
    ++size_;
    return node;
  }

  JsonDocument& document_;
  std::string_view bytes_;
  std::span<const std::uint32_t> tokens_;
  JsonNode* nodes_;     // The document's nodes, with room for one per token.
  std::size_t at_ = 0;  // Index of the present token.
  JsonIndex size_ = 0;  // Nodes so far.
  std::size_t depth_ = 0;
  const char* backslash_;  // The first backslash at or after the present token, or the end.
  std::array<Open, kDepthMax> opened_;
  std::string error_;
};

}  // namespace baton::schema
