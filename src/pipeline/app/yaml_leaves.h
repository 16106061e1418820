#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace baton::pipeline {

/// One value of a YAML document, and its path: "tables[0].name".
struct YamlLeaf {
  std::string path;
  std::string value;
  int line = 0;           // From 1; 0 if the value does not come from the document.
  bool is_empty = false;  // The name has no value, or an empty list.
};

/// All values of the single document in `text`, in its order. `name` is the file's name, for
/// errors.
Result<std::vector<YamlLeaf>> read_yaml(std::string_view text, std::string_view name);

}  // namespace baton::pipeline
