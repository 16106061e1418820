#include "pipeline/schema/mapping.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "pipeline/orders/orders.h"

namespace baton::schema {
namespace {

using enum ColumnType;

ColumnMapping column(std::string name, std::string path, ColumnType type = text,
                     bool may_be_missing = false) {
  return {
      .name = std::move(name), .path = std::move(path), .type = type, .optional = may_be_missing};
}

/// One table of whole documents, with a key `id` before the given columns.
RowMapping one_table(std::vector<ColumnMapping> columns) {
  columns.insert(columns.begin(), column("id", "id"));
  return {.tables = {{.name = "t", .rows = "", .columns = std::move(columns)}}, .key = "id"};
}

std::string refusal(RowMapping mapping) {
  const auto compiled = Mapping::compile(std::move(mapping));
  return compiled.has_value() ? "good" : compiled.error().text;
}

/// Each row as "table: cell, cell"; or the error.
std::string rows_of(const RowMapping& mapping, std::string_view document) {
  const auto compiled = Mapping::compile(mapping);
  if (!compiled.has_value()) return compiled.error().text;
  JsonDocument json;
  const Status read = json.read(document);
  if (!read.has_value()) return read.error().text;
  Mapper mapper(*compiled);
  DocumentRows rows;
  const Status mapped = mapper.map(json, rows);
  if (!mapped.has_value()) {
    EXPECT_TRUE(rows.rows().empty());
    EXPECT_EQ(mapped.error().code, Errc::malformed);
    return mapped.error().text;
  }
  std::string out;
  for (const DocumentRows::Row& row : rows.rows()) {
    const TableMapping& table = mapping.tables[row.table];
    out += table.name + ":";
    for (std::size_t i = 0; i < table.columns.size(); ++i) {
      const Cell cell = rows.cell(row, i);
      out += is_null(cell) ? " NULL" : fmt::format(" '{}'", cell);
    }
    out += "\n";
  }
  return out;
}

TEST(Mapping, ADocumentBecomesARow) {
  EXPECT_EQ(rows_of(one_table({column("n", "a.b.n", integer), column("x", "a.x", real),
                               column("f", "f", boolean), column("j", "a.b", json),
                               column("t", "t", timestamp)}),
                    R"({"t":"2021-11-26T06:22:19Z","f":false,"id":"k",
                        "a":{"x":1.50,"b":{"n":7, "other":[1]}}})"),
            "t: 'k' '7' '1.50' 'false' '{\"n\":7, \"other\":[1]}' '2021-11-26T06:22:19Z'\n");
}

TEST(Mapping, AnArrayBecomesRowsOfAChildTable) {
  const RowMapping mapping{
      .tables = {{.name = "orders", .rows = "", .columns = {column("id", "id")}},
                 {.name = "buyers",
                  .rows = "buyer",
                  .columns = {column("id", "id"), column("name", "buyer.name")}},
                 {.name = "items",
                  .rows = "items[]",
                  .columns = {column("id", "id"), column("position", "items[].#", integer),
                              column("name", "items[].name")}},
                 {.name = "tags",
                  .rows = "items[].tags[]",
                  .columns = {column("id", "id"), column("item", "items[].name"),
                              column("place", "items[].tags[].#", integer),
                              column("tag", "items[].tags[]")}}},
      .key = "id"};
  // The key comes last: rows that need the key are not written before it is known.
  EXPECT_EQ(rows_of(mapping, R"({"items":[{"tags":["x","y"],"name":"a"},{"name":"b","tags":[]},
                                          {"name":"c"}], "buyer":{"name":"Ann"}, "id":"k"})"),
            "orders: 'k'\n"
            "buyers: 'k' 'Ann'\n"
            "items: 'k' '0' 'a'\n"
            "tags: 'k' 'a' '0' 'x'\n"
            "tags: 'k' 'a' '1' 'y'\n"
            "items: 'k' '1' 'b'\n"
            "items: 'k' '2' 'c'\n");
  EXPECT_EQ(rows_of(mapping, R"({"id":"k","items":null,"buyer":null})"), "orders: 'k'\n");
  EXPECT_EQ(rows_of(mapping, R"({"id":"k","items":{}})"), "/items is object; it must be an array");
  // Nothing is ignored: an element that is null has no name, and that is an error.
  EXPECT_EQ(rows_of(mapping, R"({"id":"k","items":[null]})"),
            "column items.name: items[].name is missing");
  EXPECT_EQ(rows_of(mapping, "null"), "column orders.id: id is missing");
  // An element without the value must not get the value of the element before it.
  EXPECT_EQ(rows_of(mapping, R"({"id":"k","items":[{"name":"a"},{}]})"),
            "column items.name: items[].name is missing");
}

