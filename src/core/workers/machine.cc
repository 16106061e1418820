#include "core/workers/machine.h"

#include <algorithm>

#include <fmt/format.h>

namespace baton::partition {

Machine::Machine(Settings settings) : settings_(std::move(settings)), view_(settings_.group) {}

void Machine::start(Instant now) {
  begin_life(now);
  open_watch(now);
  next_list_ = now;
  pump(now);
}

/// Checks everything there is to do, and does what is due. Each step depends on the state alone, so
/// an event only has to change the state and call this.
void Machine::pump(Instant now) {
  if (phase_ == Phase::finished) return;
  next_ = Instant::never();
  check_partition_count();
  if (phase_ == Phase::finished) return;
  look_for_shares();
  fence(now);
  step_watch(now);
  step_poll(now);
  step_session(now);
  if (phase_ == Phase::finished) return;
  step_work(now);
  step_evict(now);
  step_hand_over(now);
  step_plan(now);
  step_cleanup(now);
}

Instant Machine::next_deadline() const { return finished() ? Instant::never() : next_; }

void Machine::request(Request::Kind kind, Pending pending, Instant now, std::string key,
                      Revision expected) {
  const RequestId id = next_request_++;
  pending.sent_at = now;
  pending.newest = view_.newest();
  if (kind == Request::Kind::cas) pending.expected = expected;
  effects_.emplace_back(Request{
      .id = id, .kind = kind, .key = std::move(key), .expected = expected, .value = pending.value});
  pending_.emplace(id, std::move(pending));
}

void Machine::on_reply(RequestId id, const Reply& reply, Instant now) {
  const auto found = pending_.find(id);
  if (found == pending_.end() || finished()) return;
  const Pending pending = std::move(found->second);
  pending_.erase(found);
  const bool done = reply.verdict == Reply::Verdict::done;
  check_revision(pending, reply, now);
  switch (pending.purpose) {
    case Purpose::session: on_session_written(pending, reply, now); break;
    case Purpose::read_session: on_session_read(pending, reply, now); break;
    case Purpose::list: on_list(pending, reply, now); break;
    case Purpose::read:
    case Purpose::read_chunk: on_read(pending, reply, now); break;
    case Purpose::chunk:
      if (done) {
        busy_chunks_.erase(pending.chunk);
        learn({assignment_key(settings_.group, pending.chunk), pending.value, reply.revision}, now);
      } else {
        // Another worker was faster, or the outcome is unknown: the stored state decides.
        request(
            Request::Kind::get,
            {.purpose = Purpose::read_chunk, .chunk = pending.chunk, .expected = pending.expected},
            now, assignment_key(settings_.group, pending.chunk));
      }
      break;
    case Purpose::evict:
      evicting_.erase(pending.session);
      if (done) {
        hints_.erase(pending.session);
        note(true, fmt::format("{} is dead", pending.session));
        learn({session_key(settings_.group, pending.session), pending.value, reply.revision}, now);
      } else {
        evict_again_[pending.session] = now + settings_.timing.request_timeout();
        // The session exists: the server that said otherwise was behind.
        if (reply.verdict == Reply::Verdict::refused) missing_.erase(pending.session);
        reading_.insert(pending.session);
        request(Request::Kind::get, {.purpose = Purpose::read, .session = pending.session}, now,
                session_key(settings_.group, pending.session));
      }
      break;
    case Purpose::cleanup: break;
  }
  pump(now);
}

/// A write gets a higher revision than everything before it. One that does not was done by a store
/// that has lost its data, and counts from the start. A read would prove nothing: a server that is
/// behind may have answered it.
void Machine::check_revision(const Pending& pending, const Reply& reply, Instant now) {
  const bool written = reply.verdict == Reply::Verdict::done && reply.revision != 0 &&
                       pending.purpose != Purpose::cleanup;  // A removal returns no revision.
  if (!written || reply.revision > pending.newest || reply.revision > view_.newest()) return;
  note(true, "the store has begun anew: what it knew is lost");
  view_.start_over();
  next_list_ = now;
}

void Machine::on_list(const Pending& pending, const Reply& reply, Instant now) {
  list_busy_ = false;
  if (reply.verdict != Reply::Verdict::done) {
    next_list_ = now + settings_.timing.request_timeout();
    if (std::exchange(list_error_, reply.error) == reply.error) return;
    return note(true, fmt::format("the store does not answer: {}", reply.error));
  }
  list_error_.clear();
  next_list_ = now + (blind_ ? settings_.timing.heartbeat : settings_.timing.resync);
  std::set<std::string> keys;
  for (const Entry& entry : reply.entries) {
    keys.insert(entry.key);
    learn(entry, now);
  }
  view_.keep_only(keys, pending.sent_at);
  complete_ = true;
}

void Machine::on_read(const Pending& pending, const Reply& reply, Instant now) {
  if (pending.purpose == Purpose::read_chunk) {
    busy_chunks_.erase(pending.chunk);
    if (reply.verdict != Reply::Verdict::done) {
      retry_chunk_at_[pending.chunk] = now + settings_.timing.request_timeout();
      return;
    }
    for (const Entry& entry : reply.entries) learn(entry, now);
    if (reply.entries.empty()) next_list_ = now;  // Removed: the list tells the view.
    // Nothing new, as when it cannot be read: the next attempt would end the same way.
    const auto known = view_.chunks().find(pending.chunk);
    if (known != view_.chunks().end() && known->second.revision == pending.expected) {
      retry_chunk_at_[pending.chunk] = now + settings_.timing.request_timeout();
    }
    return;
  }
  reading_.erase(pending.session);
  if (reply.verdict != Reply::Verdict::done) {
    evict_again_[pending.session] = now + settings_.timing.request_timeout();
    return;
  }
  for (const Entry& entry : reply.entries) learn(entry, now);
  evict_again_[pending.session] = now + settings_.timing.request_timeout();
  if (!reply.entries.empty() || view_.find(pending.session) != nullptr) return;
  missing_.try_emplace(pending.session,
                       GroupView::KnownSession{view_.last_of(pending.session), 0, now});
}

void Machine::learn(const Entry& entry, Instant now) {
  const Status status = view_.put(entry, now);
  if (status.has_value()) return;
  if (std::exchange(unreadable_[entry.key], entry.revision) == entry.revision) return;
  note(true, fmt::format("{} is ignored: {}", entry.key, status.error().text));
  const bool assignment = chunk_of_key(settings_.group, entry.key).has_value();
  if (assignment && phase_ == Phase::looking) {
    finish(Error{Errc::failed_precondition,
                 fmt::format("the assignment of group {} cannot be read: {}. Remove the key {} "
                             "when no worker runs, to begin anew",
                             settings_.group, status.error().text, entry.key)});
  }
}

void Machine::on_watch(std::span<const WatchEvent> events, Instant now) {
  std::map<std::string_view, Revision> newest;
  for (const WatchEvent& event : events) {
    if (event.kind != WatchEvent::Kind::put || event.watch != watch_) continue;
    Revision& revision = newest[event.entry.key];
    revision = std::max(revision, event.entry.revision);
  }
  for (const WatchEvent& event : events) {
    see(event, event.entry.revision < newest[event.entry.key], now);
  }
  pump(now);
}

void Machine::see(const WatchEvent& event, bool outdated, Instant now) {
  if (!watching_ || event.watch != watch_ || finished()) return;
  const bool own = event.entry.key == session_key(settings_.group, me_);
  switch (event.kind) {
    case WatchEvent::Kind::put:
      if (in_snapshot_) shown_.insert(event.entry.key);
      if (!outdated) learn(event.entry, now);
      if (own) see_own(event.entry.revision, now);
      // Another worker has written the session, or removed it.
      if (own && view_.is_dead(me_) && phase_ == Phase::joined) must_read_ = true;
      break;
    case WatchEvent::Kind::removed:
      view_.removed(event.entry.key, event.entry.revision);
      if (own && revision_ != 0) must_read_ = true;
      break;
    case WatchEvent::Kind::snapshot_end: end_snapshot(); break;
    case WatchEvent::Kind::session_lost: take_hint(event.entry.key, now); break;
    case WatchEvent::Kind::broken: lose_sight(event.entry.value, now); break;
  }
}

void Machine::end_snapshot() {
  if (in_snapshot_) view_.keep_only(shown_, watch_opened_);
  in_snapshot_ = false;
  shown_.clear();
  complete_ = true;
}

void Machine::take_hint(std::string_view key, Instant now) {
  const auto session = session_of_key(settings_.group, key);
  if (session.has_value() && *session != me_) hints_.try_emplace(*session, now);
}

bool Machine::stopped(std::uint32_t partition, Instant now) {
  const auto found = work_.find(partition);
  if (found == work_.end() || found->second.state == Work::State::stopped) return false;
  found->second.state = Work::State::stopped;
  found->second.stopped_at = now;
  wake_at(now);  // Thousands may stop at the same time.
  return true;
}

void Machine::leave(bool for_good, Instant now) {
  if (finished()) return;
  begin_leaving(for_good, now);
  pump(now);
}

void Machine::begin_leaving(bool for_good, Instant now) {
  for_good_ = for_good_ || for_good;
  if (std::exchange(leaving_, true)) return;
  leave_by_ = now + settings_.timing.drain + (settings_.timing.lease * 2);
  revoke_by_ = now + settings_.timing.request_timeout();
}

bool Machine::may_act(std::uint32_t partition, Instant now) const {
  const auto found = work_.find(partition);
  if (found == work_.end()) return false;
  const Work& work = found->second;
  if (work.state != Work::State::running && work.state != Work::State::revoking) return false;
  return settings_.fenced || settings_.mutant == Mutant::no_self_fencing || now < deadline_;
}

void Machine::finish(Status status) {
  if (phase_ == Phase::finished) return;
  for (auto& [partition, work] : work_) {
    if (work.state != Work::State::stopped) lose(partition, work, "the worker ends");
  }
  if (watching_) effects_.emplace_back(CloseWatch{watch_});
  watching_ = false;
  phase_ = Phase::finished;
  effects_.emplace_back(Finished{refused_.has_value() ? std::move(status) : refused_});
}

void Machine::note(bool warning, std::string text) {
  effects_.emplace_back(Note{warning, std::move(text)});
}

WallTime Machine::wall(Instant now) const {
  return std::chrono::duration_cast<WallTime>(Duration{now.ns} + settings_.wall_offset);
}

}  // namespace baton::partition
