#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace baton::coord {

inline constexpr std::string_view kBucketDefault = "baton-leases";

/// Which store, where, and what of it: baton://, nats:// or etcd://, with TLS batons://, natss://
/// (or tls://) or etcds://, then HOST:PORT (NATS and etcd take several, with commas), then
/// optionally /BUCKET and, for NATS, ?replicas=N.
struct StoreUrl {
  enum class Kind : std::uint8_t { broker, nats, etcd };
  Kind kind = Kind::broker;
  bool tls = false;
  std::vector<std::string> endpoints{};  // "host:port"; at least one.
  std::string bucket{kBucketDefault};
  std::optional<std::uint32_t> replicas{};  // Absent: whatever the bucket has; a new one gets 1.

  bool operator==(const StoreUrl&) const = default;
};

/// Fails with invalid_argument, naming the part that is wrong.
Result<StoreUrl> parse_store_url(std::string_view text);
std::string_view scheme_of(StoreUrl::Kind kind, bool tls);
/// What parse_store_url() reads back to the same value.
std::string to_string(const StoreUrl& url);

}  // namespace baton::coord
