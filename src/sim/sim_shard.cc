#include "sim/sim_shard.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace baton {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr Duration kRetryAfter = milliseconds{200};

std::string hex(const std::string& bytes) {
  std::string text;
  for (const char byte : bytes) text += fmt::format("{:02x}", static_cast<std::uint8_t>(byte));
  return text;
}

}  // namespace

SimShard::SimShard(World world, std::uint64_t number)
    : world_(world),
      mirror_(world.trace, {.name = fmt::format("shard {}", number),
                            .shard = number,
                            .shards = world.plan.shards,
                            .roomy = world.plan.roomy}),
      random_(Random(world.plan.seed).fork(fmt::format("shard {}", number))),
      number_(number) {
  media_ = std::make_shared<FakeStoreMedia>(random_.fork("media").next());
}

Result<Instant> SimShard::start(Instant wall) {
  auto life = std::make_unique<Life>();
  auto journal =
      open_file_journal(world_.disk, fmt::format("journal-{}", number_), world_.plan.journal);
  if (!journal.has_value()) return std::move(journal).error();
  recall((*journal)->next());
  auto tapped = std::make_unique<TappedJournal>(
      *std::move(journal), world_.plan.canary, [this](const Round& round) {
        rounds_.push_back({round.position, round.now, std::string(round.facts)});
        mirror_.apply(round, true);
      });
  BATON_TRY(PartitionFolders partitions,
            PartitionFolders::open(world_.disk, fmt::format("streams-{}", number_)));
  life->log = std::make_unique<LocalLog>(std::move(tapped), std::move(partitions));
  life->store =
      std::make_unique<TappedStore>(std::make_unique<FakeStore>(media_), world_.plan.canary,
                                    random_.fork(fmt::format("store {}", lives_)));
  Shard::Options options = world_.plan.shard;
  options.machine.shard = number_;
  options.machine.shards = world_.plan.shards;
  options.transfer = [this](const QueueEffects::Transfer& transfer) {
    world_.host.transfer(number_, transfer);
  };
  options.seed = random_.fork(fmt::format("ids {}", lives_)).next();
  ++lives_;
  auto shard = Shard::recover(options, {.log = *life->log, .store = *life->store}, wall);
  if (!shard.has_value()) return std::move(shard).error();
  life->shard = *std::move(shard);
  life->durable = durable_ = life->log->next();
  life_ = std::move(life);
  mirror_.compare(describe(), "after recovery");
  if (!rounds_.empty() && life_->shard->started_at() < rounds_.back().now) {
    world_.trace.fail("shard {}: broker time went back", number_);
  }
  world_.trace.note("shard {} started: boot {} next {} checkpointed {}", number_,
                    life_->shard->boot(), life_->log->next().value,
                    life_->shard->replica().checkpointed().value);
  return life_->shard->started_at();
}

/// The mirror forgets what the crash lost, which must not be durable.
void SimShard::recall(Position next) {
  if (next < durable_) {
    world_.trace.fail("shard {}: round {} was durable, but the journal ends at {}", number_,
                      durable_.value - 1, next.value);
  }
  std::erase_if(rounds_, [&](const RecordedRound& round) { return round.position >= next; });
  mirror_.reset();
  for (const RecordedRound& round : rounds_) {
    mirror_.apply({.position = round.position, .now = round.now, .facts = round.facts}, false);
  }
}

void SimShard::stop() {
  // Destroying calls tells clients that they are lost, and the clients then use what is left.
  const std::unique_ptr<Life> gone = std::move(life_);
  ++lives_;
}

void SimShard::later(Duration delay, Step step) {
  world_.timeline.after(delay, [this, step, life = lives_] {
    if (life == lives_ && life_ != nullptr && !world_.trace.failed()) (this->*step)();
  });
}

void SimShard::soon(Duration longest, Step step) {
  later(draw(random_, microseconds{1}, longest), step);
}

void SimShard::submit(std::unique_ptr<Call> call) {
  life_->calls.push_back(std::move(call));
  wake();
}

void SimShard::request_checkpoint() {
  life_->shard->request_checkpoint();
  wake();
}

void SimShard::wake() {
  if (life_->deciding) return;
  life_->deciding = true;
  soon(world_.plan.decide_max, &SimShard::decide);
}

