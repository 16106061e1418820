#include "core/kv/history.h"

#include <utility>

#include "base/assert.h"

namespace baton {
namespace {

/// What a change takes beside its key and value, about: changes without values must count too.
constexpr std::uint64_t kChangeBytes = 64;

std::uint64_t bytes_of(const KvChange& change) {
  return kChangeBytes + change.entry->key.size() + change.entry->value.size();
}

}  // namespace

void KvHistory::begin(Revision floor) {
  floor_ = floor;
  changes_.clear();
  bytes_ = 0;
}

void KvHistory::append(KvChange change, const KvSettings& settings) {
  // A gap would be a change that no watch ever sees.
  BATON_ASSERT(change.entry->revision == next(last()));
  bytes_ += bytes_of(change);
  changes_.push_back(std::move(change));
  while (changes_.size() > 1 &&
         (changes_.size() > settings.history_changes_max || bytes_ > settings.history_bytes_max)) {
    bytes_ -= bytes_of(changes_.front());
    changes_.pop_front();
    floor_ = next(floor_);
  }
}

const KvChange& KvHistory::at(Revision revision) const {
  BATON_ASSERT(revision > floor_ && revision <= last());
  return changes_[revision.value - floor_.value - 1];
}

}  // namespace baton
