#include "base/yaml_hint.h"

#include <fmt/format.h>

namespace baton {
namespace {

/// Line `number` of `text`, counted from 1; empty if there is no such line.
std::string_view line_of(std::string_view text, int number) {
  for (int i = 1; i < number && !text.empty(); ++i) {
    const std::size_t end = text.find('\n');
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

bool is_indented_by_tab(std::string_view line) {
  const std::size_t begin = line.find_first_not_of(" \t");
  return line.substr(0, begin).find('\t') != std::string_view::npos;
}

}  // namespace

std::string explain_yaml(std::string_view text, int line, std::string_view problem) {
  for (const int near : {line, line - 1}) {
    if (near > 0 && is_indented_by_tab(line_of(text, near))) {
      return fmt::format("line {} begins with a tab; YAML wants spaces", near);
    }
  }
  if (problem == "illegal map value") {
    return "a value that ends in ':' or holds ': ' must stand in quotes";
  }
  return std::string(problem);
}

}  // namespace baton
