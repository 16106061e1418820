#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pipeline/schema/decimal.h"
#include "pipeline/schema/json_document.h"
#include "pipeline/schema/json_schema.h"
#include "pipeline/schema/json_values.h"
#include "pipeline/schema/schema_nodes.h"

namespace baton::schema {

/// The first error in a document.
struct Violation {
  enum class Kind : std::uint8_t {
    broken,   // Not JSON by JsonDocument's rules; no pointer, no keyword.
    invalid,  // JSON that does not match the schema.
  };
  Kind kind = Kind::invalid;
  std::string pointer;  // Of the value (RFC 6901); the document itself is "".
  std::string keyword;
  std::string text;  // A sentence.
};

/// "/payment/amount: minimum: -5 is less than 0"; "not JSON: at byte 17: a colon is expected".
std::string to_string(const Violation& violation);

/// Checks documents against one schema. Each thread has its own; after the first few documents a
/// valid one is checked without allocating. The schema is walked with a stack of frames: one for
/// each array or object, and one for each place where branches are tried.
///
/// "First" means in the order of the document: a container's own rules (type, counts, values) come
/// before those of its contents, and missing members (required) come after them.
class Validator {
 public:
  explicit Validator(Schema schema, std::size_t document_bytes_max = kDocumentBytesDefault);

  /// nullopt if `document` is valid.
  [[nodiscard]] std::optional<Violation> validate(std::string_view document);

  /// The document that validate() read last, valid while its bytes live.
  [[nodiscard]] const JsonDocument& document() const { return document_; }

 private:
  enum class Phase : std::uint8_t { groups, members, dependents, elements, contains, end };
  /// A value and a subschema whose check is not finished.
  struct Frame {
    const Subschema* schema;
    JsonIndex at;
    Phase phase;
    bool waiting;  // For a branch: a failure is only an answer, and ends here.
    bool answer;
    bool matched;          // The present member matched `properties` or a pattern.
    std::uint32_t group;   // The present group, and in it:
    std::uint32_t branch;  // the next branch; in other phases, the next entry of their lists.
    std::uint32_t passed;  // Branches or elements that passed.
    JsonIndex child;       // The next element, or key.
    std::uint32_t index;   // Of that element.
    std::size_t place;     // Of the last key that the object's rules name.
    std::size_t seen;      // Where its bits begin in `seen_`.
  };

  std::optional<Violation> walk();
  /// Checks the value at `at`; pushes a frame if that takes more than one step. False if the
  /// document is invalid for certain.
  bool enter(SubschemaId id, JsonIndex at);
  /// The same, but a failure only becomes the frame's answer.
  bool attempt(SubschemaId id, JsonIndex at);
  /// Whether there is more to do than check_here().
  static bool has_more(const Subschema& schema, const JsonNode& node);
  void push(const Subschema& schema, JsonIndex at);
  void pop();
  void passed();
  /// Drops frames down to one that waits for an answer. False if there is none.
  bool failed();

  // Steps of the top frame. False as in enter().
  bool step();
  bool step_groups();
  bool step_branches(const Group& group);
  bool end_of_branches(const Group& group);
  bool step_condition(const Group& group);
  bool step_members();
  bool step_one_member(const ObjectRules& rules);
  void begin_member(const ObjectRules& rules);
  void next_member();
  bool step_patterns(const ObjectRules& rules);
  [[nodiscard]] bool has_all_required(const ObjectRules& rules, const Frame& frame) const;
  bool check_required(const ObjectRules& rules, const Frame& frame);
  bool check_dependent_required(const ObjectRules& rules, const Frame& frame);
  bool end_of_members(const ObjectRules& rules);
  bool step_dependents();
  bool step_elements();
  bool step_contains();
  void next_group();
  void begin_children();

  // Rules that need no frame: true if the value matches them.
  bool check_here(const Subschema& schema, JsonIndex at);
  bool check_type(const Subschema& schema, JsonIndex at);
  bool check_values(const Subschema& schema, JsonIndex at);
  bool check_number(const NumberRules& rules, JsonIndex at);
  bool check_text(const TextRules& rules, JsonIndex at);
  bool check_array(const ArrayRules& rules, JsonIndex at);
  bool check_unique(JsonIndex at);
  bool check_object(const ObjectRules& rules, JsonIndex at);
  [[nodiscard]] bool is_integer(const JsonNode& node);

  [[nodiscard]] bool has_seen(const Frame& frame, std::size_t place) const {
    return (seen_[frame.seen + place / 64] >> (place % 64) & 1U) != 0;
  }
  /// Records a violation, if it would be final. Always false.
  template <class Text>
  bool violates(JsonIndex at, std::string_view keyword, Text text) {
    if (attempts_ == 0) {
      violation_ = Violation{.kind = Violation::Kind::invalid,
                             .pointer = document_.pointer(at),
                             .keyword = std::string(keyword),
                             .text = text()};
    }
    return false;
  }
  /// Uses up steps; without any left, the next enter() ends the validation.
  void charge(std::uint64_t steps) { steps_ -= std::min(steps_, steps); }
  bool out_of_steps();

  Schema schema_;
  JsonDocument document_;
  std::vector<Frame> frames_;
  std::vector<std::uint64_t> seen_;  // Bits: which names of each object's rules were seen.
  std::size_t attempts_ = 0;         // Waiting frames: while there are any, no failure is final.
  std::uint64_t steps_ = 0;          // Steps left.
  Decimal number_;
  ValueHasher hasher_;
  std::vector<std::pair<std::uint64_t, JsonIndex>> hashes_;
  std::optional<Violation> violation_;
};

}  // namespace baton::schema
