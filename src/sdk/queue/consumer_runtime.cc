#include "sdk/queue/consumer_runtime.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "sdk/base/errors.h"

namespace baton::client {
namespace {

// Long enough to cost nothing, short enough not to overflow a clock.
constexpr std::chrono::milliseconds kNoRenewal = std::chrono::hours{1};

// How often the broker is told which messages handlers work on. A message that ends sooner is never
// reported: if the process dies within that time, the broker counts the oldest messages instead,
// and is right, since handlers take them in order.
constexpr std::chrono::milliseconds kMarkEvery{20};

}  // namespace

ConsumerRuntime::HeldMessages::HeldMessages(std::vector<LeasedMessage> messages,
                                            std::uint64_t session)
    : held(messages.size()) {
  for (std::size_t i = 0; i < messages.size(); ++i) {
    held[i].session = session;
    held[i].token = messages[i].token;
    held[i].message = std::move(messages[i]);
  }
}

ConsumerRuntime::ConsumerRuntime(const Connection& connection, std::string queue,
                                 ConsumerOptions options, Consumer::Handler handler)
    : options_(std::move(options)),
      handler_(std::move(handler)),
      link_(connection, std::move(queue), stream_options(), Credit::returned) {
  link_.start();
  hands_.resize(options_.concurrency);
  feeder_ = std::thread([this] { feed(); });
  workers_.reserve(options_.concurrency);
  for (Hand& hand : hands_) workers_.emplace_back([this, &hand] { work(hand); });
}

ConsumerRuntime::~ConsumerRuntime() { (void)close(options_.close_timeout); }

LeaseStreamOptions ConsumerRuntime::stream_options() {
  LeaseStreamOptions stream;
  stream.consumer_id = options_.consumer_id;
  stream.in_flight_max = options_.in_flight_max;
  stream.in_flight_bytes_max = options_.in_flight_bytes_max;
  stream.concurrency = static_cast<std::uint32_t>(options_.concurrency);
  stream.on_connected = [this](const Registration&) {
    reconnected_ = was_connected_.exchange(true);
    link_.interrupt();
  };
  stream.on_disconnected = [this](const Error& error) { report(error); };
  stream.on_item_failed = [this](const Error& error) {
    if (error.code == Errc::lease_lost) counters_.lost.fetch_add(1, std::memory_order_relaxed);
    report(error);
  };
  return stream;
}

void ConsumerRuntime::report(const Error& error) const {
  if (options_.on_error) options_.on_error(error);
}

void ConsumerRuntime::feed() {
  while (true) {
    std::uint64_t session = 0;
    auto messages = link_.next_batch(until_next_duty(), 0, &session);
    visibility_ = link_.visibility_timeout();
    const std::optional<Error> over =
        messages ? std::nullopt : std::optional<Error>(messages.error());
    // Also at the end: the last messages are given back.
    if (messages && !messages->empty()) take(*std::move(messages), session);
    {
      const std::lock_guard lock(mutex_);
      if (feeder_stops_) return;
    }
    if (over) {
      end(*over);
      return;
    }
    if (reconnected_.exchange(false)) forget_marks();
    renew_due();
    mark_begun();
  }
}

/// Whether the leases survived the reconnect is told by the answer to the extension.
void ConsumerRuntime::forget_marks() {
  for (Renewal& renewal : renewals_) renewal.due = SteadyClock::now();
  const std::lock_guard lock(mutex_);
  for (Hand& hand : hands_) hand.marked = false;
}

void ConsumerRuntime::end(const Error& error) {
  const std::lock_guard lock(mutex_);
  result_ = error;
  ended_.notify_all();
}

void ConsumerRuntime::take(std::vector<LeasedMessage> messages, std::uint64_t session) {
  if (closing_) {
    std::vector<Nack> items;
    items.reserve(messages.size());
    for (LeasedMessage& message : messages) {
      items.push_back({.token = std::move(message.token), .retry = Retry::release(), .reason = {}});
    }
    counters_.released.fetch_add(items.size(), std::memory_order_relaxed);
    link_.nack(std::move(items), {});
    return;
  }
  const std::size_t count = messages.size();
  auto batch = std::make_shared<HeldMessages>(std::move(messages), session);
  if (options_.extend_leases) {
    // Finished batches are dropped when their renewal comes due, or when there are too many of
    // them.
    if (renewals_.size() > 2 * std::size_t{options_.in_flight_max}) {
      std::erase_if(renewals_, [](const Renewal& renewal) { return renewal.batch.expired(); });
    }
    renewals_.push_back({.due = SteadyClock::now() + visibility_ / 2, .batch = batch});
  }
  const std::lock_guard lock(mutex_);
  waiting_.push_back(std::move(batch));
  if (count == 1) {
    work_.notify_one();
  } else {
    work_.notify_all();
  }
}

std::chrono::milliseconds ConsumerRuntime::until_next_duty() const {
  auto wait = kNoRenewal;
  if (!renewals_.empty()) {
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(renewals_.front().due - SteadyClock::now());
    wait = std::clamp(left, std::chrono::milliseconds{0}, kNoRenewal);
  }
  const std::lock_guard lock(mutex_);
  const bool busy = !waiting_.empty() || std::ranges::any_of(hands_, [](const Hand& hand) {
    return hand.batch != nullptr && !hand.marked;
  });
  return busy ? std::min(wait, kMarkEvery) : wait;
}

void ConsumerRuntime::mark_begun() {
  if (SteadyClock::now() < next_mark_) return;
  next_mark_ = SteadyClock::now() + kMarkEvery;
  std::vector<LeaseToken> tokens;
  {
    const std::lock_guard lock(mutex_);
    for (Hand& hand : hands_) {
      if (hand.batch == nullptr || std::exchange(hand.marked, true)) continue;
      tokens.push_back(hand.batch->held[hand.index].token);
    }
  }
  if (!tokens.empty()) link_.begin(std::move(tokens));
}

void ConsumerRuntime::renew_due() {
  const auto now = SteadyClock::now();
  std::vector<HeldPointer> due;
  while (!renewals_.empty() && renewals_.front().due <= now) {
    if (auto batch = renewals_.front().batch.lock(); batch) due.push_back(std::move(batch));
    renewals_.pop_front();
  }
  for (const HeldPointer& batch : due) {
    renew(batch);
    renewals_.push_back({.due = now + visibility_ / 2, .batch = batch});
  }
}

void ConsumerRuntime::renew(const HeldPointer& batch) {
  std::vector<Extension> items;
  std::vector<std::size_t> indices;
  const auto visibility = std::chrono::ceil<std::chrono::milliseconds>(visibility_);
  for (std::size_t i = 0; i < batch->held.size(); ++i) {
    const Held& held = batch->held[i];
    if (held.finished || held.lost) continue;
    items.push_back({.token = held.token, .timeout = visibility});
    indices.push_back(i);
  }
  if (items.empty()) return;
  counters_.extended.fetch_add(items.size(), std::memory_order_relaxed);
  auto told = [this, batch, indices = std::move(indices)](const ItemResults& results) {
    for (const ItemResults::Failure& failure : results.failures) {
      Held& held = batch->held[indices[failure.index]];
      // The ack of a handler that just finished overtook the extension: no lease is lost.
      if (failure.error.code != Errc::lease_lost || held.finished) continue;
      if (held.lost.exchange(true)) continue;  // Two extensions may be in flight at once.
      counters_.lost.fetch_add(1, std::memory_order_relaxed);
      report(failure.error);
    }
  };
  link_.extend(std::move(items), std::move(told), true);
}

void ConsumerRuntime::work(Hand& hand) {
  while (true) {
    HeldPointer batch;
    std::size_t index = 0;
    {
      std::unique_lock lock(mutex_);
      hand.batch.reset();
      work_.wait(lock, [&] { return closing_ || !waiting_.empty(); });
      if (closing_) return;
      batch = waiting_.front();
      index = batch->begun++;
      if (batch->begun == batch->held.size()) waiting_.pop_front();
      hand = {.batch = batch, .index = index, .marked = false};
    }
    handle(batch->held[index]);
  }
}

void ConsumerRuntime::handle(Held& held) {
  if (held.lost) {
    held.finished = true;
    link_.add_credit(1);
    return;
  }
  // The connection was cut off since the message came: another consumer may hold it by now.
  if (!link_.may_begin(held.session)) {
    held.finished = true;
    counters_.released.fetch_add(1, std::memory_order_relaxed);
    link_.give_back(held.token);
    return;
  }
  finish(held, run_handler(held));
}

Outcome ConsumerRuntime::run_handler(Held& held) {
  counters_.handled.fetch_add(1, std::memory_order_relaxed);
  Delivery delivery(held.message, held.lost, closing_);
  // Users' code may throw, and its reason belongs into the dead letter.
  try {
    return handler_(delivery);
  } catch (const std::exception& exception) {
    return Outcome::nack(exception.what());
  } catch (...) {
    return Outcome::nack("the handler threw something that is no std::exception");
  }
}

void ConsumerRuntime::finish(Held& held, Outcome outcome) {
  held.finished = true;
  held.message = {};
  if (held.lost) {  // The broker would refuse the handler's outcome.
    link_.add_credit(1);
    return;
  }
  if (outcome.acked) {
    counters_.acked.fetch_add(1, std::memory_order_relaxed);
    link_.ack(held.token, {});
    return;
  }
  auto& counter =
      outcome.retry.kind == Retry::Kind::release ? counters_.released : counters_.nacked;
  counter.fetch_add(1, std::memory_order_relaxed);
  link_.nack(Nack{.token = held.token, .retry = outcome.retry, .reason = std::move(outcome.reason)},
             {});
}

void ConsumerRuntime::release_waiting() {
  std::deque<HeldPointer> waiting;
  {
    const std::lock_guard lock(mutex_);
    waiting.swap(waiting_);
  }
  std::vector<Nack> items;
  for (const HeldPointer& batch : waiting) {
    for (std::size_t i = batch->begun; i < batch->held.size(); ++i) {
      Held& held = batch->held[i];
      held.finished = true;
      if (held.lost) continue;
      items.push_back({.token = held.token, .retry = Retry::release(), .reason = {}});
    }
  }
  counters_.released.fetch_add(items.size(), std::memory_order_relaxed);
  link_.nack(std::move(items), {});
}

Status ConsumerRuntime::close(std::chrono::milliseconds timeout) {
  const std::lock_guard closing(close_mutex_);
  if (closed_) return *closed_;
  link_.pause();
  link_.forget_failure();  // on_error was called; the result is about the drain only.
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
    work_.notify_all();
  }
  release_waiting();
  // The feeder keeps extending the leases of the handlers that still run.
  for (std::thread& worker : workers_) worker.join();
  {
    const std::lock_guard lock(mutex_);
    feeder_stops_ = true;
  }
  link_.interrupt();
  feeder_.join();
  // Messages that came between the swap above and the feeder's check of closing_.
  release_waiting();
  closed_ = link_.close(timeout);
  const std::lock_guard lock(mutex_);
  if (result_ && !*result_) closed_ = *result_;
  if (!result_) result_ = *closed_;
  ended_.notify_all();
  return *closed_;
}

std::optional<Status> ConsumerRuntime::wait(std::chrono::milliseconds timeout) {
  std::unique_lock lock(mutex_);
  ended_.wait_for(lock, timeout, [&] { return result_.has_value(); });
  return result_;
}

Consumer::Stats ConsumerRuntime::stats() const {
  return {.handled = counters_.handled,
          .acked = counters_.acked,
          .nacked = counters_.nacked,
          .released = counters_.released,
          .lost = counters_.lost,
          .extended = counters_.extended,
          .reconnects = link_.stats().reconnects};
}

}  // namespace baton::client
