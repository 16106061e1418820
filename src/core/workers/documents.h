#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "core/workers/names.h"

namespace baton::partition {

/// For people only: decisions are made on the clock of the worker that decides.
using WallTime = std::chrono::milliseconds;

enum class SessionState : std::uint8_t {
  active,
  standby,     // Waits for a former life of its static id to end; takes no partitions yet.
  draining,    // Leaving: stops its work, then hands over.
  restarting,  // Leaves, to return under the same static id: its partitions stay.
  evicted,     // Declared dead by another worker. Final.
  gone,        // Left. Final.
};
std::string_view to_string(SessionState state);

/// What a worker publishes of itself, once per heartbeat.
struct WorkerSession {
  SessionState state = SessionState::active;
  std::uint64_t beat = 0;  // Different in each write.
  std::uint32_t weight = 1;
  bool static_id = false;
  bool fenced = false;   // Its sink checks epochs: a hint is enough to evict it.
  bool blind = false;    // It does not see its own heartbeats in the watch.
  bool stopped = false;  // Restarting: its work has ended.
  std::chrono::milliseconds lease{};
  std::chrono::milliseconds grace{};  // Restarting: how long its partitions wait for it.
  WallTime since{};                   // Of this session.
  WallTime renewed{};
  std::string host;

  [[nodiscard]] bool dead() const {
    return state == SessionState::evicted || state == SessionState::gone;
  }
  bool operator==(const WorkerSession&) const = default;
};

/// Why a partition has its owner.
enum class Why : std::uint8_t { none, first, rebalance, leave, evicted, restart };
std::string_view to_string(Why why);

struct Holding {
  SessionId owner;          // Empty: no owner.
  std::uint64_t epoch = 0;  // Grows with each change of the owner.
  SessionId next;           // The owner once the present one has stopped. Empty: no change.
  WallTime since{};
  Why why = Why::none;

  bool operator==(const Holding&) const = default;
};

/// More than will ever be needed, and less than what every JSON reader keeps exactly. A partition
/// at this epoch (only by manual edit) keeps its owner: the next epoch could not be read any more.
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

/// Documents are versioned JSON. Errors say what is wrong with one; a newer version is an error.
std::string encode(const WorkerSession& session);
std::string encode(const Assignment& assignment);
Result<WorkerSession> decode_session(std::string_view text);
Result<Assignment> decode_assignment(std::string_view text);
/// The same for any JSON, at a tenth of the speed: decode_assignment() falls back to it for
/// documents that encode() would have written in another form.
Result<Assignment> decode_assignment_of_any_form(std::string_view text);

/// The number of chunks, and the number of partitions of a chunk.
std::uint32_t chunks_of(std::uint32_t partitions);
std::uint32_t size_of_chunk(std::uint32_t partitions, std::uint32_t chunk);

}  // namespace baton::partition
