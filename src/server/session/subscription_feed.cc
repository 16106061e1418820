#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/logging/log.h"
#include "server/session/limits.h"
#include "server/session/subscription_session.h"

/// Seats and delivery of a SubscriptionSession.
namespace baton {
namespace {

template <class Told>
SeatActions tell(Seat& seat, const Told& told, Instant now) {
  if constexpr (requires { seat.on(told, now); }) {
    return seat.on(told, now);
  } else {
    return seat.on(told);
  }
}

}  // namespace

void SubscriptionSession::Feed::wake() {
  const auto session = owner.lock();
  if (session == nullptr) return;
  const std::lock_guard lock(session->mutex_);
  registered = false;
  waiting = false;
  session->schedule(shared_from_this());
}

void SubscriptionSession::told(const CoordinatorEffects::Effect& effect) {
  {
    const std::lock_guard lock(mutex_);
    std::visit(
        [this](const auto& what) {
          if constexpr (requires { what.ticket; }) hear(what);
        },
        effect);
  }
  finish_turn();
}

template <class Told>
void SubscriptionSession::hear(const Told& told) {
  const auto subscription = find(told.member.subscription);
  // A message for an earlier subscription with this id must not reach the new one.
  if (subscription == nullptr || subscription->ticket != told.ticket) return;
  if constexpr (requires { told.reason; }) {
    close(*subscription, told.reason, false);
  } else {
    const auto feed = subscription->feeds.find(PartitionNumber{told.group.partition});
    if (feed == subscription->feeds.end() || feed->second->seat == nullptr) return;
    act(feed->second, tell(*feed->second->seat, told, state_->broker.now()));
  }
}

void SubscriptionSession::act(const std::shared_ptr<Feed>& feed, const SeatActions& actions) {
  Subscription& subscription = *feed->subscription;
  const SubscriptionId id = subscription.wanted.id;
  if (actions.stop_delivery) {
    stop_delivery(*feed);
    unblock();
  }
  if (actions.update.has_value()) {
    said_.say(subscription::Update{
        .id = id, .partition = feed->number, .seat = *actions.update, .offset = actions.from});
  }
  if (actions.start_delivery) {
    begin_delivery(feed, actions.from.has_value()
                             ? std::optional(Offset{static_cast<std::int64_t>(actions.from->value)})
                             : std::nullopt);
  }
  if (actions.reply.has_value()) {
    send_later(StepDownReplyCommand{.stream = subscription.wanted.command.stream,
                                    .partition = feed->number,
                                    .group = subscription.wanted.command.group,
                                    .member = {connection_, id},
                                    .generation = *actions.reply},
               [](StepDownReplyCommand*) {});
  }
  if (actions.ended.has_value()) {
    const SubscribeCommand& start = subscription.wanted.command;
    log_event(LogLevel::warning,
              fmt::format("event=consumer_ended stream={} group={} partition={} owner={} reason={}",
                          log_value(start.stream), log_value(start.group), feed->number.value,
                          log_value(start.owner), log_value(actions.ended->text)));
    return close(subscription, actions.ended, true);
  }
  watch_deadline(feed);
}

void SubscriptionSession::watch_deadline(const std::shared_ptr<Feed>& feed) {
  const Instant deadline = feed->seat->deadline();
  // One check at each deadline is enough, whatever else the client says meanwhile.
  if (deadline == Instant::never() || deadline == feed->deadline) return;
  feed->deadline = deadline;
  state_->background.post_at(deadline, [weak = std::weak_ptr(feed)] {
    const auto asked = weak.lock();
    const auto session = asked == nullptr ? nullptr : asked->owner.lock();
    if (session == nullptr) return;
    {
      const std::lock_guard lock(session->mutex_);
      if (asked->subscription->closed) return;
      const SeatActions actions = asked->seat->expire(session->state_->broker.now());
      if (!actions.empty()) session->act(asked, actions);
    }
    session->finish_turn();
  });
}

/// Stores the start of a group that begins at the end: a successor that took the end at its own
/// time would miss the records in between.
void SubscriptionSession::store_beginning(const Feed& feed) {
  const subscription::Wanted& wanted = feed.subscription->wanted;
  StoreOffsetCommand command;
  command.stream = wanted.command.stream;
  command.request.group = {wanted.command.stream, feed.number.value, wanted.command.group};
  command.request.holder = {.member = {connection_, wanted.id}, .epoch = feed.seat->epoch()};
  command.request.offset =
      GroupOffset{static_cast<std::uint64_t>(feed.offset.value_or(Offset{0}).value)};
  send_later(std::move(command), [](StoreOffsetCommand*) {});
}

void SubscriptionSession::begin_delivery(const std::shared_ptr<Feed>& feed,
                                         std::optional<Offset> from) {
  const ReadFrom& otherwise = feed->subscription->wanted.from;
  feed->offset = from;
  // The end at this moment, not at the time when the client gives credit.
  const bool at_end =
      otherwise.place == ReadFrom::Place::next || otherwise.place == ReadFrom::Place::last;
  if (!from.has_value() && at_end) {
    feed->offset = resolve(otherwise, feed->partition->reader()).value_or(Offset{0});
    if (feed->seat != nullptr) store_beginning(*feed);
  }
  // An earlier run may have waited at the end, and this one may begin before it.
  feed->waiting = false;
  feed->delivering = true;
  ++feed->run;
  schedule(feed);
}

/// Batches that are not written yet never will be: the client does not know of them, and cannot
/// give back their credit.
void SubscriptionSession::stop_delivery(Feed& feed) {
  feed.delivering = false;
  ++feed.run;
  feed.subscription->credit.add(said_.drop_batches(&feed));
}

bool SubscriptionSession::may_read(const Subscription& subscription) const {
  return subscription.credit.allows_more() && said_.bytes() < limits::kConnectionOutputBytes;
}

void SubscriptionSession::schedule(const std::shared_ptr<Feed>& feed) {
  if (!feed->delivering || feed->reading || feed->waiting || feed->subscription->closed) return;
  if (!may_read(*feed->subscription)) {
    blocked_.insert(feed);
    return;
  }
  feed->reading = true;
  post_read(feed, feed->run);
}

void SubscriptionSession::post_read(const std::shared_ptr<Feed>& feed, std::uint64_t run) {
  state_->background.post([session = self(), feed, run] { session->read(feed, run); });
}

void SubscriptionSession::unblock() {
  if (said_.bytes() >= limits::kConnectionOutputBytes) return;
  for (const auto& feed : std::exchange(blocked_, {})) schedule(feed);
}

/// What to read next; nullopt if the feed's run has ended or it has to wait: then it no longer
/// reads.
std::optional<ChunkWanted> SubscriptionSession::next_wanted(Feed& feed, std::uint64_t run,
                                                            Lock& lock) {
  const auto stop = [&]() -> std::optional<ChunkWanted> {
    // Retention need not wait for a client that does not read.
    feed.reader.release();
    feed.reading = false;
    // Changes in the meantime, above all a new run, found this read under way.
    if (!ending()) schedule(feed.shared_from_this());
    return std::nullopt;
  };
  if (feed.run != run || ending()) return stop();
  Subscription& subscription = *feed.subscription;
  if (!feed.offset.has_value()) {
    lock.unlock();
    const Result<Offset> from = resolve(subscription.wanted.from, feed.reader);
    lock.lock();
    if (feed.run != run) return stop();
    if (!from.has_value()) {
      take_failure(feed, from.error());
      return stop();
    }
    feed.offset = *from;
  }
  if (!may_read(subscription)) return stop();
  // Taken at once, because other feeds of the subscription read at the same time.
  feed.reserved =
      subscription.credit.take({.batches = limits::kChunkBatches, .bytes = limits::kChunkBytes});
  return ChunkWanted{.from = *feed.offset,
                     .bytes_max = feed.reserved.bytes,
                     .batches_max = feed.reserved.batches,
                     .records_max = 0,
                     .encode_record = subscription.wanted.encode_record};
}

void SubscriptionSession::read(const std::shared_ptr<Feed>& feed, std::uint64_t run) {
  std::optional<ChunkWanted> wanted;
  Generation epoch;
  {
    Lock lock(mutex_);
    wanted = next_wanted(*feed, run, lock);
    if (feed->seat != nullptr) epoch = feed->seat->epoch();
  }
  if (wanted.has_value()) take_chunk(feed, run, read_chunk(feed->reader, *wanted), epoch);
  finish_turn();
}

/// Takes the result of a read, and queues the next read behind those of other feeds: one feed with
/// much to catch up on must not delay the others.
void SubscriptionSession::take_chunk(const std::shared_ptr<Feed>& feed, std::uint64_t run,
                                     Result<Chunk> chunk, Generation epoch) {
  const std::lock_guard lock(mutex_);
  feed->subscription->credit.add(std::exchange(feed->reserved, {}));
  bool more = true;  // If the run has ended, next_wanted() stops the feed.
  if (feed->run == run) {
    if (!chunk.has_value()) {
      more = take_failure(*feed, chunk.error());
    } else if (chunk->empty()) {
      more = wait_for_more(feed);
    } else {
      deliver(*feed, *std::move(chunk), epoch);
    }
  }
  if (more) post_read(feed, run);
  unblock();
}

void SubscriptionSession::deliver(Feed& feed, Chunk chunk, Generation epoch) {
  Subscription& subscription = *feed.subscription;
  const subscription::Credit cost =
      subscription.credit.take({.batches = chunk.batch_count, .bytes = chunk.bytes});
  feed.offset = chunk.next;
  said_.say_batch(&feed,
                  {.id = subscription.wanted.id,
                   .partition = feed.number,
                   .epoch = epoch,
                   .chunk = std::move(chunk)},
                  cost);
}

bool SubscriptionSession::wait_for_more(const std::shared_ptr<Feed>& feed) {
  feed->reader.release();
  if (feed->partition->closed()) {
    feed->reading = false;
    close(*feed->subscription, Error{Errc::stream_not_found, "the stream was deleted"}, false);
    return false;
  }
  // A feed that is already registered is woken by everything that came or comes after that.
  if (!feed->registered && !feed->partition->wait(feed->offset.value_or(Offset{0}), feed))
    return true;
  feed->registered = true;
  feed->waiting = true;
  feed->reading = false;
  return false;
}

/// True if the feed continues to read.
bool SubscriptionSession::take_failure(Feed& feed, const Error& error) {
  Subscription& subscription = *feed.subscription;
  const Offset first = feed.reader.first();
  if (error.code == Errc::offset_out_of_range && subscription.wanted.skip_gaps &&
      feed.offset.has_value() && *feed.offset < first) {
    feed.offset = first;
    return true;
  }
  feed.reader.release();
  feed.reading = false;
  close(subscription,
        Error{error.code,
              fmt::format("stream {}, partition {}: {}", subscription.wanted.command.stream,
                          feed.number.value, error.text)},
        true);
  return false;
}

void SubscriptionSession::close(Subscription& subscription, const std::optional<Error>& reason,
                                bool unregister) {
  if (subscription.closed) return;
  if (!subscription.started) {
    subscription.close_when_started = reason;
    return;
  }
  subscription.closed = true;
  const SubscriptionId id = subscription.wanted.id;
  UnsubscribeCommand leave{.stream = subscription.wanted.command.stream,
                           .partitions = {},
                           .group = subscription.wanted.command.group,
                           .member = {connection_, id}};
  for (const auto& [number, feed] : subscription.feeds) {
    stop_delivery(*feed);
    blocked_.erase(feed);
    leave.partitions.push_back(number);
  }
  // A feed holds its subscription: without this, both would keep each other alive.
  subscription.feeds.clear();
  subscription::Closed closed{.id = id, .reason = reason};
  if (!unregister || leave.group.empty() || leave.partitions.empty()) {
    said_.say(std::move(closed));
    subscriptions_.erase(id);
    return;
  }
  // The client learns of the end when the seat is free, and may then use the id again.
  send_later(std::move(leave), [this, id, closed = std::move(closed)](UnsubscribeCommand*) {
    said_.say(closed);
    subscriptions_.erase(id);
  });
}

}  // namespace baton
