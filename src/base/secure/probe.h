#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <baton/security.h>

#include "base/result.h"
#include "base/time.h"

namespace baton::secure {

/// A server that a call failed to reach, as its user named it.
struct Suspect {
  std::string_view who{};      // "the broker", "etcd".
  std::string_view address{};  // "host:port"
  std::string_view plain{};    // The scheme without TLS, "baton".
  std::string_view secure{};   // The one with it, "batons".
  std::optional<client::TlsOptions> tls{};
};

/// Why the server could not be used, found out by connecting once more: libraries only say that the
/// connection was closed. The error is invalid_argument where the settings have to change (one side
/// speaks TLS and the other plain text, a certificate is missing or not trusted), unavailable where
/// there is no such host. nullopt when the connection works, or nobody listens. Waits for up to
/// `timeout`.
std::optional<Error> explain_failure(const Suspect& suspect, Duration timeout);

}  // namespace baton::secure
