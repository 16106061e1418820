#include "pipeline/postgres/postgres_tables.h"

#include <algorithm>
#include <map>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/ends/sql_rows.h"
#include "pipeline/postgres/postgres_sql.h"

namespace baton::pipeline {
namespace {

struct Found {
  std::string type{};  // "character varying(10)".
  bool not_null = false;
  bool has_default = false;
};
using FoundColumns = std::map<std::string, Found, std::less<>>;

Error wrong(std::string text) { return {Errc::failed_precondition, std::move(text)}; }

Error database_error(const flow::SinkError& error) {
  const bool out = error.error_class == flow::ErrorClass::outage;
  return {out ? Errc::unavailable : Errc::failed_precondition,
          fmt::format("{}{}{}", error.code, error.code.empty() ? "" : ": ", error.text)};
}

/// "character varying(10)" counts as the type, too.
bool is_type(std::string_view found, std::string_view type) {
  const std::string_view name = found.substr(0, found.find('('));
  // "timestamp(3) with time zone": the parentheses are in the middle.
  return found == type || name == type ||
         (type == "timestamp with time zone" && found.starts_with("timestamp") &&
          found.ends_with(" with time zone"));
}

class TableCheck {
 public:
  TableCheck(PostgresConnection& connection, std::string table)
      : connection_(connection), table_(std::move(table)) {
    name_.add_text(sql_name(table_));
  }

  /// Empty if the table does not exist.
  Result<FoundColumns> columns() {
    PostgresResult result;
    const auto error = connection_.run(
        "SELECT attname, format_type(atttypid, atttypmod), attnotnull, "
        "atthasdef OR attidentity <> '' OR attgenerated <> '' "
        "FROM pg_attribute WHERE attrelid = to_regclass($1::text) AND attnum > 0 "
        "AND NOT attisdropped",
        name_, result);
    if (error.has_value()) return database_error(*error);
    FoundColumns found;
    for (std::size_t i = 0; i < result.rows(); ++i) {
      found.emplace(result.text(i, 0), Found{.type = std::string(result.text(i, 1)),
                                             .not_null = result.text(i, 2) == "t",
                                             .has_default = result.text(i, 3) == "t"});
    }
    return found;
  }

  Status compare(const std::vector<PostgresColumn>& wanted, const FoundColumns& found) const {
    for (const PostgresColumn& column : wanted) BATON_TRY_STATUS(compare(column, found));
    for (const auto& [name, column] : found) {
      if (!column.not_null || column.has_default) continue;
      if (std::ranges::find(wanted, name, &PostgresColumn::name) != wanted.end()) continue;
      return wrong(fmt::format(
          "table {}: column {} is NOT NULL without a default, and the mapping does not fill it",
          table_, name));
    }
    return {};
  }

  /// A unique index over exactly these columns, so that ON CONFLICT can name them.
  Status has_unique_index(const std::vector<std::string>& columns) {
    PostgresParameters parameters = name_;
    std::vector<std::string> sorted = columns;
    std::ranges::sort(sorted);
    const std::vector<schema::Cell> cells(sorted.begin(), sorted.end());
    parameters.add_texts(cells);
    PostgresResult result;
    const auto error = connection_.run(
        "SELECT 1 FROM pg_index WHERE indrelid = to_regclass($1::text) AND indisunique "
        "AND indimmediate AND indisvalid AND indpred IS NULL AND indexprs IS NULL "
        "AND (SELECT array_agg(attname::text ORDER BY attname::text COLLATE \"C\") "
        "FROM pg_attribute WHERE attrelid = indrelid "
        "AND attnum = ANY(indkey[0:indnkeyatts - 1])) = $2::text[]",
        parameters, result);
    if (error.has_value()) return database_error(*error);
    if (result.rows() > 0) return {};
    return wrong(fmt::format("table {}: column{} {} {} no unique index; the key needs one", table_,
                             columns.size() > 1 ? "s" : "", fmt::join(columns, ", "),
                             columns.size() > 1 ? "have" : "has"));
  }

