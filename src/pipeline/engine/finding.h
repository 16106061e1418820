#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace baton::pipeline {

/// What a check of an end found. Whoever shows it makes the sentence.
struct Finding {
  enum class Kind : std::uint8_t {
    missing,  // It is not there, and would be made.
    made,     // It was not there, and is now.
    fact,     // How things are.
    warning,  // Likewise, and somebody should look at it.
  };
  Kind kind = Kind::fact;
  std::string what{};  // Of missing and made: "table", "queue"; empty: the name says it all.
  std::string name{};  // Likewise: which one.
  std::string text{};  // Of facts and warnings.

  bool operator==(const Finding&) const = default;
};
using Findings = std::vector<Finding>;

/// Something that was not there; `apply`: it is made.
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
