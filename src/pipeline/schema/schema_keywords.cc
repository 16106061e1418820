#include <algorithm>
#include <array>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "pipeline/schema/schema_compiler.h"

// Which values each keyword accepts, and what they compile to.
namespace baton::schema {
namespace {

constexpr std::array<std::pair<std::string_view, TypeSet>, 7> kTypes = {{{"null", kNull},
                                                                         {"boolean", kBoolean},
                                                                         {"integer", kInteger},
                                                                         {"number", kNumber},
                                                                         {"string", kString},
                                                                         {"array", kArray},
                                                                         {"object", kObject}}};

/// JSON without the line breaks and the indentation between its values, for errors that quote it.
std::string on_one_line(std::string_view json) {
  std::string out;
  bool in_string = false;
  bool is_escaped = false;
  for (const char c : json) {
    const bool is_space = !in_string && (c == ' ' || c == '\n' || c == '\r' || c == '\t');
    if (c == '"' && !is_escaped) in_string = !in_string;
    is_escaped = in_string && c == '\\' && !is_escaped;
    if (is_space) continue;
    out.push_back(c);
    if (!in_string && (c == ',' || c == ':')) out.push_back(' ');
  }
  return out;
}

/// The empty set for an unknown name.
TypeSet type_of(const JsonNode& node) {
  if (node.kind != JsonKind::string) return 0;
  const auto* const found =
      std::ranges::find(kTypes, node.text(), [](const auto& t) { return t.first; });
  return found == kTypes.end() ? TypeSet{0} : found->second;
}

std::string no_type(const JsonNode& node) {
  std::vector<std::string_view> names;
  names.reserve(kTypes.size());
  for (const auto& [name, type] : kTypes) names.push_back(name);
  const std::string given = node.kind == JsonKind::string
                                ? fmt::format("\"{}\"", excerpt(node.text()))
                                : std::string(to_string(node.kind));
  return fmt::format("must be the name of a type, or a list of them; {} is none of {}", given,
                     fmt::join(names, ", "));
}

}  // namespace

SchemaCompiler::Handler SchemaCompiler::handler_of(std::string_view keyword) {
  using Me = SchemaCompiler;
  using Sub = Subschema;
  static constexpr auto kHandlers = std::to_array<std::pair<std::string_view, Handler>>({
      {"$schema", &Me::annotation},
      {"$id", &Me::identifier},
      {"$comment", &Me::annotation},
      {"title", &Me::annotation},
      {"description", &Me::annotation},
      {"default", &Me::annotation},
      {"examples", &Me::annotation},
      {"deprecated", &Me::annotation},
      {"readOnly", &Me::annotation},
      {"writeOnly", &Me::annotation},
      {"$ref", &Me::reference},
      {"$defs", &Me::definitions},
      {"definitions", &Me::definitions},
      {"type", &Me::type},
      {"enum", &Me::enumeration},
      {"const", &Me::constant},
      {"minimum", &Me::bound<Bound::Kind::minimum>},
      {"exclusiveMinimum", &Me::bound<Bound::Kind::exclusive_minimum>},
      {"maximum", &Me::bound<Bound::Kind::maximum>},
      {"exclusiveMaximum", &Me::bound<Bound::Kind::exclusive_maximum>},
      {"multipleOf", &Me::multiple_of},
      {"minLength", &Me::count<&Sub::text, &TextRules::length_min>},
      {"maxLength", &Me::count<&Sub::text, &TextRules::length_max>},
      {"pattern", &Me::pattern},
      {"format", &Me::format},
      {"minItems", &Me::count<&Sub::array, &ArrayRules::count_min>},
      {"maxItems", &Me::count<&Sub::array, &ArrayRules::count_max>},
      {"uniqueItems", &Me::unique_items},
      {"items", &Me::items},
      {"prefixItems", &Me::prefix_items},
      {"contains", &Me::one_subschema<&Sub::array, &ArrayRules::contains>},
      {"minContains", &Me::count<&Sub::array, &ArrayRules::contains_min>},
      {"maxContains", &Me::count<&Sub::array, &ArrayRules::contains_max>},
      {"minProperties", &Me::count<&Sub::object, &ObjectRules::count_min>},
      {"maxProperties", &Me::count<&Sub::object, &ObjectRules::count_max>},
      {"properties", &Me::properties},
      {"patternProperties", &Me::pattern_properties},
      {"additionalProperties", &Me::one_subschema<&Sub::object, &ObjectRules::additional>},
      {"propertyNames", &Me::one_subschema<&Sub::object, &ObjectRules::property_names>},
      {"required", &Me::required},
      {"dependentRequired", &Me::dependent_required},
      {"dependentSchemas", &Me::dependent_schemas},
      {"allOf", &Me::group<Group::Kind::all>},
      {"anyOf", &Me::group<Group::Kind::any>},
      {"oneOf", &Me::group<Group::Kind::one>},
      {"not", &Me::negation},
      {"if", &Me::condition<0>},
      {"then", &Me::condition<1>},
      {"else", &Me::condition<2>},
  });
  const auto* const found =
      std::ranges::find(kHandlers, keyword, [](const auto& entry) { return entry.first; });
  return found == kHandlers.end() ? nullptr : found->second;
}

Status SchemaCompiler::annotation(JsonIndex /*at*/) { return {}; }

Status SchemaCompiler::identifier(JsonIndex at) {
  BATON_TRY_STATUS(expect(at, JsonKind::string));
  if (at_ != 0) return error("is supported at the root only");
  return {};
}

Status SchemaCompiler::reference(JsonIndex at) {
  BATON_TRY_STATUS(expect(at, JsonKind::string));
  references_.push_back({.from = id_, .group = out_.groups.size(), .text = at});
  out_.groups.push_back({.kind = Group::Kind::all, .members = {}});
  return {};
}

Status SchemaCompiler::definitions(JsonIndex at) {
  BATON_TRY_STATUS(expect(at, JsonKind::object));
  for (JsonIndex key = at + 1; key < node(at).next; key = node(key + 1).next) {
    BATON_TRY_STATUS(subschema(key + 1));
  }
  return {};
}

Status SchemaCompiler::type(JsonIndex at) {
  if (node(at).kind != JsonKind::array) {
    out_.types = type_of(node(at));
    return out_.types != 0 ? Status() : error(no_type(node(at)));
  }
  out_.types = 0;
  for (JsonIndex name = at + 1; name < node(at).next; name = node(name).next) {
    const TypeSet one = type_of(node(name));
    if (one == 0) return error(no_type(node(name)));
    out_.types |= one;
  }
  return out_.types != 0 ? Status() : error("must not be empty");
}

Status SchemaCompiler::enumeration(JsonIndex at) {
  BATON_TRY_STATUS(expect(at, JsonKind::array));
  if (node(at).count == 0) return error("must not be empty");
  out_.values.push_back(
      std::make_unique<const ValueSet>("enum", on_one_line(document_.source(at))));
  return {};
}

Status SchemaCompiler::constant(JsonIndex at) {
  out_.values.push_back(
      std::make_unique<const ValueSet>("const", fmt::format("[{}]", document_.source(at))));
  return {};
}

template <Bound::Kind BoundKind>
Status SchemaCompiler::bound(JsonIndex at) {
  BATON_TRY_STATUS(expect(at, JsonKind::number));
  Bound bound{.kind = BoundKind,
              .written = std::string(node(at).text()),
              .value = Decimal::parse(node(at).text()),
              .small = std::nullopt};
  bound.small = bound.value.to_int64();
  rules_of(out_.number).bounds.push_back(std::move(bound));
  return {};
}

Status SchemaCompiler::multiple_of(JsonIndex at) {
  BATON_TRY_STATUS(expect(at, JsonKind::number));
  Decimal divisor = Decimal::parse(node(at).text());
  if (!divisor.is_positive()) return error("must be greater than 0");
  if (divisor.digits.size() > kMultipleOfDigitsMax) {
    return error(
        fmt::format("has {} digits; the limit is {}", divisor.digits.size(), kMultipleOfDigitsMax));
  }
  NumberRules& rules = rules_of(out_.number);
  rules.multiple_of = std::move(divisor);
  rules.multiple_of_written = node(at).text();
  return {};
}

template <auto Rules, auto Member>
Status SchemaCompiler::count(JsonIndex at) {
  BATON_TRY_STATUS(expect(at, JsonKind::number));
  const Decimal value = Decimal::parse(node(at).text());
  if (value.negative || !value.is_integer()) return error("must be an integer of 0 or more");
  // A number beyond int64 is as good as any other bound that no document reaches.
  rules_of(out_.*Rules).*Member =
      static_cast<std::size_t>(value.to_int64().value_or(std::numeric_limits<std::int64_t>::max()));
  return {};
}

Result<Pattern> SchemaCompiler::compile_pattern(std::string_view ecma) {
  if (++patterns_ > kPatternsMax) {
    return error(fmt::format("is one pattern too many; the limit is {}", kPatternsMax));
  }
  auto compiled = Pattern::compile(ecma);
  if (compiled.has_value()) return compiled;
  return error(fmt::format("cannot be \"{}\": {}", excerpt(ecma), compiled.error().text));
}

Status SchemaCompiler::pattern(JsonIndex at) {
  BATON_TRY_STATUS(expect(at, JsonKind::string));
  BATON_TRY(rules_of(out_.text).pattern, compile_pattern(node(at).text()));
  return {};
}

Status SchemaCompiler::format(JsonIndex at) {
  BATON_TRY_STATUS(expect(at, JsonKind::string));
  const auto format = parse_format(node(at).text());
  if (!format.has_value()) {
    return error(fmt::format("\"{}\" is not supported", excerpt(node(at).text())));
  }
  rules_of(out_.text).format = format;
  return {};
}

Status SchemaCompiler::unique_items(JsonIndex at) {
  BATON_TRY_STATUS(expect(at, JsonKind::boolean));
  rules_of(out_.array).unique = node(at).flag;
  return {};
}

Status SchemaCompiler::items(JsonIndex at) {
  if (node(at).kind == JsonKind::array) {
    return error("must be one schema; the list of older drafts is now prefixItems");
  }
  return one_subschema<&Subschema::array, &ArrayRules::items>(at);
}

Status SchemaCompiler::prefix_items(JsonIndex at) {
  BATON_TRY(rules_of(out_.array).prefix, subschemas(at));
  return {};
}

template <auto Rules, auto Member>
Status SchemaCompiler::one_subschema(JsonIndex at) {
  BATON_TRY(const SubschemaId id, subschema(at));
  rules_of(out_.*Rules).*Member = id;
  return {};
}

Result<std::size_t> SchemaCompiler::property(std::string_view name) {
  ObjectRules& rules = rules_of(out_.object);
  const std::size_t place = rules.names.add(name);
  if (place == kPropertiesMax) {
    return error(fmt::format("is one property too many; the limit is {}", kPropertiesMax));
  }
  rules.declared.resize(rules.names.size(), kNoSubschema);
  return place;
}

Result<std::vector<std::size_t>> SchemaCompiler::property_list(JsonIndex at) {
  std::vector<std::size_t> out;
  if (node(at).kind != JsonKind::array) return error("must be a list of names");
  for (JsonIndex name = at + 1; name < node(at).next; name = node(name).next) {
    if (node(name).kind != JsonKind::string) return error("must be a list of names");
    BATON_TRY(const std::size_t place, property(node(name).text()));
    out.push_back(place);
  }
  return out;
}

Status SchemaCompiler::properties(JsonIndex at) {
  BATON_TRY_STATUS(expect(at, JsonKind::object));
  for (JsonIndex key = at + 1; key < node(at).next; key = node(key + 1).next) {
    BATON_TRY(const std::size_t place, property(node(key).text()));
    BATON_TRY(out_.object->declared[place], subschema(key + 1));
  }
  return {};
}

Status SchemaCompiler::pattern_properties(JsonIndex at) {
  BATON_TRY_STATUS(expect(at, JsonKind::object));
  for (JsonIndex key = at + 1; key < node(at).next; key = node(key + 1).next) {
    BATON_TRY(Pattern compiled, compile_pattern(node(key).text()));
    BATON_TRY(const SubschemaId id, subschema(key + 1));
    rules_of(out_.object).patterns.emplace_back(std::move(compiled), id);
  }
  return {};
}

Status SchemaCompiler::required(JsonIndex at) {
  BATON_TRY(std::vector<std::size_t> places, property_list(at));
  if (places.empty()) return {};
  for (const std::size_t place : places) {
    out_.object->required_bits.resize(std::max(out_.object->required_bits.size(), place / 64 + 1));
    out_.object->required_bits[place / 64] |= std::uint64_t{1} << (place % 64);
  }
  out_.object->required = std::move(places);
  return {};
}

Status SchemaCompiler::dependent_required(JsonIndex at) {
  BATON_TRY_STATUS(expect(at, JsonKind::object));
  for (JsonIndex key = at + 1; key < node(at).next; key = node(key + 1).next) {
    BATON_TRY(const std::size_t place, property(node(key).text()));
    BATON_TRY(std::vector<std::size_t> others, property_list(key + 1));
    out_.object->dependent_required.emplace_back(place, std::move(others));
  }
  return {};
}

Status SchemaCompiler::dependent_schemas(JsonIndex at) {
  BATON_TRY_STATUS(expect(at, JsonKind::object));
  for (JsonIndex key = at + 1; key < node(at).next; key = node(key + 1).next) {
    BATON_TRY(const std::size_t place, property(node(key).text()));
    BATON_TRY(const SubschemaId id, subschema(key + 1));
    out_.object->dependent_schemas.emplace_back(place, id);
  }
  return {};
}

template <Group::Kind GroupKind>
Status SchemaCompiler::group(JsonIndex at) {
  BATON_TRY(std::vector<SubschemaId> members, subschemas(at));
  out_.groups.push_back({.kind = GroupKind, .members = std::move(members)});
  return {};
}

Status SchemaCompiler::negation(JsonIndex at) {
  BATON_TRY(const SubschemaId id, subschema(at));
  out_.groups.push_back({.kind = Group::Kind::none, .members = {id}});
  return {};
}

template <std::size_t Part>
Status SchemaCompiler::condition(JsonIndex at) {
  BATON_TRY(condition_[Part], subschema(at));
  return {};
}

}  // namespace baton::schema
