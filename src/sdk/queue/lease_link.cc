#include "sdk/queue/lease_link.h"

#include <algorithm>
#include <iterator>

#include <fmt/format.h>

#include "base/limits.h"
#include "sdk/base/connection.h"
#include "sdk/base/errors.h"
#include "sdk/base/limits.h"
#include "sdk/queue/convert.h"

namespace baton::client {

LeaseLink::LeaseLink(const Connection& connection, std::string queue, LeaseStreamOptions options,
                     Credit credit)
    : LeasedLink(connection.options, options.reconnect),
      queue_(std::move(queue)),
      options_(std::move(options)),
      credit_mode_(credit),
      stub_(v1::QueueService::NewStub(connection.channel)) {
  if (credit_mode_ == Credit::returned) {
    credit_unsent_ =
        options_.in_flight_max != 0 ? options_.in_flight_max : baton::limits::kInFlightDefault;
  }
}

LeaseLink::~LeaseLink() { (void)close(std::chrono::milliseconds{0}); }

void LeaseLink::start() {
  Lock lock(mutex_);
  pump(lock);
}

void LeaseLink::begin_call(grpc::ClientContext* context, Reactor* reactor) {
  stub_->async()->Consume(context, reactor);
}

void LeaseLink::session_opened() {
  begin_lease();
  ++session_;
  start_sent_ = false;
  items_written_ = 0;
  items_answered_ = 0;
  frames_open_.clear();
  in_session_ = true;
  quiesce_sent_ = false;
  quiesced_ = false;
}

void LeaseLink::fill_start(v1::ConsumeStart& start) const {
  start.set_queue(queue_);
  // The id that the broker chose the first time: it keeps our leases under that id only.
  start.set_consumer_id(registration_ ? registration_->consumer_id : options_.consumer_id);
  start.set_in_flight_max(options_.in_flight_max);
  start.set_in_flight_bytes_max(options_.in_flight_bytes_max);
  start.set_manual_credit(credit_mode_ != Credit::broker);
  start.set_concurrency(options_.concurrency);
}

bool LeaseLink::frame_is_due() const {
  if (lease_has_ended()) return false;
  if (!start_sent_ || heartbeat_is_due() || (quiesce_ && !quiesce_sent_) || !begun_.empty()) {
    return true;
  }
  const std::size_t waiting = unsent() + (credit_unsent_ > 0 ? 1 : 0);
  if (waiting == 0) return false;
  return waiting >= limits::kItemsPerFrame || frames_open_.size() < options_.frames_ahead ||
         flushes_ > 0;
}

const v1::ConsumeRequest* LeaseLink::next_frame() {
  if (!frame_is_due()) return nullptr;
  frame_.Clear();  // Keeps the strings inside allocated.
  fill_heartbeat(frame_);
  if (credit_unsent_ > 0) {
    const auto credit = std::min<std::uint64_t>(credit_unsent_, baton::limits::kInFlightMax);
    frame_.set_credit(static_cast<std::uint32_t>(credit));
    credit_open_ += credit;
    credit_unsent_ -= credit;
  }
  frame_.set_quiesce(quiesce_ && !quiesce_sent_);
  quiesce_sent_ = quiesce_;
  if (start_sent_) {
    fill_items();
  } else {
    fill_start(*frame_.mutable_start());
    start_sent_ = true;
  }
  ++stats_.frames_written;
  return &frame_;
}

void LeaseLink::fill_items() {
  const std::size_t marks = std::min(begun_.size(), limits::kItemsPerFrame);
  for (std::size_t i = 0; i < marks; ++i) frame_.add_begun(begun_[i].bytes);
  begun_.erase(begun_.begin(), begun_.begin() + static_cast<std::ptrdiff_t>(marks));
  std::size_t room = limits::kItemsPerFrame;
  room -= acks_.send(room, [&](const LeaseToken& token) { frame_.add_acks(token.bytes); });
  room -= nacks_.send(room, [&](const Nack& item) { to_proto(item, *frame_.add_nacks()); });
  room -=
      extends_.send(room, [&](const Extension& item) { to_proto(item, *frame_.add_extends()); });
  if (room == limits::kItemsPerFrame) return;
  items_written_ += limits::kItemsPerFrame - room;
  frames_open_.push_back(items_written_);
}

void LeaseLink::hold(std::vector<LeasedMessage> messages) {
  stats_.messages_received += messages.size();
  credit_open_ -= std::min<std::uint64_t>(credit_open_, messages.size());
  if (closed_) return release(messages);
  if (taken_ == untaken_.size()) {
    untaken_ = std::move(messages);
  } else {
    untaken_.erase(untaken_.begin(), untaken_.begin() + static_cast<std::ptrdiff_t>(taken_));
    std::ranges::move(messages, std::back_inserter(untaken_));
  }
  taken_ = 0;
  arrived_.notify_all();
}

void LeaseLink::count_answered(std::size_t answered) {
  items_answered_ += answered;
  while (!frames_open_.empty() && frames_open_.front() <= items_answered_) frames_open_.pop_front();
}

template <class Group>
void LeaseLink::complete(Group group, Callbacks& callbacks) {
  stats_.items_failed += group.results.failures.size();
  stats_.items_done += group.results.items - group.results.failures.size();
  if (!group.is_quiet && !group.results.ok()) {
    if (!first_failure_) first_failure_ = group.results.failures.front().error;
    if (!group.callback && options_.on_item_failed) {
      group.callback = [this](const ItemResults& results) {
        for (const auto& failure : results.failures) options_.on_item_failed(failure.error);
      };
    }
  }
  if (!group.callback) return;
  callbacks.add([callback = std::move(group.callback), results = std::move(group.results)] {
    callback(results);
  });
}

template <class Item, class Results>
std::size_t LeaseLink::answer(PendingItems<Item>& lane, const Results& results,
                              Callbacks& callbacks) {
  std::size_t answered = 0;
  for (const v1::ItemResult& result : results) {
    if (lane.sent() == 0) break;  // An answer to nothing: the broker is broken.
    std::optional<Error> error;
    if (result.has_error()) error = from_proto(result.error());
    lane.answer(std::move(error), [&](auto group) { complete(std::move(group), callbacks); });
    ++answered;
  }
  return answered;
}

template <class Item>
void LeaseLink::fail(PendingItems<Item>& lane, const Error& error, Callbacks& callbacks) {
  while (lane.size() > 0) {
    lane.answer(error, [&](auto group) { complete(std::move(group), callbacks); });
  }
}

// A thread that waits for items to be answered must find their callbacks finished too.
void LeaseLink::run_unlocked(Lock& lock, Callbacks& callbacks) {
  ++running_;
  lock.unlock();
  callbacks.run();
  lock.lock();
  --running_;
  changed_.notify_all();
}

void LeaseLink::received(v1::ConsumeResponse& response) {
  std::vector<LeasedMessage> messages(static_cast<std::size_t>(response.messages_size()));
  for (std::size_t i = 0; i < messages.size(); ++i) {
    take(*response.mutable_messages(static_cast<int>(i)), messages[i]);
  }
  Callbacks callbacks;
  Lock lock(mutex_);
  mark_alive(lock);
  take_heartbeat(response);
  if (response.has_registered()) {
    registration_ =
        Registration{.consumer_id = response.registered().consumer_id(),
                     .visibility_timeout = std::chrono::duration_cast<std::chrono::milliseconds>(
                         duration_of(response.registered().visibility_timeout()))};
    if (options_.on_connected) {
      callbacks.add([this, registration = *registration_] { options_.on_connected(registration); });
    }
  }
  // Messages that come when the lease is over are not taken: the broker gives them to others.
  if (!messages.empty() && !lease_has_ended()) hold(std::move(messages));
  if (response.quiesced()) quiesced_ = true;
  count_answered(answer(acks_, response.acks(), callbacks) +
                 answer(nacks_, response.nacks(), callbacks) +
                 answer(extends_, response.extends(), callbacks));
  changed_.notify_all();
  run_unlocked(lock, callbacks);
  if (lease_has_ended()) give_up_session(lock);
  pump(lock);
}

void LeaseLink::drop_if_cut_off(Lock& lock) {
  if (!lease_has_ended()) return;
  if (credit_mode_ != Credit::broker) credit_unsent_ += untaken_.size() - taken_;
  release_untaken();
  give_up_session(lock);
}

bool LeaseLink::may_have_expired(const LeasedMessage& message) const {
  const auto broker_time = broker_time_at_most();
  return broker_time && message.lease_deadline.time_since_epoch().count() <= broker_time->ns;
}

void LeaseLink::drop_expired(std::vector<LeasedMessage>& messages) {
  const auto late = std::ranges::stable_partition(
      messages, [this](const LeasedMessage& message) { return !may_have_expired(message); });
  if (late.empty()) return;
  if (credit_mode_ != Credit::broker) credit_unsent_ += late.size();
  release(late);
  messages.erase(late.begin(), late.end());
}

void LeaseLink::give_back(LeaseToken token) {
  Lock lock(mutex_);
  if (ended()) return;
  ++stats_.items_sent;
  std::vector<Nack> items;
  items.push_back({.token = std::move(token), .retry = Retry::release(), .reason = {}});
  nacks_.add(std::move(items), {}, true);
  give_credit_back(1);
  pump(lock);
}

void LeaseLink::release_untaken() {
  release(std::span(untaken_).subspan(taken_));
  untaken_.clear();
  taken_ = 0;
}

void LeaseLink::release(std::span<LeasedMessage> messages) {
  if (messages.empty()) return;
  std::vector<Nack> items;
  items.reserve(messages.size());
  for (LeasedMessage& message : messages) {
    items.push_back({.token = std::move(message.token), .retry = Retry::release(), .reason = {}});
  }
  stats_.items_sent += items.size();
  nacks_.add(std::move(items), {}, true);
}

void LeaseLink::disconnected(const Error& error, bool over) {
  Callbacks callbacks;
  Lock lock(mutex_);
  close_lease();
  in_session_ = false;
  acks_.unsend();
  nacks_.unsend();
  extends_.unsend();
  begun_.clear();
  credit_unsent_ += std::exchange(credit_open_, 0);
  // These were not handed out. It is unknown whether the broker released them or, after a restart,
  // keeps them for us.
  if (credit_mode_ != Credit::broker) credit_unsent_ += untaken_.size() - taken_;
  release_untaken();
  if (over) {
    fail(acks_, error, callbacks);
    fail(nacks_, error, callbacks);
    fail(extends_, error, callbacks);
    arrived_.notify_all();
  }
  if (options_.on_disconnected && !closing_) {
    callbacks.add([this, error] { options_.on_disconnected(error); });
  }
  run_unlocked(lock, callbacks);
}

std::optional<Error> LeaseLink::ended() const {
  if (over_) return over_;
  if (closed_) return Error{Errc::cancelled, "the stream is closed"};
  return std::nullopt;
}

Result<Registration> LeaseLink::wait_until_registered(std::chrono::milliseconds timeout) {
  Lock lock(mutex_);
  changed_.wait_for(lock, timeout, [&] { return registration_ || ended(); });
  if (auto error = ended(); error) return *error;
  if (registration_) return *registration_;
  return Error{Errc::deadline_exceeded,
               fmt::format("the broker at {} did not register the consumer within {} ms",
                           connection_.address, timeout.count())};
}

bool LeaseLink::wait_for_messages(Lock& lock, std::chrono::milliseconds timeout) {
  arrived_.wait_for(lock, timeout,
                    [&] { return taken_ < untaken_.size() || interrupted_ || closed_ || over_; });
  interrupted_ = false;
  drop_if_cut_off(lock);
  return taken_ < untaken_.size();
}

Result<std::optional<LeasedMessage>> LeaseLink::next(std::chrono::milliseconds timeout) {
  Lock lock(mutex_);
  while (wait_for_messages(lock, timeout)) {
    LeasedMessage message = std::move(untaken_[taken_++]);
    if (!may_have_expired(message)) return std::optional(std::move(message));
    if (credit_mode_ != Credit::broker) ++credit_unsent_;
    release(std::span(&message, 1));
  }
  if (auto error = ended(); error) return *error;
  return std::optional<LeasedMessage>();
}

Result<std::vector<LeasedMessage>> LeaseLink::next_batch(std::chrono::milliseconds timeout,
                                                         std::size_t max, std::uint64_t* session) {
  Lock lock(mutex_);
  std::vector<LeasedMessage> batch;
  const bool some = wait_for_messages(lock, timeout);
  if (session != nullptr) *session = session_;
  if (!some) {
    if (auto error = ended(); error) return *error;
    return batch;
  }
  const std::size_t waiting = untaken_.size() - taken_;
  if (taken_ == 0 && (max == 0 || waiting <= max)) {
    batch.swap(untaken_);
    drop_expired(batch);
    return batch;
  }
  const std::size_t count = max == 0 ? waiting : std::min(max, waiting);
  const auto first = untaken_.begin() + static_cast<std::ptrdiff_t>(taken_);
  batch.assign(std::move_iterator(first),
               std::move_iterator(first + static_cast<std::ptrdiff_t>(count)));
  taken_ += count;
  drop_expired(batch);
  return batch;
}

void LeaseLink::interrupt() {
  const Lock lock(mutex_);
  interrupted_ = true;
  arrived_.notify_all();
}

void LeaseLink::give_credit_back(std::size_t messages) {
  if (credit_mode_ == Credit::returned && !paused_) credit_unsent_ += messages;
}

void LeaseLink::refuse(Lock& lock, std::size_t items, const Error& error,
                       LeaseStream::ResultCallback callback) {
  PendingItems<char> lane;
  Callbacks callbacks;
  lane.add(std::vector<char>(items), std::move(callback));
  fail(lane, error, callbacks);
  run_unlocked(lock, callbacks);
}

template <class Item>
void LeaseLink::submit(PendingItems<Item>& lane, Item item, LeaseStream::ResultCallback callback) {
  Lock lock(mutex_);
  ++stats_.items_sent;
  if (const auto error = ended(); error) {
    refuse(lock, 1, *error, std::move(callback));
    return;
  }
  lane.add(std::move(item), std::move(callback));
  if (!std::is_same_v<Item, Extension>) give_credit_back(1);
  pump(lock);
}

template <class Item>
void LeaseLink::submit(PendingItems<Item>& lane, std::vector<Item> items,
                       LeaseStream::ResultCallback callback, bool is_quiet) {
  const std::size_t count = items.size();
  if (count == 0) {
    if (callback) callback({});
    return;
  }
  Lock lock(mutex_);
  stats_.items_sent += count;
  if (const auto error = ended(); error) {
    refuse(lock, count, *error, std::move(callback));
    return;
  }
  lane.add(std::move(items), std::move(callback), is_quiet);
  if (!std::is_same_v<Item, Extension>) give_credit_back(count);
  pump(lock);
}

void LeaseLink::ack(LeaseToken token, LeaseStream::ResultCallback callback) {
  submit(acks_, std::move(token), std::move(callback));
}
void LeaseLink::ack(std::vector<LeaseToken> tokens, LeaseStream::ResultCallback callback) {
  submit(acks_, std::move(tokens), std::move(callback));
}
void LeaseLink::nack(Nack item, LeaseStream::ResultCallback callback) {
  submit(nacks_, std::move(item), std::move(callback));
}
void LeaseLink::nack(std::vector<Nack> items, LeaseStream::ResultCallback callback) {
  submit(nacks_, std::move(items), std::move(callback));
}
void LeaseLink::extend(std::vector<Extension> items, LeaseStream::ResultCallback callback,
                       bool is_quiet) {
  submit(extends_, std::move(items), std::move(callback), is_quiet);
}

void LeaseLink::begin(std::vector<LeaseToken> tokens) {
  Lock lock(mutex_);
  if (ended() || !in_session_) return;
  std::ranges::move(tokens, std::back_inserter(begun_));
  pump(lock);
}

void LeaseLink::add_credit(std::uint32_t messages) {
  Lock lock(mutex_);
  if (credit_mode_ == Credit::broker || ended() || paused_) return;
  credit_unsent_ += messages;
  pump(lock);
}

void LeaseLink::pause() {
  Lock lock(mutex_);
  paused_ = true;
  credit_unsent_ = 0;
  credit_open_ = 0;
  quiesce_ = true;
  pump(lock);
}

std::chrono::milliseconds LeaseLink::visibility_timeout() const {
  constexpr std::chrono::milliseconds kDefault{30'000};
  const Lock lock(mutex_);
  if (!registration_ || registration_->visibility_timeout.count() <= 0) return kDefault;
  return registration_->visibility_timeout;
}

void LeaseLink::forget_failure() {
  const Lock lock(mutex_);
  first_failure_.reset();
}

Status LeaseLink::flush(std::chrono::milliseconds timeout) {
  const auto deadline = SteadyClock::now() + timeout;
  Lock lock(mutex_);
  ++flushes_;
  pump(lock);
  const bool done = changed_.wait_until(
      lock, deadline, [&] { return items() == 0 && running_ == 0 && is_quiesced(); });
  --flushes_;
  if (auto failure = std::exchange(first_failure_, std::nullopt); failure) return *failure;
  if (done) return {};
  return Error{Errc::deadline_exceeded,
               fmt::format("{} acks, nacks or extensions have no result yet", items())};
}

Status LeaseLink::close(std::chrono::milliseconds timeout) {
  const auto deadline = SteadyClock::now() + timeout;
  {
    const Lock lock(mutex_);
    if (!closed_) release_untaken();
    closed_ = true;
    quiesce_ = true;
    arrived_.notify_all();
    changed_.notify_all();
  }
  Status flushed = flush(timeout);
  Lock lock(mutex_);
  shutdown(lock, items() == 0, deadline);
  lock.unlock();
  // Fails what waited for a session that never came.
  disconnected(closed_error(), true);
  return flushed;
}

SessionLease LeaseLink::lease() const {
  const Lock lock(mutex_);
  return lease_now();
}

bool LeaseLink::may_begin(std::uint64_t session) const {
  const Lock lock(mutex_);
  return session == session_ && may_work();
}

LeaseStream::Stats LeaseLink::stats() const {
  const Lock lock(mutex_);
  LeaseStream::Stats stats = stats_;
  stats.reconnects = reconnects_;
  return stats;
}

}  // namespace baton::client
