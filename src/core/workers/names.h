#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

/// The keys of a group in the store:
///   g.<group>.m.<worker>.<incarnation>   a worker's session
///   g.<group>.a, g.<group>.a.<n>         the assignment, cut into chunks of kChunkPartitions
namespace baton::partition {

constexpr std::uint32_t kPartitionsMax = 65'536;
constexpr std::uint32_t kChunkPartitions = 1024;
constexpr std::uint32_t kWeightMax = 1000;

/// "<worker>.<incarnation>": one life of a worker. Never used again after it has ended.
using SessionId = std::string;

/// Letters, digits, _ and -, 1 to 64 of them.
Status check_name(std::string_view field, std::string_view name);

bool is_session_id(std::string_view text);

std::string group_prefix(std::string_view group);
std::string session_key(std::string_view group, std::string_view session);
std::string assignment_key(std::string_view group, std::uint32_t chunk);

/// The session that a key is about; nullopt if the key is not of the group's protocol.
std::optional<SessionId> session_of_key(std::string_view group, std::string_view key);
std::optional<std::uint32_t> chunk_of_key(std::string_view group, std::string_view key);

/// "w1" of "w1.5f2c".
std::string_view worker_of(std::string_view session);

}  // namespace baton::partition
