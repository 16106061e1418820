// The part of ShardRunner that works on the store: spills, reads and checkpoints, on threads of
// their own.

#include <thread>
#include <utility>

#include <spdlog/spdlog.h>

#include "server/shard/shard_facts.h"
#include "server/shard/shard_runner.h"

namespace baton {

void ShardRunner::run_job(const StoreJob& job) {
  Result<StoreResult> result = run_store_job(spills_, job);
  const auto* const spill = std::get_if<SpillJob>(&job);
  if (!result.has_value() && spill != nullptr) return hold_spill(*spill, result.error());
  if (!result.has_value()) fatal("the checkpoint cannot be read", result.error());
  take_result(*std::move(result));
}

/// The rows are in the buffer, where reads find them, and the next checkpoint includes them.
void ShardRunner::hold_spill(const SpillJob& job, const Error& error) {
  bool first = false;
  {
    const std::scoped_lock lock(held_spills_mutex_);
    first = held_spills_.empty();
    held_spills_.push_back(job.rows.bytes());
  }
  take_result(SpillHeld{});
  if (!first) return;
  spdlog::error("event=spill_failed error=\"{}\"", to_string(error));
  note_store_full(error.code == Errc::disk_full);
  spill_thread_.post([this] { retry_spills(); });
}

void ShardRunner::retry_spills() {
  while (true) {
    if (give_up_when_stopping()) return;  // The journal has the rows.
    std::this_thread::sleep_for(kRetryAfter);
    std::vector<std::uint64_t> held;
    {
      const std::scoped_lock lock(held_spills_mutex_);
      held = held_spills_;
    }
    const Status spilled = spills_.flush();
    if (!spilled.has_value()) {
      note_store_full(spilled.error().code == Errc::disk_full);
      continue;
    }
    for (const std::uint64_t bytes : held) take_result(SpillBrought{bytes});
    const std::scoped_lock lock(held_spills_mutex_);
    held_spills_.erase(held_spills_.begin(), held_spills_.begin() + std::ssize(held));
    // Spills that were held in the meantime are retried.
    if (held_spills_.empty()) break;
  }
  note_store_full(false);
  spdlog::info("event=spill_works_again");
}

void ShardRunner::take_result(StoreResult result) {
  {
    const std::scoped_lock lock(inbox_mutex_);
    results_.push_back(std::move(result));
  }
  inbox_wake_.notify_one();
}

/// Calls that wait for the store to catch up are refused while its disk is full.
void ShardRunner::note_store_full(bool full) {
  const std::scoped_lock lock(inbox_mutex_);
  store_full_ = full;
  inbox_news_ = true;
  inbox_wake_.notify_one();
}

/// A broker that stops does not wait for a disk that may never have room: the journal has
/// everything.
bool ShardRunner::give_up_when_stopping() {
  const std::scoped_lock lock(inbox_mutex_);
  if (!stopping_ && !deposed_) return false;
  gave_up_ = true;
  inbox_wake_.notify_one();
  return true;
}

void ShardRunner::run_checkpoint(const std::shared_ptr<const CheckpointJob>& shared) {
  const CheckpointJob& job = *shared;
  // Through the buffer, because held rows belong to the checkpoint.
  const Status done = run_checkpoint_job(spills_, job);
  if (!done.has_value()) {
    if (!std::exchange(checkpoint_fails_, true)) {
      spdlog::error("event=checkpoint_failed error=\"{}\"", to_string(done.error()));
    }
    ++checkpoint_failures_;
    note_store_full(done.error().code == Errc::disk_full);
    if (give_up_when_stopping()) return;
    std::this_thread::sleep_for(kRetryAfter);
    {
      const std::scoped_lock lock(inbox_mutex_);
      checkpoint_given_up_ = shared;
    }
    inbox_wake_.notify_one();
    return;
  }
  if (std::exchange(checkpoint_fails_, false)) {
    note_store_full(false);
    spdlog::info("event=checkpoint_works_again");
  }
  checkpointed_ = job.position.value;
  const Position position = job.position;
  keeper_.post([this, position] {
    if (const Status trimmed = parts_.log.trim(position); !trimmed.has_value()) {
      spdlog::warn("event=journal_trim_failed error=\"{}\"", to_string(trimmed.error()));
    }
  });
  {
    const std::scoped_lock lock(inbox_mutex_);
    checkpoint_written_ = position;
  }
  inbox_wake_.notify_one();
}

}  // namespace baton
