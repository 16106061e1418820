#pragma once

#include "base/net/connections.h"
#include "server/http/families.h"

namespace baton {

/// Adds what the system knows of this process, under the names that Prometheus' libraries use, what
/// is left of the disk with the data folder, and which build this is.
void add_process_metrics(const ServerFacts& facts, Families& families);

}  // namespace baton
