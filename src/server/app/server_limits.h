#pragma once

#include <cstddef>

/// Limits of connections and calls.
namespace baton::limits {

// Connections to the gRPC port, unless configured; fewer if the system allows few descriptors.
inline constexpr std::size_t kConnectionsDefault = 10'000;
inline constexpr std::size_t kConnectionsMin = 8;
inline constexpr std::size_t kConnectionsMax = 1'000'000;
// Open calls of one connection; further calls wait at the client.
inline constexpr std::size_t kCallsPerConnection = 10'000;

}  // namespace baton::limits
