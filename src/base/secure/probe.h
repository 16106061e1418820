#pragma once

#include <optional>
#include <string>
#include <string_view>

#include <baton/security.h>

#include "base/result.h"
#include "base/time.h"

namespace baton::secure {

/// A server that a call has failed on, as its user named it.
struct Suspect {
  std::string_view who{};      // "the broker", "etcd".
  std::string_view address{};  // "host:port"
  std::string_view plain{};    // The scheme without TLS, "baton".
  std::string_view secure{};   // The one with it, "batons".
  std::optional<client::TlsOptions> tls{};
};

/// Why the server could not be used, found out by connecting once more: libraries only say that
/// the connection was closed. With invalid_argument where the settings have to change (one side
/// speaks TLS and the other plain text, a certificate is missing or not trusted), with unavailable
/// where there is no such host. Nothing: the connection is as good as it can be, or nobody listens.
/// Waits for up to `timeout`.
std::optional<Error> explain_failure(const Suspect& suspect, Duration timeout);

}  // namespace baton::secure
