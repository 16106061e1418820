// Partitions: taken, given up, handed over, and planned.

#include <algorithm>
#include <chrono>
#include <string_view>
#include <unordered_set>

#include <fmt/format.h>

#include "core/workers/machine.h"

namespace baton::partition {
namespace {

/// A stopped partition waits this long for others, to be handed over in one write.
constexpr Duration kGather = std::chrono::milliseconds(100);
/// From one worker's write of the assignment to the next worker's, if nothing is slow.
constexpr Duration kTurn = std::chrono::milliseconds(5);
constexpr std::size_t kTurnsMax = 8;

}  // namespace

void Machine::lose(std::uint32_t partition, Work& work, std::string why) {
  if (work.state == Work::State::lost) return;
  work.state = Work::State::lost;
  effects_.emplace_back(Lost{partition, work.epoch, std::move(why)});
}

bool Machine::idle() const {
  return std::ranges::all_of(
      work_, [](const auto& item) { return item.second.state == Work::State::stopped; });
}

/// Few of a thousand partitions are ours, and most events change nothing about them.
void Machine::look_for_shares() {
  if (shares_shape_ == view_.shape() && shares_of_ == me_) return;
  shares_shape_ = view_.shape();
  shares_of_ = me_;
  shares_.clear();
  std::unordered_set<std::string_view> givers;
  for (const auto& [number, chunk] : view_.chunks()) {
    const Assignment& assignment = chunk.assignment;
    for (std::uint32_t i = 0; i < assignment.holdings.size(); ++i) {
      const Holding& holding = assignment.holdings[i];
      if (holding.owner == me_) shares_.push_back({assignment.first + i, &holding});
      if (gives(holding) && holding.owner < me_) givers.insert(holding.owner);
    }
  }
  givers_before_us_ = givers.size();
}

/// Whether the holding's owner has stopped, or will, and then writes the assignment.
bool Machine::gives(const Holding& holding) const {
  if (holding.owner.empty()) return false;
  if (!holding.next.empty()) return true;
  const GroupView::KnownSession* owner = view_.find(holding.owner);
  return owner != nullptr && owner->session.state == SessionState::draining;
}

void Machine::step_work(Instant now) {
  for (auto& [partition, work] : work_) check_work(partition, work, now);
  std::erase_if(work_, [&](const auto& item) {
    return item.second.state == Work::State::stopped &&
           now >= item.second.stopped_at + settings_.timing.reclaim_grace;
  });
  begin_work(now);
}

/// Leaving: the others are told first, so that none plans for us meanwhile. But stopping is always
/// safe, and does not wait for a store that is away.
bool Machine::must_drain(Instant now) {
  if (!leaving_) return false;
  const bool told = stands(SessionState::draining) || stands(SessionState::restarting);
  if (told || now >= revoke_by_) return true;
  wake_at(revoke_by_);
  return settings_.mutant == Mutant::release_before_draining;
}

void Machine::check_work(std::uint32_t partition, Work& work, Instant now) {
  if (work.state == Work::State::stopped) {
    wake_at(work.stopped_at + settings_.timing.reclaim_grace);
    return;
  }
  if (work.state == Work::State::lost) return;
  const Holding* holding = view_.holding(partition);
  if (holding == nullptr || holding->owner != me_ || holding->epoch != work.epoch) {
    const bool early = settings_.mutant == Mutant::hand_over_before_stopping &&
                       work.state == Work::State::revoking && now < work.deadline;
    if (!early) return lose(partition, work, "it has another owner");
    return wake_at(work.deadline);
  }
  if (work.state == Work::State::running && (must_drain(now) || !holding->next.empty())) {
    work.state = Work::State::revoking;
    work.deadline = now + settings_.timing.drain;
    effects_.emplace_back(Revoking{partition, work.epoch, work.deadline});
  }
  if (work.state != Work::State::revoking) return;
  if (now < work.deadline) return wake_at(work.deadline);
  lose(partition, work, "the time to drain is over");
}

void Machine::begin_work(Instant now) {
  if (!stands(SessionState::active) || leaving_ || fenced_off_) return;
  if (!settings_.fenced && now >= deadline_) return;
  for (const auto& [partition, holding] : shares_) {
    const bool removed = view_.holding(partition) == nullptr;
    if (removed || !holding->next.empty() || work_.contains(partition)) continue;
    work_.emplace(partition, Work{.epoch = holding->epoch});
    effects_.emplace_back(Acquired{partition, holding->epoch});
  }
}

bool Machine::may_write(std::uint32_t chunk, Instant now) {
  if (busy_chunks_.contains(chunk)) return false;
  const auto at = retry_chunk_at_.find(chunk);
  if (at == retry_chunk_at_.end() || now >= at->second) return true;
  wake_at(at->second);
  return false;
}

/// When many workers have something to hand over, each write makes those of all others fail. So
/// they take turns; one that is not ready delays those behind it by no more than its turn.
bool Machine::is_our_turn(Instant now) {
  Instant last_write;
  for (const auto& [number, chunk] : view_.chunks()) {
    last_write = std::max(last_write, chunk.seen_at);
  }
  const auto turns = static_cast<std::int64_t>(std::min(givers_before_us_, kTurnsMax));
  const Instant due = last_write + (kTurn * turns);
  if (now >= due) return true;
  wake_at(due);
  return false;
}

void Machine::write_chunk(std::uint32_t chunk, const Assignment& assignment, Instant now) {
  const auto known = view_.chunks().find(chunk);
  busy_chunks_.insert(chunk);
  request(Request::Kind::cas,
          {.purpose = Purpose::chunk, .chunk = chunk, .value = encode(assignment)}, now,
          assignment_key(settings_.group, chunk),
          known == view_.chunks().end() ? 0 : known->second.revision);
}

void Machine::step_hand_over(Instant now) {
  if (phase_ != Phase::joined) return;
  if (leaving_) return step_leave(now);
  const ReadyChunks ready = ready_chunks();
  if (ready.chunks.empty()) return ready_since_.reset();
  if (!ready_since_.has_value()) ready_since_ = now;
  const Instant due = *ready_since_ + kGather;
  if (ready.waiting && now < due) return wake_at(due);
  if (!is_our_turn(now)) return;
  for (const std::uint32_t number : ready.chunks) {
    if (may_write(number, now)) hand_over(number, now);
  }
}

/// Once everything has stopped: gives it all away, and then writes the end of the session.
void Machine::step_leave(Instant now) {
  const bool early = settings_.mutant == Mutant::release_before_draining;
  if (!idle() || (wanted_state() != written_.state && !early)) return;
  if (wanted_state() != SessionState::restarting && step_release(now)) return;
  phase_ = Phase::closing;
  next_renewal_ = now;
  step_session(now);
}

/// The chunks in which a stopped partition is promised to another worker.
Machine::ReadyChunks Machine::ready_chunks() const {
  ReadyChunks ready;
  for (const auto& [partition, holding] : shares_) {
    if (!is_to_go(*holding)) continue;
    const bool stopped = has_stopped(partition);
    if (stopped) ready.chunks.insert(partition / kChunkPartitions);
    ready.waiting |= !stopped;
  }
  return ready;
}

void Machine::hand_over(std::uint32_t chunk, Instant now) {
  Assignment assignment = view_.chunks().at(chunk).assignment;
  for (std::uint32_t i = 0; i < assignment.holdings.size(); ++i) {
    Holding& holding = assignment.holdings[i];
    if (!is_to_go(holding) || !has_stopped(assignment.first + i)) continue;
    holding.owner = std::exchange(holding.next, {});
    ++holding.epoch;
    holding.since = wall(now);
    holding.why = Why::rebalance;
  }
  write_chunk(chunk, assignment, now);
}

/// Whether the holding is ours, and promised to a worker that can take it.
bool Machine::is_to_go(const Holding& holding) const {
  return holding.owner == me_ && !holding.next.empty() && !view_.is_dead(holding.next) &&
         holding.epoch < kEpochMax;
}

bool Machine::has_stopped(std::uint32_t partition) const {
  if (settings_.mutant == Mutant::hand_over_before_stopping) return true;
  const auto work = work_.find(partition);
  return work == work_.end() || work->second.state == Work::State::stopped;
}

/// Leaving: gives everything to its successors. False if there is nothing left to give.
bool Machine::step_release(Instant now) {
  if (shares_.empty()) return false;
  if (!is_our_turn(now)) return true;
  const Plan plan =
      make_plan(view_, {.partitions = settings_.partitions, .now = wall(now), .leaving = me_});
  if (plan.empty()) return false;  // What is left waits for the next life of the static id.
  for (const auto& [number, assignment] : plan) {
    if (may_write(number, now)) write_chunk(number, assignment, now);
  }
  return true;
}

void Machine::step_plan(Instant now) {
  const bool partial = settings_.mutant == Mutant::plan_on_partial_snapshot;
  if (!stands(SessionState::active) || leaving_ || (!complete_ && !partial) || now >= deadline_) {
    return;
  }
  if (std::exchange(last_shape_, view_.shape()) != view_.shape()) last_shape_since_ = now;
  if (planned_shape_ != view_.shape()) {
    // One of the workers that see a change has to plan. The others do so if it does not.
    const Instant due = last_shape_since_ + (kRankDelay * static_cast<std::int64_t>(rank()));
    if (now < due) return wake_at(due);
    planned_shape_ = view_.shape();
    plan_ = make_plan(view_, {.partitions = settings_.partitions, .now = wall(now)});
  }
  for (const auto& [number, assignment] : plan_) {
    if (may_write(number, now)) write_chunk(number, assignment, now);
  }
}

}  // namespace baton::partition
