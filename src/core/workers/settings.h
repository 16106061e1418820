#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/result.h"
#include "base/time.h"

namespace baton::partition {

/// Upper bound of leases and all other times.
constexpr Duration kTimingMax = std::chrono::hours(24);

struct Timing {
  Duration lease = std::chrono::seconds(5);
  Duration heartbeat = std::chrono::milliseconds(1250);
  Duration resync = std::chrono::seconds(5);
  Duration drain = std::chrono::seconds(30);
  Duration static_grace = std::chrono::seconds(30);
  Duration reclaim_grace{0};  // Pause before a worker takes back a partition that it has just left.

  /// The longest wait for one request: two of them fit between heartbeats.
  [[nodiscard]] Duration request_timeout() const {
    return std::min<Duration>(heartbeat * 2 / 5, std::chrono::seconds(1));
  }
};

enum class Profile : std::uint8_t { standard, reference, fast };

/// `slow_failover`: the store takes seconds to replace a crashed leader.
Timing timing_of(Profile profile, bool slow_failover);
Result<Profile> parse_profile(std::string_view name);

/// Bugs to plant; the simulation must find them.
enum class Mutant : std::uint8_t {
  none,
  deadline_from_reply,        // Counts the lease from the reply, not from the sending.
  evict_without_cas,          // Treats a silent session as dead without writing that.
  wall_clock_expiry,          // Trusts the time in the other's document.
  hand_over_before_stopping,  // Names the next owner while still at work.
  no_self_fencing,            // Goes on after its own deadline.
  plan_on_partial_snapshot,   // Plans before it has seen all sessions.
  release_before_draining,    // Gives partitions away while still counted as active.
};

struct Settings {
  std::string group;
  std::string worker;
  std::uint32_t partitions = 0;
  std::uint32_t weight = 1;
  bool static_id = false;
  /// Whether the sink checks epochs: work may go on past the deadline, and a broken connection is
  /// enough reason to evict.
  bool fenced = false;
  Timing timing;
  std::string host;  // For people.
  /// From the machine's clock to the wall clock, for people.
  Duration wall_offset{0};
  /// Makes a name never used before, for each life of the worker.
  std::function<std::string()> incarnation;
  Mutant mutant = Mutant::none;
};

/// Fails with the name of the field and the limit.
Status check(const Settings& settings);

}  // namespace baton::partition
