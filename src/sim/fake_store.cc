#include "sim/fake_store.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "base/assert.h"

namespace baton {

void FakeStoreMedia::apply(Tables& tables, const RowChange& change) {
  Rows& rows = tables[change.table];
  switch (change.kind) {
    case RowChange::Kind::put: rows[change.key] = change.value; return;
    case RowChange::Kind::erase: rows.erase(change.key); return;
    case RowChange::Kind::erase_range:
      if (change.key < change.value) {
        rows.erase(rows.lower_bound(change.key), rows.lower_bound(change.value));
      }
      return;
  }
}

void FakeStoreMedia::apply_all(Tables& tables, const std::vector<RowChange>& changes) {
  for (const RowChange& change : changes) apply(tables, change);
}

/// Makes everything pending durable.
void FakeStoreMedia::settle() {
  for (const Pending& each : pending_) apply_all(durable_, each.changes);
  pending_.clear();
}

void FakeStoreMedia::crash() {
  const std::lock_guard lock(mutex_);
  crash_locked();
}

void FakeStoreMedia::crash_locked() {
  ++life_;
  crash_in_commit_ = false;
  const auto failed = static_cast<std::uint64_t>(std::count_if(
      pending_.begin(), pending_.end(), [](const Pending& each) { return each.commit; }));
  // A commit includes everything before it: the disk got as far as one of them, or none.
  std::uint64_t commits_kept = random_.below(failed + 1);
  for (const Pending& each : pending_) {
    for (const RowChange& change : each.changes) {
      const bool kept = commits_kept > 0 || (!each.commit && random_.chance(1, 2));
      if (kept) apply(durable_, change);
    }
    if (each.commit && commits_kept > 0) --commits_kept;
  }
  pending_.clear();
  visible_ = durable_;
}

void FakeStoreMedia::crash_in_next_commit() {
  const std::lock_guard lock(mutex_);
  crash_in_commit_ = true;
}

void FakeStoreMedia::set_disk_full(bool full) {
  const std::lock_guard lock(mutex_);
  disk_full_ = full;
}

std::uint64_t FakeStoreMedia::begin_life() {
  const std::lock_guard lock(mutex_);
  crash_locked();
  return life_;
}

FakeStore::FakeStore(std::shared_ptr<FakeStoreMedia> media)
    : media_(std::move(media)), life_(media_->begin_life()) {}

/// Called with the media's lock held.
Status FakeStore::check_alive() const {
  if (media_->life_ == life_) return {};
  return Error{Errc::io_error, "the process of this store has crashed"};
}

Status FakeStore::commit(const RowBatch& batch) {
  const std::lock_guard lock(media_->mutex_);
  BATON_TRY_STATUS(check_alive());
  FakeStoreMedia::apply_all(media_->visible_, batch.changes());
  media_->pending_.push_back({.commit = true, .changes = batch.changes()});
  if (media_->crash_in_commit_) {
    media_->crash_locked();
    return Error{Errc::io_error, "the process crashed in this commit"};
  }
  if (media_->disk_full_) return Error{Errc::disk_full, "simulated"};
  media_->settle();
  return {};
}

Status FakeStore::spill(const RowBatch& batch) {
  const std::lock_guard lock(media_->mutex_);
  BATON_TRY_STATUS(check_alive());
  for (const RowChange& change : batch.changes()) {
    BATON_ASSERT(change.kind == RowChange::Kind::put);
  }
  if (media_->disk_full_) return Error{Errc::disk_full, "simulated"};
  FakeStoreMedia::apply_all(media_->visible_, batch.changes());
  media_->pending_.push_back({.commit = false, .changes = batch.changes()});
  return {};
}

Result<std::optional<std::string>> FakeStore::get(Table table, std::string_view key) const {
  const std::lock_guard lock(media_->mutex_);
  BATON_TRY_STATUS(check_alive());
  const FakeStoreMedia::Rows& rows = media_->visible_[table];
  const auto found = rows.find(std::string(key));
  if (found == rows.end()) return std::optional<std::string>{};
  return std::optional<std::string>{found->second};
}

Result<std::vector<Row>> FakeStore::scan(const Range& range) const {
  const std::lock_guard lock(media_->mutex_);
  BATON_TRY_STATUS(check_alive());
  std::vector<Row> result;
  std::size_t bytes = 0;
  const FakeStoreMedia::Rows& rows = media_->visible_[range.table];
  for (auto at = rows.lower_bound(range.begin); at != rows.end() && at->first < range.end; ++at) {
    const std::size_t row_bytes = at->first.size() + at->second.size();
    const bool full = result.size() >= range.rows_max || bytes + row_bytes > range.bytes_max;
    if (full && !result.empty()) break;
    bytes += row_bytes;
    result.push_back({at->first, at->second});
  }
  return result;
}

}  // namespace baton
