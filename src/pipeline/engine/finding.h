#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace baton::pipeline {

/// What a check of an end found. The code that shows a finding makes the sentence.
struct Finding {
  enum class Kind : std::uint8_t {
    missing,  // Does not exist, and would be created.
    made,     // Did not exist, and was created.
    fact,     // A fact about the present state.
    warning,  // A fact that an operator should look at.
  };
  Kind kind = Kind::fact;
  std::string what{};  // Of missing and made: "table", "queue"; empty if the name is enough.
  std::string name{};  // Of missing and made: which one.
  std::string text{};  // Of facts and warnings.

  bool operator==(const Finding&) const = default;
};
using Findings = std::vector<Finding>;

/// Something that did not exist; `apply`: it was created.
inline Finding missing(bool apply, std::string what, std::string name) {
  return {.kind = apply ? Finding::Kind::made : Finding::Kind::missing,
          .what = std::move(what),
          .name = std::move(name)};
}
inline Finding fact(std::string text) { return {.text = std::move(text)}; }
inline Finding warning(std::string text) {
  return {.kind = Finding::Kind::warning, .text = std::move(text)};
}

}  // namespace baton::pipeline
