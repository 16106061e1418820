// Any text must give a config whose values are in their ranges, or an error that names the file.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/assert.h"
#include "cli/server/config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(bytes), size);  // NOLINT
  const auto config = baton::cli::parse_config(text, "fuzz.yaml");
  if (!config) {
    BATON_ASSERT(config.error().text.starts_with("fuzz.yaml:"));
    BATON_ASSERT(config.error().code == baton::Errc::invalid_argument);
    return 0;
  }
  BATON_ASSERT(config->shards <= 256);
  BATON_ASSERT(config->api.message_bytes_max >= 64 * baton::limits::kKiB);
  BATON_ASSERT(config->checkpoint_interval.count() > 0);
  BATON_ASSERT(!config->api.listen.empty());
  return 0;
}
