#pragma once

#include <string>

#include "base/net/connections.h"
#include "server/session/server_state.h"

namespace baton {

/// All metrics, in Prometheus's text format. Collected on request, from numbers that are counted
/// where things happen: nothing is iterated. docs/operating.md lists the names.
std::string metrics_text(const ServerState& state, const ServerFacts& facts);

}  // namespace baton
