#include <cstddef>
#include <cstdint>
#include <string>

#include "base/assert.h"
#include "server/http/http_request.h"

// Any bytes: no crash, and a complete head has a method and a path.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string bytes(data, data + size);
  const baton::HttpRequest request = baton::parse_http_head(bytes);
  if (request.state == baton::HttpRequest::State::complete) {
    BATON_ASSERT(!request.method.empty() && request.path.starts_with('/'));
  }
  return 0;
}
