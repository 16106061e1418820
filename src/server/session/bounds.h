#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

/// Checks of numbers that come from clients.
namespace baton {

/// Names the field, its value and its limit.
Error over_limit(std::string_view field, std::uint64_t value, std::uint64_t limit);

/// Milliseconds from outside. Checked before they are multiplied, so that an absurd number is an
/// error and not a small one.
Result<Duration> convert_ms(std::string_view field, std::uint64_t value, Duration limit);

}  // namespace baton