TEST(Mapping, WhatIsOptionalMayBeMissingOrNull) {
  const RowMapping mapping = one_table({column("a", "o.a", text, true), column("b", "b")});
  EXPECT_EQ(rows_of(mapping, R"({"id":"k","b":""})"), "t: 'k' NULL ''\n");
  EXPECT_EQ(rows_of(mapping, R"({"id":"k","b":"x","o":{"a":null}})"), "t: 'k' NULL 'x'\n");
  EXPECT_EQ(rows_of(mapping, R"({"id":"k","b":"x","o":7})"), "t: 'k' NULL 'x'\n");
  EXPECT_EQ(rows_of(mapping, R"({"id":"k"})"), "column t.b: b is missing");
  EXPECT_EQ(rows_of(mapping, R"({"id":"k","b":null})"), "column t.b: b is null");
  EXPECT_EQ(rows_of(mapping, "[]"), "column t.id: id is missing");
}

TEST(Mapping, TypesTakeWhatFitsThem) {
  const auto cell = [](ColumnType type, std::string_view value) {
    return rows_of(one_table({column("c", "c", type)}),
                   fmt::format("{{\"id\":\"k\",\"c\":{}}}", value));
  };
  EXPECT_EQ(cell(text, "\"a\\u00e9\\n\""), "t: 'k' 'a\u00e9\n'\n");
  EXPECT_EQ(cell(text, "12.50"), "t: 'k' '12.50'\n");
  EXPECT_EQ(cell(text, "true"), "t: 'k' 'true'\n");
  EXPECT_EQ(cell(text, "[1]"), "column t.c: /c is [1], which is not a text");
  EXPECT_EQ(cell(text, "\"a\\u0000\""),
            "column t.c: /c has the character U+0000, which no text may have");
  EXPECT_EQ(cell(integer, "-12"), "t: 'k' '-12'\n");
  EXPECT_EQ(cell(integer, "1.2e1"), "t: 'k' '12'\n");
  EXPECT_EQ(cell(integer, "-0"), "t: 'k' '0'\n");
  EXPECT_EQ(cell(integer, "9223372036854775807"), "t: 'k' '9223372036854775807'\n");
  EXPECT_EQ(cell(integer, "9223372036854775808"),
            "column t.c: /c is 9223372036854775808, which is not an integer of 64 bits");
  EXPECT_EQ(cell(integer, "1.5"), "column t.c: /c is 1.5, which is not an integer of 64 bits");
  EXPECT_EQ(cell(integer, "\"1\""), "column t.c: /c is \"1\", which is not an integer");
  EXPECT_EQ(cell(real, "0.1000000000000000000000000001"),
            "t: 'k' '0.1000000000000000000000000001'\n");
  EXPECT_EQ(cell(real, "1e400"),
            "column t.c: /c is 1e400, which is not a number in the range of a double");
  EXPECT_EQ(cell(real, "\"1\""), "column t.c: /c is \"1\", which is not a number");
  EXPECT_EQ(cell(boolean, "true"), "t: 'k' 'true'\n");
  EXPECT_EQ(cell(boolean, "1"), "column t.c: /c is 1, which is not a boolean");
  EXPECT_EQ(cell(json, "\"a\\n\""), "t: 'k' '\"a\\n\"'\n");
  EXPECT_EQ(cell(json, " [ 1 ] "), "t: 'k' '[ 1 ]'\n");
  EXPECT_EQ(cell(timestamp, "\"2021-11-26\""),
            "column t.c: /c is \"2021-11-26\", which is not an RFC 3339 date-time");
}

TEST(Mapping, NamesOfTypesGoThereAndBack) {
  for (const auto* name : {"text", "integer", "real", "boolean", "json", "timestamp"}) {
    const auto type = parse_column_type(name);
    ASSERT_TRUE(type.has_value());
    EXPECT_EQ(to_string(*type), name);
  }
  EXPECT_FALSE(parse_column_type("varchar").has_value());
}

