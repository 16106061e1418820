#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace baton {

/// Bytes where only text may stand, by RFC 4648, padded.
std::string base64(std::string_view bytes);
/// Back; nothing when it is not what base64() writes.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace baton
