#pragma once

#include "base/net/connections.h"

namespace baton {

/// From now on failed TLS handshakes are logged, rate-limited, and counted in `counters`. gRPC
/// reports them only in its own log, of which a process has one.
void watch_handshakes(ConnectionCounters& counters);
/// Must be called before `counters` is destroyed.
void stop_watching_handshakes(ConnectionCounters& counters);

}  // namespace baton
