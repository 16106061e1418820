#include "pipeline/postgres/postgres_sql.h"

#include <string>

#include <gtest/gtest.h>

#include "pipeline/orders/orders.h"

namespace baton::pipeline {
namespace {

schema::RowMapping small_mapping() {
  using enum schema::ColumnType;
  schema::TableMapping notes{.name = "notes", .rows = "", .columns = {}};
  notes.columns.push_back({.name = "id", .path = "id", .type = integer});
  notes.columns.push_back({.name = "told at", .path = "at", .type = timestamp, .optional = true});
  schema::TableMapping tags{.name = "tags", .rows = "tags[]", .columns = {}};
  tags.columns.push_back({.name = "note", .path = "id", .type = integer});
  tags.columns.push_back({.name = "tag", .path = "tags[].name", .type = text});
  return {.tables = {notes, tags}, .key = "id"};
}

schema::Mapping compiled(schema::RowMapping mapping) {
  return schema::Mapping::compile(std::move(mapping)).value();
}

TEST(PostgresSql, ABatchIsOneStatement) {
  EXPECT_EQ(
      postgres_batch_sql(compiled(small_mapping()), false),
      "WITH _input AS MATERIALIZED (SELECT * FROM unnest($2::bigint[], $3::bigint[], "
      "$4::bigint[], $5::text[]) WITH ORDINALITY AS _rows(part, pos, c0, c1, number)), "
      "_fresh AS (INSERT INTO \"notes\" (\"id\", \"told at\", _source, _partition, _offset) "
      "SELECT c0, c1::timestamp with time zone, $1::text, part, pos FROM _input "
      "ORDER BY number ON CONFLICT (\"id\") DO NOTHING "
      "RETURNING _partition AS part, _offset AS pos), "
      "_flags AS MATERIALIZED (SELECT array_agg(is_new ORDER BY number) AS are_new FROM ("
      "SELECT bool_or(is_new) AS is_new, min(number) AS number FROM ("
      "SELECT part, pos, number, false AS is_new FROM _input UNION ALL "
      "SELECT part, pos, NULL, true FROM _fresh) AS _both GROUP BY part, pos) AS _documents), "
      "_table1 AS (INSERT INTO \"tags\" (\"note\", \"tag\") SELECT c0, c1 FROM "
      "unnest($6::bigint[], $7::bigint[], $8::text[]) AS _rows(document, c0, c1) "
      "WHERE (SELECT are_new FROM _flags)[document]) SELECT are_new FROM _flags");
}

// The parameters of the marks come last, for any tables; the check of the marks precedes the rows.
TEST(PostgresSql, MarksMoveInTheSameStatement) {
  const std::string sql = postgres_batch_sql(compiled(small_mapping()), true);
  EXPECT_TRUE(sql.starts_with("WITH _moved AS (UPDATE baton_marks ")) << sql;
  EXPECT_TRUE(
      sql.contains("unnest($11::bigint[], $12::bigint[], $13::bigint[], $14::bigint[], "
                   "$15::bigint[], $16::bigint[])"))
      << sql;
  EXPECT_TRUE(sql.contains("mark.pipeline = $9::text AND mark.source = $10::text")) << sql;
  EXPECT_TRUE(sql.contains("FROM _input WHERE (SELECT held FROM _fence) ORDER BY number")) << sql;
  EXPECT_TRUE(sql.contains(kMarkMissed)) << sql;
}

TEST(PostgresSql, WithoutAKeyThereIsNoConflict) {
  schema::RowMapping mapping = small_mapping();
  mapping.key.clear();
  const std::string sql = postgres_batch_sql(compiled(std::move(mapping)), true);
  EXPECT_FALSE(sql.contains("ON CONFLICT")) << sql;
  EXPECT_FALSE(sql.contains("are_new")) << sql;
}

TEST(PostgresSql, TablesAreMadeAsTheMappingSays) {
  const schema::Mapping mapping = compiled(small_mapping());
  EXPECT_EQ(postgres_create_sql(mapping, 0),
            (std::vector<std::string>{
                "CREATE TABLE \"notes\" (\"id\" bigint NOT NULL UNIQUE, \"told at\" timestamp with "
                "time zone, \"_source\" text NOT NULL, \"_partition\" bigint NOT NULL, "
                "\"_offset\" bigint NOT NULL)"}));
  EXPECT_EQ(postgres_create_sql(mapping, 1),
            (std::vector<std::string>{
                "CREATE TABLE \"tags\" (\"note\" bigint NOT NULL, \"tag\" text NOT NULL)",
                "CREATE INDEX ON \"tags\" (\"note\")"}));
}

TEST(PostgresSql, HoldersAreAskedByTheTypeOfTheKey) {
  EXPECT_EQ(postgres_holders_sql(compiled(small_mapping())),
            "SELECT _keys.number, _held._source, _held._partition, _held._offset "
            "FROM unnest($1::bigint[]) WITH ORDINALITY AS _keys(c0, number) "
            "JOIN \"notes\" AS _held ON _held.\"id\" = _keys.c0");
  EXPECT_TRUE(postgres_holders_sql(compiled(orders::order_mapping())).contains("$1::text[]"));
}

}  // namespace
}  // namespace baton::pipeline
