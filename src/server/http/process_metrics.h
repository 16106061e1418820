#pragma once

#include "base/net/connections.h"
#include "server/http/families.h"

namespace baton {

/// Adds the system's numbers of this process, under the names that Prometheus's libraries use, the
/// free space of the data folder's disk, and the build.
void add_process_metrics(const ServerFacts& facts, Families& families);

}  // namespace baton
