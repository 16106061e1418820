// The validator's messages, keyword by keyword. suite_test.cc shows that its results are right.
#include "pipeline/schema/validator.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace baton::schema {
namespace {

Validator validator_of(std::string_view text) {
  auto schema = Schema::compile(text);
  EXPECT_TRUE(schema.has_value()) << text << ": " << schema.error().text;
  return Validator(*schema);
}

std::string answer(std::string_view schema, std::string_view document) {
  const auto violation = validator_of(schema).validate(document);
  return violation.has_value() ? to_string(*violation) : "valid";
}

struct Case {
  std::string schema;
  std::string document;
  std::string answer;
};

void expect_all(const std::vector<Case>& cases) {
  for (const Case& c : cases) {
    EXPECT_EQ(answer(c.schema, c.document), c.answer) << c.schema << " " << c.document;
  }
}

TEST(Validator, ABrokenDocumentIsNotAnInvalidOne) {
  const auto violation = validator_of("{}").validate("{\"a\":");
  ASSERT_TRUE(violation.has_value());
  EXPECT_EQ(violation->kind, Violation::Kind::broken);
  EXPECT_EQ(to_string(*violation), "not JSON: at the end: a value is expected");
}

TEST(Validator, TypesAndValues) {
  expect_all({
      {R"({"type": "integer"})", "1.0", "valid"},
      {R"({"type": "integer"})", "100000000000000000000000000000", "valid"},
      {R"({"type": "integer"})", "1.5", "the document: type: 1.5 is not an integer"},
      {R"({"type": "integer"})", "\"1\"",
       "the document: type: the value is string; it must be integer"},
      {R"({"type": ["string", "null"]})", "[]",
       "the document: type: the value is array; it must be string or null"},
      {R"({"type": "number"})", "true",
       "the document: type: the value is boolean; it must be number"},
      {R"({"enum": ["a", 1, {"b": [2]}]})", R"({"b":[2.0]})", "valid"},
      {R"({"enum": ["a", 1]})", "\"b\"", R"(the document: enum: "b" is not one of ["a", 1])"},
      {R"({"const": {"a": 1}})", R"({"a":2})", R"(the document: const: {"a":2} is not {"a": 1})"},
      {"false", "1", "the document: false: no value is allowed here"},
      {R"({"properties": {"a": false}})", R"({"a":1})", "/a: false: no value is allowed here"},
  });
}

TEST(Validator, Numbers) {
  expect_all({
      {R"({"minimum": 0})", "-1", "the document: minimum: -1 is less than 0"},
      {R"({"exclusiveMinimum": 0})", "0",
       "the document: exclusiveMinimum: 0 is not greater than 0"},
      {R"({"maximum": 1.5})", "2", "the document: maximum: 2 is greater than 1.5"},
      {R"({"exclusiveMaximum": 10})", "1e1",
       "the document: exclusiveMaximum: 1e1 is not less than 10"},
      {R"({"multipleOf": 0.01})", "1.005",
       "the document: multipleOf: 1.005 is not a multiple of 0.01"},
      {R"({"multipleOf": 0.01})", "1.05", "valid"},
      {R"({"minimum": 0, "maximum": 100, "multipleOf": 5})", "35", "valid"},
  });
}

TEST(Validator, Texts) {
  expect_all({
      {R"({"minLength": 1})", "\"\"",
       "the document: minLength: the text has 0 characters; it must have at least 1"},
      {R"({"minLength": 3})", "\"\u7530\u4e2d\"",
       "the document: minLength: the text has 2 characters; it must have at least 3"},
      {R"({"maxLength": 2})", "\"\u7530\u4e2d\"", "valid"},
      {R"({"maxLength": 2})", "\"abc\"",
       "the document: maxLength: the text has 3 characters; it must have at most 2"},
      {R"({"pattern": "^[a-z]+$"})", "\"aB\"",
       "the document: pattern: \"aB\" does not match ^[a-z]+$"},
      {R"({"format": "email"})", "\"nobody\"",
       "the document: format: \"nobody\" does not have the format email"},
      {R"({"minLength": 3, "pattern": "x", "format": "email"})", "7", "valid"},
  });
}

TEST(Validator, Arrays) {
  expect_all({
      {R"({"minItems": 1})", "[]",
       "the document: minItems: the array has 0 elements; it must have at least 1"},
      {R"({"maxItems": 1})", "[1,2]",
       "the document: maxItems: the array has 2 elements; it must have at most 1"},
      {R"({"uniqueItems": true})", R"([1,"1",{"a":1},[1],{"a":1.0}])",
       R"(/4: uniqueItems: the element {"a":1.0} is there before, at /2)"},
      {R"({"uniqueItems": true})", R"([1,"1",true,null,[1],{"a":1},{"a":2}])", "valid"},
      {R"({"items": {"type": "string"}})", R"(["a",1])",
       "/1: type: the value is number; it must be string"},
      {R"({"prefixItems": [{"type": "string"}, {"type": "integer"}], "items": false})",
       R"(["a",1,2])", "/2: items: an array may have no element past the first 2"},
      {R"({"prefixItems": [{"type": "string"}], "items": {"type": "null"}})", R"(["a",null,3])",
       "/2: type: the value is number; it must be null"},
      {R"({"contains": {"minimum": 5}})", "[1,2]",
       "the document: contains: 0 elements match; it must be at least 1"},
      {R"({"contains": {"minimum": 5}, "minContains": 2})", "[7,2]",
       "the document: minContains: 1 elements match; it must be at least 2"},
      {R"({"contains": {"minimum": 5}, "maxContains": 1})", "[7,8,9]",
       "the document: maxContains: too many elements match; it must be at most 1"},
  });
}

TEST(Validator, Objects) {
  expect_all({
      {R"({"required": ["a", "b"]})", R"({"a":1})",
       "the document: required: the property \"b\" is missing"},
      {R"({"properties": {"o": {"required": ["a"]}}})", R"({"o":{}})",
       "/o: required: the property \"a\" is missing"},
      {R"({"properties": {"a": {}}, "additionalProperties": false})", R"({"a":1,"b/c":2})",
       "/b~1c: additionalProperties: the property \"b/c\" is not allowed"},
      {R"({"properties": {"a": {}}, "additionalProperties": {"type": "null"}})", R"({"a":1,"b":2})",
       "/b: type: the value is number; it must be null"},
      {R"({"patternProperties": {"^n_": {"type": "number"}}, "additionalProperties": false})",
       R"({"n_a":1,"n_b":"x"})", "/n_b: type: the value is string; it must be number"},
      {R"({"properties": {"ab": {"minimum": 1}}, "patternProperties": {"a": {"maximum": 5},
           "b": {"multipleOf": 2}}})",
       R"({"ab":3})", "/ab: multipleOf: 3 is not a multiple of 2"},
      {R"({"propertyNames": {"maxLength": 2}})", R"({"ab":1,"abc":2})",
       "/abc: maxLength: the text has 3 characters; it must have at most 2"},
      {R"({"minProperties": 1})", "{}",
       "the document: minProperties: the object has 0 properties; it must have at least 1"},
      {R"({"maxProperties": 1})", R"({"a":1,"b":2})",
       "the document: maxProperties: the object has 2 properties; it must have at most 1"},
      {R"({"dependentRequired": {"a": ["b"]}})", R"({"a":1})",
       "the document: dependentRequired: the property \"b\" is missing, which \"a\" asks for"},
      {R"({"dependentSchemas": {"a": {"maxProperties": 1}}})", R"({"a":1,"b":1})",
       "the document: maxProperties: the object has 2 properties; it must have at most 1"},
  });
}

