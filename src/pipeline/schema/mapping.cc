#include "pipeline/schema/mapping.h"

#include <algorithm>
#include <array>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "base/result.h"
#include "pipeline/schema/json_text.h"
#include "pipeline/schema/mapping_plan.h"
#include "pipeline/schema/schema_limits.h"

namespace baton::schema {
namespace {

constexpr std::array<std::string_view, 6> kTypes = {"text",    "integer", "real",
                                                    "boolean", "json",    "timestamp"};
constexpr std::string_view kPlace = "#";
constexpr std::string_view kEach = "[]";

struct PathStep {
  std::string name;
  bool each;  // "[]" follows.
};

/// Splits "a.b[].c" into a, each element of b, and c.
Result<std::vector<PathStep>> parse_path(std::string_view path) {
  if (path.size() > kColumnPathBytesMax) {
    return invalid_argument(
        fmt::format("has {} bytes; the limit is {}", path.size(), kColumnPathBytesMax));
  }
  std::vector<PathStep> steps;
  while (true) {
    const std::size_t dot = path.find('.');
    std::string_view name = path.substr(0, dot);
    const bool each = name.ends_with(kEach);
    if (each) name.remove_suffix(kEach.size());
    if (name.empty() || name.find_first_of("[]") != std::string_view::npos) {
      return invalid_argument(
          "must be names between dots, each with [] behind it if it is an array");
    }
    steps.push_back({.name = std::string(name), .each = each});
    if (dot == std::string_view::npos) break;
    path.remove_prefix(dot + 1);
  }
  if (steps.size() > kColumnPathStepsMax) {
    return invalid_argument(
        fmt::format("has {} steps; the limit is {}", steps.size(), kColumnPathStepsMax));
  }
  return steps;
}

/// Names of tables and columns are quoted in SQL; names that cannot be quoted are refused.
Status check_identifier(std::string_view what, std::string_view name) {
  const auto unfit = [](char c) { return static_cast<unsigned char>(c) < 0x20 || c == '"'; };
  if (name.empty()) return invalid_argument(fmt::format("{} has no name", what));
  if (name.size() > kIdentifierBytesMax) {
    return invalid_argument(fmt::format("{} {}: the name has {} bytes; the limit is {}", what,
                                        excerpt(name), name.size(), kIdentifierBytesMax));
  }
  if (std::ranges::any_of(name, unfit)) {
    return invalid_argument(
        fmt::format("{} {}: the name has a quote or a control character", what, excerpt(name)));
  }
  return {};
}

}  // namespace

std::optional<ColumnType> parse_column_type(std::string_view name) {
  const auto* const found = std::ranges::find(kTypes, name);
  if (found == kTypes.end()) return std::nullopt;
  return static_cast<ColumnType>(found - kTypes.begin());
}

std::string_view to_string(ColumnType type) { return kTypes.at(std::to_underlying(type)); }

/// Lives for one Mapping::compile().
class MappingCompiler {
 public:
  explicit MappingCompiler(RowMapping mapping) : plan_(std::make_shared<Mapping::Plan>()) {
    plan_->mapping = std::move(mapping);
    plan_->paths.emplace_back().text = "the document";
    plan_->scopes.emplace_back().paths = {0};
  }

  Result<Mapping> run() {
    const std::vector<TableMapping>& tables = plan_->mapping.tables;
    if (tables.empty()) return invalid_argument("a mapping needs a table");
    if (tables.size() > kTablesMax) {
      return invalid_argument(fmt::format("{} tables; the limit is {}", tables.size(), kTablesMax));
    }
    std::set<std::string_view> names;
    for (std::size_t i = 0; i < tables.size(); ++i) {
      const TableMapping& table = tables[i];
      const std::string place = fmt::format("tables[{}]", i);
      part_ = place + ".name";
      BATON_TRY_STATUS(check_identifier("table", table.name));
      if (!names.insert(table.name).second) {
        return invalid_argument(fmt::format("table {}: there are two of that name", table.name));
      }
      BATON_TRY_STATUS(add(table, place));
    }
    BATON_TRY_STATUS(find_key());
    return Mapping(std::move(plan_));
  }
  /// The part that was examined last, which is wrong if compilation fails.
  [[nodiscard]] const std::string& part() const { return part_; }

 private:
  Status add(const TableMapping& table, const std::string& place) {
    PlannedTable planned;
    part_ = place + ".rows";
    if (!table.rows.empty()) {
      const auto row = path(table.rows, false);
      if (!row.has_value()) {
        return invalid_argument(fmt::format("table {}: rows: \"{}\" {}", table.name,
                                            excerpt(table.rows), row.error().text));
      }
      planned.row = row->path;
    }
    part_ = place + ".columns";
    if (table.columns.empty() || table.columns.size() > kColumnsMax) {
      return invalid_argument(fmt::format("table {}: {} columns; it must be 1 to {}", table.name,
                                          table.columns.size(), kColumnsMax));
    }
    std::set<std::string_view> names;
    for (const ColumnMapping& column : table.columns) {
      part_ = fmt::format("{}.columns.{}", place, column.name);
      BATON_TRY_STATUS(check_identifier(fmt::format("table {}: column", table.name), column.name));
      const auto found = names.insert(column.name).second
                             ? column_path(column, table, planned.row)
                             : Result<PlannedColumn>(invalid_argument("is there twice"));
      if (!found.has_value()) {
        return invalid_argument(
            fmt::format("table {}: column {}: {}", table.name, column.name, found.error().text));
      }
      planned.columns.push_back(*found);
    }
    scope_of(planned.row).tables.push_back(plan_->tables.size());
    plan_->columns_of_tables.push_back(planned.columns.size());
    plan_->tables.push_back(std::move(planned));
    return {};
  }

