// The worker's own session: created, renewed, ended.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "core/workers/machine.h"

namespace baton::partition {
namespace {

std::chrono::milliseconds to_milliseconds(Duration duration) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(duration);
}

/// What an owner may count on: less than what others wait for.
Duration shortened(Duration lease) { return lease * (100 - kClockErrorPercent) / 100; }

}  // namespace

void Machine::begin_life(Instant now) {
  me_ = fmt::format("{}.{}", settings_.worker, settings_.incarnation());
  ++lives_;
  revision_ = 0;
  since_ = now;
  written_ = {};
  attempts_.clear();
  must_read_ = false;
  next_renewal_ = now;
  deadline_ = now;
  fenced_off_ = false;
  sighted_ = false;
  own_seen_ = 0;
  awaited_echo_.reset();
}

/// A former life under the same static id that may still be at work, or waits for its return.
const GroupView::KnownSession* Machine::former_life() const {
  if (!settings_.static_id) return nullptr;
  for (const auto& [id, known] : view_.sessions()) {
    if (id == me_ || worker_of(id) != settings_.worker || known.session.dead()) continue;
    // Of several that wait, one goes first; of several at work that started together, one stays.
    const bool same = known.session.state == SessionState::standby || stands(SessionState::active);
    const bool takes_over = settings_.fenced && known.session.fenced && lives_ > 1;
    if (same && id > me_ && !takes_over) continue;
    return &known;
  }
  return nullptr;
}

/// Whether another worker lives under our static id: it renews its session while we wait for its
/// end.
bool Machine::static_id_in_use() {
  const GroupView::KnownSession* former = former_life();
  // It has taken over from us, or is about to: the two must not take over from each other for ever.
  const bool takes_over = former != nullptr && settings_.fenced && former->session.fenced;
  if (takes_over && lives_ > 1 && !stands(SessionState::active)) return true;
  if (former == nullptr || former->session.state != SessionState::active) {
    former_beat_.reset();
    return false;
  }
  constexpr std::uint64_t kBeatsOfALivingOne = 3;
  if (!former_beat_.has_value()) former_beat_ = former->session.beat;
  if (takes_over && !stands(SessionState::active)) return false;
  return former->session.beat >= *former_beat_ + kBeatsOfALivingOne;
}

SessionState Machine::wanted_state() const {
  if (leaving_ && !(settings_.static_id && !for_good_)) {
    const bool too_early = settings_.mutant == Mutant::release_before_draining && !shares_.empty();
    return too_early ? SessionState::active : SessionState::draining;
  }
  if (leaving_) return SessionState::restarting;
  if (stands(SessionState::active)) return SessionState::active;
  const GroupView::KnownSession* former = former_life();
  const bool wait = former != nullptr && !former->session.stopped;
  return wait ? SessionState::standby : SessionState::active;
}

WorkerSession Machine::wanted_session(Instant now) const {
  WorkerSession session;
  session.state = wanted_state();
  session.beat = beat_;
  session.weight = settings_.weight;
  session.static_id = settings_.static_id;
  session.fenced = settings_.fenced;
  session.blind = blind_;
  session.lease = to_milliseconds(settings_.timing.lease);
  session.grace = to_milliseconds(settings_.timing.static_grace);
  session.since = wall(since_);
  session.renewed = wall(now);
  session.host = settings_.host;
  return session;
}

void Machine::step_session(Instant now) {
  if (must_give_up(now)) {
    return finish(Error{Errc::deadline_exceeded, "could not hand everything over in time"});
  }
  if (phase_ == Phase::looking) step_look();
  if (phase_ == Phase::looking || phase_ == Phase::finished) return;
  if (must_end_for_static_id()) {
    refused_ = Error{Errc::already_exists,
                     fmt::format("another worker of group {} lives under the static id {}",
                                 settings_.group, settings_.worker)};
    begin_leaving(true, now);  // Otherwise the other one would wait for our session to end.
  }
  if (session_busy_) return;
  if (must_read_) return read_session(now);
  if (phase_ == Phase::closing) return step_closing(now);
  if (phase_ == Phase::creating && leaving_) return finish({});
  const bool another_state = phase_ == Phase::joined && wanted_state() != written_.state;
  if (now < next_renewal_ && !another_state) return wake_at(next_renewal_);
  write_session(wanted_session(now), now);
}

/// Leaving without the store: once nothing is at work and the lease is over, the others need not
/// hear from us any more. One more try, and no waiting for a store that does not answer.
bool Machine::must_give_up(Instant now) {
  if (!leaving_) return false;
  if (now >= leave_by_) return true;
  wake_at(leave_by_);
  if (phase_ == Phase::looking || now < deadline_ || !idle()) {
    try_last_.reset();
    return false;
  }
  if (!try_last_.has_value()) {
    try_last_ = now;
    failed_at_ = {};
  }
  return failed_at_ >= *try_last_;
}

void Machine::read_session(Instant now) {
  if (now < read_at_) return wake_at(read_at_);
  must_read_ = false;
  session_busy_ = true;
  request(Request::Kind::get, {.purpose = Purpose::read_session}, now,
          session_key(settings_.group, me_));
}

bool Machine::must_end_for_static_id() {
  return settings_.static_id && !leaving_ && static_id_in_use();
}

void Machine::step_look() {
  if (leaving_) return finish({});
  const bool partial = settings_.mutant == Mutant::plan_on_partial_snapshot;
  if (!complete_ && !partial) return;
  phase_ = Phase::creating;
}

