#include "base/names.h"

#include <algorithm>

#include <fmt/format.h>

namespace baton {
namespace {

bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
         c == '_' || c == '-' || c == '/' || c == ':';
}

}  // namespace

Error too_long(std::string_view field, std::size_t length, std::size_t limit) {
  return {Errc::invalid_argument,
          fmt::format("{} has {} bytes; the limit is {}", field, length, limit)};
}

Status validate_name(std::string_view field, std::string_view name, std::size_t bytes_max) {
  if (name.empty()) return Error{Errc::invalid_argument, fmt::format("{} is empty", field)};
  if (name.size() > bytes_max) return too_long(field, name.size(), bytes_max);
  if (!std::ranges::all_of(name, is_name_char)) {
    return Error{Errc::invalid_argument,
                 fmt::format("{} may hold only letters, digits and . _ - / :", field)};
  }
  return {};
}

Status validate_new_name(std::string_view field, std::string_view name) {
  while (true) {
    const auto end = std::min(name.find('/'), name.size());
    const std::string_view part = name.substr(0, end);
    if (part.empty() || part == "." || part == "..") {
      return Error{
          Errc::invalid_argument,
          fmt::format("{} has a part '{}' between slashes; a part may not be empty, '.' or "
                      "'..'",
                      field, part)};
    }
    if (end == name.size()) return {};
    name.remove_prefix(end + 1);
  }
}

}  // namespace baton
