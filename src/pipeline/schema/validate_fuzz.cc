// Arbitrary documents against fixed schemas: one that uses every keyword, and the schema of orders.
// Every input is answered, in bounded time. The reader is compared with simdjson's own, the
// pointers of violations with the document, and mapped rows with the document.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <simdjson.h>

#include "base/assert.h"
#include "pipeline/orders/orders.h"
#include "pipeline/schema/json_text.h"
#include "pipeline/schema/json_values.h"
#include "pipeline/schema/mapping.h"
#include "pipeline/schema/validator.h"

namespace {

using namespace baton::schema;  // NOLINT(google-build-using-namespace)

constexpr std::string_view kEverything = R"json({
  "$ref": "#/$defs/any",
  "$defs": {
    "any": {
      "anyOf": [
        {"type": ["null", "boolean"]},
        {"type": "integer", "minimum": -1e3, "exclusiveMaximum": 1e3, "multipleOf": 0.5},
        {"type": "number", "exclusiveMinimum": 0.25, "maximum": 99.75},
        {"type": "string", "minLength": 1, "maxLength": 20, "pattern": "^[^\\s\\d]+(a|b)*$"},
        {"type": "string", "oneOf": [
          {"format": "date-time"}, {"format": "date"}, {"format": "time"}, {"format": "email"},
          {"format": "ipv4"}, {"format": "ipv6"}, {"format": "uri"}, {"format": "uuid"}]},
        {"type": "array", "minItems": 1, "maxItems": 9, "uniqueItems": true,
         "prefixItems": [{"$ref": "#/$defs/any"}], "items": {"$ref": "#/$defs/any"},
         "contains": {"type": "integer"}, "minContains": 0, "maxContains": 3},
        {"$ref": "#/$defs/object"},
        {"enum": ["", 0, {"a": [1]}, [[]]]}]
    },
    "object": {
      "type": "object", "required": ["a"], "minProperties": 1, "maxProperties": 20,
      "properties": {"a": {"$ref": "#/$defs/any"}, "b": {"const": {"x": 1.0}}},
      "patternProperties": {"^n": {"type": "number"}, "o$": {"$ref": "#/$defs/object"}},
      "additionalProperties": {"$ref": "#/$defs/any"},
      "propertyNames": {"maxLength": 9},
      "dependentRequired": {"c": ["d"]}, "dependentSchemas": {"d": {"maxProperties": 5}},
      "if": {"required": ["e"]}, "then": {"minProperties": 2}, "else": {"not": {"required": ["f"]}}
    }
  }
})json";

Validator make_validator(std::string_view text) {
  const auto schema = Schema::compile(text);
  BATON_ASSERT(schema.has_value());
  return Validator(*schema);
}

Mapper make_mapper() {
  const auto mapping = Mapping::compile(baton::orders::order_mapping());
  BATON_ASSERT(mapping.has_value());
  return Mapper(*mapping);
}

/// We accept exactly the documents that simdjson accepts, except for those that we refuse on
/// purpose.
void compare_with_simdjson(std::string_view bytes, const JsonDocument& ours, bool read) {
  static simdjson::dom::parser parser;
  const simdjson::padded_string padded(bytes);
  const auto code = parser.parse(padded).error();
  if (read && code != simdjson::SUCCESS) {
    // simdjson has no integers beyond 64 bits, and no numbers beyond a double.
    BATON_ASSERT(code == simdjson::NUMBER_ERROR);
    bool large = false;
    for (JsonIndex at = 0; at < ours.size(); ++at) {
      large = large || (ours.node(at).kind == JsonKind::number && !ours.node(at).is_small());
    }
    BATON_ASSERT(large);
  }
  if (!read && code == simdjson::SUCCESS) {
    JsonDocument again;
    const auto status = again.read(bytes);
    const std::string& text = status.error().text;
    BATON_ASSERT(text.find("is there twice") != std::string::npos ||
                 text.find("deep, and no deeper") != std::string::npos ||
                 text.find("the exponent of a number") != std::string::npos ||
                 text.find("half a surrogate pair") != std::string::npos);
  }
}

void check_nodes(const JsonDocument& document) {
  if (document.size() > 200) return;
  for (JsonIndex at = 0; at < document.size(); ++at) {
    const JsonNode& node = document.node(at);
    BATON_ASSERT(node.next > at && node.next <= document.size());
    if (node.kind == JsonKind::key) continue;
    // The pointer finds the value again, and the source reads as the same value.
    JsonDocument part;
    BATON_ASSERT(part.read(document.source(at)).has_value());
    std::uint64_t steps = 1'000'000;
    BATON_ASSERT(equal(document, at, part, 0, steps));
    const std::string pointer = document.pointer(at);
    if (pointer.find('%') != std::string::npos) continue;  // In a fragment % begins an escape.
    JsonIndex there = 0;
    const auto names = pointer_steps(pointer);
    BATON_ASSERT(names.has_value());
    for (const std::string& name : *names) there = document.child(there, name);
    BATON_ASSERT(there == at);
  }
}

void check(Validator& validator, std::string_view bytes) {
  const auto violation = validator.validate(bytes);
  const bool broken = violation.has_value() && violation->kind == Violation::Kind::broken;
  if (broken) return;
  if (violation.has_value()) {
    BATON_ASSERT(!violation->keyword.empty() && !violation->text.empty());
  }
  // The same result again, from a validator that has seen another document.
  static Validator other = make_validator(baton::orders::order_schema());
  (void)other.validate("[[[[{\"a\":[1,2]}]]]]");
  const auto again = validator.validate(bytes);
  BATON_ASSERT(again.has_value() == violation.has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);  // NOLINT
  static Validator everything = make_validator(kEverything);
  static Validator orders = make_validator(baton::orders::order_schema());
  static Mapper mapper = make_mapper();

  JsonDocument document;
  const bool read = document.read(bytes).has_value();
  compare_with_simdjson(bytes, document, read);
  if (read) check_nodes(document);
  check(everything, bytes);
  check(orders, bytes);
  if (!read) return 0;

  DocumentRows rows;
  const bool valid = !orders.validate(bytes).has_value();
  const bool mapped = mapper.map(orders.document(), rows).has_value();
  // The schema requires all that the tables need; only U+0000 is a limit of the tables.
  BATON_ASSERT(!valid || mapped || bytes.find("\\u0000") != std::string::npos);
  if (mapped) BATON_ASSERT(!is_null(rows.key()));
  return 0;
}
