#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.h"

namespace baton {

/// "headers has 70000 bytes; the limit is 65536".
Error too_long(std::string_view field, std::size_t length, std::size_t limit);

/// Checks a name of a queue, stream, group or consumer: letters, digits and . _ - / :
Status validate_name(std::string_view field, std::string_view name, std::size_t bytes_max);

/// Checks the name of something to be created: as validate_name(), and the parts between slashes
/// are neither empty nor "." nor "..", which would read as another place in URLs and dashboards.
/// What an older version created under such a name stays usable.
Status validate_new_name(std::string_view field, std::string_view name);

}  // namespace baton
