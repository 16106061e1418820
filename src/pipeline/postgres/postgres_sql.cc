#include "pipeline/postgres/postgres_sql.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/ends/sql_rows.h"

namespace baton::pipeline {
namespace {

using schema::ColumnMapping;
using schema::ColumnType;
using schema::TableMapping;

PostgresColumn column_of(const ColumnMapping& column) {
  PostgresColumn shape{.name = column.name, .optional = column.optional};
  switch (column.type) {
    case ColumnType::text:
      shape.type = "text";
      shape.also_good = {"character varying"};
      break;
    case ColumnType::integer:
      shape.type = "bigint";
      shape.also_good = {"integer", "numeric"};
      break;
    case ColumnType::real:
      shape.type = "numeric";  // A double would lose digits.
      shape.also_good = {"double precision"};
      break;
    case ColumnType::boolean: shape.type = "boolean"; break;
    case ColumnType::json:
      shape.type = "jsonb";
      shape.also_good = {"json"};
      break;
    case ColumnType::timestamp: shape.type = "timestamp with time zone"; break;
  }
  return shape;
}

/// Numbers $1, $2, ... in the order of use.
class Places {
 public:
  std::string next(std::string_view type) { return fmt::format("${}::{}", ++used_, type); }

 private:
  std::size_t used_ = 0;
};

/// The text of `each` for every column, by its index: "c0, c1".
template <class Each>
std::string listed(const TableMapping& table, Each each) {
  std::string all;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    if (i > 0) all += ", ";
    all += each(i);
  }
  return all;
}

/// "$4::text[], $5::bigint[]".
std::string arrays(const TableMapping& table, Places& places) {
  return listed(table, [&](std::size_t i) {
    return places.next(travels_as_integers(table.columns[i].type) ? "bigint[]" : "text[]");
  });
}

/// "c0, c1".
std::string aliases(const TableMapping& table) {
  return listed(table, [](std::size_t i) { return fmt::format("c{}", i); });
}

std::string from_array(std::string_view name, ColumnType type) {
  if (travels_as_integers(type) || type == ColumnType::text) return std::string(name);
  return fmt::format("{}::{}", name, column_of({.name = {}, .path = {}, .type = type}).type);
}

/// "c0, c1::jsonb": with casts to the table's types.
std::string values(const TableMapping& table) {
  return listed(table, [&](std::size_t i) {
    return from_array(fmt::format("c{}", i), table.columns[i].type);
  });
}

std::string names(const TableMapping& table) {
  return listed(table, [&](std::size_t i) { return sql_name(table.columns[i].name); });
}

/// The documents, numbered, and the rows of the first table.
std::string first_table(const schema::Mapping& mapping, bool marked, Places& places) {
  const TableMapping& table = mapping.tables().front();
  const std::string source = places.next("text");
  const std::string partitions = places.next("bigint[]");
  const std::string offsets = places.next("bigint[]");
  std::string sql = fmt::format(
      "_input AS MATERIALIZED (SELECT * FROM unnest({}, {}, {}) WITH ORDINALITY "
      "AS _rows(part, pos, {}, number)), "
      "_fresh AS (INSERT INTO {} ({}, {}, {}, {}) SELECT {}, {}, part, pos FROM _input{} "
      "ORDER BY number",
      partitions, offsets, arrays(table, places), aliases(table), sql_name(table.name),
      names(table), kSourceColumn, kPartitionColumn, kOffsetColumn, values(table), source,
      marked ? " WHERE (SELECT held FROM _fence)" : "");
  if (!mapping.key().empty()) {
    sql += fmt::format(" ON CONFLICT ({}) DO NOTHING", sql_name(mapping.key()));
  }
  // By partition and offset a document can tell whether its own row was inserted.
  return sql + fmt::format(" RETURNING {} AS part, {} AS pos{})", kPartitionColumn, kOffsetColumn,
                           marked && !mapping.key().empty()
                               ? fmt::format(", {} AS held", sql_name(mapping.key()))
                               : "");
}

// One flag for each document, in an array: an access takes constant time, whatever number of
// documents the planner expects, which is not true of a join.
constexpr std::string_view kFlags =
    ", _flags AS MATERIALIZED (SELECT array_agg(is_new ORDER BY number) AS are_new FROM ("
    "SELECT bool_or(is_new) AS is_new, min(number) AS number FROM ("
    "SELECT part, pos, number, false AS is_new FROM _input UNION ALL "
    "SELECT part, pos, NULL, true FROM _fresh) AS _both GROUP BY part, pos) AS _documents)";

std::string other_table(const schema::Mapping& mapping, std::size_t place, Places& places) {
  const TableMapping& table = mapping.tables()[place];
  const std::string documents = places.next("bigint[]");
  return fmt::format(
      ", _table{} AS (INSERT INTO {} ({}) SELECT {} FROM unnest({}, {}) AS _rows(document, {}){})",
      place, sql_name(table.name), names(table), values(table), documents, arrays(table, places),
      aliases(table), mapping.key().empty() ? "" : " WHERE (SELECT are_new FROM _flags)[document]");
}

/// Documents that were not inserted and whose key no row has: neither in the table, as it was
/// before, nor in this batch. The table is read by a subquery that the planner cannot turn into a
/// join with the whole table.
std::string lost_documents(const schema::Mapping& mapping) {
  const std::size_t place = mapping.key_column();
  const std::string key =
      from_array(fmt::format("c{}", place), mapping.tables().front().columns[place].type);
  return fmt::format(
      ", _lost AS MATERIALIZED (SELECT count(*) AS lost FROM _input "
      "WHERE NOT (SELECT are_new FROM _flags)[number] "
      "AND (SELECT true FROM {} AS _held WHERE _held.{} = {} LIMIT 1) IS NULL "
      "AND NOT EXISTS (SELECT 1 FROM _fresh WHERE _fresh.held = {}))",
      sql_name(mapping.tables().front().name), sql_name(mapping.key()), key, key);
}

/// The flags of new documents; an error if a document is lost.
std::string flags_unless_lost() {
  return fmt::format(
      "CASE WHEN lost = 0 THEN are_new ELSE ARRAY[('{} ' || lost)::integer > 0] END "
      "FROM _flags, _lost",
      kRowNotTaken);
}

/// A missing mark is an error, so that nothing of the statement takes effect. The error is a cast
/// of a text that is not an integer, by which it is recognised.
std::string marks(Places& places) {
  const std::string pipeline = places.next("text");
  const std::string origin = places.next("text");
  std::array<std::string, 6> lists{};
  for (std::string& list : lists) list = places.next("bigint[]");
  return fmt::format(
      "_moved AS (UPDATE baton_marks AS mark SET next_offset = move.next, "
      "done_below = GREATEST(mark.done_below, move.done) FROM unnest({}) "
      "AS move(part, lane, epoch, expected, next, done) "
      "WHERE mark.pipeline = {} AND mark.source = {} AND mark.partition = move.part "
      "AND mark.lane = move.lane AND mark.epoch = move.epoch "
      "AND mark.next_offset = move.expected RETURNING 1), "
      "_fence AS MATERIALIZED (SELECT CASE WHEN count(*) = cardinality({}) THEN true "
      "ELSE ('{} ' || count(*))::integer > 0 END AS held FROM _moved), ",
      fmt::join(lists, ", "), pipeline, origin, lists.front(), kMarkMissed);
}

}  // namespace

