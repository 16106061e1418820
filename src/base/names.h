#pragma once

#include <cstddef>
#include <string_view>

#include "base/result.h"

namespace baton {

/// "headers has 70000 bytes; the limit is 65536".
Error too_long(std::string_view field, std::size_t length, std::size_t limit);

/// What names of queues, streams, groups and consumers keep to: letters, digits and . _ - / :
Status validate_name(std::string_view field, std::string_view name, std::size_t bytes_max);

/// What the names of things to be created keep to beside that: the parts between slashes are
/// neither empty nor "." nor "..", which would read as another place in URLs and dashboards. What
/// an older version created under such a name stays usable.
Status validate_new_name(std::string_view field, std::string_view name);

}  // namespace baton
