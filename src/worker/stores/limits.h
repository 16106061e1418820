#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>

/// Bounds of the stores that are not options.
namespace baton::coord::limits {

using std::chrono::milliseconds;

// What a store's URL may hold.
inline constexpr std::size_t kUrlBytes = 8192;
inline constexpr std::size_t kEndpoints = 16;
inline constexpr std::size_t kBucketBytes = 64;
inline constexpr std::uint32_t kReplicasMax = 5;  // As many as NATS allows.

inline constexpr std::size_t kKeyBytes = 512;

/// No call waits longer, whatever its caller says: clocks and libraries count in fewer bits.
inline constexpr milliseconds kTimeoutMax{3'600'000};

/// How often a watch hears from its server even if nothing changes, and after what silence it is
/// taken for dead.
inline constexpr milliseconds kWatchHeartbeat{1'000};
inline constexpr milliseconds kWatchSilence{3'000};

/// Before asking again a server that cannot answer yet.
inline constexpr milliseconds kRetryPause{20};
/// Poll interval while waiting for a connection.
inline constexpr milliseconds kConnectPoll{20};

/// NATS: how many keys of a list are read at the same time.
inline constexpr std::size_t kReadersOfList = 8;

/// The self-test: how many threads race in each of its rounds.
inline constexpr std::size_t kRacers = 4;
inline constexpr int kRaceRounds = 3;

}  // namespace baton::coord::limits
