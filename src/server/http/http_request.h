#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace baton {

inline constexpr std::size_t kHttpHeadBytesMax = 8192;

/// The head of an HTTP/1 request, as far as it has arrived. Its views point into the given bytes.
struct HttpRequest {
  enum class State : std::uint8_t { incomplete, complete, malformed, too_large };
  State state = State::incomplete;
  std::string_view method;
  std::string_view path;  // Without the query.
};

/// Reads "GET /metrics?x HTTP/1.1", and looks for the end of the headers, whose values are not
/// needed. Pure.
HttpRequest parse_http_head(std::string_view bytes);

}  // namespace baton