  Result<PlannedColumn> column_path(const ColumnMapping& column, const TableMapping& table,
                                    PathId row) {
    const auto found = path(column.path, true);
    if (!found.has_value()) {
      return invalid_argument(
          fmt::format("the path \"{}\" {}", excerpt(column.path), found.error().text));
    }
    // The arrays in the path must be those of the table's rows: in others the path has no single
    // value.
    const ScopeId wanted = plan_->paths[found->path].scope;
    ScopeId scope = plan_->paths[row].scope;
    while (scope != wanted && scope != 0) {
      scope = plan_->paths[plan_->scopes[scope].array].scope;
    }
    if (scope != wanted) {
      return invalid_argument(fmt::format(
          "the path \"{}\" goes through an array that the table's rows ({}) do not; is one of them "
          "misspelt?",
          excerpt(column.path),
          table.rows.empty() ? "one for each document"
                             : fmt::format("\"{}\"", excerpt(table.rows))));
    }
    if (found->is_place && column.type != ColumnType::integer) {
      return invalid_argument("the place of an element is an integer");
    }
    return *found;
  }

  Result<PlannedColumn> path(std::string_view text, bool may_be_place) {
    BATON_TRY(const std::vector<PathStep> steps, parse_path(text));
    PathId here = 0;
    for (std::size_t i = 0; i < steps.size(); ++i) {
      const auto& [name, each] = steps[i];
      if (name == kPlace) {
        const bool behind_array = i > 0 && steps[i - 1].each;
        if (!may_be_place || each || !behind_array || i + 1 < steps.size()) {
          return invalid_argument("has a # that is not the last step, or not behind an array");
        }
        return PlannedColumn{.path = here, .is_place = true};
      }
      here = member(here, name);
      if (each) here = element(here);
    }
    return PlannedColumn{.path = here, .is_place = false};
  }

  PathId member(PathId parent, const std::string& name) {
    const std::size_t known = plan_->paths[parent].names.add(name);
    if (known < plan_->paths[parent].members.size()) return plan_->paths[parent].members[known];
    const PathId child = add_path(parent == 0 ? name : plan_->paths[parent].text + "." + name,
                                  plan_->paths[parent].scope);
    plan_->paths[parent].members.push_back(child);
    return child;
  }

  PathId element(PathId array) {
    if (plan_->paths[array].element != kNoPath) return plan_->paths[array].element;
    const auto inner = static_cast<ScopeId>(plan_->scopes.size());
    plan_->scopes.emplace_back();
    const PathId child = add_path(plan_->paths[array].text + std::string(kEach), inner);
    plan_->scopes[inner].array = array;
    plan_->scopes[inner].element = child;
    plan_->paths[array].element = child;
    scope_of(array).inner.push_back(inner);
    return child;
  }

  PathId add_path(std::string text, ScopeId scope) {
    const auto id = static_cast<PathId>(plan_->paths.size());
    PathNode& node = plan_->paths.emplace_back();
    node.text = std::move(text);
    node.scope = scope;
    plan_->scopes[scope].paths.push_back(id);
    return id;
  }

  Scope& scope_of(PathId path) { return plan_->scopes[plan_->paths[path].scope]; }

  Status find_key() {
    const TableMapping& first = plan_->mapping.tables.front();
    part_ = "tables[0].rows";
    if (!first.rows.empty()) {
      return invalid_argument(
          fmt::format("table {}: the first table must have one row for each document", first.name));
    }
    if (plan_->mapping.key.empty()) return {};
    part_ = "key";
    const auto found = std::ranges::find(first.columns, plan_->mapping.key, &ColumnMapping::name);
    if (found == first.columns.end() || found->optional) {
      return invalid_argument(fmt::format(
          "the idempotency key \"{}\" must be a column of table {} that is not optional",
          excerpt(plan_->mapping.key), first.name));
    }
    plan_->key_column = static_cast<std::size_t>(found - first.columns.begin());
    return {};
  }

  std::shared_ptr<Mapping::Plan> plan_;
  std::string part_ = "tables";
};

Result<Mapping> Mapping::compile(RowMapping mapping, std::string* wrong_part) {
  MappingCompiler compiler(std::move(mapping));
  auto compiled = compiler.run();
  if (!compiled.has_value() && wrong_part != nullptr) *wrong_part = compiler.part();
  return compiled;
}

Mapping::Mapping(std::shared_ptr<const Plan> plan) : plan_(std::move(plan)) {}

const std::vector<TableMapping>& Mapping::tables() const { return plan_->mapping.tables; }
const std::string& Mapping::key() const { return plan_->mapping.key; }
std::size_t Mapping::key_column() const { return plan_->key_column; }
std::span<const std::size_t> Mapping::columns_of_tables() const { return plan_->columns_of_tables; }

}  // namespace baton::schema
