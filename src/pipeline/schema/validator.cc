#include "pipeline/schema/validator.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"

// The walk: frames and phases. validator_checks.cc has the checks of a single value.
namespace baton::schema {

std::string to_string(const Violation& violation) {
  if (violation.kind == Violation::Kind::broken) return "not JSON: " + violation.text;
  return fmt::format("{}: {}: {}",
                     violation.pointer.empty() ? "the document" : violation.pointer.c_str(),
                     violation.keyword, violation.text);
}

Validator::Validator(Schema schema, std::size_t document_bytes_max)
    : schema_(std::move(schema)), document_(document_bytes_max) {}

std::optional<Violation> Validator::validate(std::string_view document) {
  Status read = document_.read(document);
  if (!read.has_value()) {
    return Violation{.kind = Violation::Kind::broken,
                     .pointer = {},
                     .keyword = {},
                     .text = std::move(read.error().text)};
  }
  return walk();
}

std::optional<Violation> Validator::walk() {
  frames_.clear();
  seen_.clear();
  attempts_ = 0;
  steps_ =
      kStepsMin + kStepsPerValue * document_.size() + document_.root().size / kBytesPerStepGranted;
  bool good = enter(0, 0);
  while (good && !frames_.empty()) good = step();
  if (good) return std::nullopt;
  BATON_ASSERT(violation_.has_value());
  return std::exchange(violation_, std::nullopt);
}

bool Validator::enter(SubschemaId id, JsonIndex at) {
  if (steps_ == 0 || frames_.size() == kFramesMax) return out_of_steps();
  --steps_;
  const Subschema& schema = schema_.nodes().subschemas[id];
  const bool good = check_here(schema, at);
  if (steps_ == 0) return out_of_steps();  // The result cannot be trusted.
  if (!good) return failed();
  if (has_more(schema, document_.node(at))) {
    push(schema, at);
  } else {
    passed();
  }
  return true;
}

bool Validator::attempt(SubschemaId id, JsonIndex at) {
  frames_.back().waiting = true;
  ++attempts_;
  return enter(id, at);
}

bool Validator::has_more(const Subschema& schema, const JsonNode& node) {
  if (!schema.groups.empty()) return true;
  if (node.kind == JsonKind::object) return schema.object != nullptr;
  if (node.kind != JsonKind::array || schema.array == nullptr) return false;
  return schema.array->items != kNoSubschema || schema.array->contains != kNoSubschema ||
         !schema.array->prefix.empty();
}

void Validator::push(const Subschema& schema, JsonIndex at) {
  frames_.push_back({.schema = &schema,
                     .at = at,
                     .phase = Phase::groups,
                     .waiting = false,
                     .answer = false,
                     .matched = false,
                     .group = 0,
                     .branch = 0,
                     .passed = 0,
                     .child = at + 1,
                     .index = 0,
                     .place = NameTable::kNone,
                     .seen = seen_.size()});
  if (schema.groups.empty()) begin_children();
}

void Validator::pop() {
  seen_.resize(frames_.back().seen);
  frames_.pop_back();
}

void Validator::passed() {
  if (frames_.empty() || !frames_.back().waiting) return;
  frames_.back().waiting = false;
  frames_.back().answer = true;
  --attempts_;
}

bool Validator::failed() {
  if (attempts_ == 0) return false;
  while (!frames_.back().waiting) pop();
  frames_.back().waiting = false;
  frames_.back().answer = false;
  --attempts_;
  return true;
}

bool Validator::step() {
  switch (frames_.back().phase) {
    case Phase::groups: return step_groups();
    case Phase::members: return step_members();
    case Phase::dependents: return step_dependents();
    case Phase::elements: return step_elements();
    case Phase::contains: return step_contains();
    case Phase::end:
      pop();
      passed();
      return true;
  }
  return false;
}

bool Validator::step_groups() {
  Frame& frame = frames_.back();
  if (frame.group == frame.schema->groups.size()) {
    begin_children();
    return true;
  }
  const Group& group = frame.schema->groups[frame.group];
  switch (group.kind) {
    case Group::Kind::conditional: return step_condition(group);
    case Group::Kind::all:
      if (frame.branch == group.members.size()) {
        next_group();
        return true;
      }
      return enter(group.members[frame.branch++], frame.at);
    default: return step_branches(group);
  }
}

bool Validator::step_branches(const Group& group) {
  Frame& frame = frames_.back();
  if (frame.branch > 0) frame.passed += frame.answer ? 1 : 0;
  const bool settled = frame.passed == (group.kind == Group::Kind::one ? 2 : 1);
  if (settled || frame.branch == group.members.size()) return end_of_branches(group);
  return attempt(group.members[frame.branch++], frame.at);
}

bool Validator::end_of_branches(const Group& group) {
  const Frame& frame = frames_.back();
  const std::size_t passed = frame.passed;
  const JsonIndex at = frame.at;
  const std::size_t branches = group.members.size();
  if (passed == (group.kind == Group::Kind::none ? 0 : 1)) {
    next_group();
    return true;
  }
  switch (group.kind) {
    case Group::Kind::none:
      violates(at, "not", [] { return "the value matches what it must not"; });
      break;
    case Group::Kind::any:
      violates(at, "anyOf", [&] {
        return fmt::format("the value matches none of the {} alternatives", branches);
      });
      break;
    default:
      violates(at, "oneOf", [&] {
        return fmt::format("the value matches {} of the {} alternatives; it must be exactly one",
                           passed == 0 ? "none" : "more than one", branches);
      });
  }
  return failed();
}

bool Validator::step_condition(const Group& group) {
  Frame& frame = frames_.back();
  if (frame.branch++ == 0) return attempt(group.members[0], frame.at);
  if (frame.branch == 2) {
    const SubschemaId follows = group.members[frame.answer ? 1 : 2];
    if (follows != kNoSubschema) return enter(follows, frame.at);
  }
  next_group();
  return true;
}

void Validator::next_group() {
  Frame& frame = frames_.back();
  ++frame.group;
  frame.branch = 0;
  frame.passed = 0;
}

void Validator::begin_children() {
  Frame& frame = frames_.back();
  frame.branch = 0;
  frame.passed = 0;
  frame.phase = Phase::end;
  const JsonKind kind = document_.node(frame.at).kind;
  if (kind == JsonKind::object && frame.schema->object != nullptr) {
    frame.phase = Phase::members;
    seen_.resize(frame.seen + (frame.schema->object->names.size() + 63) / 64, 0);
  } else if (kind == JsonKind::array && frame.schema->array != nullptr) {
    frame.phase = Phase::elements;
  }
}

bool Validator::step_members() {
  const ObjectRules& rules = *frames_.back().schema->object;
  const JsonIndex end = document_.node(frames_.back().at).next;
  // Until a member needs its own frame, or has failed.
  for (const std::size_t depth = frames_.size(); frames_.size() == depth;) {
    if (frames_.back().child == end) return end_of_members(rules);
    charge(1);
    if (!step_one_member(rules)) return false;
  }
  return true;
}

/// Frame::branch counts the checks of the member so far: 0, none; 1, its name; 2 + n, `properties`
/// and n patterns.
bool Validator::step_one_member(const ObjectRules& rules) {
  Frame& frame = frames_.back();
  const JsonIndex key = frame.child;
  if (frame.branch == 0) {
    begin_member(rules);
    if (rules.property_names != kNoSubschema) return enter(rules.property_names, key);
  }
  if (frame.branch == 1) {
    frame.branch = 2;
    if (frame.matched) {
      if (rules.patterns.empty()) next_member();
      return enter(rules.declared[frame.place], key + 1);
    }
  }
  if (frame.branch - 2 < rules.patterns.size()) return step_patterns(rules);
  next_member();
  if (frame.matched || rules.additional == kNoSubschema) return true;
  if (!schema_.nodes().subschemas[rules.additional].never) {
    return enter(rules.additional, key + 1);
  }
  violates(key, "additionalProperties", [&] {
    return fmt::format("the property \"{}\" is not allowed", excerpt(document_.node(key).text()));
  });
  return failed();
}

void Validator::begin_member(const ObjectRules& rules) {
  Frame& frame = frames_.back();
  const JsonNode& key = document_.node(frame.child);
  frame.branch = 1;
  frame.matched = false;
  // Members usually come in the order of the schema.
  const std::size_t place = rules.names.find(key.text(), key.word, frame.place + 1);
  if (place == NameTable::kNone) return;
  seen_[frame.seen + place / 64] |= std::uint64_t{1} << (place % 64);
  frame.place = place;
  frame.matched = rules.declared[place] != kNoSubschema;
}

void Validator::next_member() {
  Frame& frame = frames_.back();
  frame.child = document_.node(frame.child + 1).next;
  frame.branch = 0;
}

bool Validator::step_patterns(const ObjectRules& rules) {
  Frame& frame = frames_.back();
  const auto& [pattern, id] = rules.patterns[frame.branch++ - 2];
  if (!pattern.matches(document_.node(frame.child).text())) return true;
  frame.matched = true;
  return enter(id, frame.child + 1);
}

bool Validator::has_all_required(const ObjectRules& rules, const Frame& frame) const {
  std::uint64_t missing = 0;
  for (std::size_t i = 0; i < rules.required_bits.size(); ++i) {
    missing |= rules.required_bits[i] & ~seen_[frame.seen + i];
  }
  return missing == 0;
}

bool Validator::check_required(const ObjectRules& rules, const Frame& frame) {
  if (has_all_required(rules, frame)) return true;
  const auto missing = std::ranges::find_if(
      rules.required, [&](std::size_t place) { return !has_seen(frame, place); });
  return violates(frame.at, "required", [&] {
    return fmt::format("the property \"{}\" is missing", excerpt(rules.names.name(*missing)));
  });
}

bool Validator::check_dependent_required(const ObjectRules& rules, const Frame& frame) {
  for (const auto& [cause, places] : rules.dependent_required) {
    if (!has_seen(frame, cause)) continue;
    const auto missing =
        std::ranges::find_if(places, [&](std::size_t place) { return !has_seen(frame, place); });
    if (missing == places.end()) continue;
    return violates(frame.at, "dependentRequired", [&, cause = cause] {
      return fmt::format("the property \"{}\" is missing, which \"{}\" asks for",
                         excerpt(rules.names.name(*missing)), excerpt(rules.names.name(cause)));
    });
  }
  return true;
}

bool Validator::end_of_members(const ObjectRules& rules) {
  Frame& frame = frames_.back();
  frame.phase = rules.dependent_schemas.empty() ? Phase::end : Phase::dependents;
  if (!check_required(rules, frame) || !check_dependent_required(rules, frame)) return failed();
  return true;
}

bool Validator::step_dependents() {
  Frame& frame = frames_.back();
  const auto& dependents = frame.schema->object->dependent_schemas;
  if (frame.branch == dependents.size()) {
    frame.phase = Phase::end;
    return true;
  }
  const auto& [place, id] = dependents[frame.branch++];
  return has_seen(frame, place) ? enter(id, frame.at) : true;
}

bool Validator::step_elements() {
  const ArrayRules& rules = *frames_.back().schema->array;
  const JsonIndex end = document_.node(frames_.back().at).next;
  for (const std::size_t depth = frames_.size(); frames_.size() == depth;) {
    Frame& frame = frames_.back();
    const bool in_prefix = frame.index < rules.prefix.size();
    if (frame.child == end || (!in_prefix && rules.items == kNoSubschema)) {
      frame.phase = rules.contains == kNoSubschema ? Phase::end : Phase::contains;
      frame.child = frame.at + 1;
      return true;
    }
    const JsonIndex element = frame.child;
    const SubschemaId id = in_prefix ? rules.prefix[frame.index] : rules.items;
    frame.child = document_.node(element).next;
    ++frame.index;
    if (!in_prefix && schema_.nodes().subschemas[id].never) {
      violates(element, "items", [&] {
        return fmt::format("an array may have no element past the first {}", rules.prefix.size());
      });
      return failed();
    }
    if (!enter(id, element)) return false;
  }
  return true;
}

/// Frame::branch is 1 if an answer is pending.
bool Validator::step_contains() {
  Frame& frame = frames_.back();
  const ArrayRules& rules = *frame.schema->array;
  if (frame.branch == 1) frame.passed += frame.answer ? 1 : 0;
  frame.branch = 1;
  if (frame.child != document_.node(frame.at).next && frame.passed <= rules.contains_max) {
    const JsonIndex element = frame.child;
    frame.child = document_.node(element).next;
    return attempt(rules.contains, element);
  }
  frame.phase = Phase::end;
  if (frame.passed >= rules.contains_min && frame.passed <= rules.contains_max) return true;
  if (frame.passed > rules.contains_max) {
    violates(frame.at, "maxContains", [&] {
      return fmt::format("too many elements match; it must be at most {}", rules.contains_max);
    });
  } else {
    violates(frame.at, rules.contains_min == 1 ? "contains" : "minContains", [&] {
      return fmt::format("{} elements match; it must be at least {}", frame.passed,
                         rules.contains_min);
    });
  }
  return failed();
}

bool Validator::out_of_steps() {
  steps_ = 0;
  attempts_ = 0;
  return violates(0, "limit", [] { return "the schema takes too many steps on this document"; });
}

}  // namespace baton::schema
