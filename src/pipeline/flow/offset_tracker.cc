#include "pipeline/flow/offset_tracker.h"

#include <algorithm>

#include "base/assert.h"

namespace baton::flow {

OffsetTracker::Ticket OffsetTracker::delivered(std::int64_t offset) {
  BATON_ASSERT(offset >= committable_);
  BATON_ASSERT(records_.empty() || offset > records_.back().offset);
  records_.push_back({offset, false});
  ++in_flight_;
  return first_ + records_.size() - 1;
}

void OffsetTracker::done(Ticket ticket) {
  BATON_ASSERT(ticket >= first_ && ticket - first_ < records_.size());
  Record& record = records_[ticket - first_];
  BATON_ASSERT(!record.done);
  record.done = true;
  --in_flight_;
  highest_done_ = std::max(highest_done_, record.offset);
  while (!records_.empty() && records_.front().done) {
    committable_ = records_.front().offset + 1;
    records_.pop_front();
    ++first_;
  }
}

std::optional<std::int64_t> OffsetTracker::oldest_in_flight() const {
  if (records_.empty()) return std::nullopt;
  return records_.front().offset;
}

}  // namespace baton::flow
