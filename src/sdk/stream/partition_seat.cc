#include "sdk/stream/partition_seat.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/assert.h"
#include "sdk/base/errors.h"

namespace baton::client {

void PartitionSeat::started(std::uint64_t subscription) {
  subscription_ = subscription;
  if (rules_.single_active) return;
  seat_ = Seat::active;
  // Without a session nothing could be stored; now what was handled meanwhile can be.
  settle();
}

void PartitionSeat::update(const Update& update) {
  if (!rules_.single_active) return;
  if (update.active) {
    take_seat(update);
  } else if (update.stepping_down) {
    step_down(update.generation);
  } else {
    leave_seat(Errc::stale_epoch);
  }
}

void PartitionSeat::take_seat(const Update& update) {
  const Epoch epoch{update.generation};
  const bool same = epoch == epoch_;
  // A repetition after a break, or an update that a newer one overtook.
  if (seat_ == Seat::active && same) return;
  if (epoch < epoch_) return;
  if (seat_ != Seat::none) leave_seat(Errc::stale_epoch);
  seat_ = Seat::active;
  settled_ = false;
  if (same) {
    // No other consumer had the seat in between: what was handed out must not be handed out again.
    floor_.offset = std::max(floor_.offset, update.offset.value_or(kNoOffset));
  } else {
    epoch_ = epoch;
    floor_ = {.offset = update.offset.value_or(kNoOffset), .time = std::nullopt};
    handled_ = floor_.offset;
    stored_.reset();
    records_unstored_ = 0;
  }
  begins_at_ = floor_.offset;
  asked_.reset();
  if (stopping_) return;
  activation_due_ = rules_.has_callbacks || rules_.ask_offset;
  if (rules_.storing.automatic && !rules_.ask_offset && handled_.value >= 0) want(handled_);
}

void PartitionSeat::step_down(std::uint64_t generation) {
  if (seat_ == Seat::stepping_down) {
    step_generation_ = std::max(step_generation_, generation);
    return;
  }
  // Without the seat, only the running handler has to finish, and there is nothing to store.
  settled_ = seat_ == Seat::none;
  seat_ = Seat::stepping_down;
  step_generation_ = generation;
  begin_nothing_more();
  settle();
}

/// What has begun goes on; the application is told if it knows of the seat.
void PartitionSeat::begin_nothing_more() {
  activation_due_ = false;
  asked_.reset();
  step_down_due_ = step_down_due_ || told_;
  drop_queue();
}

void PartitionSeat::leave_seat(Errc why) {
  seat_ = Seat::none;
  begin_nothing_more();
  if (is_storing()) {
    settled_ = false;
    done_ticket_ = wanted_ticket_;
    done_error_ = Error{why, "the seat was lost before the offset was stored"};
  }
  if (outstanding_) ++stored_ignored_;
  wanted_.reset();
  outstanding_.reset();
}

void PartitionSeat::lost() {
  leave_seat(Errc::unavailable);
  // The broker has forgotten the credit.
  credit_ = {};
  stored_ignored_ = 0;
  subscription_ = 0;
  stored_.reset();
}

void PartitionSeat::drop_queue() {
  for (const RawBatch& batch : queue_) {
    credit_.batches += batch.cost.batches;
    credit_.bytes += batch.cost.bytes;
  }
  queue_.clear();
}

bool PartitionSeat::deliver(RawBatch batch) {
  const bool wanted = seat_ == Seat::active && batch.epoch == epoch_ && !stopping_ && !halted_;
  // The broker did not say where delivery begins: here. A successor must not begin later.
  if (wanted && rules_.single_active && handled_.value < 0) handled_ = batch.first_offset;
  queue_.push_back(std::move(batch));
  if (!wanted) drop_queue();
  return wanted;
}

bool PartitionSeat::has_task() const {
  if (running_) return false;
  if (step_down_due_) return true;
  return seat_ == Seat::active && !stopping_ && !halted_ && (activation_due_ || !queue_.empty());
}

SeatTask PartitionSeat::begin() {
  BATON_ASSERT(has_task());
  running_ = true;
  SeatTask task{.partition = partition_, .epoch = epoch_};
  if (step_down_due_) {
    task.kind = SeatTask::Kind::step_down;
    step_down_due_ = false;
    told_ = false;
  } else if (activation_due_) {
    task.kind = SeatTask::Kind::activate;
    task.offset = begins_at_;
    activation_due_ = false;
    told_ = rules_.has_callbacks;
  } else {
    task.batch = std::move(queue_.front());
    queue_.pop_front();
    task.floor = floor_;
    floor_.offset = std::max(floor_.offset, task.batch.next_offset);
  }
  return task;
}

void PartitionSeat::finish(const SeatTask& task, Time now) {
  running_ = false;
  if (task.kind == SeatTask::Kind::activate) activated(task);
  if (task.kind == SeatTask::Kind::handle) handled(task, now);
  settle();
}

void PartitionSeat::activated(const SeatTask& task) {
  if (!rules_.ask_offset || seat_ != Seat::active || task.epoch != epoch_) return;
  asked_ = Reply{.generation = epoch_.value, .offset = task.offset};
  floor_.offset = task.offset;
  handled_ = task.offset;
  if (rules_.storing.automatic && handled_.value >= 0) want(handled_);
}

void PartitionSeat::handled(const SeatTask& task, Time now) {
  if (task.batch.subscription == subscription_) {
    credit_.batches += task.batch.cost.batches;
    credit_.bytes += task.batch.cost.bytes;
  }
  // The seat was given anew since: records handled under the old epoch do not count for this one.
  if (task.epoch != epoch_) return;
  halted_ = halted_ || task.failed || task.stopped;
  floor_.time = task.floor.time;
  if (task.stopped) floor_.offset = task.batch.next_offset;
  if (!task.failed) {
    handled_ = std::max(handled_, task.batch.next_offset);
    records_unstored_ += task.records;
  }
  tick(now);
}

void PartitionSeat::tick(Time now) {
  if (!rules_.storing.automatic || seat_ != Seat::active || handled_.value < 0) return;
  if (stored_at_ == Time{}) stored_at_ = now;
  const OffsetStoring& storing = rules_.storing;
  const bool by_number = storing.records > 0 && records_unstored_ >= storing.records;
  const bool by_time = storing.interval.count() > 0 && now - stored_at_ >= storing.interval;
  if (!by_number && !by_time) return;
  records_unstored_ = 0;
  stored_at_ = now;
  want(handled_);
}

void PartitionSeat::want(Offset offset) {
  if (!rules_.has_group) return;
  if (!wanted_ && outstanding_ == offset) return;
  if (!is_storing() && stored_ == offset) return;
  wanted_ = offset;
  ++wanted_ticket_;
}

Result<std::uint64_t> PartitionSeat::want_store(const StreamPosition& position) {
  if (!rules_.has_group) {
    return Error{Errc::failed_precondition, "a consumer without a group stores no offsets"};
  }
  if (position.offset.value < 0) {
    return Error{Errc::invalid_argument, fmt::format("offset {}", position.offset.value)};
  }
  if (seat_ == Seat::none || position.epoch != epoch_) {
    return Error{Errc::stale_epoch,
                 fmt::format("the seat of partition {} is not held under epoch {}",
                             partition_.value, position.epoch.value)};
  }
  wanted_ = position.offset;
  return ++wanted_ticket_;
}

std::optional<Status> PartitionSeat::store_result(std::uint64_t ticket) const {
  if (done_ticket_ < ticket) return std::nullopt;
  if (done_error_) return *done_error_;
  return Status{};
}

std::optional<PartitionSeat::Store> PartitionSeat::next_store() {
  if (!wanted_ || outstanding_ || seat_ == Seat::none || subscription_ == 0) return std::nullopt;
  outstanding_ = std::exchange(wanted_, std::nullopt);
  outstanding_ticket_ = wanted_ticket_;
  return Store{.epoch = epoch_, .offset = *outstanding_};
}

bool PartitionSeat::stored(Offset offset, const std::optional<Error>& error) {
  if (stored_ignored_ > 0) {
    --stored_ignored_;
    return false;
  }
  // Answers come in the order of the stores; the broker may keep another offset than the one sent.
  if (!outstanding_) return false;
  outstanding_.reset();
  done_ticket_ = outstanding_ticket_;
  done_error_ = error;
  if (!error) stored_ = offset;
  return true;
}

void PartitionSeat::settle() {
  const bool leaving = seat_ == Seat::stepping_down || (stopping_ && seat_ == Seat::active);
  if (!leaving || settled_ || running_ || step_down_due_) return;
  settled_ = true;
  if (rules_.storing.automatic && handled_.value >= 0) want(handled_);
}

std::optional<PartitionSeat::Reply> PartitionSeat::next_reply() {
  if (asked_) return std::exchange(asked_, std::nullopt);
  if (seat_ != Seat::stepping_down || running_ || step_down_due_ || !settled_ || is_storing()) {
    return std::nullopt;
  }
  seat_ = Seat::none;
  return Reply{.generation = step_generation_, .offset = std::nullopt};
}

CreditAmount PartitionSeat::take_credit() { return std::exchange(credit_, {}); }

void PartitionSeat::stop() {
  if (stopping_) return;
  stopping_ = true;
  begin_nothing_more();
  settle();
}

bool PartitionSeat::is_done() const {
  // Without single_active the seat returns with the connection, and the offset can be stored.
  const bool owes =
      !rules_.single_active && rules_.has_group && rules_.storing.automatic && handled_.value >= 0;
  if (owes && !settled_) return false;
  return stopping_ && !running_ && !step_down_due_ && !is_storing() && seat_ != Seat::stepping_down;
}

}  // namespace baton::client