/// Checked at any time: workers that start together find no assignment to compare with.
void Machine::check_partition_count() {
  for (const auto& [number, chunk] : view_.chunks()) {
    if (chunk.revision == 0 || chunk.assignment.partitions == settings_.partitions) continue;
    return finish(
        Error{Errc::failed_precondition,
              fmt::format("group {} has {} partitions, and this worker was told {}",
                          settings_.group, chunk.assignment.partitions, settings_.partitions)});
  }
}

/// The last write; nothing is renewed after it.
void Machine::step_closing(Instant now) {
  const bool gone = wanted_state() == SessionState::draining;
  const SessionState last = gone ? SessionState::gone : SessionState::restarting;
  if (written_.state == last && (gone || written_.stopped)) return finish({});
  if (now < next_renewal_) return wake_at(next_renewal_);
  WorkerSession session = wanted_session(now);
  session.state = last;
  session.stopped = true;
  write_session(std::move(session), now);
}

void Machine::write_session(WorkerSession session, Instant now) {
  if (now < write_at_) return wake_at(write_at_);
  session.beat = ++beat_;
  attempts_[session.beat] = {session, now};
  next_renewal_ = now + settings_.timing.heartbeat;
  session_busy_ = true;
  request(Request::Kind::cas, {.purpose = Purpose::session, .value = encode(session)}, now,
          session_key(settings_.group, me_), revision_);
}

void Machine::on_session_written(const Pending& pending, const Reply& reply, Instant now) {
  session_busy_ = false;
  if (reply.verdict != Reply::Verdict::done) {
    sighted_ = false;  // Others may be cut off as well: their silence proves nothing now.
    must_read_ = true;
    if (reply.verdict == Reply::Verdict::refused) return;
    failed_at_ = pending.sent_at;
    revoke_by_ = std::min(revoke_by_, now);
    // A store that refuses writes may answer reads at once.
    write_at_ = now + settings_.timing.request_timeout();
    if (std::exchange(write_error_, reply.error) == reply.error) return;
    return note(true, fmt::format("the session could not be written: {}", reply.error));
  }
  write_error_.clear();
  revision_ = reply.revision;
  if (!awaited_echo_.has_value()) awaited_echo_ = {revision_, pending.sent_at};
  accept_attempt(*decode_session(pending.value), now);
  if (settings_.mutant == Mutant::deadline_from_reply) deadline_ = now + settings_.timing.lease;
  learn({session_key(settings_.group, me_), pending.value, revision_}, now);
  if (own_seen_ >= revision_) see_own(own_seen_, now);
}

/// This write of the session has succeeded: the lease counts from when it was sent.
void Machine::accept_attempt(const WorkerSession& session, Instant now) {
  written_ = session;
  if (phase_ == Phase::creating) {
    phase_ = Phase::joined;
    note(false, fmt::format("joined group {} as {}", settings_.group, me_));
  }
  const auto attempt = attempts_.find(session.beat);
  if (attempt == attempts_.end()) return;
  const Instant sent_at = attempt->second.sent_at;
  deadline_ = std::max(deadline_, sent_at + shortened(settings_.timing.lease));
  attempts_.erase(attempts_.begin(), std::next(attempt));
  if (now < deadline_) {
    if (fenced_off_) note(false, "the store answers again");
    fenced_off_ = false;
    effects_.emplace_back(Renewed{deadline_});
  }
}

void Machine::on_session_read(const Pending& pending, const Reply& reply, Instant now) {
  session_busy_ = false;
  if (reply.verdict != Reply::Verdict::done) {
    must_read_ = true;
    failed_at_ = pending.sent_at;
    // Not at once: a store that refuses connections answers immediately.
    read_at_ = now + (settings_.timing.request_timeout() / 4);
    return;
  }
  if (reply.entries.empty()) {
    if (phase_ == Phase::creating) {
      next_renewal_ = now;  // It never arrived, or has not yet.
      return;
    }
    return session_died("its session is gone from the store", now);
  }
  const Entry& entry = reply.entries.front();
  learn(entry, now);
  const Result<WorkerSession> session = decode_session(entry.value);
  if (!session.has_value()) return session_died("its session cannot be read", now);
  const bool closed = phase_ == Phase::closing && session->state == SessionState::gone &&
                      attempts_.contains(session->beat);
  if (session->dead() && !closed) return session_died("it was evicted", now);
  revision_ = entry.revision;
  accept_attempt(*session, now);
  // What was to be written may still have to be.
  if (!closed) next_renewal_ = std::min(next_renewal_, now);
}

void Machine::session_died(std::string why, Instant now) {
  note(true, fmt::format("{} lost its lease: {}", me_, why));
  for (auto& [partition, work] : work_) {
    if (work.state != Work::State::stopped) lose(partition, work, why);
  }
  if (leaving_) return finish(Error{Errc::lease_lost, fmt::format("while leaving: {}", why)});
  phase_ = Phase::creating;
  begin_life(now);
  if (watching_) effects_.emplace_back(CloseWatch{watch_});
  open_watch(now);  // The watch names the session.
}

/// Past the deadline another worker may hold our partitions.
void Machine::fence(Instant now) {
  if (settings_.fenced || fenced_off_ || settings_.mutant == Mutant::no_self_fencing) return;
  if (phase_ != Phase::joined && phase_ != Phase::closing) return;
  if (now < deadline_) return wake_at(deadline_);
  fenced_off_ = true;
  note(true, "the lease could not be renewed in time: stopping all work");
  for (auto& [partition, work] : work_) {
    if (work.state != Work::State::stopped) lose(partition, work, "the lease ran out");
  }
}

}  // namespace baton::partition
