#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "pipeline/schema/json_text.h"
#include "pipeline/schema/mapping.h"
#include "pipeline/schema/mapping_plan.h"
#include "pipeline/schema/schema_nodes.h"

namespace baton::schema {
namespace {

/// The JSON types that a column of this type accepts.
TypeSet taken_by(ColumnType type) {
  switch (type) {
    case ColumnType::text: return kString | kNumber | kBoolean;
    case ColumnType::integer: return kInteger;
    case ColumnType::real: return kNumber;
    case ColumnType::boolean: return kBoolean;
    case ColumnType::timestamp: return kString;
    case ColumnType::json: break;
  }
  return kAnyType & ~kNull;
}

}  // namespace

/// What a schema says about each place in a path. Only rules that hold for every document count:
/// `anyOf` and similar keywords are ignored, and places without rules may exist.
class MappingCheck {
 public:
  MappingCheck(const SchemaNodes& nodes, const Mapping::Plan& plan)
      : nodes_(nodes), plan_(plan), places_(plan.paths.size()) {
    enter(0, {0});
    // Places come after the places that contain them.
    for (PathId path = 0; path < plan_.paths.size(); ++path) look_into(path);
  }

  /// Why a value cannot exist there, for a sentence that begins with the path.
  [[nodiscard]] const std::string& problem(PathId path) const { return places_[path].problem; }
  [[nodiscard]] TypeSet types(PathId path) const { return places_[path].types; }

 private:
  struct Place {
    std::vector<SubschemaId> rules;  // All of them hold.
    TypeSet types = kAnyType;
    std::string problem;
  };

  void enter(PathId path, std::vector<SubschemaId> rules) {
    Place& place = places_[path];
    for (std::size_t i = 0; i < rules.size(); ++i) {
      for (const Group& group : nodes_.subschemas[rules[i]].groups) {
        if (group.kind == Group::Kind::all) add(rules, group.members);
      }
    }
    for (const SubschemaId id : rules) {
      const Subschema& rule = nodes_.subschemas[id];
      if (rule.never) place.problem = "is not allowed by the schema";
      place.types &= rule.types;
    }
    place.rules = std::move(rules);
  }

  static void add(std::vector<SubschemaId>& rules, const std::vector<SubschemaId>& more) {
    for (const SubschemaId id : more) {
      if (std::ranges::find(rules, id) == rules.end()) rules.push_back(id);
    }
  }

  void look_into(PathId path) {
    const PathNode& node = plan_.paths[path];
    for (std::size_t i = 0; i < node.members.size(); ++i) {
      const std::string& name = node.names.name(i);
      pass_on(path, node.members[i], kObject,
              [&](const Subschema& rule) { return rules_of_member(rule, name); });
    }
    if (node.element == kNoPath) return;
    pass_on(path, node.element, kArray, rules_of_element);
  }

  /// `type` is the type that `path` must have to contain anything.
  template <class RulesOf>
  void pass_on(PathId path, PathId inner, TypeSet type, const RulesOf& rules_of) {
    const Place& place = places_[path];
    if (!place.problem.empty()) {
      places_[inner].problem = place.problem;
      return;
    }
    if ((place.types & type) == 0) {
      places_[inner].problem =
          fmt::format("is not possible: by the schema \"{}\" is of type {}, not {}{}",
                      excerpt(plan_.paths[path].text), to_string(place.types), to_string(type),
                      (place.types & kArray) != 0 ? "; [] behind it means its elements" : "");
      return;
    }
    std::vector<SubschemaId> rules;
    for (const SubschemaId id : place.rules) add(rules, rules_of(nodes_.subschemas[id]));
    enter(inner, std::move(rules));
  }

  static std::vector<SubschemaId> rules_of_member(const Subschema& rule, const std::string& name) {
    std::vector<SubschemaId> found;
    if (rule.object == nullptr) return found;
    const ObjectRules& object = *rule.object;
    for (std::size_t i = 0; i < object.declared.size(); ++i) {
      if (object.names.name(i) == name && object.declared[i] != kNoSubschema) {
        found.push_back(object.declared[i]);
      }
    }
    for (const auto& [pattern, id] : object.patterns) {
      if (pattern.matches(name)) found.push_back(id);
    }
    if (found.empty() && object.additional != kNoSubschema) found.push_back(object.additional);
    return found;
  }

  static std::vector<SubschemaId> rules_of_element(const Subschema& rule) {
    // With a prefix it is unknown which subschema applies to an element.
    const bool known =
        rule.array != nullptr && rule.array->prefix.empty() && rule.array->items != kNoSubschema;
    return known ? std::vector<SubschemaId>{rule.array->items} : std::vector<SubschemaId>{};
  }

  const SchemaNodes& nodes_;
  const Mapping::Plan& plan_;
  std::vector<Place> places_;
};

namespace {

std::optional<std::string> problem_of(const MappingCheck& check, const ColumnMapping& column,
                                      const PlannedColumn& planned) {
  const std::string& problem = check.problem(planned.path);
  if (!problem.empty()) return fmt::format("the path \"{}\" {}", excerpt(column.path), problem);
  if (planned.is_place) return std::nullopt;
  const TypeSet types = check.types(planned.path);
  const TypeSet taken = taken_by(column.type) | (column.optional ? kNull : TypeSet{0});
  if ((types & taken) != 0) return std::nullopt;
  return fmt::format("\"{}\" is of type {} by the schema, which {} does not take",
                     excerpt(column.path), to_string(types), to_string(column.type));
}

}  // namespace

Status Mapping::check(const Schema& schema, std::string* wrong_part) const {
  const MappingCheck check(schema.nodes(), *plan_);
  const auto wrong = [&](std::string where, std::string text) {
    if (wrong_part != nullptr) *wrong_part = std::move(where);
    return Error{Errc::invalid_argument, std::move(text)};
  };
  for (std::size_t i = 0; i < plan_->tables.size(); ++i) {
    const TableMapping& table = tables()[i];
    const PlannedTable& planned = plan_->tables[i];
    if (!check.problem(planned.row).empty()) {
      return wrong(fmt::format("tables[{}].rows", i),
                   fmt::format("table {}: rows: \"{}\" {}", table.name, excerpt(table.rows),
                               check.problem(planned.row)));
    }
    for (std::size_t c = 0; c < table.columns.size(); ++c) {
      const ColumnMapping& column = table.columns[c];
      const auto problem = problem_of(check, column, planned.columns[c]);
      if (!problem.has_value()) continue;
      return wrong(fmt::format("tables[{}].columns.{}", i, column.name),
                   fmt::format("table {}: column {}: {}", table.name, column.name, *problem));
    }
  }
  return {};
}

}  // namespace baton::schema
