#include <algorithm>

#include <fmt/format.h>

#include "pipeline/schema/schema_compiler.h"

// $ref: resolves it, checks that it ends, and removes its cost.
namespace baton::schema {
namespace {

/// The subschemas that apply to the same value as `subschema`.
std::vector<SubschemaId> for_same_value(const Subschema& subschema) {
  std::vector<SubschemaId> out;
  for (const Group& group : subschema.groups) {
    for (const SubschemaId id : group.members) {
      if (id != kNoSubschema) out.push_back(id);
    }
  }
  if (subschema.object != nullptr) {
    for (const auto& [place, id] : subschema.object->dependent_schemas) out.push_back(id);
  }
  return out;
}

/// Calls `visit` with each id of another subschema in `subschema`.
template <class Visit>
void for_each_id(Subschema& subschema, Visit visit) {
  for (Group& group : subschema.groups) std::ranges::for_each(group.members, visit);
  if (subschema.array != nullptr) {
    std::ranges::for_each(subschema.array->prefix, visit);
    visit(subschema.array->items);
    visit(subschema.array->contains);
  }
  if (subschema.object != nullptr) {
    std::ranges::for_each(subschema.object->declared, visit);
    for (auto& [pattern, id] : subschema.object->patterns) visit(id);
    for (auto& [place, id] : subschema.object->dependent_schemas) visit(id);
    visit(subschema.object->additional);
    visit(subschema.object->property_names);
  }
}

/// Whether `subschema` consists only of $ref.
bool is_only_reference(const Subschema& subschema) {
  return !subschema.never && subschema.types == kAnyType && subschema.values.empty() &&
         subschema.number == nullptr && subschema.text == nullptr && subschema.array == nullptr &&
         subschema.object == nullptr && subschema.groups.size() == 1 &&
         subschema.groups[0].kind == Group::Kind::all && subschema.groups[0].members.size() == 1;
}

}  // namespace

Status SchemaCompiler::link_references() {
  for (const Reference& reference : references_) {
    const std::string_view written = node(reference.text).text();
    const JsonIndex from = places_[reference.from];
    const auto target = resolve(written);
    if (!target.has_value()) return error(from, "$ref", target.error().text);
    // Not every place is a schema: #/properties is not one, nor is a value of an enum.
    const auto found = ids_.find(*target);
    if (found == ids_.end()) {
      return error(from, "$ref", fmt::format("\"{}\" is not a schema", excerpt(written)));
    }
    Subschema& subschema = nodes_->subschemas[reference.from];
    subschema.groups[reference.group].members = {found->second};
  }
  return {};
}

Result<JsonIndex> SchemaCompiler::resolve(std::string_view reference) const {
  const Error nowhere{Errc::not_found, fmt::format("\"{}\" leads nowhere", excerpt(reference))};
  if (reference != "#" && !reference.starts_with("#/")) {
    return Error{Errc::invalid_argument,
                 fmt::format("\"{}\" is not supported: it must be # or a pointer into this schema, "
                             "such as #/$defs/name",
                             excerpt(reference))};
  }
  BATON_TRY(const std::vector<std::string> steps, pointer_steps(reference.substr(1)));
  JsonIndex here = 0;
  for (const std::string& step : steps) {
    here = document_.child(here, step);
    if (here == 0) return nowhere;
  }
  return here;
}

Status SchemaCompiler::refuse_endless_references() const {
  enum class Mark : std::uint8_t { fresh, open, done };
  const std::vector<Subschema>& all = nodes_->subschemas;
  std::vector<Mark> marks(all.size(), Mark::fresh);
  // Each subschema on the path, and those for the same value that are still to be visited.
  std::vector<std::pair<SubschemaId, std::vector<SubschemaId>>> path;
  const auto open = [&](SubschemaId id) {
    marks[id] = Mark::open;
    path.emplace_back(id, for_same_value(all[id]));
  };
  for (SubschemaId start = 0; start < all.size(); ++start) {
    if (marks[start] == Mark::fresh) open(start);
    while (!path.empty()) {
      auto& [id, rest] = path.back();
      if (rest.empty()) {
        marks[id] = Mark::done;
        path.pop_back();
        continue;
      }
      const SubschemaId next = rest.back();
      rest.pop_back();
      if (marks[next] == Mark::open) {
        return error(places_[next], "$ref", "leads back here for the same value, without end");
      }
      if (marks[next] == Mark::fresh) open(next);
    }
  }
  return {};
}

void SchemaCompiler::inline_references() {
  std::vector<Subschema>& all = nodes_->subschemas;
  // There is no cycle of them: refuse_endless_references() has checked that.
  const auto follow = [&](SubschemaId& id) {
    while (id != kNoSubschema && is_only_reference(all[id])) id = all[id].groups[0].members[0];
  };
  for (Subschema& subschema : all) {
    if (!is_only_reference(subschema)) for_each_id(subschema, follow);
  }
  for_each_id(all[0], follow);
}

}  // namespace baton::schema
