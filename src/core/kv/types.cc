#include "core/kv/types.h"

#include <fmt/format.h>

#include "base/names.h"

namespace baton {
namespace {

Status in_range(std::string_view field, std::uint64_t value, std::uint64_t max) {
  if (value >= 1 && value <= max) return {};
  return Error{Errc::invalid_argument,
               fmt::format("{} is {}; it may be 1 to {}", field, value, max)};
}

}  // namespace

Status validate(const KvSettings& settings) {
  BATON_TRY_STATUS(in_range("value_bytes_max", settings.value_bytes_max, limits::kKvValueBytesMax));
  BATON_TRY_STATUS(in_range("keys_max", settings.keys_max, limits::kKvKeysMax));
  BATON_TRY_STATUS(
      in_range("history_changes_max", settings.history_changes_max, limits::kKvHistoryChangesMax));
  return in_range("history_bytes_max", settings.history_bytes_max, limits::kKvHistoryBytesMax);
}

Status validate_bucket_name(std::string_view name) {
  return validate_name("bucket", name, limits::kBucketNameBytes);
}

Status validate_kv_key(std::string_view key) {
  return validate_name("key", key, limits::kKvKeyBytes);
}

}  // namespace baton
