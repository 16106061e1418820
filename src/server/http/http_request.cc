#include "server/http/http_request.h"

#include <algorithm>

namespace baton {
namespace {

HttpRequest malformed() {
  return {.state = HttpRequest::State::malformed, .method = {}, .path = {}};
}

bool is_visible(std::string_view text) {
  return std::ranges::all_of(text, [](char c) { return c > ' ' && c < '\x7f'; });
}

}  // namespace

HttpRequest parse_http_head(std::string_view bytes) {
  const std::size_t end = std::min(bytes.find("\r\n\r\n"), bytes.find("\n\n"));
  if (end == std::string_view::npos) {
    const bool large = bytes.size() >= kHttpHeadBytesMax;
    return {.state = large ? HttpRequest::State::too_large : HttpRequest::State::incomplete,
            .method = {},
            .path = {}};
  }
  std::string_view line = bytes.substr(0, bytes.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  const std::size_t first = line.find(' ');
  const std::size_t second = first == std::string_view::npos ? first : line.find(' ', first + 1);
  if (second == std::string_view::npos) return malformed();
  const std::string_view method = line.substr(0, first);
  std::string_view path = line.substr(first + 1, second - first - 1);
  const std::string_view version = line.substr(second + 1);
  path = path.substr(0, path.find('?'));
  if (method.empty() || !is_visible(method) || !path.starts_with('/') || !is_visible(path) ||
      !version.starts_with("HTTP/1.")) {
    return malformed();
  }
  return {.state = HttpRequest::State::complete, .method = method, .path = path};
}

}  // namespace baton
