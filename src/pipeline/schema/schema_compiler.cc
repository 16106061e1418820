#include "pipeline/schema/schema_compiler.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "pipeline/schema/json_schema.h"

namespace baton::schema {
namespace {

constexpr std::string_view kDraft2020 = "https://json-schema.org/draft/2020-12/schema";
constexpr std::string_view kDraft7 = "http://json-schema.org/draft-07/schema";
constexpr std::string_view kProperties = "properties";
constexpr std::array<std::string_view, 12> kBesideReference = {
    "$ref",  "$schema", "$id",         "$comment", "$defs",    "definitions",
    "title", "default", "description", "examples", "readOnly", "writeOnly"};

// Keywords of JSON Schema, of this draft and older ones, that are recognised and not supported.
constexpr std::array<std::string_view, 14> kUnsupported = {"unevaluatedProperties",
                                                           "unevaluatedItems",
                                                           "$anchor",
                                                           "$dynamicRef",
                                                           "$dynamicAnchor",
                                                           "$recursiveRef",
                                                           "$recursiveAnchor",
                                                           "$vocabulary",
                                                           "dependencies",
                                                           "additionalItems",
                                                           "contentEncoding",
                                                           "contentMediaType",
                                                           "contentSchema",
                                                           "id"};

}  // namespace

Result<Schema> Schema::compile(std::string_view text) {
  BATON_TRY(std::shared_ptr<const SchemaNodes> nodes, SchemaCompiler().compile(text));
  return Schema(std::move(nodes));
}

Result<std::shared_ptr<const SchemaNodes>> SchemaCompiler::compile(std::string_view text) {
  if (const Status read = document_.read(text); !read.has_value()) {
    return Error{Errc::invalid_argument,
                 fmt::format("the schema is not JSON: {}", read.error().text)};
  }
  BATON_TRY_STATUS(read_draft());
  BATON_TRY_STATUS(subschema(0));
  for (; done_ < places_.size(); ++done_) {
    BATON_TRY_STATUS(compile_one(static_cast<SubschemaId>(done_), places_[done_]));
  }
  BATON_TRY_STATUS(link_references());
  BATON_TRY_STATUS(refuse_endless_references());
  inline_references();
  return std::shared_ptr<const SchemaNodes>(std::move(nodes_));
}

Status SchemaCompiler::read_draft() {
  const JsonIndex at = document_.member(0, "$schema");
  if (at == 0) return {};
  std::string_view draft = node(at).text();
  if (draft.ends_with('#')) draft.remove_suffix(1);
  hides_siblings_ = draft == kDraft7;
  if (node(at).kind == JsonKind::string && (draft == kDraft2020 || draft == kDraft7)) return {};
  return error(0, "$schema",
               fmt::format("must be \"{}\" or \"{}#\"; other drafts mean other things", kDraft2020,
                           kDraft7));
}

Result<SubschemaId> SchemaCompiler::subschema(JsonIndex at) {
  if (node(at).kind != JsonKind::object && node(at).kind != JsonKind::boolean) {
    return Error{Errc::invalid_argument,
                 fmt::format("#{}: a schema must be an object or a boolean; this is {}",
                             document_.pointer(at), to_string(node(at).kind))};
  }
  const auto [found, is_new] = ids_.try_emplace(at, static_cast<SubschemaId>(places_.size()));
  if (is_new) {
    if (places_.size() == kSubschemasMax) {
      return Error{Errc::invalid_argument,
                   fmt::format("the schema has more than {} subschemas", kSubschemasMax)};
    }
    places_.push_back(at);
    nodes_->subschemas.emplace_back();
  }
  return found->second;
}

Result<std::vector<SubschemaId>> SchemaCompiler::subschemas(JsonIndex array) {
  BATON_TRY_STATUS(expect(array, JsonKind::array));
  if (node(array).count == 0) return error("must not be empty");
  std::vector<SubschemaId> out;
  for (JsonIndex at = array + 1; at < node(array).next; at = node(at).next) {
    BATON_TRY(const SubschemaId id, subschema(at));
    out.push_back(id);
  }
  return out;
}

Status SchemaCompiler::compile_one(SubschemaId id, JsonIndex at) {
  out_ = Subschema();
  id_ = id;
  at_ = at;
  condition_.assign(3, kNoSubschema);
  if (node(at).kind == JsonKind::boolean) {
    out_.never = !node(at).flag;
  } else {
    BATON_TRY_STATUS(check_siblings(at));
    BATON_TRY_STATUS(compile_members(at));
  }
  if (condition_[0] != kNoSubschema) {
    out_.groups.push_back({.kind = Group::Kind::conditional, .members = condition_});
  }
  nodes_->subschemas[id] = std::move(out_);
  return {};
}

Status SchemaCompiler::compile_members(JsonIndex at) {
  // First, so that names have this order, which is likely to be the order in documents.
  if (const JsonIndex first = document_.member(at, kProperties); first != 0) {
    keyword_ = kProperties;
    BATON_TRY_STATUS(properties(first));
  }
  for (JsonIndex key = at + 1; key < node(at).next; key = node(key + 1).next) {
    keyword_ = node(key).text();
    if (keyword_ == kProperties) continue;
    if (const Handler handler = handler_of(keyword_); handler != nullptr) {
      BATON_TRY_STATUS((this->*handler)(key + 1));
    } else if (std::ranges::find(kUnsupported, keyword_) != kUnsupported.end()) {
      return error("is not supported");
    } else {
      return error("is not a keyword of JSON Schema");
    }
  }
  return {};
}

Status SchemaCompiler::check_siblings(JsonIndex at) {
  if (!hides_siblings_ || document_.member(at, "$ref") == 0) return {};
  for (JsonIndex key = at + 1; key < node(at).next; key = node(key + 1).next) {
    const std::string_view name = node(key).text();
    if (std::ranges::find(kBesideReference, name) == kBesideReference.end()) {
      return error(at, name, "stands beside $ref, which hides it in draft 7 and not since");
    }
  }
  return {};
}

Status SchemaCompiler::expect(JsonIndex at, JsonKind kind) const {
  if (node(at).kind == kind) return {};
  const bool vowel = kind == JsonKind::array || kind == JsonKind::object;
  return error(fmt::format("must be {} {}", vowel ? "an" : "a", to_string(kind)));
}

Error SchemaCompiler::error(JsonIndex subschema, std::string_view keyword,
                            std::string_view text) const {
  return {Errc::invalid_argument,
          fmt::format("#{}: \"{}\" {}", document_.pointer(subschema), excerpt(keyword), text)};
}

}  // namespace baton::schema
