#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/workers/names.h"

namespace baton::partition {

/// For people, and for nothing else: decisions are taken on the clock of the one who decides.
using WallTime = std::chrono::milliseconds;

enum class SessionState : std::uint8_t {
  active,
  standby,     // Waits for the end of a former life of its static id; takes no partitions yet.
  draining,    // Leaves: stops, then hands over.
  restarting,  // Leaves and comes back under the same static id: nobody takes its partitions.
  evicted,     // Declared dead by another. For good.
  gone,        // Left. For good.
};
std::string_view to_string(SessionState state);

/// What a worker says of itself, once each heartbeat.
struct Session {
  SessionState state = SessionState::active;
  std::uint64_t beat = 0;  // Another one in each write.
  std::uint32_t weight = 1;
  bool static_id = false;
  bool fenced = false;   // Its sink checks epochs: it may be evicted on a hint.
  bool blind = false;    // It does not see its own heartbeats come back.
  bool stopped = false;  // Restarting: its work has ended.
  std::chrono::milliseconds lease{};
  std::chrono::milliseconds grace{};  // Restarting: how long its partitions wait for it.
  WallTime since{};                   // Of this session.
  WallTime renewed{};
  std::string host;

  [[nodiscard]] bool dead() const {
    return state == SessionState::evicted || state == SessionState::gone;
  }
  bool operator==(const Session&) const = default;
};

/// Why a partition has its owner.
enum class Why : std::uint8_t { none, first, rebalance, leave, evicted, restart };
std::string_view to_string(Why why);

struct Holding {
  SessionId owner;          // Empty: nobody.
  std::uint64_t epoch = 0;  // Grows with each change of the owner.
  SessionId next;           // Who is to have it once the owner has stopped. Empty: no change.
  WallTime since{};
  Why why = Why::none;

  bool operator==(const Holding&) const = default;
};

/// More than there will ever be, and less than what every JSON reader keeps. A partition that has
/// it, by somebody's hand, keeps its owner: one more would be a document that nobody reads.
constexpr std::uint64_t kEpochMax = std::uint64_t{1} << 52U;

/// One chunk of the assignment.
struct Assignment {
  std::uint32_t partitions = 0;  // Of the whole group.
  std::uint32_t first = 0;       // The partition of the first holding.
  std::vector<Holding> holdings;

  bool operator==(const Assignment&) const = default;
};

constexpr int kDocumentVersion = 1;
constexpr std::size_t kDocumentBytesMax = 1U << 20U;

/// Documents are versioned JSON. The errors say what is wrong with one; a newer version is one.
std::string encode(const Session& session);
std::string encode(const Assignment& assignment);
Result<Session> decode_session(std::string_view text);
Result<Assignment> decode_assignment(std::string_view text);
/// The same for all that is JSON, at a tenth of the speed: decode_assignment() comes here with what
/// encode() would have written in another way.
Result<Assignment> decode_assignment_of_any_form(std::string_view text);

/// How many chunks, and how many partitions a chunk has.
std::uint32_t chunks_of(std::uint32_t partitions);
std::uint32_t size_of_chunk(std::uint32_t partitions, std::uint32_t chunk);

}  // namespace baton::partition
