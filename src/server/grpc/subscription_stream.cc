#include "server/grpc/subscription_stream.h"

#include <grpcpp/impl/codegen/proto_utils.h>

#include <utility>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "server/grpc/api_limits.h"
#include "server/grpc/stream_convert.h"
#include "server/grpc/wire_fields.h"

namespace baton {
namespace {

/// This process is the only node there is.
constexpr NodeId kThisNode{1};

std::string encode_stored(const v1::StoreSubscriptionOffset& item, std::int64_t offset,
                          const std::optional<Error>& error) {
  v1::OffsetStored stored;
  stored.set_id(item.id());
  stored.set_partition(item.partition());
  stored.set_offset(offset);
  if (error.has_value()) *stored.mutable_error() = to_proto(*error);
  std::string piece;
  append_blob(piece, 4, stored.SerializeAsString());
  return piece;
}

std::size_t count_items(const v1::SubscribeRequest& request) {
  std::size_t items = 0;
  for (const int count : {request.starts_size(), request.credits_size(), request.replies_size(),
                          request.offsets_size(), request.unsubscribes_size()}) {
    items += static_cast<std::size_t>(count);
  }
  return items;
}

}  // namespace

SubscriptionStream::SubscriptionStream(std::shared_ptr<ApiState> state)
    : LeasedStream(std::move(state)),
      connection_{kThisNode, ConnectionNumber{state_->next_connection.fetch_add(1)}} {
  state_->counters.consumers_open.fetch_add(1, std::memory_order_relaxed);
}

SubscriptionStream::~SubscriptionStream() {
  state_->counters.consumers_open.fetch_sub(1, std::memory_order_relaxed);
}

void SubscriptionStream::take(grpc::ByteBuffer& request) {
  const grpc::Status parsed =
      grpc::SerializationTraits<v1::SubscribeRequest>::Deserialize(&request, &request_);
  if (!parsed.ok()) {
    return end(to_status({Errc::invalid_argument, "the request is not a SubscribeRequest"}));
  }
  if (const std::size_t items = count_items(request_); items > limits::kItemsPerRequest) {
    return end(
        to_status({Errc::invalid_argument, fmt::format("the request has {} items; the limit is {}",
                                                       items, limits::kItemsPerRequest)}));
  }
  if (request_.has_heartbeat()) take_heartbeat(request_.heartbeat());
  requested_ = true;
  // An offset goes before the reply that follows it: the successor begins where it says.
  for (const v1::Start& item : request_.starts()) start(item);
  for (const v1::Credit& item : request_.credits()) add_credit(item);
  for (const v1::StoreSubscriptionOffset& item : request_.offsets()) store_offset(item);
  for (const v1::UpdateReply& item : request_.replies()) take_reply(item);
  for (const v1::Unsubscribe& item : request_.unsubscribes()) {
    unsubscribe(SubscriptionId{item.id()});
  }
  finish_turn();
}

/// The first one is answered before anything else is said: a client that hears of a seat knows
/// whether it has a lease.
void SubscriptionStream::take_heartbeat(const v1::Heartbeat& heartbeat) {
  const std::lock_guard lock(mutex_);
  const auto answer = heard(heartbeat, !requested_);
  if (!answer.has_value()) return;
  std::string piece;
  append_blob(piece, 6, answer->SerializeAsString());
  say_ahead_of_batches(std::move(piece));
}

void SubscriptionStream::finish_turn() {
  std::vector<std::function<void()>> due;
  {
    const std::lock_guard lock(mutex_);
    due.swap(put_off_);
  }
  for (const auto& hand_over : due) hand_over();
  pump();
}

void SubscriptionStream::start(const v1::Start& item) {
  Result<SubscriptionWanted> wanted = convert(item);
  auto subscription = std::make_shared<Subscription>();
  const SubscriptionId id{item.id()};
  bool leased = false;
  {
    const std::lock_guard lock(mutex_);
    leased = has_lease();
    // The connection has ended while its last request was taken: nobody would ever end this one.
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
      v1::Closed closed;
      closed.set_id(item.id());
      *closed.mutable_reason() = to_proto(wanted.error());
      std::string piece;
      append_blob(piece, 5, closed.SerializeAsString());
      return say(std::move(piece));
    }
    subscription->wanted = *std::move(wanted);
    subscription->credit_batches = subscription->wanted.credit_batches;
    subscription->credit_bytes = subscription->wanted.credit_bytes;
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

void SubscriptionStream::started(const std::shared_ptr<Subscription>& subscription,
                                 SubscribeCommand* done) {
  if (done == nullptr) return;
  if (!done->error.has_value() && !done->group.empty()) streams_.insert(done->stream);
  // The connection has ended in the meantime; release() goes on from here.
  if (subscription->closed) return;
  subscription->started = true;
  if (done->error.has_value()) return close(*subscription, done->error, false);
  v1::Started answer;
  answer.set_id(subscription->wanted.id.value);
  answer.set_ticket(subscription->ticket.value);
  for (SubscribeCommand::Subscribed& part : done->subscribed) {
    answer.add_partitions(part.partition.value);
  }
  std::string piece;
  append_blob(piece, 1, answer.SerializeAsString());
  say(std::move(piece));
  const SubscriptionWanted& wanted = subscription->wanted;
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

std::shared_ptr<SubscriptionStream::Subscription> SubscriptionStream::find(
    SubscriptionId id) const {
  const auto entry = subscriptions_.find(id);
  return entry == subscriptions_.end() ? nullptr : entry->second;
}

void SubscriptionStream::add_credit(const v1::Credit& credit) {
  const std::lock_guard lock(mutex_);
  const auto subscription = find(SubscriptionId{credit.id()});
  // One that has just been closed, as the client will learn.
  if (subscription == nullptr) return;
  const auto too_much = [](std::uint64_t have, std::uint64_t added) {
    return added > limits::kCreditMax || have + added > limits::kCreditMax;
  };
  if (too_much(subscription->credit_batches, credit.batches()) ||
      too_much(subscription->credit_bytes, credit.bytes())) {
    return close(*subscription,
                 Error{Errc::invalid_argument,
                       fmt::format("credit adds up to more than {}", limits::kCreditMax)},
                 true);
  }
  subscription->credit_batches += credit.batches();
  subscription->credit_bytes += credit.bytes();
  unblock();
}

void SubscriptionStream::store_offset(const v1::StoreSubscriptionOffset& item) {
  std::optional<StoreOffsetCommand> command;
  {
    const std::lock_guard lock(mutex_);
    const auto subscription = find(SubscriptionId{item.id()});
    std::optional<Error> error;
    if (subscription == nullptr) {
      error = Error{Errc::not_found, fmt::format("there is no subscription {}", item.id())};
    } else if (item.offset() < 0) {
      error = Error{Errc::invalid_argument,
                    fmt::format("offset is {}; it must not be negative", item.offset())};
    } else if (subscription->wanted.command.group.empty()) {
      error = Error{Errc::failed_precondition, "a subscription without a group stores no offsets"};
    }
    if (error.has_value()) return say(encode_stored(item, item.offset(), error));
    const SubscribeCommand& start = subscription->wanted.command;
    command.emplace();
    command->stream = start.stream;
    command->request.group = {start.stream, item.partition(), start.group};
    command->request.offset = GroupOffset{static_cast<std::uint64_t>(item.offset())};
    if (start.single_active) {
      command->request.holder = {.member = {connection_, SubscriptionId{item.id()}},
                                 .epoch = Generation{item.epoch()}};
    }
    ++under_way_;
  }
  send(*std::move(command), [this, item](StoreOffsetCommand* done) {
    if (done == nullptr) return;
    const auto offset = static_cast<std::int64_t>(done->stored.value);
    say(encode_stored(item, done->error.has_value() ? item.offset() : offset, done->error));
  });
}

void SubscriptionStream::take_reply(const v1::UpdateReply& reply) {
  const std::lock_guard lock(mutex_);
  const auto subscription = find(SubscriptionId{reply.id()});
  if (subscription == nullptr) return;
  const auto entry = subscription->feeds.find(PartitionNumber{reply.partition()});
  if (entry == subscription->feeds.end() || entry->second->seat == nullptr) return;
  std::optional<GroupOffset> offset;
  if (reply.has_offset() && reply.offset() >= 0) {
    offset = GroupOffset{static_cast<std::uint64_t>(reply.offset())};
  }
  act(entry->second, entry->second->seat->client_replied(Generation{reply.generation()}, offset));
}

void SubscriptionStream::unsubscribe(SubscriptionId id) {
  const std::lock_guard lock(mutex_);
  const auto subscription = find(id);
  if (subscription != nullptr) close(*subscription, std::nullopt, true);
}

bool SubscriptionStream::has_room() const {
  return under_way_ < limits::kFrameMessages && piece_bytes_ < 2 * limits::kConnectionOutputBytes;
}

/// Pieces go into one frame as long as their fields are in the order of their numbers: a client
/// that takes a response's fields in that order hears everything in the order in which it was said.
std::string SubscriptionStream::take_output(Lock& /*lock*/) {
  std::string frame;
  char last_field = 0;
  while (!pieces_.empty()) {
    std::string& piece = pieces_.front().bytes;
    const char field = piece.front();
    const bool fits = frame.size() + piece.size() <= limits::kFrameBytes && field >= last_field;
    if (!frame.empty() && !fits) break;
    last_field = field;
    piece_bytes_ -= piece.size();
    if (frame.empty()) {
      frame = std::move(piece);
    } else {
      frame += piece;
    }
    pieces_.pop_front();
  }
  return frame;
}

void SubscriptionStream::written(bool /*ok*/) { unblock(); }

bool SubscriptionStream::release(Lock& lock) {
  if (!releasing_) {
    releasing_ = true;
    drop_subscriptions();
  }
  // A Start still on its way would come after the connection's end, and stay in its group for good.
  if (under_way_ != 0 || streams_.empty()) return false;
  const std::set<std::string> streams = std::exchange(streams_, {});
  under_way_ += streams.size();
  // Whoever left in order has unsubscribed before. What is still subscribed now may be at work.
  const std::optional<Instant> lease = lease_running();
  lock.unlock();
  for (const std::string& stream : streams) {
    send(ConnectionDownCommand{.stream = stream, .connection = connection_, .lease_until = lease},
         [](ConnectionDownCommand*) {});
  }
  lock.lock();
  return true;
}

void SubscriptionStream::lease_ended() {
  for (const auto& [id, subscription] : subscriptions_) {
    const SubscribeCommand& start = subscription->wanted.command;
    if (!start.single_active) continue;
    spdlog::warn("event=session_lease_over stream=\"{}\" group=\"{}\" owner=\"{}\"", start.stream,
                 start.group, start.owner);
  }
}

void SubscriptionStream::drop_subscriptions() {
  for (const auto& [id, subscription] : subscriptions_) {
    subscription->closed = true;
    for (const auto& [number, feed] : subscription->feeds) stop_delivery(*feed);
    subscription->feeds.clear();
  }
  subscriptions_.clear();
  blocked_.clear();
}

bool SubscriptionStream::released() const {
  return releasing_ && under_way_ == 0 && streams_.empty();
}

}  // namespace baton
