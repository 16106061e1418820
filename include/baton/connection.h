#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>

#include <baton/security.h>

namespace baton::client {

/// The lease of a consumer's connection, renewed by heartbeats: it says whether the consumer may
/// still work on what the broker gave it. The broker gives nothing of that to others before the
/// lease has ended, except where the connection visibly broke (docs/protocol.md, "Session leases").
struct SessionLease {
  /// At this moment. A handler that takes long asks before each of its effects.
  bool is_valid = false;
  /// Whether the broker grants leases. If not, the lease is valid while the connection stands.
  bool is_renewed = false;
  /// The time after which the lease ends unless it is renewed.
  std::chrono::milliseconds left{0};
};

/// How to reach a broker. A connection is made when it is first needed.
struct ConnectionOptions {
  /// "host:port", "baton://host:port" or, with TLS, "batons://host:port".
  std::string address = "127.0.0.1:7470";
  std::optional<TlsOptions> tls{};  // Absent: plain text, unless the address is batons://.

  /// How long a unary call may take, connecting included; 0 = as long as it takes.
  std::chrono::milliseconds deadline{30'000};

  /// After a broken connection: wait `min`, then twice as long each time up to `max`, each with a
  /// jitter of a fifth, so that the clients of a restarted broker do not all reconnect at once.
  std::chrono::milliseconds reconnect_min{50};
  std::chrono::milliseconds reconnect_max{5'000};
  /// A producer or consumer that cannot reach the broker for this long gives up: what it holds
  /// fails with `unavailable`. 0 = never.
  std::chrono::milliseconds give_up_after{0};

  /// HTTP/2 pings detect a peer that vanished without closing. 0 = no pings.
  std::chrono::milliseconds keepalive_interval{10'000};
  std::chrono::milliseconds keepalive_timeout{5'000};
};

/// What a Broker and its handles share.
struct Connection;
using ConnectionPointer = std::shared_ptr<const Connection>;

}  // namespace baton::client
