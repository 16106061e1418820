#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "pipeline/schema/decimal.h"
#include "pipeline/schema/formats.h"
#include "pipeline/schema/json_document.h"
#include "pipeline/schema/json_text.h"
#include "pipeline/schema/pattern.h"

/// The compiled form of a schema: what the compiler makes and the validator walks.
namespace baton::schema {

/// Index of a subschema. 0 is the schema itself.
using SubschemaId = std::uint32_t;
inline constexpr SubschemaId kNoSubschema = std::numeric_limits<SubschemaId>::max();
inline constexpr std::size_t kUnlimited = std::numeric_limits<std::size_t>::max();

/// A set of JSON types, by bit.
using TypeSet = std::uint8_t;
inline constexpr TypeSet kNull = 1;
inline constexpr TypeSet kBoolean = 2;
inline constexpr TypeSet kInteger = 4;
inline constexpr TypeSet kFraction = 8;  // A number that is not an integer.
inline constexpr TypeSet kString = 16;
inline constexpr TypeSet kArray = 32;
inline constexpr TypeSet kObject = 64;
inline constexpr TypeSet kNumber = kInteger | kFraction;
inline constexpr TypeSet kAnyType = 127;

/// Names and their indexes, in the order of adding. Fixed once the schema is compiled.
class NameTable {
 public:
  static constexpr std::size_t kNone = kUnlimited;

  /// The index of `name`, new or old.
  std::size_t add(std::string_view name);
  /// `guess` is tried first: members of a document usually come in the order of the last one's.
  [[nodiscard]] std::size_t find(std::string_view name, std::uint64_t hash,
                                 std::size_t guess = kNone) const {
    if (guess < names_.size() && hashes_[guess] == hash && same_name(names_[guess], name))
      return guess;
    if (slots_.empty()) return kNone;
    for (std::size_t slot = hash & (slots_.size() - 1);; slot = (slot + 1) & (slots_.size() - 1)) {
      const std::uint32_t place = slots_[slot];
      if (place == 0) return kNone;
      if (hashes_[place - 1] == hash && same_name(names_[place - 1], name)) return place - 1;
    }
  }
  [[nodiscard]] std::size_t size() const { return names_.size(); }
  [[nodiscard]] const std::string& name(std::size_t place) const { return names_[place]; }

 private:
  void rehash();

  std::vector<std::string> names_;
  std::vector<std::uint64_t> hashes_;
  std::vector<std::uint32_t> slots_;  // Indexes + 1; 0 is free. At most half are used.
};

/// The values of `enum` or `const`.
class ValueSet {
 public:
  /// `values` is the JSON text of an array.
  ValueSet(std::string_view keyword, std::string values);

  [[nodiscard]] bool contains(const JsonDocument& document, JsonIndex at,
                              std::uint64_t& steps) const;
  [[nodiscard]] std::string_view keyword() const { return keyword_; }
  /// The values as written, for an error.
  [[nodiscard]] std::string_view text() const { return text_; }
  [[nodiscard]] std::string_view first() const { return document_.source(1); }

 private:
  std::string_view keyword_;
  std::string text_;  // The document points into it, so the object never moves.
  JsonDocument document_;
  NameTable strings_;
  std::vector<JsonIndex> others_;  // All values that are not strings.
};

struct Bound {
  enum class Kind : std::uint8_t { minimum, exclusive_minimum, maximum, exclusive_maximum };
  Kind kind;
  std::string written;
  Decimal value;
  std::optional<std::int64_t> small;
};

struct NumberRules {
  std::vector<Bound> bounds;
  std::optional<Decimal> multiple_of;
  std::string multiple_of_written;
};

struct TextRules {
  std::size_t length_min = 0;
  std::size_t length_max = kUnlimited;
  std::optional<Pattern> pattern;
  std::optional<Format> format;
};

struct ArrayRules {
  std::size_t count_min = 0;
  std::size_t count_max = kUnlimited;
  bool unique = false;
  std::vector<SubschemaId> prefix;
  SubschemaId items = kNoSubschema;  // For elements after the prefix.
  SubschemaId contains = kNoSubschema;
  std::size_t contains_min = 1;
  std::size_t contains_max = kUnlimited;
};

struct ObjectRules {
  std::size_t count_min = 0;
  std::size_t count_max = kUnlimited;
  NameTable names;                    // All names in the rules; their indexes are used below.
  std::vector<SubschemaId> declared;  // By `properties`; kNoSubschema for other names.
  std::vector<std::size_t> required;
  std::vector<std::uint64_t> required_bits;  // The same as bits, by index / 64.
  std::vector<std::pair<Pattern, SubschemaId>> patterns;
  SubschemaId additional = kNoSubschema;
  SubschemaId property_names = kNoSubschema;
  std::vector<std::pair<std::size_t, std::vector<std::size_t>>> dependent_required;
  std::vector<std::pair<std::size_t, SubschemaId>> dependent_schemas;
};

/// Subschemas for the same value. $ref is `all`, too.
struct Group {
  enum class Kind : std::uint8_t { all, any, one, none, conditional };
  Kind kind;
  // conditional: if, then, else; the last two may be kNoSubschema.
  std::vector<SubschemaId> members;
};

struct Subschema {
  bool never = false;  // The schema `false`.
  TypeSet types = kAnyType;
  std::vector<std::unique_ptr<const ValueSet>> values;
  std::unique_ptr<NumberRules> number;
  std::unique_ptr<TextRules> text;
  std::unique_ptr<ArrayRules> array;
  std::unique_ptr<ObjectRules> object;
  std::vector<Group> groups;
};

struct SchemaNodes {
  std::vector<Subschema> subschemas;
};

/// "integer or null".
std::string to_string(TypeSet types);

}  // namespace baton::schema
