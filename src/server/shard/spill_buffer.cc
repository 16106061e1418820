#include "server/shard/spill_buffer.h"

#include <algorithm>
#include <iterator>

#include "server/shard/row_merge.h"

namespace baton {
namespace {

bool before(const Row& one, const Row& other) { return one.key < other.key; }

/// Cuts `rows` to the range's limits: at least one row stays.
void cut(std::vector<Row>& rows, const RowRange& range) {
  std::size_t bytes = 0;
  std::size_t count = 0;
  for (; count < rows.size() && count < range.rows_max; ++count) {
    bytes += rows[count].key.size() + rows[count].value.size();
    if (count > 0 && bytes > range.bytes_max) break;
  }
  rows.resize(count);
}

}  // namespace

Status SpillBuffer::spill(const RowBatch& batch) {
  {
    const std::scoped_lock lock(mutex_);
    if (!held_.empty()) {
      hold(batch);
      return Error{Errc::disk_full, "rows spilled before still wait for the disk"};
    }
  }
  Status spilled;
  {
    const std::scoped_lock writing(writes_);
    spilled = store_.spill(batch);
  }
  if (spilled.has_value()) return {};
  const std::scoped_lock lock(mutex_);
  hold(batch);
  return spilled;
}

void SpillBuffer::hold(const RowBatch& batch) {
  for (const RowChange& change : batch.changes()) {
    held_[{change.table.value, change.key}] = change.value;
  }
}

RowBatch SpillBuffer::all_held() const {
  RowBatch batch;
  const std::scoped_lock lock(mutex_);
  for (const auto& [place, value] : held_) batch.put(Table{place.first}, place.second, value);
  return batch;
}

void SpillBuffer::forget(const RowBatch& batch) {
  const std::scoped_lock lock(mutex_);
  for (const RowChange& change : batch.changes()) held_.erase({change.table.value, change.key});
}

Status SpillBuffer::flush() {
  const std::scoped_lock writing(writes_);
  const RowBatch batch = all_held();
  if (batch.empty()) return {};
  BATON_TRY_STATUS(store_.spill(batch));
  // Until here readers see these rows twice, with equal contents.
  forget(batch);
  return {};
}

Status SpillBuffer::commit(const RowBatch& batch) {
  const std::scoped_lock writing(writes_);
  const RowBatch held = all_held();
  if (held.empty()) return store_.commit(batch);
  RowBatch all = surviving(held, batch);
  for (const RowChange& change : batch.changes()) all.add(change);
  BATON_TRY_STATUS(store_.commit(all));
  forget(held);
  return {};
}

Result<std::optional<std::string>> SpillBuffer::get(Table table, std::string_view key) const {
  {
    const std::scoped_lock lock(mutex_);
    const auto held = held_.find({table.value, std::string(key)});
    if (held != held_.end()) return std::optional(held->second);
  }
  return store_.get(table, key);
}

std::vector<Row> SpillBuffer::held_in(const Range& range) const {
  std::vector<Row> rows;
  const std::scoped_lock lock(mutex_);
  const auto end = held_.lower_bound({range.table.value, range.end});
  for (auto at = held_.lower_bound({range.table.value, range.begin});
       at != end && rows.size() < range.rows_max; ++at) {
    rows.push_back({at->first.second, at->second});
  }
  return rows;
}

Result<std::vector<Row>> SpillBuffer::scan(const Range& range) const {
  // Held rows first: a row that moves to the store in between is then seen twice, and not missed.
  std::vector<Row> held = range.begin < range.end ? held_in(range) : std::vector<Row>{};
  BATON_TRY(std::vector<Row> stored, store_.scan(range));
  if (held.empty()) return stored;
  // A scan may end early: rows after its last one are unknown then.
  Range rest = range;
  if (!stored.empty()) rest.begin = stored.back().key + '\0';
  rest.rows_max = 1;
  BATON_TRY(const std::vector<Row> more, store_.scan(rest));
  if (!more.empty()) {
    std::erase_if(held, [&](const Row& row) { return row.key >= more.front().key; });
  }
  std::vector<Row> all;
  std::ranges::set_union(held, stored, std::back_inserter(all), before);
  cut(all, range);
  return all;
}

}  // namespace baton