TEST(Validator, Branches) {
  expect_all({
      {R"({"allOf": [{"minimum": 1}, {"maximum": 5}]})", "7",
       "the document: maximum: 7 is greater than 5"},
      {R"({"anyOf": [{"type": "string"}, {"minimum": 5}]})", "3",
       "the document: anyOf: the value matches none of the 2 alternatives"},
      {R"({"oneOf": [{"minimum": 1}, {"minimum": 5}]})", "7",
       "the document: oneOf: the value matches more than one of the 2 alternatives; it must be "
       "exactly one"},
      {R"({"oneOf": [{"minimum": 1}, {"minimum": 5}]})", "0",
       "the document: oneOf: the value matches none of the 2 alternatives; it must be exactly one"},
      {R"({"not": {"type": "string"}})", "\"x\"",
       "the document: not: the value matches what it must not"},
      {R"({"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"minimum": 2}})", "\"x\"",
       "the document: minLength: the text has 1 characters; it must have at least 2"},
      {R"({"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"minimum": 2}})", "1",
       "the document: minimum: 1 is less than 2"},
      {R"({"then": false, "else": false})", "1", "valid"},
  });
}

// A branch that fails deep inside must leave nothing behind: neither its frames nor its bits of
// seen names.
TEST(Validator, ABranchThatFailsLeavesNoTrace) {
  constexpr std::string_view kSchema = R"({
    "anyOf": [
      {"properties": {"a": {"items": {"properties": {"b": {"type": "null"}}, "required": ["b"]}}},
       "required": ["a", "only_first"]},
      {"properties": {"a": {"items": {"properties": {"b": {"type": "integer"}}}}},
       "required": ["a"], "additionalProperties": false}],
    "required": ["a"], "properties": {"a": {"minItems": 2}}})";
  expect_all({
      {std::string(kSchema), R"({"a":[{"b":1},{"b":2}]})", "valid"},
      {std::string(kSchema), R"({"a":[{"b":1}]})",
       "/a: minItems: the array has 1 elements; it must have at least 2"},
      {std::string(kSchema), R"({"a":[{"b":1},{"b":"x"}]})",
       "the document: anyOf: the value matches none of the 2 alternatives"},
      {R"({"not": {"not": {"anyOf": [{"type": "string"}, {"not": {"type": "number"}}]}}})", "1",
       "the document: not: the value matches what it must not"},
      {R"({"not": {"not": {"anyOf": [{"type": "string"}, {"not": {"type": "number"}}]}}})", "null",
       "valid"},
  });
}

