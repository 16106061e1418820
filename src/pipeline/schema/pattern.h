#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "base/result.h"

namespace baton::schema {

/// A regular expression of `pattern` and `patternProperties`: ECMA-262's syntax with Unicode
/// semantics, as JSON Schema requires, matched by RE2 in time linear in the text. Features that RE2
/// cannot match in linear time (look-around, back-references), and syntax that ECMA-262 does not
/// have, are refused. Thread-safe.
class Pattern {
 public:
  static Result<Pattern> compile(std::string_view ecma);
  ~Pattern();
  Pattern(const Pattern&) = delete;
  Pattern& operator=(const Pattern&) = delete;
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;

  /// Whether it matches anywhere in `text`, which must be UTF-8.
  [[nodiscard]] bool matches(std::string_view text) const;
  /// The text in the schema.
  [[nodiscard]] const std::string& source() const { return source_; }

 private:
  class Engine;
  Pattern(std::string source, std::unique_ptr<const Engine> engine);

  std::string source_;
  std::unique_ptr<const Engine> engine_;
};

/// The same expression in RE2's syntax; the error says what is not supported, and where.
Result<std::string> re2_from_ecma(std::string_view ecma);

}  // namespace baton::schema
