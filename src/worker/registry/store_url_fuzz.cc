// Any text must give a URL within its limits, which is written and read back to the same, or an
// error that says something.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "worker/registry/registry.h"
#include "worker/stores/limits.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  namespace coord = baton::coord;
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);  // NOLINT
  const auto url = coord::parse_store_url(text);
  if (!url) {
    BATON_ASSERT(url.error().code == baton::Errc::invalid_argument);
    BATON_ASSERT(!url.error().text.empty());
    return 0;
  }
  BATON_ASSERT(!url->endpoints.empty() && url->endpoints.size() <= coord::limits::kEndpoints);
  BATON_ASSERT(!url->bucket.empty() && url->bucket.size() <= coord::limits::kBucketBytes);
  BATON_ASSERT(url->kind->takes_replicas || !url->replicas);
  const auto again = coord::parse_store_url(coord::to_string(*url));
  BATON_ASSERT(again.has_value() && *again == *url);
  return 0;
}
