#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace baton::cli {

/// Fails when the program that a worker would start for each partition is not there or not
/// executable. `path` is $PATH. A program whose own name has a {placeholder} is not looked for, nor
/// is one that is not given.
Status check_handler(const std::vector<std::string>& command, std::string_view path);

}  // namespace baton::cli
