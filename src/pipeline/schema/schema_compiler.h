#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/result.h"
#include "pipeline/schema/json_document.h"
#include "pipeline/schema/schema_nodes.h"

namespace baton::schema {

/// Compiles the text of a schema, subschema by subschema, from a list of those still to do. Lives
/// for one schema.
class SchemaCompiler {
 public:
  Result<std::shared_ptr<const SchemaNodes>> compile(std::string_view text);

 private:
  using Handler = Status (SchemaCompiler::*)(JsonIndex value);
  /// Null if the keyword is not supported.
  static Handler handler_of(std::string_view keyword);

  Status read_draft();
  Status compile_one(SubschemaId id, JsonIndex at);
  Status compile_members(JsonIndex at);
  Status check_siblings(JsonIndex at);
  /// The subschema at `at`, which is compiled now or later. Fails unless it is an object or a
  /// boolean.
  Result<SubschemaId> subschema(JsonIndex at);
  Result<std::vector<SubschemaId>> subschemas(JsonIndex array);

  // Keywords: each reads its value into `out_`.
  Status annotation(JsonIndex at);
  Status identifier(JsonIndex at);
  Status reference(JsonIndex at);
  Status definitions(JsonIndex at);
  Status type(JsonIndex at);
  Status enumeration(JsonIndex at);
  Status constant(JsonIndex at);
  template <Bound::Kind BoundKind>
  Status bound(JsonIndex at);
  Status multiple_of(JsonIndex at);
  template <auto Rules, auto Member>
  Status count(JsonIndex at);
  Status pattern(JsonIndex at);
  Status format(JsonIndex at);
  Status unique_items(JsonIndex at);
  Status items(JsonIndex at);
  Status prefix_items(JsonIndex at);
  template <auto Rules, auto Member>
  Status one_subschema(JsonIndex at);
  Status properties(JsonIndex at);
  Status pattern_properties(JsonIndex at);
  Status required(JsonIndex at);
  Status dependent_required(JsonIndex at);
  Status dependent_schemas(JsonIndex at);
  template <Group::Kind GroupKind>
  Status group(JsonIndex at);
  Status negation(JsonIndex at);
  template <std::size_t Part>
  Status condition(JsonIndex at);

  /// The index of a name among the names in the object's rules.
  Result<std::size_t> property(std::string_view name);
  Result<std::vector<std::size_t>> property_list(JsonIndex at);
  Result<Pattern> compile_pattern(std::string_view ecma);
  /// Fails unless the value at `at` is of `kind`.
  [[nodiscard]] Status expect(JsonIndex at, JsonKind kind) const;
  template <class Rules>
  static Rules& rules_of(std::unique_ptr<Rules>& rules) {
    if (rules == nullptr) rules = std::make_unique<Rules>();
    return *rules;
  }

  Status link_references();
  Result<JsonIndex> resolve(std::string_view reference) const;
  Status refuse_endless_references() const;
  /// Makes references to a subschema that is only a $ref point to its target.
  void inline_references();

  [[nodiscard]] const JsonNode& node(JsonIndex at) const { return document_.node(at); }
  /// An error about the present keyword.
  [[nodiscard]] Error error(std::string_view text) const { return error(at_, keyword_, text); }
  [[nodiscard]] Error error(JsonIndex subschema, std::string_view keyword,
                            std::string_view text) const;

  JsonDocument document_{kSchemaBytesMax};
  std::shared_ptr<SchemaNodes> nodes_ = std::make_shared<SchemaNodes>();
  std::map<JsonIndex, SubschemaId> ids_;
  std::vector<JsonIndex> places_;  // The place of each subschema; the first `done_` are compiled.
  std::size_t done_ = 0;
  std::size_t patterns_ = 0;
  bool hides_siblings_ = false;  // Up to draft 7, $ref hides its siblings.

  struct Reference {
    SubschemaId from;
    std::size_t group;
    JsonIndex text;
  };
  std::vector<Reference> references_;

  // The present subschema and keyword.
  Subschema out_;
  SubschemaId id_ = 0;
  JsonIndex at_ = 0;
  std::string_view keyword_;
  std::vector<SubschemaId> condition_;  // if, then, else.
};

}  // namespace baton::schema
