#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace baton {

/// Where to listen: "127.0.0.1:7470", "[::1]:7470", "localhost:0" or "unix:/run/baton.sock". Port 0
/// lets the system choose.
struct ListenAddress {
  std::string host;  // Without brackets; for unix sockets the path.
  std::uint16_t port = 0;
  bool unix_socket = false;

  /// Whether only processes of this machine can reach the address.
  [[nodiscard]] bool is_local() const;
  /// The form that gRPC takes.
  [[nodiscard]] std::string to_string() const;
};

/// Fails with invalid_argument, saying what is wrong with `text`.
Result<ListenAddress> parse_listen(std::string_view text);

/// Refuses an address that other machines can reach in plain text, unless the operator asked for
/// exactly that: anybody who connects can read and delete every message.
Status check_listen(const ListenAddress& address, bool tls, bool insecure);
/// The same for HTTP, which has no TLS, and shows health and metrics.
Status check_http_listen(const ListenAddress& address, bool insecure);

}  // namespace baton
