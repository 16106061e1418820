#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "base/time.h"
#include "core/workers/documents.h"
#include "core/workers/names.h"

namespace baton::partition {

/// Counted by the store over all keys: each change has a higher one than all before it. 0: there is
/// no such key.
using Revision = std::uint64_t;

struct Entry {
  std::string key;
  std::string value;
  Revision revision = 0;
};

/// What a worker knows of its group, put together from watches, lists and the replies to its own
/// writes, in any order: of each key the highest revision counts.
class GroupView {
 public:
  struct KnownSession {
    WorkerSession session;
    Revision revision = 0;
    Instant seen_at;  // When this revision was first seen.
  };
  struct KnownChunk {
    Assignment assignment;
    Revision revision = 0;  // 0: the key was removed; the epochs are remembered.
    Instant seen_at;
    bool corrected = false;  // The store has an older state of some of it, and is to get this one.
  };
  using Sessions = std::map<SessionId, KnownSession>;
  using Chunks = std::map<std::uint32_t, KnownChunk>;

  explicit GroupView(std::string group) : group_(std::move(group)) {}

  /// Errors are about documents that cannot be read. What was known before stays; but the session
  /// counts as one on standby from then on, with the lease it had, or 0 if that is not known.
  Status put(const Entry& entry, Instant now);
  void removed(std::string_view key, Revision revision);
  /// `keys` are all keys at `asked_at` or later: forgets what was known before that, and is not
  /// among them.
  void keep_only(const std::set<std::string>& keys, Instant asked_at);

  /// The store has begun anew, and counts from the start: nothing that is known exists there any
  /// more, unless it is put again. The epochs of chunks are remembered.
  void start_over();
  /// The highest revision seen so far.
  [[nodiscard]] Revision newest() const { return newest_; }

  [[nodiscard]] const Sessions& sessions() const { return sessions_; }
  [[nodiscard]] const Chunks& chunks() const { return chunks_; }
  /// Null if unknown.
  [[nodiscard]] const KnownSession* find(const SessionId& session) const;
  [[nodiscard]] const Holding* holding(std::uint32_t partition) const;

  /// Whether the session is known to be dead for good. A missing one is not: it may be new.
  [[nodiscard]] bool is_dead(const SessionId& session) const;
  /// What was last known of a session whose key is gone; empty if unknown or dead.
  [[nodiscard]] WorkerSession last_of(const SessionId& session) const;
  /// Owners named in the assignment whose sessions are not known.
  [[nodiscard]] std::vector<SessionId> unknown_owners() const;

  /// Changes whenever something changes that a plan depends on; heartbeats do not change it.
  [[nodiscard]] std::uint64_t shape() const { return shape_; }

 private:
  Status put_session(const SessionId& id, const Entry& entry, Instant now);
  Status put_chunk(std::uint32_t chunk, const Entry& entry, Instant now);
  void forget_session(const SessionId& id);

  std::string group_;
  Sessions sessions_;
  Chunks chunks_;
  std::map<std::string, Revision, std::less<>> removals_;  // A late event must not bring them back.
  std::set<SessionId> buried_;                             // Dead, and their keys are gone.
  std::map<SessionId, WorkerSession> vanished_;            // Not dead, and their keys are gone.
  std::uint64_t shape_ = 0;
  Revision newest_ = 0;
};

}  // namespace baton::partition
