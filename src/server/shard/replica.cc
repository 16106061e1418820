#include "server/shard/replica.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/bytes.h"

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

Replica::Replica(Options options, CheckpointStore& store, Machines machines)
    : options_(options), store_(store), machines_(std::move(machines)) {
  for (const auto& machine : machines_) {
    for (const FactSet* const facts : machine->facts()) {
      Owner& owner = owners_.at(facts->owner.value);
      BATON_ASSERT(owner.machine == nullptr && facts->owner != kShardFacts.owner);
      owner = {machine.get(), facts};
    }
  }
}

Status Replica::load() {
  BATON_TRY_STATUS(load_state());
  for (const auto& machine : machines_) {
    for (const Table table : machine->tables()) {
      BATON_TRY_STATUS(
          for_each_row(store_, table, [&](const Row& row) { return machine->load(table, row); }));
    }
    machine->loaded();
  }
  return {};
}

Status Replica::load_state() {
  ShardState state;
  BATON_TRY_STATUS(for_each_row(store_, tables::kState,
                                [&](const Row& row) { return read_shard_state(row, state); }));
  boot_ = state.boot;
  now_ = state.now;
  position_ = checkpointed_ = state.position;
  converts_ = state.format < kStoreFormat;
  return {};
}

Status Replica::follow(const ShardLog& log) {
  Status followed = log.read(position_, [&](const Round& round) { return apply(round); });
  // Only now: a log that others keep does not know its end before it is read.
  if (!followed.has_value() && followed.error().code == Errc::round_not_found &&
      log.next() < position_) {
    return Error{
        Errc::journal_corrupt,
        fmt::format("the checkpoint ends at round {}, but the journal already at {}: journal "
                    "files are missing; restore them, or restore the whole data folder",
                    position_.value, log.next().value)};
  }
  return followed;
}

Status Replica::apply(const Round& round) {
  BATON_ASSERT(round.position == position_);
  now_ = std::max(now_, round.now);
  const bool old = is_format_1(round.facts);
  converts_ = converts_ || old;
  Status applied =
      old ? apply_facts_1(round.facts, round.now) : apply_facts(round.facts, round.now);
  if (!applied.has_value()) {
    applied.error().text =
        fmt::format("round {} of the journal: {}", round.position.value, applied.error().text);
    return applied;
  }
  for (const auto& machine : machines_) BATON_TRY_STATUS(machine->applied(*this));
  position_ = Position{round.position.value + 1};
  return {};
}

Status Replica::apply_facts(std::string_view facts, Instant now) {
  Decoder in(facts);
  if (!in.empty()) in.u8();  // The format.
  while (!in.empty()) {
    const FactFrame frame = read_frame(in);
    if (!in.ok()) return Error{Errc::malformed, "a fact is longer than its round"};
    BATON_TRY_STATUS(apply_frame(frame, now));
  }
  return {};
}

Status Replica::apply_frame(const FactFrame& frame, Instant now) {
  if (frame.owner == kShardFacts.owner) {
    if (frame.kind >= kShardFacts.kinds.size()) return skip_frame(frame, kShardFacts.name);
    BATON_TRY(const ShardFact fact, decode_shard_fact(frame));
    boot_ = std::get<Booted>(fact).boot;
    return {};
  }
  const Owner& owner = owners_.at(frame.owner.value);
  if (owner.machine == nullptr) {
    return skip_frame(frame, fmt::format("machine {}", frame.owner.value));
  }
  if (frame.kind >= owner.facts->kinds.size()) return skip_frame(frame, owner.facts->name);
  return owner.machine->apply(frame, *this, now);
}

Status Replica::apply_facts_1(std::string_view facts, Instant now) {
  Decoder in(facts);
  while (!in.empty()) {
    const FactOwner owner{in.u8()};
    if (owner == kShardFacts.owner) {
      BATON_TRY(const ShardFact fact, decode_shard_fact_1(in));
      boot_ = std::get<Booted>(fact).boot;
    } else if (owner.value < owners_.size() && owners_[owner.value].machine != nullptr) {
      BATON_TRY_STATUS(owners_[owner.value].machine->apply_1(owner, in, *this, now));
    } else {
      return Error{Errc::store_too_new, "facts this version does not know"};
    }
  }
  return {};
}

Status Replica::caught_up() {
  for (const auto& machine : machines_) BATON_TRY_STATUS(machine->caught_up(*this));
  return {};
}

