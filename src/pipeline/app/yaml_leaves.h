#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace baton::pipeline {

/// One value of a YAML document, and where it stands: "tables[0].name".
struct YamlLeaf {
  std::string path;
  std::string value;
  int line = 0;           // From 1; 0: it does not come from the document.
  bool is_empty = false;  // Nothing stands behind the name, or an empty list.
};

/// All values of the one document in `text`, in their order. `name` is the file's, for errors.
Result<std::vector<YamlLeaf>> read_yaml(std::string_view text, std::string_view name);

}  // namespace baton::pipeline
