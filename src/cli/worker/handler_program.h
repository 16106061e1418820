#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace baton::cli {

/// Fails if the program that a worker would start for each partition is missing or not executable.
/// `path` is $PATH. A program whose own name has a {placeholder} is not checked, nor is an absent
/// one.
Status check_handler(const std::vector<std::string>& command, std::string_view path);

}  // namespace baton::cli