 private:
  [[nodiscard]] Status compare(const PostgresColumn& column, const FoundColumns& found) const {
    const auto at = found.find(column.name);
    if (at == found.end()) {
      std::vector<std::string_view> names;
      for (const auto& [name, ignored] : found) names.emplace_back(name);
      return wrong(fmt::format("table {} has no column {} ({}); it has {}", table_, column.name,
                               column.type, fmt::join(names, ", ")));
    }
    const Found& is = at->second;
    const bool fits = is_type(is.type, column.type) ||
                      std::ranges::any_of(column.also_good, [&](const std::string& type) {
                        return is_type(is.type, type);
                      });
    if (!fits) {
      return wrong(fmt::format("table {}: column {} is {}; it should be {}", table_, column.name,
                               is.type, column.type));
    }
    if (column.optional && is.not_null) {
      return wrong(fmt::format("table {}: column {} is NOT NULL; the mapping says it is optional",
                               table_, column.name));
    }
    return {};
  }

  PostgresConnection& connection_;
  std::string table_;
  PostgresParameters name_;
};

/// A table, with its expected columns and keys.
struct Wanted {
  std::string table{};
  std::vector<PostgresColumn> columns{};
  std::vector<std::string> unique{};
  std::vector<std::string> create{};
  bool is_marks = false;
};

std::vector<Wanted> all_wanted(const schema::Mapping& mapping, bool marks) {
  std::vector<Wanted> all;
  all.reserve(mapping.tables().size() + 1);
  for (std::size_t i = 0; i < mapping.tables().size(); ++i) {
    all.push_back({.table = mapping.tables()[i].name,
                   .columns = postgres_columns(mapping, i),
                   .create = postgres_create_sql(mapping, i)});
  }
  if (!mapping.key().empty()) all.front().unique = {mapping.key()};
  if (marks) {
    all.push_back({.table = kMarksTable,
                   .columns = postgres_marks_columns(),
                   .unique = {"pipeline", "source", "partition", "lane"},
                   .create = {postgres_create_marks_sql()},
                   .is_marks = true});
  }
  return all;
}

Status make(PostgresConnection& connection, const Wanted& wanted) {
  for (const std::string& sql : wanted.create) {
    if (const auto error = connection.run(sql)) {
      return wrong(
          fmt::format("table {} cannot be made: {}: {}", wanted.table, error->code, error->text));
    }
  }
  return {};
}

/// Compares the tables; `apply`: creates those that are missing.
Result<TablesCheck> look(PostgresConnection& connection, const std::vector<Wanted>& all,
                         bool apply) {
  TablesCheck done;
  for (const Wanted& wanted : all) {
    TableCheck check(connection, wanted.table);
    BATON_TRY(const FoundColumns found, check.columns());
    if (found.empty()) {
      done.missing.push_back(missing(apply, "table", wanted.table));
      if (apply) BATON_TRY_STATUS(make(connection, wanted));
      continue;
    }
    BATON_TRY_STATUS(check.compare(wanted.columns, found));
    if (!wanted.unique.empty()) BATON_TRY_STATUS(check.has_unique_index(wanted.unique));
    done.has_marks = done.has_marks || wanted.is_marks;
  }
  return done;
}

/// The process that holds this lock creates tables; the lock ends with the transaction.
constexpr const char* kLock = "SELECT pg_advisory_xact_lock(hashtext('baton pipeline tables'))";

}  // namespace

Result<TablesCheck> check_postgres_tables(PostgresConnection& connection,
                                          const schema::Mapping& mapping, bool marks, bool apply) {
  const std::vector<Wanted> all = all_wanted(mapping, marks);
  BATON_TRY(TablesCheck found, look(connection, all, false));
  if (!apply || found.missing.empty()) return found;
  // Other processes may find the tables missing at the same time: the first one creates all of
  // them.
  auto error = connection.run("BEGIN ISOLATION LEVEL READ COMMITTED");
  if (!error.has_value()) error = connection.run(kLock);
  Result<TablesCheck> made = TablesCheck{};
  if (!error.has_value()) made = look(connection, all, true);
  if (!error.has_value() && made.has_value()) error = connection.run("COMMIT");
  if (error.has_value()) made = database_error(*error);
  // The rest of a failed transaction ends with the connection.
  if (!made.has_value()) connection.close();
  return made;
}

}  // namespace baton::pipeline