TEST(Validator, TheFirstViolationIsInTheOrderOfTheDocument) {
  constexpr const char* kSchema = R"({"required": ["z"], "properties": {
    "a": {"minimum": 1}, "b": {"minimum": 1}}, "minProperties": 1})";
  expect_all({
      {kSchema, R"({"b":0,"a":0})", "/b: minimum: 0 is less than 1"},
      {kSchema, R"({"a":1,"b":0})", "/b: minimum: 0 is less than 1"},
      {kSchema, R"({"a":1,"b":1})", "the document: required: the property \"z\" is missing"},
  });
}

TEST(Validator, ReferencesMayRecur) {
  constexpr std::string_view kTree = R"({"$ref": "#/$defs/node", "$defs": {"node": {
    "type": "object", "required": ["value"], "additionalProperties": false, "properties": {
      "value": {"type": "integer"}, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}
    }}}})";
  expect_all({
      {std::string(kTree), R"({"value":1,"children":[{"value":2},{"value":3,"children":[]}]})",
       "valid"},
      {std::string(kTree), R"({"value":1,"children":[{"value":2,"children":[{"value":"x"}]}]})",
       "/children/0/children/0/value: type: the value is string; it must be integer"},
  });
}

// Members beyond the first 64 and the first 128: the bits of seen names take several words.
TEST(Validator, ManyRequiredProperties) {
  std::string names;
  std::string members;
  for (int i = 0; i < 300; ++i) {
    names += fmt::format("{}\"p{}\"", i == 0 ? "" : ",", i);
    members += fmt::format("{}\"p{}\":{}", i == 0 ? "" : ",", i, i);
  }
  Validator validator = validator_of(fmt::format("{{\"required\": [{}]}}", names));
  const std::string all = "{" + members + "}";
  EXPECT_FALSE(validator.validate(all).has_value());
  for (int i = 1; i < 300; i += 13) {
    std::string without = all;
    const std::string gone = fmt::format(",\"p{}\":{}", i, i);
    without.erase(without.find(gone), gone.size());
    const auto violation = validator.validate(without);
    ASSERT_TRUE(violation.has_value());
    EXPECT_EQ(violation->text, fmt::format("the property \"p{}\" is missing", i));
  }
}

// Each level tries two branches, and each branch the next level: 2^60 steps without a limit.
TEST(Validator, WorkHasALimit) {
  Validator validator = validator_of(R"({"$ref": "#/$defs/n", "$defs": {"n": {"anyOf": [
    {"properties": {"c": {"$ref": "#/$defs/n"}}, "required": ["x"]},
    {"properties": {"c": {"$ref": "#/$defs/n"}}, "required": ["y"]}]}}})");
  std::string deep;
  for (int i = 0; i < 60; ++i) deep += "{\"c\":";
  deep += "{}" + std::string(60, '}');
  const auto violation = validator.validate(deep);
  ASSERT_TRUE(violation.has_value());
  EXPECT_EQ(to_string(*violation),
            "the document: limit: the schema takes too many steps on this document");
  // The next document is validated as usual.
  EXPECT_FALSE(validator.validate(R"({"x":1})").has_value());
}

// One value with a chain of schemas for it.
TEST(Validator, AChainOfReferencesHasALimit) {
  const auto chain = [](int length) {
    std::string text = R"({"$ref": "#/$defs/d0", "$defs": {)";
    for (int i = 0; i < length; ++i) {
      text += fmt::format(R"("d{}": {{"minimum": 0, "$ref": "#/$defs/d{}"}}, )", i, i + 1);
    }
    return text + fmt::format(R"("d{}": {{"maximum": 9}}}}}})", length);
  };
  expect_all({
      {chain(8000), "5", "valid"},
      {chain(8000), "10", "the document: maximum: 10 is greater than 9"},
      {chain(9000), "5", "the document: limit: the schema takes too many steps on this document"},
  });
}

TEST(Validator, DocumentsHaveALimit) {
  auto schema = Schema::compile("true");
  ASSERT_TRUE(schema.has_value());
  Validator validator(*schema, 8);
  EXPECT_FALSE(validator.validate("[1,2,3]").has_value());
  const auto violation = validator.validate("[1,2,3,4]");
  ASSERT_TRUE(violation.has_value());
  EXPECT_EQ(to_string(*violation), "not JSON: the document has 9 bytes; the limit is 8");
}

}  // namespace
}  // namespace baton::schema
