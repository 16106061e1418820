#include "server/shard/held.h"

#include <utility>

#include "server/shard/row_merge.h"
#include "server/shard/shard_facts.h"

namespace baton {
namespace {

/// Whether nothing of `range` is left after `rows`, the result of a scan of it. A scan ends before
/// the row that would exceed its bytes, so a short result proves nothing by itself.
Result<bool> is_exhausted(const CheckpointStore& store, RowRange range,
                          const std::vector<Row>& rows) {
  if (rows.empty()) return true;
  if (rows.size() >= range.rows_max) return false;
  range.begin = rows.back().key + '\0';
  range.rows_max = 1;
  BATON_TRY(const std::vector<Row> next, store.scan(range));
  return next.empty();
}

}  // namespace

std::size_t Held::answers() const {
  std::size_t count = calls.size();
  for (const auto& effect : effects) count += effect->answers();
  return count;
}

void Held::release() {
  // Calls first: a consumer's registration must be answered before its first message is delivered.
  for (std::unique_ptr<Call>& call : calls) call->complete();
  calls.clear();
  for (const auto& effect : effects) effect->release();
  effects.clear();
}

Result<StoreResult> run_store_job(CheckpointStore& store, const StoreJob& job) {
  if (const auto* spill = std::get_if<SpillJob>(&job)) {
    BATON_TRY_STATUS(store.spill(spill->rows));
    return Result<StoreResult>(std::in_place, SpillDone{spill->rows.bytes()});
  }
  const auto& read = std::get<ReadJob>(job);
  BATON_TRY(std::vector<Row> rows, store.scan(read.range));
  BATON_TRY(const bool exhausted, is_exhausted(store, read.range, rows));
  return Result<StoreResult>(std::in_place,
                             ReadDone{read.machine, read.number, std::move(rows), exhausted});
}

RowBatch rows_of(const CheckpointJob& job) {
  RowBatch rows;
  for (const auto& delta : job.deltas) delta(rows);
  for (const RowChange& change : job.rows.changes()) rows.add(change);
  if (job.carried.empty()) return rows;
  RowBatch all = surviving(job.carried, rows);
  for (const RowChange& change : rows.changes()) all.add(change);
  return all;
}

Status run_checkpoint_job(CheckpointStore& store, const CheckpointJob& job) {
  RowBatch batch = rows_of(job);
  append_shard_state(batch, {.position = job.position, .boot = job.boot, .now = job.now});
  return store.commit(batch);
}

}  // namespace baton
