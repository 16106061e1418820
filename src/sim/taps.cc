#include "sim/taps.h"

#include <type_traits>

#include "core/queue/rows.h"
#include "server/shard/round_facts.h"

namespace baton {

Status TappedJournal::append(Position expected, Instant now, std::string_view facts) {
  BATON_TRY_STATUS(journal_->append(expected, now, facts));
  listener_({.position = expected, .now = now, .facts = facts});
  return {};
}

Status TappedJournal::read(Position from, const std::function<Status(const Round&)>& visit) const {
  if (canary_ != Canary::reuse_boot) return journal_->read(from, visit);
  return journal_->read(from, [&](const Round& round) -> Status {
    bool booted = false;
    BATON_TRY_STATUS(visit_facts(round.facts, [&]<class Fact>(const Fact&) -> Status {
      booted = booted || std::is_same_v<Fact, ShardFact>;
      return {};
    }));
    if (!booted) return visit(round);
    return visit({.position = round.position, .now = round.now, .facts = {}});
  });
}

Status TappedStore::commit(const RowBatch& batch) {
  if (canary_ != Canary::lose_row) return store_->commit(batch);
  RowBatch kept;
  for (const RowChange& change : batch.changes()) {
    const bool message = change.kind == RowChange::Kind::put && change.table == tables::kMessages;
    if (message && random_.chance(1, 8)) continue;
    kept.add(change);
  }
  return store_->commit(kept);
}

}  // namespace baton
