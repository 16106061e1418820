// What the worker sees of the others: the watch, lists, and who has been silent for too long.

#include <algorithm>
#include <chrono>

#include <fmt/format.h>

#include "core/workers/machine.h"

namespace baton::partition {
namespace {

constexpr Duration kReopenFirst = std::chrono::milliseconds(100);
constexpr Duration kReopenLast = std::chrono::seconds(5);

/// What others wait for: more than what an owner counts on.
Duration lengthened(Duration lease) { return lease * (100 + kClockErrorPercent) / 100; }

}  // namespace

void Machine::open_watch(Instant now) {
  ++watch_;
  watching_ = true;
  in_snapshot_ = true;
  shown_.clear();
  watch_opened_ = now;
  awaited_echo_.reset();  // The new watch does not repeat what was written before.
  effects_.emplace_back(
      OpenWatch{watch_, group_prefix(settings_.group), session_key(settings_.group, me_)});
}

void Machine::lose_sight(std::string why, Instant now) {
  if (watching_) effects_.emplace_back(CloseWatch{watch_});
  watching_ = false;
  sighted_ = false;
  awaited_echo_.reset();
  reopen_at_ = now + reopen_delay_;
  reopen_delay_ = std::clamp(reopen_delay_ * 2, kReopenFirst, kReopenLast);
  // Workers that were told that our connection broke must see that we live.
  next_renewal_ = std::min(next_renewal_, now);
  if (blind_ || why.empty()) return;
  note(true, fmt::format("the watch broke: {}", why));
}

/// A worker that sees no heartbeats must not declare others dead: its own have to come back first.
void Machine::step_watch(Instant now) {
  if (!watching_) {
    if (now < reopen_at_) return wake_at(reopen_at_);
    return open_watch(now);
  }
  if (!awaited_echo_.has_value()) return;
  const Duration patience = std::max<Duration>(settings_.timing.heartbeat, std::chrono::seconds(1));
  const Instant due = awaited_echo_->second + patience;
  if (now < due) return wake_at(due);
  if (!blind_) note(true, "blind: own heartbeats do not come back through the watch; polling");
  blind_ = true;
  next_list_ = std::min(next_list_, now);
  lose_sight("", now);
}

void Machine::see_own(Revision revision, Instant now) {
  own_seen_ = std::max(own_seen_, revision);
  const Revision awaited = awaited_echo_.has_value() ? awaited_echo_->first : revision_;
  if (awaited == 0 || own_seen_ < awaited) return;
  awaited_echo_.reset();
  reopen_delay_ = Duration::zero();
  if (blind_) note(false, "not blind any more");
  blind_ = false;
  if (sighted_) return;
  sighted_ = true;
  sighted_since_ = now;  // All times for evictions start anew.
}

void Machine::step_poll(Instant now) {
  if (list_busy_) return;
  if (now < next_list_) return wake_at(next_list_);
  list_busy_ = true;
  request(Request::Kind::list, {.purpose = Purpose::list}, now, group_prefix(settings_.group));
}

/// The rank among the living: lower ranks act first, so that not all do the same.
std::size_t Machine::rank() const {
  std::size_t result = 0;
  for (const auto& [id, known] : view_.sessions()) {
    if (id >= me_) break;
    const SessionState state = known.session.state;
    if (state == SessionState::active && !hints_.contains(id)) ++result;
  }
  return result;
}

std::optional<Instant> Machine::eviction_due(const SessionId& id,
                                             const GroupView::KnownSession& known, Duration delay,
                                             Instant now) const {
  const WorkerSession& session = known.session;
  const bool former = settings_.static_id && worker_of(id) == settings_.worker;
  if (session.state == SessionState::restarting && session.stopped) {
    // It has stopped: its next life takes over at once, others when the time is up.
    return former ? now : known.seen_at + lengthened(session.grace);
  }
  // Twins that are both at work, or both wait, settle it in another way: each would evict the
  // other.
  const bool twins = stands(SessionState::active) || session.state == SessionState::standby;
  if (former && !twins && settings_.fenced && session.fenced) return now;
  if (settings_.mutant == Mutant::wall_clock_expiry) {
    const bool expired = wall(now) > session.renewed + session.lease;
    return expired ? std::optional(now) : std::nullopt;
  }
  if (!sighted_ || blind_) return std::nullopt;
  const auto hint = hints_.find(id);
  if (hint != hints_.end() && settings_.fenced && session.fenced && known.seen_at < hint->second) {
    return hint->second + kHintDebounce + (delay / 5);
  }
  return std::max(known.seen_at, sighted_since_) + lengthened(lease_of(session)) + delay;
}

void Machine::step_evict(Instant now) {
  if (phase_ != Phase::joined || !complete_ || leaving_) return;
  std::erase_if(hints_, [&](const auto& hint) {  // It has returned, or is gone.
    const GroupView::KnownSession* known = view_.find(hint.first);
    return known == nullptr || known->session.dead() || known->seen_at >= hint.second;
  });
  const Duration delay = kRankDelay * static_cast<std::int64_t>(rank());
  step_unknown_owners(delay, now);
  for (const auto& [id, known] : view_.sessions()) {
    const bool busy = evicting_.contains(id) || reading_.contains(id);
    if (id != me_ && !known.session.dead() && !busy) consider_evicting(id, known, delay, now);
  }
}

void Machine::consider_evicting(const SessionId& id, const GroupView::KnownSession& known,
                                Duration delay, Instant now) {
  std::optional<Instant> due = eviction_due(id, known, delay, now);
  if (!due.has_value()) return;
  if (const auto again = evict_again_.find(id); again != evict_again_.end()) {
    due = std::max(*due, again->second);
  }
  if (now < *due) return wake_at(*due);
  const bool left = known.session.state == SessionState::restarting && known.session.stopped;
  evict(id, known, left ? SessionState::gone : SessionState::evicted, now);
}

/// An owner without a session is new, or dead, or its session was removed while it works: the store
/// knows whether the session exists. If not, the owner's lease counts from when we learned that.
void Machine::step_unknown_owners(Duration delay, Instant now) {
  if (unknown_shape_ != view_.shape()) {
    unknown_shape_ = view_.shape();
    unknown_owners_ = view_.unknown_owners();
    std::erase_if(missing_, [&](const auto& missing) {  // It has returned.
      return !std::ranges::binary_search(unknown_owners_, missing.first);
    });
  }
  for (const SessionId& id : unknown_owners_) {
    if (evicting_.contains(id) || reading_.contains(id)) continue;
    const auto again = evict_again_.find(id);
    if (const auto missing = missing_.find(id); missing != missing_.end()) {
      consider_evicting(id, missing->second, delay, now);
    } else if (again != evict_again_.end() && now < again->second) {
      wake_at(again->second);
    } else {
      reading_.insert(id);
      request(Request::Kind::get, {.purpose = Purpose::read, .session = id}, now,
              session_key(settings_.group, id));
    }
  }
}

/// If unknown, the longest lease that we know of in the group, ours included: workers of a group
/// are started alike. The longest possible lease, a day, would help nobody.
Duration Machine::lease_of(const WorkerSession& session) const {
  if (session.lease.count() != 0) return session.lease;
  Duration longest = settings_.timing.lease;
  for (const auto& [id, known] : view_.sessions()) {
    longest = std::max<Duration>(longest, known.session.lease);
  }
  return longest;
}

void Machine::evict(const SessionId& id, const GroupView::KnownSession& known, SessionState state,
                    Instant now) {
  WorkerSession session = known.session;
  session.state = state;
  session.lease = std::chrono::duration_cast<std::chrono::milliseconds>(lease_of(session));
  evicting_.insert(id);
  if (settings_.mutant == Mutant::evict_without_cas) {
    // Treats it as dead without telling the store.
    const Entry entry{session_key(settings_.group, id), encode(session), known.revision + 1};
    learn(entry, now);
    return;
  }
  request(Request::Kind::cas, {.purpose = Purpose::evict, .session = id, .value = encode(session)},
          now, session_key(settings_.group, id), known.revision);
}

/// Dead workers leave their keys behind; once no assignment names them, one worker removes them.
void Machine::step_cleanup(Instant now) {
  if (!stands(SessionState::active) || !complete_) return;
  if (now < next_cleanup_) return wake_at(next_cleanup_);
  next_cleanup_ = now + settings_.timing.resync;
  wake_at(next_cleanup_);
  if (rank() != 0) return;
  std::set<SessionId> named;
  for (const auto& [number, chunk] : view_.chunks()) {
    for (const Holding& holding : chunk.assignment.holdings) {
      named.insert(holding.owner);
      named.insert(holding.next);
    }
  }
  for (const auto& [id, known] : view_.sessions()) {
    if (!known.session.dead() || named.contains(id)) continue;
    // Its worker must see that it is dead, instead of finding nothing.
    if (now < known.seen_at + (known.session.lease * 2)) continue;
    request(Request::Kind::remove, {.purpose = Purpose::cleanup, .session = id}, now,
            session_key(settings_.group, id), known.revision);
  }
}

}  // namespace baton::partition
