#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace baton::coord {

struct StoreKind;
struct StoreRow;

inline constexpr std::string_view kBucketDefault = "baton-leases";

/// Which store, where, and what of it: a scheme of a kind, as in nats://, then HOST:PORT (several,
/// between commas, where the kind takes them), then optionally /BUCKET and, where the kind takes
/// it, ?replicas=N.
struct StoreUrl {
  const StoreKind* kind = nullptr;  // Of the rows that it was parsed with.
  bool tls = false;
  std::vector<std::string> endpoints{};  // "host:port"; at least one.
  std::string bucket{kBucketDefault};
  std::optional<std::uint32_t> replicas{};  // Absent: whatever the bucket has; a new one gets 1.

  bool operator==(const StoreUrl&) const = default;
};

/// Fails with invalid_argument, naming the part that is wrong. A kind that none of the rows has is
/// an error that lists those that are there.
Result<StoreUrl> parse_store_url(std::string_view text, std::span<const StoreRow> rows);
/// What parse_store_url() reads back to the same value.
std::string to_string(const StoreUrl& url);

}  // namespace baton::coord
