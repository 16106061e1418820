#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "worker/nats/nats_link.h"
#include "worker/stores/deadline.h"
#include "worker/stores/kv_store.h"
#include "worker/stores/store_url.h"

namespace baton::coord {

/// A bucket as NATS' own key-value conventions have it, so that its tools see it too: the stream
/// KV_<bucket>, where $KV.<bucket>.<key> is the subject of a key, its last message is the value,
/// and the message's sequence number is the revision.
struct NatsBucket {
  std::string stream{};
  std::string subjects{};       // "$KV.<bucket>.", what every key's subject begins with.
  bool forgets_by_ttl = false;  // Whether a message may carry a time-to-live: from server 2.11 on.

  [[nodiscard]] std::string subject_of(std::string_view key) const {
    return subjects + std::string(key);
  }
  /// Subjects go by whole parts: this one matches every key under the prefix, and maybe others.
  [[nodiscard]] std::string filter_of(std::string_view prefix) const;
};

/// Finds the bucket or makes it (unless it is only to be read), and makes sure that it can carry
/// leases: refuses a replicated one on servers whose compare-and-set is broken there.
Result<NatsBucket> open_nats_bucket(NatsLink& link, const StoreUrl& url,
                                    const StoreOptions& options, const Deadline& deadline);

/// The keys under `prefix`, those whose last message is a removal among them. Asks the leader.
Result<std::vector<std::string>> list_nats_keys(NatsLink& link, const NatsBucket& bucket,
                                                std::string_view prefix, const Deadline& deadline);

}  // namespace baton::coord