void SimShard::decide() {
  Life& life = *life_;
  life.deciding = false;
  // As in production: one round is being synced, others wait; release() wakes the next.
  if (life.held.size() >= world_.plan.rounds_waiting) return;
  if (const auto written = std::exchange(life.checkpoint_written, std::nullopt);
      written.has_value()) {
    life.shard->checkpoint_done(*written, world_.host.broker_now());
  }
  life.shard->set_shortage(life.disk_full ? Shard::Shortage::disk : Shard::Shortage::none);
  if (world_.host.crash_point("before a round", 1)) return;
  if (!run_round()) return;
  start_checkpoint();
  keep_room();
  arm_timer();
}

/// Returns false when the process died.
bool SimShard::run_round() {
  Life& life = *life_;
  if (life.log->room().everything < world_.plan.shard.small_round_bytes) {
    later(milliseconds{5}, &SimShard::wake);
    return true;
  }
  Held held =
      life.shard->round(life.calls, std::exchange(life.results, {}), world_.host.broker_now());
  check_round();
  if (!held.empty() || held.position >= life.durable) {
    world_.trace.note("shard {} round {}: {} calls, {} answers, {} jobs", number_,
                      held.position.value, held.calls.size(), held.answers(), held.jobs.size());
    life.held.push_back(std::move(held));
    begin_sync();
  }
  return !world_.host.crash_point("after an append", 1);
}

void SimShard::check_round() {
  const Shard& shard = *life_->shard;
  mirror_.compare(describe(), "after a round");
  const ShardStats stats = shard.stats();
  if (stats.rows_missing != 0)
    world_.trace.fail("shard {}: {} rows are missing", number_, stats.rows_missing);
  spilled_ = std::max(spilled_, stats.spilled_messages);
  if (!shard.has_work()) mirror_.check_deadlines(world_.host.broker_now());
}

void SimShard::arm_timer() {
  Life& life = *life_;
  if (!life.calls.empty() || life.shard->has_work()) return wake();
  const Instant deadline = life.shard->next_deadline();
  if (deadline == Instant::never() || deadline >= life.timer) return;
  life.timer = deadline;
  const Duration wait = std::max(Duration{1000}, deadline - world_.host.broker_now());
  world_.timeline.after(wait, [this, deadline, life_number = lives_] {
    if (life_number != lives_ || life_ == nullptr || world_.trace.failed()) return;
    if (life_->timer == deadline) life_->timer = Instant::never();
    wake();
  });
}

void SimShard::start_checkpoint() {
  Life& life = *life_;
  const bool early = world_.plan.canary == Canary::checkpoint_before_sync;
  auto job = life.shard->next_checkpoint(early ? life.log->next() : life.durable,
                                         world_.host.broker_now());
  if (!job.has_value()) return;
  if (world_.plan.canary == Canary::trim_early) {
    static_cast<void>(life.log->trim(job->position));
  }
  life.checkpoint = std::move(job);
  soon(world_.plan.checkpoint_max, &SimShard::run_checkpoint);
}

void SimShard::run_checkpoint() {
  Life& life = *life_;
  if (!life.checkpoint.has_value() || world_.host.crash_point("before a commit", 12)) return;
  const Position position = life.checkpoint->position;
  const bool crash = random_.chance(12, world_.plan.crash_odds) &&
                     world_.timeline.now().ns < world_.plan.fault_time.count();
  if (crash) media_->crash_in_next_commit();
  const Status done = run_checkpoint_job(*life.store, *life.checkpoint);
  if (crash) return world_.host.crash("in a commit");
  if (!done.has_value()) {
    world_.trace.note("shard {} checkpoint failed", number_);
    return later(kRetryAfter, &SimShard::give_up_checkpoint);
  }
  world_.trace.note("shard {} checkpoint {}", number_, position.value);
  life.checkpoint.reset();
  if (world_.host.crash_point("after a commit", 12)) return;
  life.checkpoint_written = position;
  wake();
  finish_checkpoint(position);
}

/// The next checkpoint includes its rows.
void SimShard::give_up_checkpoint() {
  if (const auto given_up = std::exchange(life_->checkpoint, std::nullopt)) {
    life_->shard->checkpoint_given_up(*given_up);
  }
  start_checkpoint();
}

/// The journal is trimmed some time later.
void SimShard::finish_checkpoint(Position position) {
  world_.timeline.after(draw(random_, microseconds{1}, world_.plan.checkpoint_max),
                        [this, position, life = lives_] {
                          if (life != lives_ || life_ == nullptr) return;
                          static_cast<void>(life_->log->trim(position));
                          static_cast<void>(world_.host.crash_point("after a trim", 12));
                        });
}

