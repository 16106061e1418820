#include "pipeline/schema/pattern.h"

#include <array>
#include <cstdint>
#include <iterator>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <re2/re2.h>

#include "base/parse.h"
#include "pipeline/schema/json_text.h"
#include "pipeline/schema/schema_limits.h"

namespace baton::schema {
namespace {

// The contents of classes. RE2's own \s and . are ASCII's; ECMA's are Unicode's.
constexpr std::string_view kSpaces =
    R"(\t\n\v\f\r \x{a0}\x{1680}\x{2000}-\x{200a}\x{2028}\x{2029}\x{202f}\x{205f}\x{3000}\x{feff})";
constexpr std::string_view kNoSpaces =
    R"(\x{0}-\x{8}\x{e}-\x{1f}!-\x{9f}\x{a1}-\x{167f}\x{1681}-\x{1fff}\x{200b}-\x{2027})"
    R"(\x{202a}-\x{202e}\x{2030}-\x{205e}\x{2060}-\x{2fff}\x{3001}-\x{fefe}\x{ff00}-\x{10ffff})";
constexpr std::string_view kAnyButLineEnds = R"([^\n\r\x{2028}\x{2029}])";
constexpr std::string_view kSyntaxCharacters = R"(^$\.*+?()[]{}|/)";

// RE2 knows only the short names of general categories, and scripts.
constexpr std::array<std::pair<std::string_view, std::string_view>, 12> kLongProperties = {
    {{"Letter", "L"},
     {"Lowercase_Letter", "Ll"},
     {"Uppercase_Letter", "Lu"},
     {"Mark", "M"},
     {"Number", "N"},
     {"Decimal_Number", "Nd"},
     {"digit", "Nd"},
     {"Punctuation", "P"},
     {"punct", "P"},
     {"Symbol", "S"},
     {"Separator", "Z"},
     {"Other", "C"}}};

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
class Translator {
 public:
  explicit Translator(std::string_view ecma) : text_(ecma) {}

  Result<std::string> run() {
    while (at_ < text_.size() && error_.empty()) {
      if (in_class_) {
        class_part();
      } else {
        part();
      }
    }
    if (error_.empty() && in_class_) fail("a character class has no ]");
    if (!error_.empty()) return Error{Errc::invalid_argument, std::move(error_)};
    return std::move(out_);
  }

 private:
  void part() {
    const char c = text_[at_++];
    switch (c) {
      case '\\': escape(); break;
      case '.': out_ += kAnyButLineEnds; break;
      case '[': open_class(); break;
      case '(': group(); break;
      case ']': out_ += "\\]"; break;  // A literal, as in ECMA without the u flag.
      default: out_ += c;
    }
  }

  void open_class() {
    in_class_ = true;
    const bool negated = take('^');
    if (take(']')) {
      // ECMA's empty classes: [] matches nothing, [^] anything.
      out_ += negated ? "[\\x{0}-\\x{10ffff}]" : "[^\\x{0}-\\x{10ffff}]";
      in_class_ = false;
      return;
    }
    out_ += negated ? "[^" : "[";
    class_begin_ = at_;
  }

  void class_part() {
    const char c = text_[at_++];
    switch (c) {
      case '\\': escape(); break;
      case ']':
        out_ += ']';
        in_class_ = false;
        break;
      case '[': out_ += "\\["; break;  // Otherwise RE2 would see [:alpha:].
      default: out_ += c;
    }
  }

  void group() {
    out_ += '(';
    if (!take('?')) return;
    if (take(':')) {
      out_ += "?:";
    } else if (take('<') && at_ < text_.size() && text_[at_] != '=' && text_[at_] != '!') {
      out_ += "?P<";
    } else {
      fail("look-around and flags are not supported");
    }
  }

  void escape() {
    if (at_ == text_.size()) return fail("a backslash ends the pattern");
    const char c = text_[at_++];
    switch (c) {
      case 'd':
      case 'D':
      case 'w':
      case 'W':
      case 't':
      case 'n':
      case 'v':
      case 'f':
      case 'r': out_ += {'\\', c}; break;
      case 's':
      case 'S': spaces(c == 'S'); break;
      case 'b':
      case 'B': boundary(c); break;
      case 'x': code_point(hex(2)); break;
      case 'u': code_point(unicode()); break;
      case 'c': control(); break;
      case 'p':
      case 'P': property(c); break;
      default: other_escape(c);
    }
  }

  void spaces(bool negated) {
    if (!in_class_) {
      fmt::format_to(std::back_inserter(out_), "[{}{}]", negated ? "^" : "", kSpaces);
    } else if (bounds_a_range()) {
      fail("a class of characters cannot bound a range");
    } else {
      out_ += negated ? kNoSpaces : kSpaces;
    }
  }

  /// Whether the two-character escape before `at_` is next to a dash that makes a range.
  [[nodiscard]] bool bounds_a_range() const {
    const bool before = at_ >= class_begin_ + 4 && text_[at_ - 3] == '-';
    const bool after = at_ + 1 < text_.size() && text_[at_] == '-' && text_[at_ + 1] != ']';
    return before || after;
  }