bool travels_as_integers(ColumnType type) { return type == ColumnType::integer; }

std::vector<PostgresColumn> postgres_columns(const schema::Mapping& mapping, std::size_t table) {
  std::vector<PostgresColumn> columns;
  for (const ColumnMapping& column : mapping.tables()[table].columns) {
    columns.push_back(column_of(column));
  }
  if (table != 0) return columns;
  columns.push_back({.name = kSourceColumn, .type = "text"});
  columns.push_back({.name = kPartitionColumn, .type = "bigint"});
  columns.push_back({.name = kOffsetColumn, .type = "bigint"});
  return columns;
}

std::vector<PostgresColumn> postgres_marks_columns() {
  std::vector<PostgresColumn> columns;
  for (const char* name : {"pipeline", "source"}) {
    columns.push_back({.name = name, .type = "text"});
  }
  for (const char* name : {"partition", "lane", "lanes", "epoch", "next_offset", "done_below"}) {
    columns.push_back({.name = name, .type = "bigint"});
  }
  return columns;
}

std::vector<std::string> postgres_create_sql(const schema::Mapping& mapping, std::size_t table) {
  const TableMapping& shape = mapping.tables()[table];
  std::vector<std::string> columns;
  for (const PostgresColumn& column : postgres_columns(mapping, table)) {
    const bool is_key = table == 0 && column.name == mapping.key();
    columns.push_back(fmt::format("{} {}{}{}", sql_name(column.name), column.type,
                                  column.optional ? "" : " NOT NULL", is_key ? " UNIQUE" : ""));
  }
  std::vector<std::string> statements{
      fmt::format("CREATE TABLE {} ({})", sql_name(shape.name), fmt::join(columns, ", "))};
  if (table == 0 || mapping.key().empty()) return statements;
  // An index, because queries look up the rows of a document by its key.
  const std::string& key = mapping.tables().front().columns[mapping.key_column()].path;
  const auto carried = std::ranges::find(shape.columns, key, &ColumnMapping::path);
  if (carried != shape.columns.end()) {
    statements.push_back(
        fmt::format("CREATE INDEX ON {} ({})", sql_name(shape.name), sql_name(carried->name)));
  }
  return statements;
}

std::string postgres_create_marks_sql() {
  std::vector<std::string> columns;
  for (const PostgresColumn& column : postgres_marks_columns()) {
    columns.push_back(fmt::format("{} {} NOT NULL", column.name, column.type));
  }
  return fmt::format(
      "CREATE TABLE baton_marks ({}, PRIMARY KEY (pipeline, source, partition, lane))",
      fmt::join(columns, ", "));
}

std::string postgres_batch_sql(const schema::Mapping& mapping, bool marked) {
  Places places;
  std::string rows = first_table(mapping, marked, places);
  const bool has_key = !mapping.key().empty();
  if (has_key) rows += kFlags;
  for (std::size_t i = 1; i < mapping.tables().size(); ++i) rows += other_table(mapping, i, places);
  if (!marked)
    return fmt::format("WITH {} SELECT {}", rows, has_key ? "are_new FROM _flags" : "NULL");
  if (has_key) rows += lost_documents(mapping);
  return fmt::format("WITH {}{} SELECT {}", marks(places), rows,
                     has_key ? flags_unless_lost() : "NULL");
}

std::string postgres_holders_sql(const schema::Mapping& mapping) {
  const TableMapping& table = mapping.tables().front();
  const ColumnType type = table.columns[mapping.key_column()].type;
  return fmt::format(
      "SELECT _keys.number, _held.{}, _held.{}, _held.{} "
      "FROM unnest($1::{}) WITH ORDINALITY AS _keys(c0, number) "
      "JOIN {} AS _held ON _held.{} = {}",
      kSourceColumn, kPartitionColumn, kOffsetColumn,
      travels_as_integers(type) ? "bigint[]" : "text[]", sql_name(table.name),
      sql_name(mapping.key()), from_array("_keys.c0", type));
}

}  // namespace baton::pipeline
