#include "server/shard/shard_runner.h"

#include <algorithm>
#include <chrono>
#include <set>
#include <utility>

#include <spdlog/spdlog.h>

#include "server/shard/shard_facts.h"

namespace baton {
namespace {

using std::chrono::milliseconds;

/// The deciding thread wakes at least this often, so that nothing depends on a single wake-up.
constexpr auto kLookUp = milliseconds{500};
/// How many rounds may wait for the releasing thread.
constexpr std::size_t kRoundsWaiting = 1;

/// What a log lacks that could make no room.
Shard::Shortage shortage_of(const Error& error) {
  switch (error.code) {
    case Errc::resource_exhausted: return Shard::Shortage::files;
    case Errc::journal_full: return Shard::Shortage::log;
    default: return Shard::Shortage::disk;
  }
}

}  // namespace

ShardRunner::ShardRunner(Parts parts)
    : parts_(std::move(parts)),
      durable_(parts_.log.next().value),
      checkpointed_(parts_.shard->replica().checkpointed().value),
      synced_at_(parts_.clock.now()),
      spills_(parts_.store) {
  published_ = parts_.shard->stats();
}

ShardRunner::~ShardRunner() { stop(); }

void ShardRunner::start() {
  releasing_ = std::thread([this] { release(); });
  deciding_ = std::thread([this] { decide(); });
}

bool ShardRunner::submit(std::unique_ptr<Call>& call, Broker::Admission admission) {
  const std::size_t bytes = command_bytes(call->command);
  bool wake = false;
  {
    const std::scoped_lock lock(inbox_mutex_);
    if (stopping_ || deposed_) return false;
    if (admission == Broker::Admission::bounded &&
        (log_unknown_ || inbox_.size() >= limits::kCommandsWaiting ||
         inbox_bytes_ + bytes > limits::kCommandBytesWaiting)) {
      return false;
    }
    inbox_.push_back(std::move(call));
    inbox_bytes_ += bytes;
    wake = idle_;
  }
  if (wake) inbox_wake_.notify_one();
  return true;
}

Status ShardRunner::checkpoint() {
  std::unique_lock lock(inbox_mutex_);
  if (stopping_) return Error{Errc::unavailable, "the broker is stopping"};
  const std::uint64_t wanted = ++checkpoints_wanted_;
  inbox_wake_.notify_one();
  checkpoint_wake_.wait(lock, [&] { return checkpoints_made_ >= wanted || stopping_ || deposed_; });
  if (checkpoints_made_ < wanted) return Error{Errc::unavailable, "the broker is stopping"};
  return {};
}

ShardStats ShardRunner::stats() const {
  const std::scoped_lock lock(inbox_mutex_);
  ShardStats stats = published_;
  stats.commands_waiting = inbox_.size();
  stats.syncs = syncs_;
  stats.sync_ns = sync_ns_;
  stats.journal_syncs = journal_syncs_.read();
  stats.partition_syncs = partition_syncs_.read();
  stats.checkpoint_failures = checkpoint_failures_;
  return stats;
}

void ShardRunner::stop() {
  {
    const std::scoped_lock lock(inbox_mutex_);
    if (stopping_ || !deciding_.joinable()) return;
    stopping_ = true;
  }
  inbox_wake_.notify_one();
  checkpoint_wake_.notify_all();
  deciding_.join();
  {
    const std::scoped_lock lock(held_mutex_);
    held_end_ = true;
  }
  held_wake_.notify_one();
  releasing_.join();
  store_thread_.stop();
  spill_thread_.stop();
  checkpoint_thread_.stop();
  keeper_.stop();
  if (!deposed_) finish();
  // The waiters are told that these calls were dropped, while the broker is still complete.
  parts_.shard->drop_waiting();
  held_.clear();
  calls_.clear();
  inbox_.clear();
  parts_.shard.reset();
}

void ShardRunner::finish() {
  if (const Status done = parts_.shard->finish(parts_.clock.now()); !done.has_value()) {
    spdlog::error("event=finish_failed error=\"{}\"", to_string(done.error()));
  }
}

/// Decisions that are not durable are void: none of their effects is released.
void ShardRunner::depose() {
  bool stops = false;
  {
    const std::scoped_lock lock(inbox_mutex_);
    if (std::exchange(deposed_, true)) return;
    stops = stopping_;
  }
  spdlog::warn("event=shard_deposed reason=\"{}\"", stops ? "it stops while its log does not answer"
                                                          : "another node appends to its log");
  {
    const std::scoped_lock lock(held_mutex_);
    held_void_ = true;
  }
  inbox_wake_.notify_one();
  checkpoint_wake_.notify_all();
  held_taken_.notify_all();
  held_wake_.notify_all();
  if (!stops && parts_.deposed != nullptr) parts_.deposed();
}

bool ShardRunner::something_to_decide() const {
  return !inbox_.empty() || !results_.empty() || inbox_news_ || checkpoint_written_.has_value() ||
         checkpoint_given_up_ != nullptr || checkpoints_wanted_ > asked_ ||
         (stopping_ && !last_checkpoint_) || gave_up_ || deposed_;
}

void ShardRunner::wait_for_work(std::unique_lock<std::mutex>& lock) {
  if (something_to_decide() || !calls_.empty() || parts_.shard->has_work()) return;
  const Instant deadline = parts_.shard->next_deadline();
  const Duration wait =
      deadline == Instant::never() ? Duration{kLookUp} : deadline - parts_.clock.now();
  idle_ = true;
  inbox_wake_.wait_for(lock, std::clamp<Duration>(wait, Duration{0}, kLookUp),
                       [&] { return something_to_decide(); });
  idle_ = false;
}

void ShardRunner::decide() {
  std::unique_lock lock(inbox_mutex_);
  while (true) {
    wait_for_work(lock);
    if (stopping_ && !last_checkpoint_) last_checkpoint_ = ++checkpoints_wanted_;
    const bool stopped = last_checkpoint_ && (checkpoints_made_ >= *last_checkpoint_ || gave_up_);
    if (stopped || deposed_) return;
    inbox_news_ = false;
    std::ranges::move(inbox_, std::back_inserter(calls_));
    inbox_.clear();
    inbox_bytes_ = 0;
    std::vector<StoreResult> results = std::exchange(results_, {});
    const std::uint64_t wanted = checkpoints_wanted_;
    const std::optional<Position> written = std::exchange(checkpoint_written_, std::nullopt);
    const auto given_up = std::exchange(checkpoint_given_up_, nullptr);
    parts_.shard->set_shortage(store_full_ ? Shard::Shortage::disk : journal_shortage_);
    lock.unlock();

    if (written.has_value()) parts_.shard->checkpoint_done(*written, parts_.clock.now());
    if (given_up != nullptr) parts_.shard->checkpoint_given_up(*given_up);
    run_round(std::move(results));
    const std::uint64_t made = serve_checkpoints(wanted);
    keep_room();

    lock.lock();
    publish(made);
  }
}

/// Publishes the round's numbers, and that requested checkpoints are done up to `made`.
void ShardRunner::publish(std::uint64_t made) {
  if (made > checkpoints_made_) {
    checkpoints_made_ = made;
    checkpoint_wake_.notify_all();
  }
  published_ = parts_.shard->stats();
  if (published_.rows_missing == 0) return;
  // Stopping is better than continuing as if these messages had never existed.
  fatal("the checkpoint is damaged",
        {Errc::store_corrupt, "rows that it should hold are not there; restore the data folder"});
}

/// Starts the checkpoint that is due, requested or not. Returns up to which request (of `wanted`)
/// the requested ones are done.
std::uint64_t ShardRunner::serve_checkpoints(std::uint64_t wanted) {
  Shard& shard = *parts_.shard;
  if (wanted > asked_) {
    asked_ = wanted;
    // A checkpoint that is already sealed may lack what came since: the next one counts.
    asked_seal_ = shard.replica().checkpoints_sealed() + 1;
    shard.request_checkpoint();
  }
  start_checkpoint();
  checkpoint_waits_ = shard.replica().checkpoint_waits();
  if (checkpoint_waits_ && parts_.fsync.kind != FsyncMode::Kind::always) {
    // Possibly no other round will cause a sync.
    Held nothing;
    nothing.position = Position{parts_.log.next().value - 1};
    nothing.always_sync = true;
    hold(std::move(nothing));
  }
  return shard.replica().checkpoints_done() >= asked_seal_ ? asked_ : 0;
}

void ShardRunner::run_round(std::vector<StoreResult> results) {
  if (parts_.log.room().everything < parts_.small_round_bytes) {
    // Not even an ack can be journaled: wait for the keeper.
    std::this_thread::sleep_for(milliseconds{5});
    const std::scoped_lock lock(inbox_mutex_);
    std::ranges::move(results, std::back_inserter(results_));
    return;
  }
  Held held = parts_.shard->round(calls_, std::move(results), parts_.clock.now());
  if (parts_.shard->fenced()) return depose();
  if (!held.empty() || held.position.value >= durable_.load()) hold(std::move(held));
}

void ShardRunner::hold(Held held) {
  std::unique_lock lock(held_mutex_);
  held_taken_.wait(lock, [&] { return held_.size() < kRoundsWaiting || held_void_; });
  held_.push_back(std::move(held));
  held_wake_.notify_one();
}

void ShardRunner::start_checkpoint() {
  auto job = parts_.shard->next_checkpoint(durable(), parts_.clock.now());
  if (!job.has_value()) return;
  auto shared = std::make_shared<const CheckpointJob>(*std::move(job));
  checkpoint_thread_.post([this, shared] { run_checkpoint(shared); });
}

void ShardRunner::keep_room() {
  const std::scoped_lock lock(inbox_mutex_);
  // A prepared segment besides the reserve has room for the largest round.
  if (preparing_ || parts_.log.room().additions >= parts_.log.round_bytes_max()) return;
  preparing_ = true;
  keeper_.post([this] { prepare(); });
}

void ShardRunner::prepare() {
  const Status prepared = parts_.log.prepare();
  Shard::Shortage shortage = Shard::Shortage::none;
  if (!prepared.has_value()) {
    shortage = shortage_of(prepared.error());
  }
  {
    const std::scoped_lock lock(inbox_mutex_);
    if (shortage != journal_shortage_) {
      switch (shortage) {
        case Shard::Shortage::none: spdlog::info("event=journal_room_again"); break;
        case Shard::Shortage::disk:
        case Shard::Shortage::log:
          spdlog::error("event=journal_full error=\"{}\"", to_string(prepared.error()));
          break;
        case Shard::Shortage::files:
          spdlog::error("event=too_many_open_files error=\"{}\"", to_string(prepared.error()));
          break;
      }
    }
    journal_shortage_ = shortage;
    inbox_news_ = true;
  }
  inbox_wake_.notify_one();
  if (shortage != Shard::Shortage::none) std::this_thread::sleep_for(kRetryAfter);
  const std::scoped_lock lock(inbox_mutex_);
  preparing_ = false;
}

void ShardRunner::release() {
  const bool interval = parts_.fsync.kind == FsyncMode::Kind::interval;
  const Duration patience = interval ? parts_.fsync.interval : Duration{kLookUp};
  while (auto batch = take_held(patience)) {
    sync_partitions(*batch);
    const bool needed = !batch->empty() && sync_needed(*batch);
    if (needed && !sync()) return depose();
    for (Held& held : *batch) release_one(held);
    const bool idle = batch->empty() && interval;
    if (idle && durable_.load() < parts_.log.next().value && !sync()) return depose();
  }
}

/// The rounds to be released, after at most `patience`; nullopt once there will be no more.
std::optional<std::deque<Held>> ShardRunner::take_held(Duration patience) {
  std::deque<Held> batch;
  {
    std::unique_lock lock(held_mutex_);
    held_wake_.wait_for(lock, patience, [&] { return held_end_ || held_void_ || !held_.empty(); });
    if (held_void_ || (held_.empty() && held_end_)) return std::nullopt;
    batch = std::exchange(held_, {});
  }
  held_taken_.notify_one();
  return batch;
}

bool ShardRunner::sync_needed(const std::deque<Held>& batch) const {
  if (batch.back().position.value < durable_.load()) return false;
  if (parts_.fsync.kind == FsyncMode::Kind::always) return true;
  // What goes to the store must be durable in the journal first, in every mode.
  const bool must = std::ranges::any_of(
      batch, [](const Held& held) { return held.always_sync || !held.jobs.empty(); });
  const bool due = parts_.fsync.kind == FsyncMode::Kind::interval &&
                   parts_.clock.now() - synced_at_ >= parts_.fsync.interval;
  return must || due;
}

bool ShardRunner::sync() {
  const Instant before = parts_.clock.now();
  const Result<Position> durable = sync_log();
  if (!durable.has_value() && durable.error().code == Errc::position_taken) return false;
  if (!durable.has_value()) fatal("the journal cannot be synced", durable.error());
  synced_at_ = parts_.clock.now();
  ++syncs_;
  sync_ns_ += static_cast<std::uint64_t>((synced_at_ - before).count());
  journal_syncs_.add(synced_at_ - before);
  durable_ = durable->value;
  if (!checkpoint_waits_) return true;
  {
    const std::scoped_lock lock(inbox_mutex_);
    inbox_news_ = true;
  }
  inbox_wake_.notify_one();
  return true;
}

/// Waits while there is no descriptor, or while the contents of the log are unknown: written rounds
/// are not lost, and no client is told yet.
Result<Position> ShardRunner::sync_log() {
  const auto passes = [](const Result<Position>& durable) {
    return !durable.has_value() && (durable.error().code == Errc::resource_exhausted ||
                                    durable.error().code == Errc::unavailable);
  };
  Result<Position> durable = parts_.log.sync();
  if (!passes(durable)) return durable;
  const bool files = durable.error().code == Errc::resource_exhausted;
  // Nobody knows for how long: calls that can be refused do not wait for the log.
  log_unknown_ = !files;
  spdlog::error("event={} error=\"{}\"", files ? "too_many_open_files" : "log_outcome_unknown",
                to_string(durable.error()));
  while (passes(durable)) {
    std::this_thread::sleep_for(kRetryAfter);
    const bool unknown = durable.error().code == Errc::unavailable;
    // A broker that stops does not wait for an answer that may never come: no client was told.
    if (unknown && give_up_when_stopping()) return Error{Errc::position_taken, "it stops"};
    durable = unknown ? parts_.log.settle() : parts_.log.sync();
  }
  if (log_unknown_.exchange(false)) spdlog::info("event=log_outcome_known_again");
  return durable;
}

/// Syncs each partition once, even if several rounds appended to it.
void ShardRunner::sync_partitions(const std::deque<Held>& batch) {
  std::set<std::shared_ptr<StreamPartition>> partitions;
  for (const Held& held : batch) {
    partitions.insert(held.unsynced.begin(), held.unsynced.end());
  }
  for (const auto& partition : partitions) {
    const Instant before = parts_.clock.now();
    const Status synced = partition->sync();
    if (!synced.has_value()) fatal("a partition cannot be synced", synced.error());
    partition_syncs_.add(parts_.clock.now() - before);
  }
}

void ShardRunner::remove_partitions(const std::vector<PartitionName>& names) {
  for (const PartitionName& name : names) {
    const Status removed = parts_.log.remove_partition(name);
    if (!removed.has_value()) {
      spdlog::warn("event=remove_partition_failed stream={} partition={} error=\"{}\"",
                   name.stream.value, name.partition.value, to_string(removed.error()));
    }
  }
}

void ShardRunner::release_one(Held& held) {
  held.release();
  if (!held.removed.empty()) {
    keeper_.post([this, names = std::move(held.removed)] { remove_partitions(names); });
  }
  for (StoreJob& job : held.jobs) {
    auto shared = std::make_shared<const StoreJob>(std::move(job));
    store_thread_.post([this, shared] { run_job(*shared); });
  }
}

}  // namespace baton