  void boundary(char c) {
    if (!in_class_) {
      out_ += {'\\', c};
    } else if (c == 'b') {
      out_ += "\\x{8}";
    } else {
      fail("\\B has no meaning in a character class");
    }
  }

  void other_escape(char c) {
    if (c == '0' && (at_ == text_.size() || !is_digit(text_[at_]))) {
      out_ += "\\x{0}";
    } else if (is_digit(c)) {
      fail("back-references are not supported");
    } else if (kSyntaxCharacters.find(c) != std::string_view::npos || c == '-') {
      out_ += {'\\', c};
    } else {
      fail(fmt::format("ECMA-262 has no escape \\{}", excerpt({&c, 1})));
    }
  }

  void control() {
    if (at_ == text_.size() || !is_letter(text_[at_])) return fail("\\c wants a letter");
    code_point(static_cast<std::uint32_t>(text_[at_++]) % 32);
  }

  void property(char c) {
    const std::size_t close = text_.find('}', at_);
    if (!take('{') || close == std::string_view::npos) return fail("\\p wants a name in braces");
    std::string_view name = text_.substr(at_, close - at_);
    at_ = close + 1;
    for (const std::string_view prefix : {"gc=", "General_Category=", "sc=", "Script="}) {
      if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
    }
    for (const auto& [written, known] : kLongProperties) {
      if (name == written) name = known;
    }
    for (const char letter : name) {
      if (!is_letter(letter) && letter != '_') return fail("\\p wants the name of a property");
    }
    fmt::format_to(std::back_inserter(out_), "\\{}{{{}}}", c, name);
  }

  /// \uXXXX, a pair of them, or \u{X...}.
  std::optional<std::uint32_t> unicode() {
    if (take('{')) {
      const std::size_t close = text_.find('}', at_);
      if (close == std::string_view::npos || close == at_ || close - at_ > 8) return std::nullopt;
      const auto value = hex(close - at_);
      ++at_;
      return value;
    }
    const auto high = hex(4);
    if (!high.has_value() || *high < 0xd800 || *high > 0xdbff) return high;
    if (!text_.substr(at_).starts_with("\\u")) return std::nullopt;
    at_ += 2;
    const auto low = hex(4);
    if (!low.has_value() || *low < 0xdc00 || *low > 0xdfff) return std::nullopt;
    return 0x10000 + ((*high - 0xd800) << 10U) + (*low - 0xdc00);
  }

  std::optional<std::uint32_t> hex(std::size_t count) {
    if (at_ + count > text_.size()) return std::nullopt;
    // At most eight digits, read as two halves.
    std::string padded(8 - count, '0');
    padded += text_.substr(at_, count);
    const std::uint32_t high = hex4(padded);
    const std::uint32_t low = hex4(std::string_view(padded).substr(4));
    at_ += count;
    if (high > 0xffff || low > 0xffff) return std::nullopt;
    return high << 16U | low;
  }

  void code_point(std::optional<std::uint32_t> value) {
    if (!value.has_value() || *value > 0x10ffff || (*value >= 0xd800 && *value < 0xe000)) {
      return fail("an escape does not name a code point");
    }
    fmt::format_to(std::back_inserter(out_), "\\x{{{:x}}}", *value);
  }

  bool take(char c) {
    if (at_ == text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void fail(std::string_view text) {
    if (error_.empty()) error_ = fmt::format("{} (at character {})", text, at_);
  }

  std::string_view text_;
  std::size_t at_ = 0;
  bool in_class_ = false;
  std::size_t class_begin_ = 0;
  std::string out_;
  std::string error_;
};

}  // namespace

Result<std::string> re2_from_ecma(std::string_view ecma) { return Translator(ecma).run(); }

class Pattern::Engine {
 public:
  explicit Engine(const std::string& expression) : re2_(expression, options()) {}

  [[nodiscard]] bool good() const { return re2_.ok(); }
  [[nodiscard]] const std::string& error() const { return re2_.error(); }
  [[nodiscard]] bool matches(std::string_view text) const {
    return re2_.Match({text.data(), text.size()}, 0, text.size(), RE2::UNANCHORED, nullptr, 0);
  }

 private:
  static RE2::Options options() {
    RE2::Options options;
    options.set_log_errors(false);
    options.set_max_mem(kPatternMemoryBytes);
    options.set_never_capture(true);
    return options;
  }
  RE2 re2_;
};

Result<Pattern> Pattern::compile(std::string_view ecma) {
  if (ecma.size() > kPatternBytesMax) {
    return Error{Errc::invalid_argument,
                 fmt::format("it has {} bytes; the limit is {}", ecma.size(), kPatternBytesMax)};
  }
  BATON_TRY(const std::string expression, re2_from_ecma(ecma));
  auto engine = std::make_unique<const Engine>(expression);
  if (!engine->good()) {
    return Error{Errc::invalid_argument,
                 fmt::format("it is not a regular expression that RE2 takes: {}", engine->error())};
  }
  return Pattern(std::string(ecma), std::move(engine));
}

Pattern::Pattern(std::string source, std::unique_ptr<const Engine> engine)
    : source_(std::move(source)), engine_(std::move(engine)) {}
Pattern::~Pattern() = default;
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;

bool Pattern::matches(std::string_view text) const { return engine_->matches(text); }

}  // namespace baton::schema
