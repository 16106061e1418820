#include "server/shard/shard.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "server/shard/shard_facts.h"

namespace baton {
namespace {

Error no_room(Shard::Shortage shortage) {
  if (shortage == Shard::Shortage::files) {
    return {Errc::unavailable,
            "the broker has as many files open as it may (too many open files): there is no room "
            "for new messages and values until some are closed; leases, acks and removals go on"};
  }
  if (shortage == Shard::Shortage::log) {
    return {Errc::disk_full,
            "the shard's log is full: there is no room for new messages and values; leases, acks "
            "and removals go on"};
  }
  return {Errc::disk_full,
          "the disk of the data folder is full: there is no room for new messages and values; "
          "leases, acks and removals go on"};
}

Error too_large(std::size_t bytes, std::uint64_t bytes_max) {
  return {Errc::invalid_argument,
          fmt::format("the request adds {} bytes at once; the broker's journal takes at most {}: "
                      "send fewer messages at a time",
                      bytes, bytes_max)};
}

}  // namespace

Shard::Shard(const Options& options, ShardLog& log, std::unique_ptr<Replica> replica)
    : options_(options), log_(log), replica_(std::move(replica)) {}

std::unique_ptr<Replica> Shard::make_replica(const Options& options, const Parts& parts) {
  const Replica::Options checkpoints{.checkpoint_journal_bytes = options.checkpoint_journal_bytes,
                                     .checkpoint_delta_bytes = options.checkpoint_delta_bytes,
                                     .checkpoint_interval = options.checkpoint_interval};
  return std::make_unique<Replica>(checkpoints, parts.store, make_machines(options, parts.log));
}

Result<std::unique_ptr<Shard>> Shard::recover(const Options& options, const Parts& parts,
                                              Instant now) {
  auto replica = make_replica(options, parts);
  BATON_TRY_STATUS(replica->load());
  return lead(options, parts.log, std::move(replica), now);
}

Result<std::unique_ptr<Shard>> Shard::lead(const Options& options, ShardLog& log,
                                           std::unique_ptr<Replica> replica, Instant now) {
  BATON_TRY_STATUS(replica->follow(log));
  BATON_TRY_STATUS(replica->caught_up());
  auto shard = std::unique_ptr<Shard>(new Shard(options, log, std::move(replica)));
  BATON_TRY_STATUS(shard->boot_up(std::max(now, shard->replica_->now())));
  return shard;
}

/// Takes a new boot number, which is durable before any client is served under it.
Status Shard::boot_up(Instant now) {
  replica_->begin_boot(now);
  started_at_ = now;
  // On a full disk some room is enough: acks, purges and deletes make more.
  Status prepared = log_.prepare();
  if (!prepared.has_value() && log_.room().everything < options_.small_round_bytes) {
    return prepared;
  }
  facts_.add(ShardFact(Booted{replica_->boot()}), true);
  BATON_TRY_STATUS(append_and_sync(now));
  for (const auto& machine : replica_->machines()) {
    BATON_TRY_STATUS(machine->start(replica_->boot(), facts_, now));
  }
  BATON_TRY_STATUS(append_and_sync(now));
  more_ = true;
  return {};
}

Status Shard::append_facts(Instant now) {
  return log_.append({.expected = replica_->position(),
                      .epoch = replica_->boot(),
                      .now = now,
                      .facts = facts_.bytes()});
}

/// Makes facts durable that were decided outside of a round.
Status Shard::append_and_sync(Instant now) {
  if (facts_.bytes().empty()) return {};
  BATON_TRY_STATUS(append_facts(now));
  facts_.clear();
  replica_->decided(log_.next());
  BATON_TRY(const Position durable, log_.sync());
  BATON_ASSERT(durable == log_.next());
  return {};
}

void Shard::begin_serving(Instant now) {
  for (const auto& machine : replica_->machines()) machine->begin_serving(now);
}

ShardMachine& Shard::machine_of(const Command& command) const {
  return *replica_->machines().at(command.index());
}

Held Shard::round(std::deque<std::unique_ptr<Call>>& calls, std::vector<StoreResult> results,
                  Instant now) {
  BATON_ASSERT(now >= replica_->now() && facts_.bytes().empty());
  replica_->set_now(now);
  Held held;
  more_ = false;
  // Before anything else, so that no read of these rows overtakes the spill.
  if (RowBatch rows = replica_->take_unspilled(); !rows.empty()) {
    held.jobs.emplace_back(SpillJob{std::move(rows)});
  }
  for (StoreResult& result : results) take_result(result, held, now);
  resume_waiting(held, now);
  std::ranges::move(std::exchange(deferred_, {}), std::back_inserter(retries_));
  bool has_room = true;
  for (auto* source : {&retries_, &calls}) {
    std::size_t left = source->size();
    for (; left > 0; --left) {
      has_room = has_room && round_takes(source->front()->command);
      if (!has_room) break;
      std::unique_ptr<Call> call = std::move(source->front());
      source->pop_front();
      run_call(std::move(call), held, now);
    }
  }
  for (const auto& machine : replica_->machines()) {
    more_ = machine->tick(now) || more_;
  }
  for (const auto& machine : replica_->machines()) machine->take_effects(held);
  count_spills(held);
  append(held, now);
  return held;
}

/// Whether the present round has room for the command; if not, the command waits for the next
/// round.
bool Shard::round_takes(const Command& command) const {
  const std::size_t decided = facts_.bytes().size();
  if (decided == 0) return true;
  return decided < options_.round_bytes &&
         decided + machine_of(command).demand(command).bytes <= addition_bytes_max();
}

/// The most bytes that one command can add to a round: a round is never split over two journal
/// segments.
std::uint64_t Shard::addition_bytes_max() const {
  const std::uint64_t bytes = log_.round_bytes_max();
  return bytes - std::min(bytes, options_.small_round_bytes);
}

void Shard::take_result(StoreResult& result, Held& held, Instant now) {
  if (replica_->take_spill_result(result)) return;
  const auto& read = std::get<ReadDone>(result);
  if (read.machine != nullptr) {
    read.machine->take_rows(read, now);
  } else {
    resume(read.number, read.rows, read.exhausted, held, now);
  }
}

void Shard::resume(std::uint64_t number, const std::vector<Row>& rows, bool exhausted, Held& held,
                   Instant now) {
  const auto entry = waiting_.find(number);
  BATON_ASSERT(entry != waiting_.end());
  std::unique_ptr<Call> call = std::move(entry->second.call);
  waiting_.erase(entry);
  Progress progress = machine_of(call->command).resume(call->command, rows, exhausted, now);
  proceed(std::move(call), std::move(progress), held);
}

void Shard::resume_waiting(Held& held, Instant now) {
  std::vector<std::uint64_t> due;
  for (const auto& [number, waiting] : waiting_) {
    if (waiting.until <= now) due.push_back(number);
  }
  for (const std::uint64_t number : due) resume(number, {}, false, held, now);
}

void Shard::run_call(std::unique_ptr<Call> call, Held& held, Instant now) {
  ShardMachine& machine = machine_of(call->command);
  const Demand demand = machine.demand(call->command);
  if (!has_room(demand)) return turn_away(std::move(call), demand, held);
  Progress progress = machine.execute(call->command, now);
  proceed(std::move(call), std::move(progress), held);
}

/// Whether the command's addition fits into prepared room, with the rest of its round.
bool Shard::has_room(const Demand& demand) const {
  const std::size_t decided = facts_.bytes().size();
  const std::uint64_t needed = decided + demand.bytes + options_.small_round_bytes;
  switch (demand.room) {
    case Demand::Room::none: return true;
    case Demand::Room::reserve: return log_.room().everything >= needed;
    case Demand::Room::addition:
      return decided + demand.bytes <= addition_bytes_max() && log_.room().additions >= needed &&
             !store_is_behind();
  }
  return false;
}

/// Handles a call that finds no room. On a full disk nobody knows when there will be room, so
/// additions are refused. A command that may use the reserve waits: the next checkpoint makes room.
void Shard::turn_away(std::unique_ptr<Call> call, const Demand& demand, Held& held) {
  std::optional<Error> refusal;
  if (demand.room == Demand::Room::addition && shortage_ != Shortage::none) {
    refusal = no_room(shortage_);
  } else if (demand.room == Demand::Room::addition && demand.bytes > addition_bytes_max()) {
    refusal = too_large(demand.bytes, addition_bytes_max());
  }
  if (refusal.has_value()) {
    machine_of(call->command).refuse(call->command, *refusal);
    held.calls.push_back(std::move(call));
  } else {
    deferred_.push_back(std::move(call));
  }
}

void Shard::proceed(std::unique_ptr<Call> call, Progress progress, Held& held) {
  if (progress.kind == Progress::Kind::done) {
    held.calls.push_back(std::move(call));
    return;
  }
  const std::uint64_t number = next_waiting_++;
  Waiting& waiting = waiting_[number];
  waiting.call = std::move(call);
  if (progress.kind == Progress::Kind::waits) {
    waiting.until = progress.until;
  } else {
    held.jobs.emplace_back(ReadJob{nullptr, number, std::move(progress.rows)});
  }
}

/// Taking more would only move the queue into memory.
bool Shard::store_is_behind() const {
  return replica_->spill_bytes_behind() > options_.spill_behind_bytes ||
         log_.bytes_since(replica_->checkpointed()) > options_.journal_behind_bytes;
}

void Shard::count_spills(const Held& held) {
  for (const StoreJob& job : held.jobs) {
    if (const auto* spill = std::get_if<SpillJob>(&job)) replica_->spill_sent(spill->rows.bytes());
  }
}

void Shard::append(Held& held, Instant now) {
  if (const std::string& facts = facts_.bytes(); !facts.empty()) {
    const Status appended = append_facts(now);
    if (!appended.has_value() && appended.error().code == Errc::position_taken) {
      fenced_ = true;
      held = {};
      return;
    }
    // A round that was decided and cannot be written leaves memory ahead of the disk for good.
    if (!appended.has_value()) fatal("the journal cannot be written", appended.error());
    ++stats_.rounds;
    stats_.journal_bytes += facts.size();
  }
  replica_->decided(log_.next());
  held.position = Position{log_.next().value - 1};
  held.always_sync = facts_.must_sync();
  facts_.clear();
}

Instant Shard::next_deadline() const {
  Instant next = replica_->checkpoint_deadline(hurries());
  for (const auto& machine : replica_->machines()) next = std::min(next, machine->next_deadline());
  for (const auto& [number, waiting] : waiting_) next = std::min(next, waiting.until);
  return next;
}

std::optional<CheckpointJob> Shard::next_checkpoint(Position durable, Instant now) {
  return replica_->next_checkpoint(durable, log_.bytes_since(replica_->checkpointed()), hurries(),
                                   now);
}

void Shard::checkpoint_done(Position position, Instant now) {
  replica_->checkpoint_done(position, now);
  ++stats_.checkpoints;
}

void Shard::drop_waiting() {
  waiting_.clear();
  deferred_.clear();
  retries_.clear();
}

Status Shard::finish(Instant now) {
  BATON_ASSERT(facts_.bytes().empty());
  Status finished;
  for (const auto& machine : replica_->machines()) {
    if (finished.has_value()) finished = machine->finish();
  }
  if (!finished.has_value()) {
    facts_.clear();
    return finished;
  }
  return append_and_sync(std::max(now, replica_->now()));
}

ShardStats Shard::stats() const {
  ShardStats stats = stats_;
  stats.journal_bytes_behind = log_.bytes_since(replica_->checkpointed());
  stats.boot = replica_->boot();
  for (const auto& machine : replica_->machines()) machine->add_stats(stats);
  return stats;
}

}  // namespace baton