TEST(Mapping, AMappingIsCheckedBeforeItIsUsed) {
  EXPECT_EQ(refusal({}), "a mapping needs a table");
  EXPECT_EQ(refusal({.tables = {{.name = "", .rows = "", .columns = {}}}, .key = "id"}),
            "table has no name");
  EXPECT_EQ(refusal({.tables = {{.name = "t", .rows = "", .columns = {}}}, .key = "id"}),
            "table t: 0 columns; it must be 1 to 256");
  EXPECT_EQ(refusal({.tables = {{.name = "a\"b", .rows = "", .columns = {}}}, .key = "id"}),
            "table a\"b: the name has a quote or a control character");
  EXPECT_EQ(
      refusal({.tables = {{.name = std::string(64, 't'), .rows = "", .columns = {}}}, .key = "id"}),
      "table " + std::string(64, 't') + ": the name has 64 bytes; the limit is 63");
  EXPECT_EQ(refusal(one_table({column("id", "x")})), "table t: column id: is there twice");
  EXPECT_EQ(refusal(one_table({column("", "x")})), "table t: column has no name");
  for (const auto* path : {"", ".", "a.", ".a", "a..b", "a[", "a[0]", "[]", "a[][]", "a[]b"}) {
    EXPECT_EQ(refusal(one_table({column("c", path)})),
              fmt::format("table t: column c: the path \"{}\" must be names between dots, each "
                          "with [] behind it if it is an array",
                          path));
  }
  EXPECT_EQ(refusal(one_table({column("c", "items[].x")})),
            "table t: column c: the path \"items[].x\" goes through an array that the table's "
            "rows (one for each document) do not; is one of them misspelt?");
  EXPECT_EQ(refusal(one_table({column("c", "a.#", integer)})),
            "table t: column c: the path \"a.#\" has a # that is not the last step, or not "
            "behind an array");
  EXPECT_EQ(refusal(one_table({column("c", std::string(513, 'a'))})),
            "table t: column c: the path \"" + std::string(64, 'a') +
                "...\" has 513 bytes; the limit is 512");
  EXPECT_EQ(refusal(one_table({column("c", "a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a")})),
            "table t: column c: the path \"a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a.a\" has 17 steps; the "
            "limit is 16");

  RowMapping no_key = one_table({});
  no_key.key = "other";
  EXPECT_EQ(refusal(no_key),
            "the idempotency key \"other\" must be a column of table t that is not optional");
  RowMapping optional_key = one_table({});
  optional_key.tables[0].columns[0].optional = true;
  EXPECT_EQ(refusal(optional_key),
            "the idempotency key \"id\" must be a column of table t that is not optional");
  RowMapping of_elements = one_table({});
  of_elements.tables[0].rows = "items[]";
  EXPECT_EQ(refusal(of_elements), "table t: the first table must have one row for each document");

  RowMapping twice = one_table({});
  twice.tables.push_back(twice.tables[0]);
  EXPECT_EQ(refusal(twice), "table t: there are two of that name");
  RowMapping place = one_table({});
  place.tables.push_back(
      {.name = "i", .rows = "items[]", .columns = {column("p", "items[].#", text)}});
  EXPECT_EQ(refusal(place), "table i: column p: the place of an element is an integer");
  place.tables[1].rows = "items[].#";
  EXPECT_EQ(refusal(place),
            "table i: rows: \"items[].#\" has a # that is not the last step, or not behind an "
            "array");
}

std::string refusal_by(std::string_view schema, std::vector<ColumnMapping> columns,
                       std::string rows = "items[]") {
  const auto compiled = Schema::compile(schema);
  if (!compiled.has_value()) return compiled.error().text;
  RowMapping mapping = one_table({});
  columns.insert(columns.begin(), column("id", "id"));
  mapping.tables.push_back({.name = "c", .rows = std::move(rows), .columns = std::move(columns)});
  const auto checked = Mapping::compile(mapping);
  if (!checked.has_value()) return checked.error().text;
  std::string part;
  const Status status = checked->check(*compiled, &part);
  return status.has_value() ? "good" : fmt::format("{}: {}", part, status.error().text);
}

