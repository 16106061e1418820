#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace baton {

/// Encodes bytes as text by RFC 4648, with padding.
std::string base64(std::string_view bytes);
/// Decodes; nullopt when `text` is not what base64() writes.
std::optional<std::string> from_base64(std::string_view text);

}  // namespace baton
