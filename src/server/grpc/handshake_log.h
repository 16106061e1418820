#pragma once

#include "base/net/connections.h"

namespace baton {

/// From now on TLS handshakes that fail are logged, rate-limited, and counted in `counters`. gRPC
/// tells nobody of them but its own log, which is one for the whole process.
void watch_handshakes(ConnectionCounters& counters);
/// Before `counters` end.
void stop_watching_handshakes(ConnectionCounters& counters);

}  // namespace baton
