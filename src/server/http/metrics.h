#pragma once

#include <string>

#include "base/net/connections.h"
#include "server/session/server_state.h"

namespace baton {

/// Everything there is to measure, as Prometheus reads it. Collected when it is asked for, from
/// numbers that are kept where things happen: nothing is walked. The names are in
/// docs/operating.md.
std::string metrics_text(const ServerState& state, const ServerFacts& facts);

}  // namespace baton