Result<std::string> Replica::get(Table table, const std::string& key) {
  const auto unspilled = unspilled_.find({table.value, key});
  if (unspilled != unspilled_.end()) return unspilled->second;
  BATON_TRY(std::optional<std::string> value, store_.get(table, key));
  if (value.has_value()) return *std::move(value);
  return Error{Errc::store_corrupt,
               "the checkpoint lacks a message that the journal speaks of; restore the data folder "
               "from a copy"};
}

/// On a full disk rows wait in memory: a broker must be able to start, because only then can queues
/// be purged.
Status Replica::spill(const RowBatch& rows) {
  if (unspilled_.empty()) {
    const Status spilled = store_.spill(rows);
    if (spilled.has_value() || spilled.error().code != Errc::disk_full) return spilled;
  }
  for (const RowChange& change : rows.changes()) {
    unspilled_[{change.table.value, change.key}] = change.value;
  }
  return {};
}

void Replica::begin_boot(Instant now) {
  ++boot_;
  now_ = checkpointed_at_ = now;
  // A conversion needs only a checkpoint: it writes the rows that were loaded from format 1, and
  // the rounds of format 1 before it are trimmed. If it is interrupted, the next start does the
  // same again.
  if (converts_) request_checkpoint();
}

RowBatch Replica::take_unspilled() {
  RowBatch rows;
  for (auto& [place, value] : std::exchange(unspilled_, {})) {
    rows.put(Table{place.first}, place.second, std::move(value));
  }
  return rows;
}

void Replica::spill_sent(std::uint64_t bytes) {
  spill_bytes_behind_ += bytes;
  ++spills_sent_;
}

bool Replica::take_spill_result(const StoreResult& result) {
  if (const auto* spilled = std::get_if<SpillDone>(&result)) {
    spill_bytes_behind_ -= spilled->bytes;
    ++spills_done_;
  } else if (std::holds_alternative<SpillHeld>(result)) {
    ++spills_done_;
  } else if (const auto* brought = std::get_if<SpillBrought>(&result)) {
    spill_bytes_behind_ -= brought->bytes;
  } else {
    return false;
  }
  return true;
}

std::uint64_t Replica::changed_bytes() const {
  std::uint64_t bytes = 0;
  for (const auto& machine : machines_) bytes += machine->changed_bytes();
  return bytes;
}

/// On a full disk a checkpoint makes room, and acks and purges need it soon.
Duration Replica::checkpoint_interval(bool hurry) const {
  constexpr Duration kSoon = std::chrono::seconds{1};
  return hurry ? std::min(kSoon, options_.checkpoint_interval) : options_.checkpoint_interval;
}

Instant Replica::checkpoint_deadline(bool hurry) const {
  const bool under_way = sealed_.has_value() || writing_;
  if (under_way || changed_bytes() == 0) return Instant::never();
  return checkpointed_at_ + checkpoint_interval(hurry);
}

bool Replica::checkpoint_due(std::uint64_t log_bytes, bool hurry, Instant now) const {
  const std::uint64_t changed = changed_bytes();
  return checkpoint_requested_ || log_bytes >= options_.checkpoint_journal_bytes ||
         changed >= options_.checkpoint_delta_bytes ||
         (changed != 0 && now >= checkpointed_at_ + checkpoint_interval(hurry));
}

void Replica::seal() {
  checkpoint_requested_ = false;
  ++checkpoints_sealed_;
  sealed_ = CheckpointJob{.carried = std::exchange(carried_, {}),
                          .rows = {},
                          .deltas = {},
                          .position = position_,
                          .boot = boot_,
                          .now = now_};
  for (const auto& machine : machines_) machine->seal(*sealed_);
  sealed_after_spill_ = spills_sent_;
}

std::optional<CheckpointJob> Replica::next_checkpoint(Position durable, std::uint64_t log_bytes,
                                                      bool hurry, Instant now) {
  if (!sealed_.has_value() && !writing_ && checkpoint_due(log_bytes, hurry, now)) seal();
  // The store must never be ahead of the log, nor a checkpoint ahead of the rows that it builds on.
  if (!sealed_.has_value() || durable < sealed_->position || spills_done_ < sealed_after_spill_) {
    return std::nullopt;
  }
  writing_ = true;
  return std::exchange(sealed_, std::nullopt);
}

void Replica::checkpoint_done(Position position, Instant now) {
  writing_ = false;
  checkpointed_ = position;
  checkpointed_at_ = now;
  // One at a time: this is the last sealed one, and it includes those that were given up before it.
  checkpoints_done_ = checkpoints_sealed_;
}

void Replica::checkpoint_given_up(const CheckpointJob& job) {
  writing_ = false;
  checkpoint_requested_ = true;
  carried_ = rows_of(job);
}

}  // namespace baton
