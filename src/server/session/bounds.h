#pragma once

#include <cstdint>
#include <string_view>

#include "base/result.h"
#include "base/time.h"

/// Checks of numbers that come from clients.
namespace baton {

/// An error that names the field, its value and its limit.
Error over_limit(std::string_view field, std::uint64_t value, std::uint64_t limit);

/// Converts milliseconds from a client. Checked before they are multiplied, so that a huge number
/// is an error and does not overflow.
Result<Duration> convert_ms(std::string_view field, std::uint64_t value, Duration limit);

}  // namespace baton
