#include "core/workers/view.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include <fmt/format.h>

namespace baton::partition {
namespace {

/// Whether a plan would treat the two alike.
bool same_shape(const WorkerSession& a, const WorkerSession& b) {
  return a.state == b.state && a.weight == b.weight && a.static_id == b.static_id &&
         a.stopped == b.stopped;
}

/// The session of a document that cannot be read: its worker gets nothing new, may be at work, and
/// can be declared dead.
WorkerSession garbled(const WorkerSession& last) {
  if (last.dead()) return last;
  WorkerSession session;
  session.state = SessionState::standby;
  session.lease = last.lease;
  return session;
}

/// A store that was restored to an older state must not take epochs back, whose owners may be at
/// work. Returns whether there were any.
bool keep_newer(Assignment& assignment, const Assignment& known) {
  if (assignment.partitions != known.partitions) return false;
  bool found = false;
  const std::size_t count = std::min(assignment.holdings.size(), known.holdings.size());
  for (std::size_t i = 0; i < count; ++i) {
    if (known.holdings[i].epoch <= assignment.holdings[i].epoch) continue;
    assignment.holdings[i] = known.holdings[i];
    found = true;
  }
  return found;
}

}  // namespace

Status GroupView::put(const Entry& entry, Instant now) {
  newest_ = std::max(newest_, entry.revision);
  const auto removal = removals_.find(entry.key);
  if (removal != removals_.end() && entry.revision <= removal->second) return {};
  Status status;
  if (const auto session = session_of_key(group_, entry.key)) {
    status = put_session(*session, entry, now);
  } else if (const auto chunk = chunk_of_key(group_, entry.key)) {
    status = put_chunk(*chunk, entry, now);
  } else {
    return Error{Errc::malformed, "it is no key of the protocol"};
  }
  if (status.has_value() && removal != removals_.end()) removals_.erase(removal);
  return status;
}

Status GroupView::put_session(const SessionId& id, const Entry& entry, Instant now) {
  const auto known = sessions_.find(id);
  if (known != sessions_.end() && entry.revision <= known->second.revision) return {};
  const Result<WorkerSession> read = decode_session(entry.value);
  const WorkerSession session = read.has_value()           ? *read
                                : known == sessions_.end() ? garbled({})
                                                           : garbled(known->second.session);
  if (known == sessions_.end() || !same_shape(known->second.session, session)) ++shape_;
  sessions_.insert_or_assign(id, KnownSession{session, entry.revision, now});
  vanished_.erase(id);
  if (!read.has_value()) return read.error();
  return {};
}

Status GroupView::put_chunk(std::uint32_t chunk, const Entry& entry, Instant now) {
  const auto known = chunks_.find(chunk);
  if (known != chunks_.end() && entry.revision <= known->second.revision) return {};
  BATON_TRY(Assignment assignment, decode_assignment(entry.value));
  if (assignment.first != chunk * kChunkPartitions) {
    return Error{Errc::malformed,
                 fmt::format("the assignment document begins with partition {}", assignment.first)};
  }
  const bool corrected = known != chunks_.end() && keep_newer(assignment, known->second.assignment);
  ++shape_;
  chunks_.insert_or_assign(chunk,
                           KnownChunk{std::move(assignment), entry.revision, now, corrected});
  return {};
}

void GroupView::removed(std::string_view key, Revision revision) {
  newest_ = std::max(newest_, revision);
  Revision& last = removals_[std::string(key)];
  if (revision < last) return;
  last = revision;
  if (const auto session = session_of_key(group_, key)) {
    const auto known = sessions_.find(*session);
    if (known != sessions_.end() && known->second.revision <= revision) forget_session(*session);
  } else if (const auto chunk = chunk_of_key(group_, key)) {
    const auto known = chunks_.find(*chunk);
    if (known == chunks_.end() || known->second.revision > revision) return;
    known->second.revision = 0;
    ++shape_;
  }
}

void GroupView::forget_session(const SessionId& id) {
  const auto known = sessions_.find(id);
  if (known->second.session.dead()) {
    buried_.insert(id);
  } else {
    vanished_.insert_or_assign(id, known->second.session);
  }
  sessions_.erase(known);
  ++shape_;
}

void GroupView::keep_only(const std::set<std::string>& keys, Instant asked_at) {
  std::vector<SessionId> missing;
  for (const auto& [id, known] : sessions_) {
    if (known.seen_at < asked_at && !keys.contains(session_key(group_, id))) missing.push_back(id);
  }
  for (const SessionId& id : missing) forget_session(id);
  for (auto& [chunk, known] : chunks_) {
    if (known.revision == 0 || known.seen_at >= asked_at ||
        keys.contains(assignment_key(group_, chunk))) {
      continue;
    }
    known.revision = 0;
    ++shape_;
  }
}

void GroupView::start_over() {
  while (!sessions_.empty()) forget_session(sessions_.begin()->first);
  for (auto& [number, chunk] : chunks_) chunk.revision = 0;
  removals_.clear();
  newest_ = 0;
  ++shape_;
}

const GroupView::KnownSession* GroupView::find(const SessionId& session) const {
  const auto found = sessions_.find(session);
  return found == sessions_.end() ? nullptr : &found->second;
}

const Holding* GroupView::holding(std::uint32_t partition) const {
  const auto chunk = chunks_.find(partition / kChunkPartitions);
  if (chunk == chunks_.end() || chunk->second.revision == 0) return nullptr;
  const std::uint32_t place = partition % kChunkPartitions;
  const auto& holdings = chunk->second.assignment.holdings;
  return place < holdings.size() ? &holdings[place] : nullptr;
}

bool GroupView::is_dead(const SessionId& session) const {
  const KnownSession* known = find(session);
  return known != nullptr ? known->session.dead() : buried_.contains(session);
}

WorkerSession GroupView::last_of(const SessionId& session) const {
  const auto found = vanished_.find(session);
  return found == vanished_.end() ? WorkerSession() : found->second;
}

std::vector<SessionId> GroupView::unknown_owners() const {
  std::unordered_set<std::string_view> owners;
  std::set<SessionId> result;
  for (const auto& [number, chunk] : chunks_) {
    for (const Holding& holding : chunk.assignment.holdings) {
      if (holding.owner.empty() || !owners.insert(holding.owner).second) continue;
      const bool known = find(holding.owner) != nullptr || buried_.contains(holding.owner);
      if (!known) result.insert(holding.owner);
    }
  }
  return {result.begin(), result.end()};
}

}  // namespace baton::partition
