#include "server/shard/shard.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "server/shard/round_facts.h"
#include "server/shard/row_merge.h"
#include "server/shard/shard_facts.h"

namespace baton {
namespace {

bool adds_data(const QueueCommand& command) {
  return std::holds_alternative<EnqueueCommand>(command) ||
         std::holds_alternative<TransferCommand>(command) ||
         std::holds_alternative<CreateQueueCommand>(command);
}

Error no_room(Shard::Shortage shortage) {
  if (shortage == Shard::Shortage::files) {
    return {Errc::unavailable,
            "the broker has as many files open as it may (too many open files): there is no room "
            "for new messages and values until some are closed; leases, acks and removals go on"};
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

/// At most what the command adds to its round; acks, leases and reads have room of their own.
std::size_t added_bytes(const Command& command) {
  if (const auto* kv = std::get_if<KvCommand>(&command)) return fact_bytes_max(*kv);
  const auto* queue = std::get_if<QueueCommand>(&command);
  return queue != nullptr && adds_data(*queue) ? command_bytes(*queue) : 0;
}

/// Answers a command that was not decided.
void refuse(QueueCommand& command, const Error& error) {
  if (auto* enqueue = std::get_if<EnqueueCommand>(&command)) {
    enqueue->outcomes.assign(enqueue->messages.size(),
                             {.id = {}, .duplicate = false, .error = error});
  } else if (auto* create = std::get_if<CreateQueueCommand>(&command)) {
    create->error = error;
  } else if (auto* transfer = std::get_if<TransferCommand>(&command)) {
    transfer->error = error;
  }
}

/// Whether nothing of `range` is left after `rows`, which a scan of it answered. A scan ends before
/// the row that would take it past its bytes, so a short answer says nothing by itself.
Result<bool> is_exhausted(const CheckpointStore& store, RowRange range,
                          const std::vector<Row>& rows) {
  if (rows.empty()) return true;
  if (rows.size() >= range.rows_max) return false;
  range.begin = rows.back().key + '\0';
  range.rows_max = 1;
  BATON_TRY(const std::vector<Row> next, store.scan(range));
  return next.empty();
}

/// All changes of a checkpoint but its position, each row at most once.
RowBatch rows_of(const CheckpointJob& job) {
  RowBatch rows;
  append_rows(job.delta, rows);
  for (const RowChange& change : job.rows.changes()) rows.add(change);
  if (job.carried.empty()) return rows;
  RowBatch all = surviving(job.carried, rows);
  for (const RowChange& change : rows.changes()) all.add(change);
  return all;
}

QueueCommand& queue_command(Call& call) { return std::get<QueueCommand>(call.command); }

void refuse(Command& command, const Error& error) {
  if (auto* queue = std::get_if<QueueCommand>(&command)) refuse(*queue, error);
  if (auto* kv = std::get_if<KvCommand>(&command)) refuse(*kv, error);
}

}  // namespace

void Held::release() {
  // Calls first: a consumer's registration must be out before its first message.
  for (std::unique_ptr<Call>& call : calls) call->complete();
  calls.clear();
  for (auto& [sink, messages] : deliveries) sink->deliver(std::move(messages));
  deliveries.clear();
  for (auto& [sink, reason] : closed) sink->close(reason);
  closed.clear();
  for (auto& [sink, effect] : streams.seats) sink->told(effect);
  streams.seats.clear();
  for (auto& [sink, effect] : watches) sink->told(effect);
  watches.clear();
}

Shard::Shard(Options options, const Parts& parts)
    : options_(options),
      journal_(parts.journal),
      machine_(options.machine, options.seed),
      streams_(parts.disk, parts.streams_folder, options.streams),
      kv_(options.kv) {}

void Shard::record(const QueueFact& fact) {
  begin_facts(facts_);
  Encoder out(facts_);
  encode(out, fact);
  always_sync_ = always_sync_ || std::holds_alternative<QueueCreated>(fact) ||
                 std::holds_alternative<QueueUpdated>(fact) ||
                 std::holds_alternative<QueueDeleted>(fact);
}

void Shard::record(const std::function<void(Encoder&)>& fact, bool must_sync) {
  begin_facts(facts_);
  Encoder out(facts_);
  fact(out);
  always_sync_ = always_sync_ || must_sync;
}

Held Shard::round(std::deque<std::unique_ptr<Call>>& calls, std::vector<StoreResult> results,
                  Instant now) {
  BATON_ASSERT(now >= now_ && facts_.empty());
  now_ = now;
  Held held;
  more_ = false;
  send_unspilled(held);
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
  more_ = machine_.expire(now, options_.round_deliveries);
  more_ = machine_.deliver(now, options_.round_deliveries) || more_;
  streams_.tick(now);
  more_ = kv_.expire(now) || more_;
  collect_effects(held);
  append(held, now);
  return held;
}

/// Whether the round being decided has not become so large that the command must wait for the next.
bool Shard::round_takes(const Command& command) const {
  return facts_.empty() || (facts_.size() < options_.round_bytes &&
                            facts_.size() + added_bytes(command) <= addition_bytes_max());
}

/// What one command can add to a round: a round is never divided between the journal's segments.
std::uint64_t Shard::addition_bytes_max() const {
  const std::uint64_t bytes = journal_.round_bytes_max();
  return bytes - std::min(bytes, options_.small_round_bytes);
}

/// Before anything else, so that no read of these rows overtakes them.
void Shard::send_unspilled(Held& held) {
  if (unspilled_.empty()) return;
  RowBatch rows;
  for (auto& [place, value] : std::exchange(unspilled_, {})) {
    rows.put(Table{place.first}, place.second, std::move(value));
  }
  send_spill(std::move(rows), held);
}

void Shard::send_spill(RowBatch rows, Held& held) {
  spill_bytes_behind_ += rows.bytes();
  ++spills_sent_;
  held.jobs.emplace_back(SpillJob{std::move(rows)});
}

void Shard::take_result(StoreResult& result, Held& held, Instant now) {
  if (const auto* spilled = std::get_if<SpillDone>(&result)) {
    spill_bytes_behind_ -= spilled->bytes;
    ++spills_done_;
  } else if (std::holds_alternative<SpillHeld>(result)) {
    ++spills_done_;
  } else if (const auto* brought = std::get_if<SpillBrought>(&result)) {
    spill_bytes_behind_ -= brought->bytes;
  } else if (const auto* refill = std::get_if<Refill>(&result)) {
    ++stats_.refills;
    machine_.refill(*refill, now);
  } else if (const auto* read = std::get_if<ReadDone>(&result)) {
    const auto entry = waiting_.find(read->waiting);
    BATON_ASSERT(entry != waiting_.end());
    std::unique_ptr<Call> call = std::move(entry->second.call);
    waiting_.erase(entry);
    const Progress progress =
        machine_.resume(queue_command(*call), read->rows, read->exhausted, now);
    proceed(std::move(call), progress, held);
  }
}

void Shard::resume_waiting(Held& held, Instant now) {
  std::vector<std::uint64_t> due;
  for (const auto& [number, waiting] : waiting_) {
    if (waiting.until <= now) due.push_back(number);
  }
  for (const std::uint64_t number : due) {
    std::unique_ptr<Call> call = std::move(waiting_.at(number).call);
    waiting_.erase(number);
    const Progress progress = machine_.resume(queue_command(*call), {}, false, now);
    proceed(std::move(call), progress, held);
  }
}

void Shard::run_call(std::unique_ptr<Call> call, Held& held, Instant now) {
  if (auto* stream = std::get_if<StreamCommand>(&call->command)) {
    streams_.execute(*stream, now);
    held.calls.push_back(std::move(call));
  } else if (std::holds_alternative<KvCommand>(call->command)) {
    run_kv_call(std::move(call), held, now);
  } else {
    run_queue_call(std::move(call), held, now);
  }
}

void Shard::run_kv_call(std::unique_ptr<Call> call, Held& held, Instant now) {
  auto& command = std::get<KvCommand>(call->command);
  if (adds_data(command)) {
    const bool fits = room_for(fact_bytes_max(command)) && !store_is_behind();
    if (!fits) return turn_away(std::move(call), held);
  } else if (journal_.room().everything <
             facts_.size() + fact_bytes_max(command) + options_.small_round_bytes) {
    // The reserve is nearly used up: the next checkpoint makes room.
    deferred_.push_back(std::move(call));
    return;
  }
  kv_.execute(command, now);
  held.calls.push_back(std::move(call));
}

/// What adds data and finds no room. On a full disk there is no telling when there will be some.
void Shard::turn_away(std::unique_ptr<Call> call, Held& held) {
  const std::size_t bytes = added_bytes(call->command);
  if (shortage_ != Shortage::none) {
    refuse(call->command, no_room(shortage_));
    held.calls.push_back(std::move(call));
  } else if (bytes > addition_bytes_max()) {
    refuse(call->command, too_large(bytes, addition_bytes_max()));
    held.calls.push_back(std::move(call));
  } else {
    deferred_.push_back(std::move(call));
  }
}

void Shard::run_queue_call(std::unique_ptr<Call> call, Held& held, Instant now) {
  QueueCommand& command = queue_command(*call);
  if (adds_data(command) && (!room_for(command_bytes(command)) || store_is_behind())) {
    return turn_away(std::move(call), held);
  }
  const Progress progress = machine_.execute(command, now);
  if (auto* attach = std::get_if<AttachCommand>(&command)) {
    if (!attach->error.has_value()) sinks_[attach->consumer] = attach->sink;
  } else if (auto* detach = std::get_if<DetachCommand>(&command)) {
    sinks_.erase(detach->consumer);
  }
  proceed(std::move(call), progress, held);
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
    held.jobs.emplace_back(ReadJob{number, std::move(progress.rows)});
  }
}

/// Taking more would only move the queue into memory.
bool Shard::store_is_behind() const {
  return spill_bytes_behind_ > options_.spill_behind_bytes ||
         journal_.bytes_since(checkpointed_) > options_.journal_behind_bytes;
}

/// On a full disk a checkpoint is what makes room: of acks and purges, soon.
Duration Shard::checkpoint_interval() const {
  constexpr Duration kSoon = std::chrono::seconds{1};
  return shortage_ == Shortage::disk ? std::min(kSoon, options_.checkpoint_interval)
                                     : options_.checkpoint_interval;
}

/// Whether what a command adds fits into prepared room, with the rest of its round.
bool Shard::room_for(std::size_t bytes) const {
  return facts_.size() + bytes <= addition_bytes_max() &&
         journal_.room().additions >= facts_.size() + bytes + options_.small_round_bytes;
}

void Shard::collect_effects(Held& held) {
  QueueEffects effects = machine_.take_effects();
  // Deliveries of one round to one consumer go out together.
  std::unordered_map<ConsumerNumber, std::size_t> places;
  for (QueueEffects::Grant& grant : effects.grants) {
    const auto [place, added] = places.try_emplace(grant.consumer, held.deliveries.size());
    if (added) held.deliveries.emplace_back(sinks_.at(grant.consumer), std::vector<Delivery>{});
    held.deliveries[place->second].second.push_back(std::move(grant.delivery));
  }
  for (const QueueEffects::Closed& closed : effects.closed) {
    const auto sink = sinks_.find(closed.consumer);
    if (sink != sinks_.end()) held.closed.emplace_back(sink->second, closed.reason);
  }
  held.transfers = std::move(effects.transfers);
  if (!effects.spill.empty()) {
    stats_.spilled_messages += effects.spilled_messages;
    send_spill(std::move(effects.spill), held);
  }
  for (QueueEffects::RefillRequest& request : effects.refills) {
    held.jobs.emplace_back(RefillJob{std::move(request)});
  }
  stats_.rows_missing += effects.rows_missing;
  held.streams = streams_.take_effects();
  held.watches = kv_.take_effects();
}

void Shard::append(Held& held, Instant now) {
  if (!facts_.empty()) {
    const Status appended = journal_.append(journal_.next(), now, facts_);
    // A round that was decided and cannot be written leaves memory ahead of the disk for good.
    if (!appended.has_value()) fatal("the journal cannot be written", appended.error());
    ++stats_.rounds;
    stats_.journal_bytes += facts_.size();
  }
  facts_.clear();
  held.position = Position{journal_.next().value - 1};
  held.always_sync = std::exchange(always_sync_, false);
}

Instant Shard::next_deadline() const {
  Instant next =
      std::min({machine_.next_deadline(), streams_.next_deadline(), kv_.next_deadline()});
  for (const auto& [number, waiting] : waiting_) next = std::min(next, waiting.until);
  if (delta_bytes() != 0 && !checkpoint_under_way()) {
    next = std::min(next, checkpointed_at_ + checkpoint_interval());
  }
  return next;
}

std::optional<CheckpointJob> Shard::next_checkpoint(Position durable, Instant now) {
  if (!sealed_.has_value() && !writing_) {
    const bool due = checkpoint_requested_ ||
                     journal_.bytes_since(checkpointed_) >= options_.checkpoint_journal_bytes ||
                     delta_bytes() >= options_.checkpoint_delta_bytes ||
                     (delta_bytes() != 0 && now >= checkpointed_at_ + checkpoint_interval());
    if (!due) return std::nullopt;
    checkpoint_requested_ = false;
    ++checkpoints_sealed_;
    sealed_ = CheckpointJob{.carried = std::exchange(carried_, {}),
                            .delta = machine_.seal(),
                            .rows = {},
                            .position = journal_.next(),
                            .boot = boot_,
                            .now = now_};
    streams_.append_changed_rows(sealed_->rows);
    kv_.append_changed_rows(sealed_->rows);
    sealed_after_spill_ = spills_sent_;
  }
  // The store must never be ahead of the journal, nor a checkpoint ahead of the rows it builds on.
  if (!sealed_.has_value() || durable < sealed_->position || spills_done_ < sealed_after_spill_) {
    return std::nullopt;
  }
  writing_ = true;
  return std::exchange(sealed_, std::nullopt);
}

void Shard::checkpoint_done(Position position, Instant now) {
  writing_ = false;
  checkpointed_ = position;
  checkpointed_at_ = now;
  // One at a time: it is the last that was sealed, and has what those given up before it had.
  checkpoints_done_ = checkpoints_sealed_;
  ++stats_.checkpoints;
}

void Shard::checkpoint_given_up(const CheckpointJob& job) {
  writing_ = false;
  checkpoint_requested_ = true;
  carried_ = rows_of(job);
}

void Shard::drop_waiting() {
  waiting_.clear();
  deferred_.clear();
  retries_.clear();
}

Status Shard::finish(Instant now) {
  BATON_ASSERT(facts_.empty());
  const Status finished = streams_.finish();
  const std::string facts = std::exchange(facts_, {});
  BATON_TRY_STATUS(finished);
  if (facts.empty()) return {};
  BATON_TRY_STATUS(journal_.append(journal_.next(), std::max(now, now_), facts));
  BATON_TRY_STATUS(journal_.sync());
  return {};
}

ShardStats Shard::stats() const {
  ShardStats stats = stats_;
  const QueueStats& totals = machine_.totals();
  stats.journal_bytes_behind = journal_.bytes_since(checkpointed_);
  stats.payload_bytes = machine_.payload_bytes();
  stats.enqueued = totals.enqueued_total;
  stats.delivered = totals.delivered_total;
  stats.acked = totals.acked_total;
  stats.nacked = totals.nacked_total;
  stats.lease_expired = totals.lease_expired_total;
  stats.dead_lettered = totals.dead_lettered_total;
  stats.dropped = totals.dropped_total;
  stats.deduplicated = totals.deduplicated_total;
  stats.lease_lost = machine_.lease_lost_total();
  stats.boot = boot_;
  stats.streams = streams_.stats();
  stats.kv = kv_.stats();
  return stats;
}

Result<StoreResult> run_store_job(CheckpointStore& store, const StoreJob& job) {
  if (const auto* spill = std::get_if<SpillJob>(&job)) {
    BATON_TRY_STATUS(store.spill(spill->rows));
    return StoreResult(SpillDone{spill->rows.bytes()});
  }
  const auto* refill = std::get_if<RefillJob>(&job);
  const RowRange& range = refill != nullptr ? refill->request.range : std::get<ReadJob>(job).range;
  BATON_TRY(std::vector<Row> rows, store.scan(range));
  BATON_TRY(const bool exhausted, is_exhausted(store, range, rows));
  if (refill != nullptr) return StoreResult(Refill{refill->request, std::move(rows), exhausted});
  return StoreResult(ReadDone{std::get<ReadJob>(job).waiting, std::move(rows), exhausted});
}

Status run_checkpoint_job(CheckpointStore& store, const CheckpointJob& job) {
  RowBatch batch = rows_of(job);
  append_shard_state(batch, {.position = job.position, .boot = job.boot, .now = job.now});
  return store.commit(batch);
}

}  // namespace baton
