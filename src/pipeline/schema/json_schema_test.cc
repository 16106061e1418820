// Which schemas the compiler refuses, and with which errors.
#include "pipeline/schema/json_schema.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pipeline/schema/schema_limits.h"
#include "pipeline/schema/validator.h"

namespace baton::schema {
namespace {

std::string refusal(std::string_view text) {
  const auto schema = Schema::compile(text);
  if (schema.has_value()) return "good";
  EXPECT_EQ(schema.error().code, Errc::invalid_argument);
  return schema.error().text;
}

using Cases = std::vector<std::pair<std::string, std::string>>;

void expect_all(const Cases& cases) {
  for (const auto& [schema, text] : cases) EXPECT_EQ(refusal(schema), text) << schema;
}

TEST(JsonSchema, TheErrorNamesThePlaceAndTheKeyword) {
  expect_all({
      {R"({"properties": {"a": {"minimum": "1"}}})",
       R"(#/properties/a: "minimum" must be a number)"},
      {R"({"$defs": {"x/y": {"items": {"type": "int"}}}})",
       R"(#/$defs/x~1y/items: "type" must be the name of a type, or a list of them; "int" is none of null, boolean, integer, number, string, array, object)"},
      {R"({"allOf": [true, {"required": 1}]})", R"(#/allOf/1: "required" must be a list of names)"},
  });
}

// A rule that is not checked would be worse than none.
TEST(JsonSchema, WhatIsNotSupportedIsAnErrorWhereverItIs) {
  for (const auto* keyword :
       {"unevaluatedProperties", "unevaluatedItems", "$anchor", "$dynamicRef", "$dynamicAnchor",
        "$recursiveRef", "$recursiveAnchor", "$vocabulary", "dependencies", "additionalItems",
        "contentEncoding", "contentMediaType", "contentSchema", "id"}) {
    EXPECT_EQ(refusal(fmt::format(R"({{"$defs": {{"unused": {{"{}": true}}}}}})", keyword)),
              fmt::format(R"(#/$defs/unused: "{}" is not supported)", keyword));
  }
  expect_all({
      {R"({"minimun": 1})", R"(#: "minimun" is not a keyword of JSON Schema)"},
      {R"({"x-note": 1})", R"(#: "x-note" is not a keyword of JSON Schema)"},
      {R"({"format": "hostname"})", R"(#: "format" "hostname" is not supported)"},
      {R"({"items": {"$id": "x"}})", R"(#/items: "$id" is supported at the root only)"},
      {R"({"items": [true]})",
       R"(#: "items" must be one schema; the list of older drafts is now prefixItems)"},
      {R"({"$schema": "http://json-schema.org/draft-04/schema#"})",
       R"(#: "$schema" must be "https://json-schema.org/draft/2020-12/schema" or )"
       R"("http://json-schema.org/draft-07/schema#"; other drafts mean other things)"},
  });
}

TEST(JsonSchema, AnnotationsMeanNothing) {
  EXPECT_EQ(refusal(R"({"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "urn:x",
                        "$comment": 1, "title": "t", "description": "d", "default": {"a": 1},
                        "examples": [1], "deprecated": true, "readOnly": true,
                        "writeOnly": false})"),
            "good");
}

// In draft 7 $ref hides its siblings; a schema with such siblings would have two meanings.
TEST(JsonSchema, OfDraft7AReferenceStandsAlone) {
  const auto of_draft7 = [](std::string_view rest) {
    return fmt::format(R"({{"$schema": "http://json-schema.org/draft-07/schema#",
                           "definitions": {{"a": {{"type": "string"}}}}, {}}})",
                       rest);
  };
  expect_all({
      {of_draft7(R"("items": {"$ref": "#/definitions/a", "description": "an a"})"), "good"},
      {of_draft7(R"("items": {"$ref": "#/definitions/a", "maxLength": 3})"),
       R"(#/items: "maxLength" stands beside $ref, which hides it in draft 7 and not since)"},
  });
}

TEST(JsonSchema, ASchemaIsAnObjectOrABoolean) {
  expect_all({
      {"true", "good"},
      {"false", "good"},
      {"{}", "good"},
      {"[]", "#: a schema must be an object or a boolean; this is array"},
      {"null", "#: a schema must be an object or a boolean; this is null"},
      {R"({"properties": {"a": 1}})",
       "#/properties/a: a schema must be an object or a boolean; this is number"},
      {R"({"not": "x"})", "#/not: a schema must be an object or a boolean; this is string"},
      {"{", "the schema is not JSON: at the end: a key in double quotes is expected"},
      {R"({"type": "string", "type": "number"})",
       "the schema is not JSON: at byte 19: the key \"type\" is there twice"},
  });
}

TEST(JsonSchema, ValuesOfKeywordsAreChecked) {
  expect_all({
      {R"({"type": []})", R"(#: "type" must not be empty)"},
      {R"({"type": ["string", 1]})",
       R"(#: "type" must be the name of a type, or a list of them; number is none of null, boolean, integer, number, string, array, object)"},
      {R"({"enum": 1})", R"(#: "enum" must be an array)"},
      {R"({"enum": []})", R"(#: "enum" must not be empty)"},
      {R"({"exclusiveMinimum": true})", R"(#: "exclusiveMinimum" must be a number)"},
      {R"({"multipleOf": 0})", R"(#: "multipleOf" must be greater than 0)"},
      {R"({"multipleOf": -1})", R"(#: "multipleOf" must be greater than 0)"},
      {R"({"multipleOf": 1.234567890123456789})",
       R"(#: "multipleOf" has 19 digits; the limit is 18)"},
      {R"({"minLength": -1})", R"(#: "minLength" must be an integer of 0 or more)"},
      {R"({"maxLength": 1.5})", R"(#: "maxLength" must be an integer of 0 or more)"},
      {R"({"minItems": "1"})", R"(#: "minItems" must be a number)"},
      {R"({"maxItems": 2.0, "maxProperties": 1e30})", "good"},
      {R"({"pattern": 1})", R"(#: "pattern" must be a string)"},
      {R"x({"pattern": "(?=a)"})x",
       R"x(#: "pattern" cannot be "(?=a)": look-around and flags are not supported (at )x"
       R"x(character 2))x"},
      {R"({"patternProperties": {"[": true}})",
       R"(#: "patternProperties" cannot be "[": a character class has no ] (at character 1))"},
      {R"({"patternProperties": []})", R"(#: "patternProperties" must be an object)"},
      {R"({"format": 1})", R"(#: "format" must be a string)"},
      {R"({"uniqueItems": 1})", R"(#: "uniqueItems" must be a boolean)"},
      {R"({"prefixItems": []})", R"(#: "prefixItems" must not be empty)"},
      {R"({"properties": []})", R"(#: "properties" must be an object)"},
      {R"({"required": ["a", 1]})", R"(#: "required" must be a list of names)"},
      {R"({"dependentRequired": {"a": "b"}})", R"(#: "dependentRequired" must be a list of names)"},
      {R"({"dependentSchemas": 1})", R"(#: "dependentSchemas" must be an object)"},
      {R"({"allOf": []})", R"(#: "allOf" must not be empty)"},
      {R"({"anyOf": {}})", R"(#: "anyOf" must be an array)"},
      {R"({"$defs": []})", R"(#: "$defs" must be an object)"},
      {R"({"$id": 1})", R"(#: "$id" must be a string)"},
  });
}

TEST(JsonSchema, AReferenceMustLeadToASchemaInTheFile) {
  expect_all({
      {R"({"$ref": 1})", R"(#: "$ref" must be a string)"},
      {R"({"items": {"$ref": "#/$defs/none"}})", R"(#/items: "$ref" "#/$defs/none" leads nowhere)"},
      {R"({"items": {"$ref": "other.json"}})",
       R"(#/items: "$ref" "other.json" is not supported: it must be # or a pointer into this )"
       R"(schema, such as #/$defs/name)"},
      {R"({"items": {"$ref": "#name"}})",
       R"(#/items: "$ref" "#name" is not supported: it must be # or a pointer into this )"
       R"(schema, such as #/$defs/name)"},
      {R"({"enum": [{}], "items": {"$ref": "#/enum/0"}})",
       R"(#/items: "$ref" "#/enum/0" is not a schema)"},
      {R"({"properties": {}, "items": {"$ref": "#/properties"}})",
       R"(#/items: "$ref" "#/properties" is not a schema)"},
      {R"({"items": {"$ref": "#/%zz"}})", R"(#/items: "$ref" has a % without two digits after it)"},
      {R"({"items": {"$ref": "#/a~2"}})", R"(#/items: "$ref" has a ~ without 0 or 1)"},
      {R"({"items": {"$ref": "#/$defs/a~1b%25"}, "$defs": {"a/b%": true}})", "good"},
  });
}

// The reference returns to the same value for ever: no document could be validated.
TEST(JsonSchema, AnEndlessReferenceIsRefused) {
  expect_all({
      {R"({"$ref": "#"})", R"(#: "$ref" leads back here for the same value, without end)"},
      {R"({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"anyOf": [{"$ref": "#/$defs/a"}]}}})",
       R"(#/$defs/a: "$ref" leads back here for the same value, without end)"},
      {R"({"not": {"if": {"dependentSchemas": {"x": {"$ref": "#"}}}}})",
       R"(#: "$ref" leads back here for the same value, without end)"},
      {R"({"properties": {"child": {"$ref": "#"}}, "items": {"$ref": "#"}})", "good"},
      {R"({"allOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], "$defs": {"a": {}}})", "good"},
  });
}

TEST(JsonSchema, SizesHaveLimits) {
  EXPECT_EQ(refusal(std::string(kSchemaBytesMax + 1, ' ')),
            "the schema is not JSON: the document has 1048577 bytes; the limit is 1048576");

  std::string many = R"({"allOf": [)";
  for (std::size_t i = 0; i < kSubschemasMax; ++i) many += i == 0 ? "{}" : ",{}";
  EXPECT_EQ(refusal(many + "]}"), "the schema has more than 10000 subschemas");

  std::string wide = R"({"required": [)";
  for (std::size_t i = 0; i <= kPropertiesMax; ++i)
    wide += fmt::format("{}\"{}\"", i == 0 ? "" : ",", i);
  EXPECT_EQ(refusal(wide + "]}"), "#: \"required\" is one property too many; the limit is 1024");

  std::string patterns = R"({"patternProperties": {)";
  for (std::size_t i = 0; i <= kPatternsMax; ++i) {
    patterns += fmt::format("{}\"a{}\": true", i == 0 ? "" : ",", i);
  }
  EXPECT_EQ(refusal(patterns + "}}"),
            "#: \"patternProperties\" is one pattern too many; the limit is 256");
}

}  // namespace
}  // namespace baton::schema
