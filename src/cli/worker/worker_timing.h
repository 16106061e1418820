#pragma once

#include <optional>
#include <string>

#include <baton/worker.h>

#include "base/result.h"
#include "base/secure/settings.h"
#include "cli/base/parse.h"

/// How the times of a worker are determined: a flag wins over the environment, which wins over the
/// profile. Pure.
namespace baton::cli {

/// The times given by flags; absent: not given.
struct WorkerTimes {
  std::optional<Milliseconds> lease{};
  std::optional<Milliseconds> heartbeat{};
  std::optional<Milliseconds> resync{};
  std::optional<Milliseconds> drain{};
  std::optional<Milliseconds> static_grace{};
  std::optional<Milliseconds> reclaim_grace{};
};

using secure::Environment;
using secure::process_environment;

/// A lease without a heartbeat gets one in the profile's proportion. LEASE_TTL_SEC, HEARTBEAT_SEC,
/// CLAIM_SEC (resync) and GRACE_SEC (reclaim grace) are numbers of seconds.
Result<client::WorkerTiming> resolve_timing(const std::string& profile, const std::string& store,
                                            const WorkerTimes& flags,
                                            const Environment& environment);

/// The default store: the broker at $BATON_ADDRESS, with TLS if $BATON_TLS_CA is set.
std::string default_store(const Environment& environment);

}  // namespace baton::cli
