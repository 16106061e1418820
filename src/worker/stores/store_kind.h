#pragma once

#include <array>
#include <memory>
#include <string_view>

#include <baton/security.h>

#include "base/result.h"
#include "worker/stores/deadline.h"
#include "worker/stores/kv_store.h"
#include "worker/stores/store_url.h"

namespace baton::coord {

/// What is to be known of a kind of store without opening one. Each kind defines one of these in
/// its kind.h, which is there even where the kind is switched off.
struct StoreKind {
  struct Scheme {
    std::string_view name{};
    bool tls = false;
  };

  std::string_view name{};
  /// What its URLs begin with. The first without TLS, and the first with, are the ones that are
  /// written.
  std::array<Scheme, 3> schemes{};
  /// The CMake option that switches the kind on; empty: every build has it.
  std::string_view option{};
  bool one_address = false;     // Otherwise several, between commas.
  bool takes_replicas = false;  // ?replicas=N.
  bool has_logins = true;
  /// A crashed leader takes seconds to replace, so that leases have to be longer.
  bool slow_failover = false;
  /// Watches hear of it when the connection behind a session breaks.
  bool tells_of_lost_sessions = false;

  /// The scheme that is written for it; null if it has none with TLS.
  [[nodiscard]] constexpr const Scheme* scheme(bool tls) const {
    for (const Scheme& one : schemes) {
      if (!one.name.empty() && one.tls == tls) return &one;
    }
    return nullptr;
  }
};

/// What opens a kind of store.
struct StoreAdapter {
  /// Whether the store accepts a login of this form. Null if it accepts any.
  Status (*check_login)(const client::SecurityOptions& security) = nullptr;
  Result<std::unique_ptr<KvStore>> (*open)(const StoreUrl& url, const StoreOptions& options,
                                           const Deadline& deadline) = nullptr;
};

/// A row of the registry.
struct StoreRow {
  const StoreKind* kind = nullptr;
  const StoreAdapter* adapter = nullptr;  // Null if switched off in this build.
};

}  // namespace baton::coord