// Every document would be refused, or every cell would be NULL.
TEST(Mapping, APathThatTheSchemaRulesOutIsNamed) {
  constexpr std::string_view kSchema = R"({
    "type": "object", "additionalProperties": false,
    "properties": {"id": {"type": "string"}, "sum": {"$ref": "#/$defs/sum"},
                   "items": {"type": "array", "items": {"$ref": "#/$defs/item"}},
                   "free": {}, "either": {"anyOf": [{"type": "string"}, {"type": "object"}]},
                   "pair": {"type": "array", "prefixItems": [{"type": "string"}]}},
    "patternProperties": {"^x-": {"type": "boolean"}},
    "$defs": {"sum": {"type": ["integer", "null"]},
              "item": {"allOf": [{"type": "object"}, {"additionalProperties": false,
                       "properties": {"n": {"type": "number"}, "o": {"type": "object"}}}]}}})";
  const auto path = [&](const char* place, ColumnType type = text, bool optional = false) {
    return refusal_by(kSchema, {column("c", place, type, optional)});
  };
  EXPECT_EQ(path("id"), "good");
  EXPECT_EQ(
      path("idd"),
      "tables[1].columns.c: table c: column c: the path \"idd\" is not allowed by the schema");
  EXPECT_EQ(path("idd", text, true), path("idd"));
  EXPECT_EQ(path("x-flag", boolean), "good");
  EXPECT_EQ(path("free.any.where"), "good");
  EXPECT_EQ(path("either.name"), "good");
  EXPECT_EQ(path("items[].#", integer), "good");
  EXPECT_EQ(path("items[].n", real), "good");
  EXPECT_EQ(path("items[].n", integer), "good");
  EXPECT_NE(path("items[].m").find("the path \"items[].m\" is not allowed"), std::string::npos);
  EXPECT_EQ(path("items.n"),
            "tables[1].columns.c: table c: column c: the path \"items.n\" is not possible: by the "
            "schema \"items\" is of type array, not object; [] behind it means its elements");
  EXPECT_NE(path("id.x.y").find("\"id\" is of type string, not object"), std::string::npos);
  EXPECT_EQ(path("sum", integer), "good");
  EXPECT_EQ(path("sum", boolean, true), "good");
  EXPECT_NE(path("sum", boolean)
                .find("\"sum\" is of type integer or null by the schema, which "
                      "boolean does not take"),
            std::string::npos);
  EXPECT_NE(path("items[].o").find("\"items[].o\" is of type object by the schema, which text"),
            std::string::npos);
  EXPECT_EQ(path("items[].o", json), "good");
  EXPECT_EQ(refusal_by(kSchema, {column("p", "pair[].any", real)}, "pair[]"), "good");
  EXPECT_EQ(refusal_by(kSchema, {column("c", "id")}, "item[]"),
            "tables[1].rows: table c: rows: \"item[]\" is not allowed by the schema");
  EXPECT_EQ(refusal_by("{}", {column("c", "items[].x.y")}), "good");
  EXPECT_EQ(refusal_by(orders::order_schema(), {}, ""),
            "tables[0].columns.id: table t: column id: the path "
            "\"id\" is not allowed by the schema");
  EXPECT_TRUE(Mapping::compile(orders::order_mapping())
                  ->check(*Schema::compile(orders::order_schema()))
                  .has_value());
}

TEST(Mapping, TheKeyIsKnownEvenOfAnInvalidDocument) {
  const auto compiled = Mapping::compile(
      {.tables = {{.name = "t", .rows = "", .columns = {column("k", "a.id")}}}, .key = "k"});
  ASSERT_TRUE(compiled.has_value());
  const Mapper mapper(*compiled);
  JsonDocument json;
  EXPECT_EQ(mapper.key(json), std::nullopt);
  const auto key = [&](std::string_view text) {
    EXPECT_TRUE(json.read(text).has_value());
    return mapper.key(json);
  };
  EXPECT_EQ(key(R"({"a":{"id":"x"},"b":0})"), "x");
  EXPECT_EQ(key(R"({"a":{"id":12}})"), "12");
  EXPECT_EQ(key(R"({"a":{"id":null}})"), std::nullopt);
  EXPECT_EQ(key(R"({"a":{}})"), std::nullopt);
  EXPECT_EQ(key(R"({"a":[]})"), std::nullopt);
  EXPECT_EQ(key("7"), std::nullopt);
}

TEST(TableRows, RowsKnowTheirDocuments) {
  const auto compiled = Mapping::compile(
      {.tables = {{.name = "t", .rows = "", .columns = {column("id", "id")}},
                  {.name = "i",
                   .rows = "items[]",
                   .columns = {column("id", "id"), column("v", "items[]", integer, true)}}},
       .key = "id"});
  ASSERT_TRUE(compiled.has_value());
  Mapper mapper(*compiled);
  TableRows batch(compiled->columns_of_tables());
  JsonDocument json;
  for (int round = 0; round < 2; ++round) {
    std::vector<DocumentRows> documents(3);
    const std::vector<std::string> texts = {R"({"id":"a","items":[1,2]})", R"({"id":"b"})",
                                            R"({"id":"c","items":[3]})"};
    batch.clear();
    for (std::size_t i = 0; i < texts.size(); ++i) {
      ASSERT_TRUE(json.read(texts[i]).has_value());
      ASSERT_TRUE(mapper.map(json, documents[i]).has_value());
      batch.add(documents[i]);
    }
    EXPECT_EQ(documents[1].key(), "b");
    EXPECT_EQ(batch.documents(), 3U);
    EXPECT_EQ(batch.tables(), 2U);
    EXPECT_EQ(batch.table(0).documents, (std::vector<std::uint32_t>{0, 1, 2}));
    EXPECT_EQ(batch.table(0).columns[0], (std::vector<Cell>{"a", "b", "c"}));
    EXPECT_EQ(batch.table(1).rows(), 3U);
    EXPECT_EQ(batch.table(1).documents, (std::vector<std::uint32_t>{0, 0, 2}));
    EXPECT_EQ(batch.table(1).columns[0], (std::vector<Cell>{"a", "a", "c"}));
    EXPECT_EQ(batch.table(1).columns[1], (std::vector<Cell>{"1", "2", "3"}));
  }
}

}  // namespace
}  // namespace baton::schema
