// The part of SubscribeLink that handles responses of the broker.
#include <algorithm>
#include <utility>

#include "core/stream/record_batch.h"
#include "sdk/base/errors.h"
#include "sdk/stream/subscribe_link.h"

namespace baton::client {
namespace {

std::optional<Error> error_of(const v1::SubscribeResponse::OffsetStored& stored) {
  if (!stored.has_error()) return std::nullopt;
  return from_proto(stored.error());
}

}  // namespace

SubscribeLink::Subscription* SubscribeLink::subscription_of(std::uint64_t id) {
  const auto at = subscription_by_id_.find(id);
  return at == subscription_by_id_.end() ? nullptr : &subscriptions_[at->second];
}

/// Null for a subscription that is not ours, or no longer.
PartitionSeat* SubscribeLink::seat_of(std::uint64_t id, PartitionNumber partition) {
  const auto seat = seats_.find(partition);
  if (seat == seats_.end()) return nullptr;
  const Subscription& subscription = subscriptions_[subscription_at_.at(partition)];
  return subscription.id == id ? &seat->second : nullptr;
}

void SubscribeLink::received(v1::SubscribeResponse& response) {
  Lock lock(mutex_);
  mark_alive(lock);
  take_heartbeat(response);
  // The response came while the lease was ending: others may have the seats it is about.
  if (lease_has_ended()) return lease_ended(lock);
  for (const v1::SubscribeResponse::Started& started : response.started()) take_started(started);
  // Before the updates: an offset that is confirmed in the same response belongs to the seat as it
  // was before them; and so do the batches.
  for (const v1::SubscribeResponse::OffsetStored& stored : response.stored()) take_stored(stored);
  for (const v1::SubscribeResponse::Update& update : response.updates()) take_update(update);
  for (v1::SubscribeResponse::Batches& batch : *response.mutable_batches()) take_batch(batch);
  for (const v1::SubscribeResponse::Closed& closed : response.closed()) take_closed(lock, closed);
  changed_.notify_all();
  advance(lock);
  const auto errors = std::exchange(errors_, {});
  const auto losing = std::exchange(losing_, {});
  lock.unlock();
  report(errors, losing);
}

void SubscribeLink::take_started(const v1::SubscribeResponse::Started& started) {
  const Subscription* const subscription = subscription_of(started.id());
  if (subscription == nullptr) return;
  for (const PartitionNumber partition : subscription->partitions) {
    PartitionSeat& seat = seats_.at(partition);
    seat.started(started.id());
    refresh(seat);
  }
}

void SubscribeLink::take_update(const v1::SubscribeResponse::Update& update) {
  PartitionSeat* const seat = seat_of(update.id(), PartitionNumber{update.partition()});
  if (seat == nullptr) return;
  PartitionSeat::Update told{.active = update.active(),
                             .stepping_down = update.stepping_down(),
                             .generation = update.generation()};
  if (update.has_offset()) told.offset = Offset{update.offset()};
  seat->update(told);
  if (!told.active) losing_.push_back(seat->partition());
  refresh(*seat);
}

void SubscribeLink::take_batch(v1::SubscribeResponse::Batches& batch) {
  PartitionSeat* const seat = seat_of(batch.id(), PartitionNumber{batch.partition()});
  if (seat == nullptr) {
    ++stats_.batches_dropped;
    return;
  }
  const CreditAmount cost{.batches = batch.batch_count(), .bytes = batch.batches().size()};
  Subscription& subscription = subscriptions_[subscription_at_.at(seat->partition())];
  subscription.used.batches += cost.batches;
  subscription.used.bytes += cost.bytes;
  const auto header = decode_batch_header(batch.batches());
  const bool taken = seat->deliver({.subscription = batch.id(),
                                    .epoch = Epoch{batch.epoch()},
                                    .bytes = std::move(*batch.mutable_batches()),
                                    .first_offset = header ? header->base_offset : kNoOffset,
                                    .next_offset = Offset{batch.next_offset()},
                                    .end_offset = Offset{batch.end_offset()},
                                    .cost = cost});
  if (!taken) ++stats_.batches_dropped;
  refresh(*seat);
}

void SubscribeLink::take_stored(const v1::SubscribeResponse::OffsetStored& stored) {
  PartitionSeat* const seat = seat_of(stored.id(), PartitionNumber{stored.partition()});
  if (seat == nullptr) return;
  const auto error = error_of(stored);
  const bool expected = seat->stored(Offset{stored.offset()}, error);
  if (expected && !error) ++stats_.offsets_stored;
  if (error) {
    errors_.push_back(*error);
    if (expected && !store_failure_) store_failure_ = error;
  }
  refresh(*seat);
}

void SubscribeLink::take_closed(Lock& lock, const v1::SubscribeResponse::Closed& closed) {
  Subscription* const subscription = subscription_of(closed.id());
  if (subscription == nullptr) return;
  for (const PartitionNumber partition : subscription->partitions) {
    PartitionSeat& seat = seats_.at(partition);
    seat.lost();
    losing_.push_back(partition);
    refresh(seat);
  }
  if (leaving_) return;
  const Error reason = from_proto(closed.reason());
  errors_.push_back(reason);
  switch (reason.code) {
    // The consumer was too slow once: it joins the group again, as the last in line.
    case Errc::handover_timeout: renew(*subscription); break;
    case Errc::unavailable: break_session(lock); break;
    default: end(reason);
  }
}

std::vector<PartitionNumber> SubscribeLink::lose_all() {
  std::vector<PartitionNumber> losing;
  for (auto& [partition, seat] : seats_) {
    seat.lost();
    losing.push_back(partition);
    refresh(seat);
  }
  return losing;
}

void SubscribeLink::disconnected(const Error& error, bool over) {
  std::vector<Error> errors;
  std::vector<PartitionNumber> losing;
  {
    const Lock lock(mutex_);
    close_lease();
    losing = lose_all();
    for (Subscription& subscription : subscriptions_) subscription.start_sent = false;
    subscription_by_id_.clear();
    if (over && !closing_) end(error);
    errors = std::exchange(errors_, {});
    if (!closing_) errors.push_back(error);
    changed_.notify_all();
  }
  report(errors, losing);
}

void SubscribeLink::report(const std::vector<Error>& errors,
                           const std::vector<PartitionNumber>& losing) const {
  if (options_.on_losing) {
    for (const PartitionNumber partition : losing) options_.on_losing(partition);
  }
  if (!options_.on_error) return;
  for (const Error& error : errors) options_.on_error(error);
}

}  // namespace baton::client