void SimShard::keep_room() {
  Life& life = *life_;
  if (life.preparing || life.log->room().additions >= life.log->round_bytes_max()) return;
  life.preparing = true;
  soon(world_.plan.job_max, &SimShard::prepare);
}

void SimShard::prepare() {
  Life& life = *life_;
  const bool full = !life.log->prepare().has_value();
  if (full != life.disk_full) world_.trace.note("shard {} journal full: {}", number_, full);
  life.disk_full = full;
  wake();
  if (full) return later(kRetryAfter, &SimShard::prepare);
  life.preparing = false;
}

void SimShard::begin_sync() {
  Life& life = *life_;
  if (!life.batch.empty() || life.held.empty()) return;
  life.batch = std::exchange(life.held, {});
  wake();
  soon(world_.plan.sync_max, &SimShard::sync);
}

void SimShard::sync() {
  Life& life = *life_;
  if (world_.host.crash_point("before a sync", 1)) return;
  // A batch that depends on nothing new needs no sync, as in production.
  const bool needed = life.batch.back().position >= life.durable;
  const bool skipped = world_.plan.canary == Canary::release_before_sync && random_.chance(2, 3);
  if (needed && !skipped) {
    const Result<Position> durable = life.log->sync();
    if (!durable.has_value()) return world_.host.crash("a sync failed");
    life.durable = durable_ = *durable;
    if (life.shard->replica().checkpoint_waits()) wake();
    if (world_.host.crash_point("after a sync", 4)) return;
  }
  release();
}

/// Releases one round at a time; the process may die between two of them, and between two answers.
void SimShard::release() {
  Life& life = *life_;
  Held held = std::move(life.batch.front());
  life.batch.pop_front();
  const auto last = world_.host.draw_last_answers(held.answers());
  held.release();
  if (last.has_value()) return world_.host.crash("between two answers");
  const bool idle = life.jobs.empty();
  std::ranges::move(held.jobs, std::back_inserter(life.jobs));
  if (idle && !life.jobs.empty()) soon(world_.plan.job_max, &SimShard::run_job);
  if (!life.batch.empty()) return later(microseconds{1}, &SimShard::release);
  begin_sync();
  wake();
}

void SimShard::run_job() {
  Life& life = *life_;
  if (world_.host.crash_point("before a job", 2)) return;
  if (world_.plan.canary == Canary::jobs_out_of_order && life.jobs.size() > 1) {
    std::swap(life.jobs.front(), life.jobs.back());
  }
  Result<StoreResult> result = run_store_job(*life.store, life.jobs.front());
  if (!result.has_value()) return later(kRetryAfter, &SimShard::run_job);
  life.jobs.pop_front();
  life.results.push_back(*std::move(result));
  if (!life.jobs.empty()) soon(world_.plan.job_max, &SimShard::run_job);
  wake();
}

bool SimShard::is_quiet() const {
  const Life& life = *life_;
  return life.calls.empty() && life.results.empty() && life.held.empty() && life.batch.empty() &&
         life.jobs.empty() && !life.checkpoint.has_value() &&
         !life.checkpoint_written.has_value() && !life.shard->has_work() &&
         life.shard->replica().checkpointed() == life.log->next();
}

std::string SimShard::leftover_rows() const {
  std::string text;
  for (const TableName& table : kShardTables) {
    // `received` keeps the ids of transfers whose last step was lost in a crash.
    const bool may_stay = table.table == tables::kQueues || table.table == tables::kDedup ||
                          table.table == tables::kState || table.table == tables::kReceived;
    if (may_stay) continue;
    auto rows = life_->store->scan({.table = table.table,
                                    .begin = {},
                                    .end = std::string(64, '\xff'),
                                    .rows_max = 1000,
                                    .bytes_max = limits::kMiB});
    if (!rows.has_value()) return "the store cannot be read";
    if (table.table == tables::kIds) {
      std::erase_if(*rows, [&](const Row& row) {
        const auto name = decode_queue_and_id(row.key);
        return name.has_value() && mirror_.purged_when_made(name->queue, name->id);
      });
    }
    if (rows->empty()) continue;
    text += fmt::format("{} in '{}', the first is {}; ", rows->size(), table.name,
                        hex(rows->front().key));
  }
  return text;
}

}  // namespace baton
