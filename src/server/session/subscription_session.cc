#include "server/session/subscription_session.h"

#include <utility>

#include <fmt/format.h>

#include "base/logging/log.h"
#include "server/session/limits.h"

namespace baton {
namespace {

/// This process is the only node.
constexpr NodeId kThisNode{1};

}  // namespace

SubscriptionSession::SubscriptionSession(std::shared_ptr<ServerState> state)
    : LeasedSession(std::move(state)),
      connection_{kThisNode, ConnectionNumber{state_->next_connection.fetch_add(1)}} {
  state_->counters.consumers_open.fetch_add(1, std::memory_order_relaxed);
}

SubscriptionSession::~SubscriptionSession() {
  state_->counters.consumers_open.fetch_sub(1, std::memory_order_relaxed);
}

Status SubscriptionSession::take(subscription::Request& request) {
  if (const std::size_t items = request.items(); items > limits::kItemsPerRequest) {
    return Error{Errc::invalid_argument, fmt::format("the request has {} items; the limit is {}",
                                                     items, limits::kItemsPerRequest)};
  }
  if (request.heartbeat.has_value()) take_heartbeat(*request.heartbeat);
  requested_ = true;
  // An offset is sent before the reply that follows it: the successor begins at that offset.
  for (subscription::Start& item : request.starts) start(std::move(item));
  for (const subscription::MoreCredit& item : request.credits) add_credit(item);
  for (const subscription::StoreOffset& item : request.offsets) store_offset(item);
  for (const subscription::Reply& item : request.replies) take_reply(item);
  for (const SubscriptionId id : request.unsubscribes) unsubscribe(id);
  finish_turn();
  return {};
}

/// The first heartbeat is answered before anything else is sent: a client that gets a seat knows
/// whether it has a lease.
void SubscriptionSession::take_heartbeat(std::uint64_t number) {
  const std::lock_guard lock(mutex_);
  const auto answer = heard(number, !requested_);
  if (answer.has_value()) said_.say_ahead_of_batches(*answer);
}

void SubscriptionSession::finish_turn() {
  std::vector<std::function<void()>> due;
  {
    const std::lock_guard lock(mutex_);
    due.swap(put_off_);
  }
  for (const auto& hand_over : due) hand_over();
  pump();
}

void SubscriptionSession::start(subscription::Start item) {
  Result<subscription::Wanted>& wanted = item.wanted;
  const SubscriptionId id = item.id;
  auto subscription = std::make_shared<Subscription>();
  bool leased = false;
  {
    const std::lock_guard lock(mutex_);
    leased = has_lease();
    // The connection ended while its last request was taken: nothing would end this subscription.
    if (releasing_) return;
    if (wanted.has_value() && subscriptions_.contains(id)) {
      wanted =
          Error{Errc::already_exists,
                fmt::format("subscription {} is open; close it, or take another id", id.value)};
    }
    if (wanted.has_value() && subscriptions_.size() >= limits::kSubscriptionsPerConnection) {
      wanted =
          Error{Errc::resource_exhausted, fmt::format("a connection has at most {} subscriptions",
                                                      limits::kSubscriptionsPerConnection)};
    }
    if (!wanted.has_value()) {
      return said_.say(subscription::Closed{.id = id, .reason = wanted.error()});
    }
    subscription->wanted = *std::move(wanted);
    subscription->credit = subscription->wanted.credit;
    subscription->ticket = state_->broker.next_ticket();
    subscriptions_[id] = subscription;
    ++under_way_;
  }
  SubscribeCommand command = subscription->wanted.command;
  command.member = {connection_, id};
  command.ticket = subscription->ticket;
  command.has_lease = leased;
  command.sink = self();
  send(std::move(command),
       [this, subscription](SubscribeCommand* done) { started(subscription, done); });
}

void SubscriptionSession::started(const std::shared_ptr<Subscription>& subscription,
                                  SubscribeCommand* done) {
  if (done == nullptr) return;
  if (!done->error.has_value() && !done->group.empty()) streams_.insert(done->stream);
  // The connection has ended in the meantime; release() continues from here.
  if (subscription->closed) return;
  subscription->started = true;
  if (done->error.has_value()) return close(*subscription, done->error, false);
  subscription::Started answer{
      .id = subscription->wanted.id, .ticket = subscription->ticket, .partitions = {}};
  for (const SubscribeCommand::Subscribed& part : done->subscribed) {
    answer.partitions.push_back(part.partition);
  }
  said_.say(std::move(answer));
  const subscription::Wanted& wanted = subscription->wanted;
  for (SubscribeCommand::Subscribed& part : done->subscribed) {
    const std::optional<GroupOffset> stored = part.offset;
    auto feed = std::make_shared<Feed>(self(), std::move(part));
    feed->subscription = subscription;
    subscription->feeds[feed->number] = feed;
    if (wanted.command.single_active) {
      feed->seat = std::make_unique<Seat>(
          Seat::Options{.ticket = subscription->ticket, .ask_offset = wanted.ask_offset});
    } else {
      begin_delivery(feed, stored.has_value()
                               ? std::optional(Offset{static_cast<std::int64_t>(stored->value)})
                               : std::nullopt);
    }
  }
  const std::optional<std::optional<Error>> end = subscription->close_when_started;
  if (end.has_value()) close(*subscription, *end, true);
}

std::shared_ptr<SubscriptionSession::Subscription> SubscriptionSession::find(
    SubscriptionId id) const {
  const auto entry = subscriptions_.find(id);
  return entry == subscriptions_.end() ? nullptr : entry->second;
}

void SubscriptionSession::add_credit(const subscription::MoreCredit& more) {
  const std::lock_guard lock(mutex_);
  const auto subscription = find(more.id);
  // The subscription has just been closed, as the client will learn.
  if (subscription == nullptr) return;
  const auto too_much = [](std::uint64_t have, std::uint64_t added) {
    return added > limits::kCreditMax || have + added > limits::kCreditMax;
  };
  if (too_much(subscription->credit.batches, more.credit.batches) ||
      too_much(subscription->credit.bytes, more.credit.bytes)) {
    return close(*subscription,
                 Error{Errc::invalid_argument,
                       fmt::format("credit adds up to more than {}", limits::kCreditMax)},
                 true);
  }
  subscription->credit.add(more.credit);
  unblock();
}

void SubscriptionSession::store_offset(const subscription::StoreOffset& item) {
  std::optional<StoreOffsetCommand> command;
  {
    const std::lock_guard lock(mutex_);
    const auto subscription = find(item.id);
    std::optional<Error> error;
    if (subscription == nullptr) {
      error = Error{Errc::not_found, fmt::format("there is no subscription {}", item.id.value)};
    } else if (item.offset < 0) {
      error = Error{Errc::invalid_argument,
                    fmt::format("offset is {}; it must not be negative", item.offset)};
    } else if (subscription->wanted.command.group.empty()) {
      error = Error{Errc::failed_precondition, "a subscription without a group stores no offsets"};
    }
    if (error.has_value()) {
      return said_.say(subscription::OffsetStored{
          .id = item.id, .partition = item.partition, .offset = item.offset, .error = error});
    }
    const SubscribeCommand& start = subscription->wanted.command;
    command.emplace();
    command->stream = start.stream;
    command->request.group = {start.stream, item.partition.value, start.group};
    command->request.offset = GroupOffset{static_cast<std::uint64_t>(item.offset)};
    if (start.single_active) {
      command->request.holder = {.member = {connection_, item.id}, .epoch = item.epoch};
    }
    ++under_way_;
  }
  send(*std::move(command), [this, item](StoreOffsetCommand* done) {
    if (done == nullptr) return;
    const auto offset = static_cast<std::int64_t>(done->stored.value);
    said_.say(subscription::OffsetStored{.id = item.id,
                                         .partition = item.partition,
                                         .offset = done->error.has_value() ? item.offset : offset,
                                         .error = done->error});
  });
}

void SubscriptionSession::take_reply(const subscription::Reply& reply) {
  const std::lock_guard lock(mutex_);
  const auto subscription = find(reply.id);
  if (subscription == nullptr) return;
  const auto entry = subscription->feeds.find(reply.partition);
  if (entry == subscription->feeds.end() || entry->second->seat == nullptr) return;
  act(entry->second, entry->second->seat->client_replied(reply.generation, reply.offset));
}

void SubscriptionSession::unsubscribe(SubscriptionId id) {
  const std::lock_guard lock(mutex_);
  const auto subscription = find(id);
  if (subscription != nullptr) close(*subscription, std::nullopt, true);
}

bool SubscriptionSession::has_room() const {
  return under_way_ < limits::kFrameMessages && said_.bytes() < 2 * limits::kConnectionOutputBytes;
}

void SubscriptionSession::written(bool /*ok*/) { unblock(); }

bool SubscriptionSession::release(Lock& lock) {
  if (!releasing_) {
    releasing_ = true;
    drop_subscriptions();
  }
  // A start still on its way would arrive after the connection's end, and stay in its group for
  // ever.
  if (under_way_ != 0 || streams_.empty()) return false;
  const std::set<std::string> streams = std::exchange(streams_, {});
  under_way_ += streams.size();
  // A client that leaves in order unsubscribes first. A client that is still subscribed may be
  // working.
  const std::optional<Instant> lease = lease_running();
  lock.unlock();
  for (const std::string& stream : streams) {
    send(ConnectionDownCommand{.stream = stream, .connection = connection_, .lease_until = lease},
         [](ConnectionDownCommand*) {});
  }
  lock.lock();
  return true;
}

void SubscriptionSession::lease_ended() {
  for (const auto& [id, subscription] : subscriptions_) {
    const SubscribeCommand& start = subscription->wanted.command;
    if (!start.single_active) continue;
    log_event(LogLevel::warning,
              fmt::format("event=session_lease_over stream={} group={} owner={}",
                          log_value(start.stream), log_value(start.group), log_value(start.owner)));
  }
}

void SubscriptionSession::drop_subscriptions() {
  for (const auto& [id, subscription] : subscriptions_) {
    subscription->closed = true;
    for (const auto& [number, feed] : subscription->feeds) stop_delivery(*feed);
    subscription->feeds.clear();
  }
  subscriptions_.clear();
  blocked_.clear();
}

bool SubscriptionSession::released() const {
  return releasing_ && under_way_ == 0 && streams_.empty();
}

}  // namespace baton
