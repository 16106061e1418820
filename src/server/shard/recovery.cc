#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "server/shard/round_facts.h"
#include "server/shard/shard.h"
#include "server/shard/shard_facts.h"

/// From what the disk holds back to a shard that serves: the checkpoint, then the journal after it.
namespace baton {
namespace {

constexpr std::size_t kPageRows = 4096;
constexpr std::size_t kPageBytes = 4 * limits::kMiB;

/// Visits every row of `table`, a page at a time.
template <class Visit>
Status for_each_row(CheckpointStore& store, Table table, Visit visit) {
  RowRange range{.table = table,
                 .begin = {},
                 .end = std::string(64, '\xff'),
                 .rows_max = kPageRows,
                 .bytes_max = kPageBytes};
  while (true) {
    BATON_TRY(const std::vector<Row> rows, store.scan(range));
    if (rows.empty()) return {};
    for (const Row& row : rows) BATON_TRY_STATUS(visit(row));
    range.begin = rows.back().key + '\0';
  }
}

}  // namespace

Result<std::unique_ptr<Shard>> Shard::recover(Options options, const Parts& parts, Instant now) {
  auto shard = std::unique_ptr<Shard>(new Shard(options, parts));
  CheckpointStore& store = parts.store;
  BATON_TRY_STATUS(shard->load_state(store));
  BATON_TRY_STATUS(shard->load(store));
  BATON_TRY_STATUS(shard->replay(store));
  BATON_TRY_STATUS(shard->boot_up(std::max(now, shard->now_)));
  return shard;
}

Status Shard::load_state(CheckpointStore& store) {
  ShardState state;
  BATON_TRY_STATUS(for_each_row(store, tables::kState,
                                [&](const Row& row) { return read_shard_state(row, state); }));
  boot_ = state.boot;
  now_ = state.now;
  checkpointed_ = state.position;
  converts_ = state.format < kStoreFormat;
  return {};
}

Status Shard::load(CheckpointStore& store) {
  for (const Table table : {tables::kQueues, tables::kState, tables::kKeys, tables::kLeases,
                            tables::kDedup, tables::kOutgoing, tables::kReceived}) {
    BATON_TRY_STATUS(
        for_each_row(store, table, [&](const Row& row) { return machine_.load(table, row); }));
  }
  machine_.loaded();
  for (const Table table : {tables::kStreams, tables::kStreamProducers, tables::kGroups}) {
    BATON_TRY_STATUS(
        for_each_row(store, table, [&](const Row& row) { return streams_.load(table, row); }));
  }
  for (const Table table : {tables::kKvBuckets, tables::kKvEntries}) {
    BATON_TRY_STATUS(
        for_each_row(store, table, [&](const Row& row) { return kv_.load(table, row); }));
  }
  return {};
}

Status Shard::replay(CheckpointStore& store) {
  if (journal_.next() < checkpointed_) {
    return Error{
        Errc::journal_corrupt,
        fmt::format("the checkpoint ends at round {}, but the journal already at {}: journal "
                    "files are missing; restore them, or restore the whole data folder",
                    checkpointed_.value, journal_.next().value)};
  }
  BATON_TRY_STATUS(
      journal_.read(checkpointed_, [&](const Round& round) { return apply_round(store, round); }));
  for (const std::string& key : machine_.missing_bodies()) {
    BATON_TRY_STATUS(fetch(store, tables::kMessages, key));
  }
  return {};
}

Status Shard::apply_round(CheckpointStore& store, const Round& round) {
  now_ = std::max(now_, round.now);
  converts_ = converts_ || is_format_1(round.facts);
  Status applied =
      visit_facts(round.facts, [&](auto& fact) { return apply_fact(store, fact, round.now); });
  if (!applied.has_value()) {
    applied.error().text =
        fmt::format("round {} of the journal: {}", round.position.value, applied.error().text);
    return applied;
  }
  return spill_again(store);
}

/// What the former life spilled may be lost, so it is spilled again. On a full disk it waits in
/// memory instead: only a broker that starts can be purged.
Status Shard::spill_again(CheckpointStore& store) {
  RowBatch rows = machine_.take_effects().spill;
  if (rows.empty()) return {};
  if (unspilled_.empty()) {
    const Status spilled = store.spill(rows);
    if (spilled.has_value() || spilled.error().code != Errc::disk_full) return spilled;
  }
  for (const RowChange& change : rows.changes()) {
    unspilled_[{change.table.value, change.key}] = change.value;
  }
  return {};
}

Status Shard::apply_fact(CheckpointStore& /*store*/, const ShardFact& fact, Instant /*now*/) {
  boot_ = std::get<Booted>(fact).boot;
  return {};
}

Status Shard::apply_fact(CheckpointStore& /*store*/, const StreamFact& fact, Instant /*now*/) {
  streams_.apply(fact);
  return {};
}

Status Shard::apply_fact(CheckpointStore& /*store*/, const CoordinatorFact& fact, Instant /*now*/) {
  streams_.apply(fact);
  return {};
}

Status Shard::apply_fact(CheckpointStore& /*store*/, KvFact& fact, Instant /*now*/) {
  kv_.apply(std::move(fact));
  return {};
}

Status Shard::apply_fact(CheckpointStore& store, const QueueFact& fact, Instant now) {
  if (const auto wanted = machine_.wants(fact); wanted.has_value()) {
    // It may be among what this very round spilled.
    BATON_TRY_STATUS(spill_again(store));
    BATON_TRY_STATUS(fetch(store, wanted->first, wanted->second));
  }
  machine_.apply(fact, now);
  return {};
}

Status Shard::fetch(CheckpointStore& store, Table table, const std::string& key) {
  const auto unspilled = unspilled_.find({table.value, key});
  if (unspilled != unspilled_.end()) return machine_.restore(table, {key, unspilled->second});
  BATON_TRY(std::optional<std::string> value, store.get(table, key));
  if (!value.has_value()) {
    return Error{
        Errc::store_corrupt,
        "the checkpoint lacks a message that the journal speaks of; restore the data folder "
        "from a copy"};
  }
  return machine_.restore(table, {key, *std::move(value)});
}

/// A new life: its boot number is durable before anybody is served under it.
Status Shard::boot_up(Instant now) {
  ++boot_;
  now_ = started_at_ = checkpointed_at_ = now;
  std::string facts;
  begin_facts(facts);
  Encoder out(facts);
  encode(out, Booted{boot_});
  // On a full disk some room is enough: whoever acks, purges and deletes makes more.
  Status prepared = journal_.prepare();
  if (!prepared.has_value() && journal_.room().everything < options_.small_round_bytes) {
    return prepared;
  }
  BATON_TRY_STATUS(journal_.append(journal_.next(), now, facts));
  BATON_TRY(const Position durable, journal_.sync());
  BATON_ASSERT(durable == journal_.next());
  machine_.start(boot_, [this](const QueueFact& fact) { record(fact); }, now);
  BATON_TRY_STATUS(streams_.start(
      boot_,
      [this](const std::function<void(Encoder&)>& fact, bool must_sync) {
        record(fact, must_sync);
      },
      now));
  kv_.start([this](const std::function<void(Encoder&)>& fact) { record(fact, true); });
  if (!facts_.empty()) {
    BATON_TRY_STATUS(journal_.append(journal_.next(), now, facts_));
    BATON_TRY_STATUS(journal_.sync());
    facts_.clear();
    always_sync_ = false;
  }
  more_ = true;
  // A checkpoint is all that a conversion takes: it writes what was loaded from rows of format 1,
  // and the rounds of format 1 are trimmed behind it. If it is interrupted, the next start is here
  // again.
  if (converts_) request_checkpoint();
  return {};
}

}  // namespace baton
