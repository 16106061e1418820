#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pipeline/engine/finding.h"

namespace baton::pipeline {

/// What Pipeline::check() found.
struct CheckReport {
  Findings source{};
  Findings sink{};
  std::optional<Finding> dead_letters{};  // Set if the target of dead letters was missing.
  std::string sink_name{};
  bool exactly_once = false;
  std::string dead_letters_name{};  // "KIND:NAME".
};

/// One sentence for each line of output.
std::vector<std::string> to_sentences(const CheckReport& report);

}  // namespace baton::pipeline
