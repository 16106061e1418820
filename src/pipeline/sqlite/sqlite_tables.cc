#include "pipeline/sqlite/sqlite_tables.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/ends/sql_rows.h"

namespace baton::pipeline {
namespace {

using schema::ColumnType;

struct Wanted {
  std::string name{};
  ColumnType type{};
  bool optional = false;
};

struct Found {
  std::string name{};
  std::string type{};  // As declared.
  bool not_null = false;
  bool fills_itself = false;
};

std::string_view sql_type(ColumnType type) {
  switch (type) {
    case ColumnType::integer:
    case ColumnType::boolean: return "INTEGER";
    case ColumnType::real: return "REAL";
    case ColumnType::text:
    case ColumnType::json:
    case ColumnType::timestamp: break;
  }
  return "TEXT";
}

/// What SQLite does with a value, by the declared type of a column: text that looks like a number
/// becomes a number, or stays text.
enum class Affinity : std::uint8_t { integer, text, none, real, numeric };

/// SQLite's rules: the first word that is found counts.
Affinity affinity_of(std::string_view declared) {
  static constexpr std::array<std::pair<std::string_view, Affinity>, 8> kRules = {{
      {"INT", Affinity::integer},
      {"CHAR", Affinity::text},
      {"CLOB", Affinity::text},
      {"TEXT", Affinity::text},
      {"BLOB", Affinity::none},
      {"REAL", Affinity::real},
      {"FLOA", Affinity::real},
      {"DOUB", Affinity::real},
  }};
  if (declared.empty()) return Affinity::none;
  std::string upper(declared);
  for (char& c : upper) c = c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  const auto* rule =
      std::ranges::find_if(kRules, [&](const auto& one) { return upper.contains(one.first); });
  return rule == kRules.end() ? Affinity::numeric : rule->second;
}

/// Whether SQLite stores values of this type unchanged.
bool fits(ColumnType type, Affinity affinity) {
  switch (type) {
    case ColumnType::integer:
    case ColumnType::boolean: return affinity == Affinity::integer || affinity == Affinity::numeric;
    case ColumnType::real: return affinity == Affinity::real || affinity == Affinity::numeric;
    case ColumnType::timestamp:  // DATETIME is numeric for SQLite, and a date-time is not a number.
      return affinity == Affinity::text || affinity == Affinity::none ||
             affinity == Affinity::numeric;
    case ColumnType::text:
    case ColumnType::json: break;
  }
  return affinity == Affinity::text || affinity == Affinity::none;
}

std::vector<Wanted> wanted_columns(const schema::Mapping& mapping, std::size_t table) {
  std::vector<Wanted> columns;
  columns.reserve(mapping.tables()[table].columns.size() + 3);
  for (const schema::ColumnMapping& column : mapping.tables()[table].columns) {
    columns.push_back({column.name, column.type, column.optional});
  }
  if (table == 0) {
    columns.push_back({kSourceColumn, ColumnType::text});
    columns.push_back({kPartitionColumn, ColumnType::integer});
    columns.push_back({kOffsetColumn, ColumnType::integer});
  }
  return columns;
}

std::string create_sql(const schema::Mapping& mapping, std::size_t table) {
  std::vector<std::string> columns;
  for (const Wanted& column : wanted_columns(mapping, table)) {
    const bool key = table == 0 && column.name == mapping.key();
    columns.push_back(fmt::format("{} {}{}{}", sql_name(column.name), sql_type(column.type),
                                  column.optional ? "" : " NOT NULL", key ? " UNIQUE" : ""));
  }
  return fmt::format("CREATE TABLE {} ({})", sql_name(mapping.tables()[table].name),
                     fmt::join(columns, ", "));
}

Error wrong(const std::string& table, std::string_view text) {
  return {Errc::failed_precondition, fmt::format("table {}{}", table, text)};
}

/// Empty if the table does not exist.
Result<std::vector<Found>> found_columns(SqliteDatabase& database, const std::string& table) {
  SqliteStatement statement;
  std::vector<Found> found;
  // A primary key without an index is the row id, which SQLite assigns.
  auto error = database.prepare(
      "SELECT name, type, \"notnull\", dflt_value IS NOT NULL OR (pk > 0 AND NOT EXISTS "
      "(SELECT 1 FROM pragma_index_list(?1) WHERE origin = 'pk')) FROM pragma_table_info(?1)",
      statement);
  if (!error.has_value()) statement.bind(1, table);
  for (bool row = true; row && !error.has_value();) {
    error = statement.step(row);
    if (!row) break;
    found.push_back({.name = std::string(statement.text(0)),
                     .type = std::string(statement.text(1)),
                     .not_null = statement.number(2) != 0,
                     .fills_itself = statement.number(3) != 0});
  }
  if (error.has_value()) return wrong(table, fmt::format(": {}", error->text));
  return found;
}

Status compare(const std::string& table, const Wanted& column, const std::vector<Found>& found) {
  const auto is = std::ranges::find(found, column.name, &Found::name);
  if (is == found.end()) {
    std::vector<std::string> names(found.size());
    std::ranges::transform(found, names.begin(), &Found::name);
    return wrong(table,
                 fmt::format(" has no column {}; it has {}", column.name, fmt::join(names, ", ")));
  }
  if (!fits(column.type, affinity_of(is->type))) {
    return wrong(table,
                 fmt::format(": column {} is {}; it should be {}", column.name,
                             is->type.empty() ? "of no type" : is->type, sql_type(column.type)));
  }
  if (column.optional && is->not_null) {
    return wrong(table, fmt::format(": column {} is NOT NULL; the mapping says it is optional",
                                    column.name));
  }
  return {};
}

Status compare(const std::string& table, const std::vector<Wanted>& wanted,
               const std::vector<Found>& found) {
  for (const Wanted& column : wanted) BATON_TRY_STATUS(compare(table, column, found));
  for (const Found& column : found) {
    if (!column.not_null || column.fills_itself) continue;
    if (std::ranges::find(wanted, column.name, &Wanted::name) != wanted.end()) continue;
    return wrong(table, fmt::format(": column {} is NOT NULL without a default, and the mapping "
                                    "does not fill it",
                                    column.name));
  }
  return {};
}

/// Asks SQLite itself whether rows can be inserted: above all, whether the key is unique.
Status takes_rows(SqliteDatabase& database, const schema::Mapping& mapping, std::size_t table) {
  SqliteStatement statement;
  const auto error = database.prepare(sqlite_insert_sql(mapping, table), statement);
  if (!error.has_value()) return {};
  const bool keyed = table == 0 && !mapping.key().empty();
  return wrong(mapping.tables()[table].name,
               fmt::format(" takes no rows{}{}: {}", keyed ? " by the key " : "",
                           keyed ? mapping.key() : "", error->text));
}

std::vector<Wanted> marks_columns() {
  std::vector<Wanted> columns;
  for (const char* name : {"pipeline", "source"}) columns.push_back({name, ColumnType::text});
  for (const char* name : {"partition", "lane", "lanes", "epoch", "next_offset", "done_below"}) {
    columns.push_back({name, ColumnType::integer});
  }
  return columns;
}

std::string create_marks_sql() {
  std::string columns;
  for (const Wanted& column : marks_columns()) {
    columns += fmt::format("{} {} NOT NULL, ", column.name, sql_type(column.type));
  }
  return fmt::format(
      "CREATE TABLE {} ({}PRIMARY KEY (pipeline, source, partition, lane)) WITHOUT ROWID",
      kMarksTable, columns);
}

/// Handles a missing table.
Result<Finding> make_missing(SqliteDatabase& database, const std::string& table,
                             const std::string& sql, bool make) {
  if (make) {
    if (auto error = database.run(sql)) {
      return wrong(table, fmt::format(" cannot be made: {}", error->text));
    }
  }
  return missing(make, "table", table);
}

Status look_at_marks(SqliteDatabase& database, bool make, TablesCheck& done) {
  BATON_TRY(const std::vector<Found> found, found_columns(database, kMarksTable));
  done.has_marks = !found.empty();
  if (done.has_marks) return compare(kMarksTable, marks_columns(), found);
  BATON_TRY(Finding finding, make_missing(database, kMarksTable, create_marks_sql(), make));
  done.missing.push_back(std::move(finding));
  return {};
}

/// Compares the tables; `make`: creates those that are missing.
Result<TablesCheck> look(SqliteDatabase& database, const schema::Mapping& mapping, bool marks,
                         bool make) {
  TablesCheck done;
  for (std::size_t i = 0; i < mapping.tables().size(); ++i) {
    const std::string& table = mapping.tables()[i].name;
    BATON_TRY(const std::vector<Found> found, found_columns(database, table));
    if (!found.empty()) {
      BATON_TRY_STATUS(compare(table, wanted_columns(mapping, i), found));
      BATON_TRY_STATUS(takes_rows(database, mapping, i));
      continue;
    }
    BATON_TRY(Finding finding, make_missing(database, table, create_sql(mapping, i), make));
    done.missing.push_back(std::move(finding));
  }
  if (marks) BATON_TRY_STATUS(look_at_marks(database, make, done));
  return done;
}

}  // namespace

std::string sqlite_insert_sql(const schema::Mapping& mapping, std::size_t table) {
  std::vector<std::string> names;
  for (const Wanted& column : wanted_columns(mapping, table)) {
    names.push_back(sql_name(column.name));
  }
  const std::vector<std::string> places(names.size(), "?");
  const bool keyed = table == 0 && !mapping.key().empty();
  return fmt::format(
      "INSERT INTO {} ({}) VALUES ({}){}", sql_name(mapping.tables()[table].name),
      fmt::join(names, ", "), fmt::join(places, ", "),
      keyed ? fmt::format(" ON CONFLICT ({}) DO NOTHING", sql_name(mapping.key())) : "");
}

Result<TablesCheck> check_sqlite_tables(SqliteDatabase& database, const schema::Mapping& mapping,
                                        bool marks, bool apply) {
  BATON_TRY(TablesCheck found, look(database, mapping, marks, false));
  if (!apply || found.missing.empty()) return found;
  // Other processes may find the tables missing at the same time: the first one creates all of
  // them.
  if (auto error = database.run("BEGIN IMMEDIATE")) return Error{Errc::unavailable, error->text};
  auto made = look(database, mapping, marks, true);
  if (made.has_value()) {
    if (auto error = database.run("COMMIT")) made = Error{Errc::unavailable, error->text};
  }
  if (database.in_transaction()) (void)database.run("ROLLBACK");
  return made;
}

}  // namespace baton::pipeline
