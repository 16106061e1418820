#include "sim/shared_log.h"

#include <algorithm>

namespace baton {

bool SharedRounds::store(const Entry& entry) {
  const bool stale = !entries.empty() && entry.epoch < entries.back().epoch;
  if (stale || entry.position != next()) return false;
  entries.push_back(entry);
  return true;
}

Status SharedLog::append(const NewRound& round) {
  if (fenced_ || (!taken_.empty() && round.expected != next())) {
    return Error{Errc::position_taken, "another node appended"};
  }
  taken_.push_back({round.expected, round.epoch, round.now, std::string(round.facts)});
  next_ = Position{round.expected.value + 1};
  return {};
}

/// A request that was given up arrives after all.
void SharedLog::deliver_late() {
  auto& late = rounds_->on_their_way;
  if (late.empty() || !random_.chance(1, 3)) return;
  const auto place = late.begin() + static_cast<std::ptrdiff_t>(random_.below(late.size()));
  static_cast<void>(rounds_->store(*place));
  late.erase(place);
}

Result<Position> SharedLog::sync() {
  deliver_late();
  return send();
}

/// Sends the taken rounds, in order, until an answer is missing.
Result<Position> SharedLog::send() {
  while (!taken_.empty() && !fenced_) {
    const SharedRounds::Entry& entry = taken_.front();
    if (random_.chance(faults_.request_lost, 100)) {
      rounds_->on_their_way.push_back(entry);
      return Error{Errc::unavailable, "no answer: the request was lost"};
    }
    if (!rounds_->store(entry)) {
      fenced_ = true;
      break;
    }
    if (random_.chance(faults_.answer_lost, 100)) {
      return Error{Errc::unavailable, "no answer: it was lost"};
    }
    taken_.pop_front();
  }
  if (fenced_) return Error{Errc::position_taken, "another node appended"};
  return next_;
}

Result<Position> SharedLog::settle() {
  deliver_late();
  while (!taken_.empty() && taken_.front().position < rounds_->next()) {
    if (rounds_->entries[taken_.front().position.value - 1] != taken_.front()) {
      fenced_ = true;
      break;
    }
    taken_.pop_front();
  }
  return send();
}

Status SharedLog::read(Position from, const std::function<Status(const Round&)>& visit) const {
  std::uint64_t end = rounds_->entries.size();
  if (from.value <= end && random_.chance(faults_.read_short, 100)) {
    end = from.value + random_.below(end - from.value + 1);
  }
  for (std::uint64_t position = from.value; position <= end; ++position) {
    const SharedRounds::Entry& entry = rounds_->entries[position - 1];
    BATON_TRY_STATUS(visit({.position = entry.position, .now = entry.now, .facts = entry.facts}));
    next_ = std::max(next_, Position{position + 1});
  }
  return {};
}

std::uint64_t SharedLog::bytes_since(Position from) const {
  std::uint64_t bytes = 0;
  for (std::uint64_t at = from.value; at <= rounds_->entries.size(); ++at) {
    bytes += rounds_->entries[at - 1].facts.size();
  }
  return bytes;
}

}  // namespace baton
