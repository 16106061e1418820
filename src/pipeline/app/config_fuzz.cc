// Arbitrary bytes as a config: refused with a reason, or parsed, and parsed the same a second time.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "pipeline/app/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto config = baton::pipeline::parse_config(text, "config.yaml", {});
  if (!config.has_value()) {
    BATON_ASSERT(!config.error().text.empty());
    return 0;
  }
  BATON_ASSERT(!config->name.empty());
  const auto again = baton::pipeline::parse_config(text, "config.yaml", {});
  BATON_ASSERT(again.has_value());
  BATON_ASSERT(baton::pipeline::check_reload(*config, *again).has_value());
  return 0;
}
