#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "worker/stores/deadline.h"

namespace baton::coord {

struct NatsVersion {
  std::uint32_t major = 0;
  std::uint32_t minor = 0;
  std::uint32_t patch = 0;

  auto operator<=>(const NatsVersion&) const = default;
};

/// Below it, a compare-and-set on a replicated bucket may have several winners.
inline constexpr NatsVersion kNatsReplicatedMin{2, 9, 21};

/// Reads "2.9.21", also with a suffix ("2.12.0-RC.1").
std::optional<NatsVersion> parse_nats_version(std::string_view text);
std::string to_string(const NatsVersion& version);

/// Asks the server at "host:port", over a connection of its own: every NATS server introduces
/// itself with one line, and libnats does not show it.
Result<NatsVersion> ask_nats_version(const std::string& address, const Deadline& deadline);

}  // namespace baton::coord
