#include "sdk/stream/subscribe_link.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "sdk/base/connection.h"
#include "sdk/base/errors.h"
#include "sdk/stream/stream_convert.h"

namespace baton::client {

SubscribeLink::SubscribeLink(const Connection& connection, std::string stream,
                             StreamConsumerOptions options,
                             const std::vector<PartitionStart>& partitions)
    : LeasedLink(connection.options, true),
      stream_(std::move(stream)),
      options_(std::move(options)),
      stub_(v1::StreamService::NewStub(connection.channel)) {
  for (const PartitionStart& start : partitions) {
    seats_.try_emplace(start.partition, start.partition, rules(), start.floor);
  }
  make_subscriptions(partitions);
}

SubscribeLink::~SubscribeLink() {
  Lock lock(mutex_);
  shutdown(lock, false, SteadyClock::now());
}

PartitionSeat::Rules SubscribeLink::rules() const {
  return {.single_active = options_.single_active,
          .has_group = !options_.group.empty(),
          .ask_offset = static_cast<bool>(options_.ask_offset),
          .has_callbacks = options_.on_active || options_.on_step_down,
          .storing = options_.storing};
}

void SubscribeLink::make_subscriptions(const std::vector<PartitionStart>& partitions) {
  if (options_.single_active) {
    subscriptions_.emplace_back();
    for (const auto& start : partitions) {
      subscriptions_[0].partitions.push_back(start.partition);
      subscription_at_[start.partition] = 0;
    }
  } else {
    for (const auto& start : partitions) {
      subscription_at_[start.partition] = subscriptions_.size();
      subscriptions_.emplace_back().partitions.push_back(start.partition);
    }
  }
  const std::uint64_t share = subscriptions_.size();
  for (Subscription& subscription : subscriptions_) {
    subscription.window = {.batches = std::max<std::uint64_t>(1, options_.credit_batches / share),
                           .bytes = std::max<std::uint64_t>(1, options_.credit_bytes / share)};
  }
}

void SubscribeLink::start() {
  Lock lock(mutex_);
  started_ = true;
  pump(lock);
}

void SubscribeLink::begin_call(grpc::ClientContext* context, Reactor* reactor) {
  stub_->async()->Subscribe(context, reactor);
}

bool SubscribeLink::wants_session() const {
  if (!started_ || leaving_) return false;
  return stopping_ || result_ ? !all_done() : true;
}

void SubscribeLink::session_opened() {
  begin_lease();
  loss_told_ = false;
  subscription_by_id_.clear();
  for (Subscription& subscription : subscriptions_) renew(subscription);
}

/// Sends another Start, under a new id: what still comes for the old one is ignored.
void SubscribeLink::renew(Subscription& subscription) {
  subscription_by_id_.erase(subscription.id);
  subscription.id = next_id_++;
  subscription.start_sent = false;
  subscription.used = {};
  subscription.due = {};
  subscription_by_id_[subscription.id] =
      static_cast<std::size_t>(&subscription - subscriptions_.data());
}

const v1::SubscribeRequest* SubscribeLink::next_frame() {
  // Nothing is sent under a lease that has ended.
  if (lease_has_ended()) return nullptr;
  frame_.Clear();
  bool filled = fill_heartbeat(frame_);
  filled = fill_starts() || filled;
  filled = fill_seats() || filled;
  filled = fill_credits() || filled;
  filled = fill_unsubscribes() || filled;
  return filled ? &frame_ : nullptr;
}

bool SubscribeLink::fill_starts() {
  if (leaving_) return false;
  bool filled = false;
  for (Subscription& subscription : subscriptions_) {
    if (subscription.start_sent) continue;
    subscription.start_sent = true;
    fill_start(subscription, *frame_.add_starts());
    filled = true;
  }
  return filled;
}

void SubscribeLink::fill_start(const Subscription& subscription,
                               v1::SubscribeRequest::Start& start) const {
  start.set_id(subscription.id);
  start.set_stream(stream_);
  // An empty list means all partitions, so that the broker does not take it for a selection.
  if (!options_.single_active || !options_.partitions.empty()) {
    for (const PartitionNumber partition : subscription.partitions) {
      start.add_partitions(partition.value);
    }
  }
  start.set_group(options_.group);
  start.set_single_active(options_.single_active);
  StartFrom from = options_.from;
  if (!options_.single_active) {
    const ReadFloor& floor = seats_.at(subscription.partitions[0]).floor();
    if (floor.offset.value >= 0) from = StartFrom::at(floor.offset);
  }
  to_proto(from, *start.mutable_from());
  if (!stopping_ && !result_) {
    start.mutable_credit()->set_id(subscription.id);
    start.mutable_credit()->set_batches(subscription.window.batches);
    start.mutable_credit()->set_bytes(subscription.window.bytes);
  }
  start.set_format(v1::RECORD_FORMAT_BATCHES);
  start.set_ask_offset(static_cast<bool>(options_.ask_offset));
  start.set_on_gap(options_.on_gap == OnGap::first ? v1::SubscribeRequest::ON_GAP_FIRST
                                                   : v1::SubscribeRequest::ON_GAP_CLOSE);
  start.set_owner(options_.owner);
  switch (options_.handover) {
    case Handover::as_group: break;
    case Handover::at_once: start.set_handover(v1::GROUP_HANDOVER_AT_ONCE); break;
    case Handover::strict: start.set_handover(v1::GROUP_HANDOVER_STRICT); break;
  }
}

/// Often enough that the broker never waits, seldom enough that it costs nothing.
bool SubscribeLink::is_due(const Subscription& subscription) {
  const CreditAmount& due = subscription.due;
  if (due.batches == 0) return false;
  return due.batches * 4 >= subscription.window.batches ||
         due.bytes * 4 >= subscription.window.bytes || due.batches >= subscription.used.batches;
}

bool SubscribeLink::fill_credits() {
  if (stopping_ || result_) return false;
  bool filled = false;
  for (Subscription& subscription : subscriptions_) {
    if (!is_due(subscription)) continue;
    v1::SubscribeRequest::Credit& credit = *frame_.add_credits();
    credit.set_id(subscription.id);
    credit.set_batches(subscription.due.batches);
    credit.set_bytes(subscription.due.bytes);
    subscription.used.batches -= std::min(subscription.used.batches, subscription.due.batches);
    subscription.used.bytes -= std::min(subscription.used.bytes, subscription.due.bytes);
    subscription.due = {};
    filled = true;
  }
  return filled;
}

void SubscribeLink::fill_store(PartitionSeat& seat, std::uint64_t id) {
  const auto store = seat.next_store();
  if (!store) return;
  v1::SubscribeRequest::StoreOffset& wire = *frame_.add_offsets();
  wire.set_id(id);
  wire.set_partition(seat.partition().value);
  wire.set_epoch(store->epoch.value);
  wire.set_offset(store->offset.value);
}

bool SubscribeLink::fill_seats() {
  for (const PartitionNumber partition : std::exchange(dirty_, {})) {
    PartitionSeat& seat = seats_.at(partition);
    const std::uint64_t id = subscriptions_[subscription_at_.at(partition)].id;
    fill_store(seat, id);
    while (const auto reply = seat.next_reply()) {
      v1::SubscribeRequest::UpdateReply& wire = *frame_.add_replies();
      wire.set_id(id);
      wire.set_partition(partition.value);
      wire.set_generation(reply->generation);
      if (reply->offset) wire.set_offset(reply->offset->value);
    }
  }
  return frame_.offsets_size() > 0 || frame_.replies_size() > 0;
}

bool SubscribeLink::fill_unsubscribes() {
  if (!leaving_) return false;
  bool filled = false;
  for (Subscription& subscription : subscriptions_) {
    if (!subscription.start_sent || subscription.unsubscribe_sent) continue;
    subscription.unsubscribe_sent = true;
    frame_.add_unsubscribes()->set_id(subscription.id);
    filled = true;
  }
  return filled;
}

std::optional<SeatTask> SubscribeLink::next_task() {
  const auto every = options_.storing.interval;
  Lock lock(mutex_);
  while (true) {
    const auto found = [&] { return workers_may_go_ || !ready_.empty(); };
    if (every.count() == 0 || !options_.storing.automatic) {
      work_.wait(lock, found);
    } else if (!work_.wait_for(lock, every, found)) {
      for (auto& [partition, seat] : seats_) {
        seat.tick(SteadyClock::now());
        refresh(seat);
      }
      pump(lock);
      continue;
    }
    if (workers_may_go_) return std::nullopt;
    if (lease_has_ended()) lease_ended(lock);
    if (ready_.empty()) continue;
    return take_turn().begin();
  }
}

PartitionSeat& SubscribeLink::take_turn() {
  auto next = ready_.lower_bound(turn_);
  if (next == ready_.end()) next = ready_.begin();
  turn_ = PartitionNumber{next->value + 1};
  PartitionSeat& seat = seats_.at(*next);
  ready_.erase(next);
  return seat;
}

void SubscribeLink::finish(const SeatTask& task) {
  Lock lock(mutex_);
  PartitionSeat& seat = seats_.at(task.partition);
  if (task.kind == SeatTask::Kind::handle && !task.failed) {
    stats_.records_handled += task.records;
    ++stats_.batches_handled;
  }
  seat.finish(task, SteadyClock::now());
  refresh(seat);
  changed_.notify_all();
  advance(lock);
}

void SubscribeLink::refresh(PartitionSeat& seat) {
  Subscription& subscription = subscriptions_[subscription_at_.at(seat.partition())];
  const CreditAmount credit = seat.take_credit();
  subscription.due.batches += credit.batches;
  subscription.due.bytes += credit.bytes;
  dirty_.insert(seat.partition());
  if (seat.has_task()) {
    if (ready_.insert(seat.partition()).second) work_.notify_one();
  } else {
    ready_.erase(seat.partition());
  }
}

void SubscribeLink::lease_ended(Lock& lock) {
  const std::vector<PartitionNumber> losing = lose_all();
  changed_.notify_all();
  if (!std::exchange(loss_told_, true)) {
    lock.unlock();
    report({}, losing);
    lock.lock();
  }
  // Unless another session is open by now.
  if (lease_has_ended()) give_up_session(lock);
}

/// Gives the seats up in the ordinary way, so that others of the group do not wait for a consumer
/// that has ended.
void SubscribeLink::end(const Error& error) {
  if (result_) return;
  result_ = error;
  for (auto& [partition, seat] : seats_) {
    seat.stop();
    refresh(seat);
  }
  changed_.notify_all();
}

void SubscribeLink::advance(Lock& lock) {
  if (result_ && all_done()) leaving_ = true;
  pump(lock);
}

void SubscribeLink::fail(const Error& error) {
  Lock lock(mutex_);
  end(error);
  advance(lock);
}

Status SubscribeLink::store_offset(const StreamPosition& position,
                                   std::chrono::milliseconds timeout) {
  const auto deadline = SteadyClock::now() + timeout;
  Lock lock(mutex_);
  const auto at = seats_.find(position.partition);
  if (at == seats_.end()) {
    return Error{Errc::partition_not_found,
                 fmt::format("partition {} is not read here", position.partition.value)};
  }
  if (options_.single_active && lease_has_ended()) return lost_error();
  PartitionSeat& seat = at->second;
  const auto ticket = seat.want_store(position);
  if (!ticket) return ticket.error();
  refresh(seat);
  pump(lock);
  std::optional<Status> status;
  changed_.wait_until(lock, deadline, [&] {
    status = seat.store_result(*ticket);
    return status || over_;
  });
  if (status) return *status;
  if (over_) return *over_;
  return Error{Errc::deadline_exceeded,
               fmt::format("offset {} of partition {} is not confirmed yet", position.offset.value,
                           position.partition.value)};
}

bool SubscribeLink::all_done() const {
  return std::ranges::all_of(seats_, [](const auto& entry) { return entry.second.is_done(); });
}

Status SubscribeLink::close(std::chrono::milliseconds timeout) {
  const auto deadline = SteadyClock::now() + timeout;
  Lock lock(mutex_);
  stopping_ = true;
  for (auto& [partition, seat] : seats_) {
    seat.stop();
    refresh(seat);
  }
  pump(lock);
  const bool done =
      changed_.wait_until(lock, deadline, [&] { return over_.has_value() || all_done(); });
  leaving_ = true;
  pump(lock);
  shutdown(lock, true, deadline);
  workers_may_go_ = true;
  work_.notify_all();
  Status status;
  if (result_ && !result_->has_value()) {
    status = *result_;
  } else if (store_failure_) {
    status = *store_failure_;
  } else if (!done) {
    status = Error{Errc::deadline_exceeded, "a handler or an offset was not done in time"};
  }
  if (!result_) result_ = status;
  changed_.notify_all();
  return status;
}

std::optional<Status> SubscribeLink::wait(std::chrono::milliseconds timeout) {
  Lock lock(mutex_);
  changed_.wait_for(lock, timeout, [&] { return result_.has_value(); });
  return result_;
}

SessionLease SubscribeLink::lease() const {
  const Lock lock(mutex_);
  return lease_now();
}

StreamConsumer::Stats SubscribeLink::stats() const {
  const Lock lock(mutex_);
  StreamConsumer::Stats stats = stats_;
  stats.reconnects = reconnects_;
  for (const auto& [partition, seat] : seats_) stats.seats += seat.is_ours() ? 1 : 0;
  return stats;
}

}  // namespace baton::client
