#include "pipeline/baton/queue_source.h"

#include <algorithm>
#include <iterator>
#include <span>
#include <stop_token>
#include <utility>

#include <fmt/format.h>

#include "base/hash.h"
#include "base/limits.h"
#include "base/time.h"
#include "base/uuid.h"
#include "sdk/base/channel.h"

namespace baton::pipeline {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr std::uint32_t kPartition = 0;
constexpr std::uint64_t kEpoch = 1;
constexpr std::uint64_t kNumberMask = (std::uint64_t{1} << 62U) - 1;

constexpr milliseconds kStartTimeout{10'000};
constexpr milliseconds kCheckTimeout{5'000};
constexpr milliseconds kAskAgain{200};
/// A restarted broker keeps leases for consumers that return within five seconds.
constexpr milliseconds kReconnectMax{1'000};
constexpr milliseconds kKeepMin{5};
constexpr milliseconds kKeepMax{250};
constexpr milliseconds kLookAtQueue{2'000};
constexpr milliseconds kLookTimeoutMax{1'000};
/// A record counts as finished a moment before ended() is called for it.
constexpr milliseconds kLastEndings{200};
constexpr milliseconds kQuiet{100};
constexpr milliseconds kCloseMin{1'000};
constexpr milliseconds kCloseMax{5'000};

std::int64_t number_of(const std::string& id) {
  const Result<Uuid> uuid = Uuid::parse(id);
  std::uint64_t number = 0;
  if (uuid.has_value()) {
    for (std::size_t i = 8; i < uuid->bytes.size(); ++i) number = (number << 8U) | uuid->bytes[i];
  } else {
    number = hash64(id);
  }
  return static_cast<std::int64_t>(number & kNumberMask);
}

Record to_record(client::LeasedMessage message, std::int64_t number) {
  Record record;
  record.partition = kPartition;
  record.offset = number;
  record.key = std::move(message.fairness_key);
  record.value = std::move(message.payload);
  record.headers.reserve(message.headers.size());
  for (const auto& [name, value] : message.headers) record.headers.emplace_back(name, value);
  record.timestamp =
      std::chrono::duration_cast<milliseconds>(message.enqueued_at.time_since_epoch());
  return record;
}

milliseconds until(std::chrono::steady_clock::time_point deadline) {
  return std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now());
}

}  // namespace

QueueSource::QueueSource(QueueSourceOptions options) : options_(std::move(options)) {
  options_.prefetch = std::clamp<std::size_t>(options_.prefetch, 1, limits::kInFlightMax);
  options_.prefetch_bytes =
      std::clamp<std::size_t>(options_.prefetch_bytes, 1, limits::kInFlightBytesMax);
  auto& connection = options_.connection;
  connection.reconnect_max = std::min(connection.reconnect_max, kReconnectMax);
}

QueueSource::~QueueSource() {
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
  }
  changed_.notify_all();
  keeper_.request_stop();
  deliverer_.request_stop();
  if (stream_ != nullptr) stream_->interrupt();
}

void QueueSource::log(bool warning, const std::string& text) const {
  if (options_.log) options_.log(warning, text);
}

std::string QueueSource::name() const { return fmt::format("baton-queue:{}", options_.queue); }

client::LeaseStreamOptions QueueSource::stream_options() {
  client::LeaseStreamOptions options;
  options.in_flight_max = static_cast<std::uint32_t>(options_.prefetch);
  options.in_flight_bytes_max = options_.prefetch_bytes;
  options.manual_credit = true;
  options.on_connected = [this](const client::Registration& registration) {
    visibility_ = registration.visibility_timeout;
    reconnected_ = true;
    connected_ = true;
  };
  options.on_disconnected = [this](const Error& error) {
    const std::scoped_lock lock(trouble_mutex_);
    connected_ = false;
    trouble_ = error.text;
  };
  return options;
}

Status QueueSource::start(SourceListener& listener) {
  listener_ = &listener;
  BATON_TRY(const client::Broker broker, client::Broker::open(options_.connection));
  auto stream = broker.queue(options_.queue).lease(stream_options());
  if (!stream.has_value()) return stream.error();
  const auto registered = stream->wait_until_registered(kStartTimeout);
  if (!registered.has_value()) return registered.error();
  auto connection = options_.connection;
  connection.deadline = std::clamp(registered->visibility_timeout / 6, kKeepMin, kLookTimeoutMax);
  auto client = client::Broker::open(connection);
  if (!client.has_value()) return client.error();
  visibility_ = registered->visibility_timeout;
  client_ = std::make_unique<client::Broker>(*std::move(client));
  stream_ = std::make_unique<client::LeaseStream>(*std::move(stream));
  keeper_ = std::jthread([this](const std::stop_token& stop) { keep(stop); });
  deliverer_ = std::jthread([this](const std::stop_token& stop) { deliver(stop); });
  return {};
}

bool QueueSource::wait_for_assignment(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const bool is_assigned = listener_->assigned(kPartition, kEpoch, 0).has_value();
    std::unique_lock lock(mutex_);
    assigned_ = is_assigned;
    if (is_assigned || stopping_) return !stopping_;
    changed_.wait_for(lock, kAskAgain, [this] { return stopping_; });
  }
  return false;
}

void QueueSource::deliver(const std::stop_token& stop) {
  if (!wait_for_assignment(stop)) return;
  ask_for_more();
  while (true) {
    std::vector<Record> records;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return stopping_ || !waiting_.empty(); });
      if (stopping_) return;
      records.swap(waiting_);
    }
    if (!listener_->deliver(kPartition, std::move(records))) return;
  }
}

void QueueSource::keep(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const auto tick = std::clamp(visibility_.load() / 6, kKeepMin, kKeepMax);
    auto messages = stream_->next_batch(tick);
    if (!messages.has_value()) return listener_->failed(messages.error());
    if (!messages->empty()) take(*std::move(messages));
    extend_due();
    look_at_queue();
  }
}

void QueueSource::take(std::vector<client::LeasedMessage> messages) {
  Tokens unwanted;
  {
    const std::scoped_lock lock(mutex_);
    credit_ -= std::min(credit_, messages.size());
    for (client::LeasedMessage& message : messages) {
      if (!hold(message)) unwanted.push_back(std::move(message.token));
    }
  }
  changed_.notify_all();
  release(std::move(unwanted));
  ask_for_more();
}

bool QueueSource::hold(client::LeasedMessage& message) {
  const std::int64_t number = number_of(message.id);
  const auto found = held_.find(number);
  if (found != held_.end()) {
    // Two ids with the same number are very unlikely; the second message waits in the queue.
    if (found->second.id != message.id) return false;
    // The first lease was lost, and its record is still in the pipeline: one record is enough for
    // both.
    found->second = {.id = message.id, .token = std::move(message.token), .granted = Clock::now()};
    return true;
  }
  if (paused_ || stopping_) return false;
  held_[number] = {.id = message.id, .token = message.token, .granted = Clock::now()};
  waiting_.push_back(to_record(std::move(message), number));
  return true;
}

/// Gives credit up to `prefetch`, unless the sink is unavailable.
void QueueSource::ask_for_more() {
  std::size_t more = 0;
  {
    const std::scoped_lock lock(mutex_);
    if (paused_ || stopping_ || !assigned_) return;
    const std::size_t taken = held_.size() + credit_;
    if (taken < options_.prefetch) more = options_.prefetch - taken;
    credit_ += more;
  }
  if (more > 0) stream_->add_credit(static_cast<std::uint32_t>(more));
}

void QueueSource::release(Tokens tokens) {
  if (tokens.empty()) return;
  std::vector<client::Nack> items;
  items.reserve(tokens.size());
  for (client::LeaseToken& token : tokens) {
    items.push_back({.token = std::move(token), .retry = client::Retry::release(), .reason = {}});
  }
  stream_->nack(std::move(items));
}

QueueSource::Tokens QueueSource::forget_waiting() {
  Tokens tokens;
  for (const Record& record : std::exchange(waiting_, {})) {
    const auto found = held_.find(record.offset);
    if (found == held_.end()) continue;
    tokens.push_back(std::move(found->second.token));
    held_.erase(found);
  }
  return tokens;
}

void QueueSource::ended(std::span<const Item> items) {
  Tokens done;
  Tokens open;
  {
    const std::scoped_lock lock(mutex_);
    ++settling_;
    for (const Item& item : items) {
      const auto found = held_.find(item.record.offset);
      if (found == held_.end()) continue;
      Held& held = found->second;
      if (item.fate != Fate::open) ++ended_;
      // For a lost lease the broker would only answer that it is lost.
      if (!held.lost) (item.fate == Fate::open ? open : done).push_back(std::move(held.token));
      held_.erase(found);
    }
  }
  if (!done.empty()) stream_->ack(std::move(done));
  release(std::move(open));
  ask_for_more();
  const std::scoped_lock lock(mutex_);
  --settling_;
  if (stopping_) changed_.notify_all();
}

void QueueSource::extend_due() {
  if (!connected_) return;  // Requests would pile up.
  // After a reconnect all leases are extended, to learn which of them still exist.
  const bool all = reconnected_.exchange(false);
  const auto due = Clock::now() - visibility_.load() / 3;
  Extended asked;
  std::size_t lost = 0;
  {
    const std::scoped_lock lock(mutex_);
    for (auto& [number, held] : held_) {
      if (held.lost || held.extending || (!all && held.granted > due)) continue;
      held.extending = true;
      asked.emplace_back(number, held.token);
    }
    lost = std::exchange(lost_, 0);
  }
  if (lost > 0) log(true, fmt::format("the leases of {} messages are lost: they come again", lost));
  if (asked.empty()) return;
  std::vector<client::Extension> items;
  items.reserve(asked.size());
  for (const auto& [number, token] : asked) items.push_back({.token = token});
  stream_->extend(std::move(items),
                  [this, asked = std::move(asked)](const client::ItemResults& results) {
                    extension_answered(asked, results);
                  });
}

void QueueSource::extension_answered(const Extended& asked, const client::ItemResults& results) {
  const std::scoped_lock lock(mutex_);
  const auto find = [this](const std::pair<std::int64_t, client::LeaseToken>& one) -> Held* {
    const auto found = held_.find(one.first);
    if (found == held_.end() || found->second.token != one.second) return nullptr;
    return &found->second;
  };
  const auto now = Clock::now();
  for (const auto& one : asked) {
    Held* held = find(one);
    if (held == nullptr) continue;
    held->extending = false;
    held->granted = now;
  }
  for (const auto& failure : results.failures) {
    Held* held = find(asked[failure.index]);
    if (held == nullptr || failure.error.code != Errc::lease_lost) continue;
    held->lost = true;
    ++lost_;
  }
}

/// Reads the depth of the queue and its present visibility timeout.
void QueueSource::look_at_queue() {
  const auto now = Clock::now();
  if (!connected_ || now - looked_at_ < kLookAtQueue) return;
  looked_at_ = now;
  const auto info = client_->queue(options_.queue).describe();
  if (!info.has_value()) return;
  visibility_ = info->settings.visibility_timeout.value_or(visibility_.load());
  const std::uint64_t depth = info->stats.ready + info->stats.leased + info->stats.delayed;
  const std::scoped_lock lock(mutex_);
  end_ = ended_ + static_cast<std::int64_t>(depth);
}

void QueueSource::pause() {
  Tokens tokens;
  {
    const std::scoped_lock lock(mutex_);
    paused_ = true;
    tokens = forget_waiting();
  }
  release(std::move(tokens));
}

void QueueSource::resume() {
  {
    const std::scoped_lock lock(mutex_);
    paused_ = false;
  }
  ask_for_more();
}

Status QueueSource::stop(milliseconds timeout) {
  if (stream_ == nullptr) return {};
  const auto deadline = Clock::now() + timeout;
  Tokens tokens;
  {
    const std::scoped_lock lock(mutex_);
    stopping_ = true;
    tokens = forget_waiting();
  }
  changed_.notify_all();
  release(std::move(tokens));
  listener_->revoking(kPartition);
  deliverer_ = {};
  if (assigned_) (void)listener_->revoked(kPartition, false);
  tokens.clear();
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, kLastEndings, [this] { return held_.empty() && settling_ == 0; });
    for (auto& [number, held] : held_) {
      if (!held.lost) tokens.push_back(std::move(held.token));
    }
    held_.clear();
    // A call of ended() that has already found its messages must send their acks on an open stream.
    changed_.wait(lock, [this] { return settling_ == 0; });
  }
  release(std::move(tokens));
  return close(deadline);
}

/// Credit cannot be taken back. Messages that it still brings are released on arrival, because a
/// message that arrives while the stream is being closed would count an attempt.
void QueueSource::use_up_credit() {
  std::unique_lock lock(mutex_);
  std::size_t before = 0;
  do {
    before = credit_;
    changed_.wait_for(lock, kQuiet, [&] { return credit_ != before || credit_ == 0; });
  } while (credit_ > 0 && credit_ != before);
}

Status QueueSource::close(Clock::time_point deadline) {
  const auto time = std::clamp(until(deadline), kCloseMin, kCloseMax);
  const auto end = Clock::now() + time;
  use_up_credit();
  keeper_.request_stop();
  stream_->interrupt();
  keeper_ = {};
  const auto is_bad = [](const Status& status) {
    return !status.has_value() && status.error().code != Errc::lease_lost;
  };
  // The first answer may be about an older failure; the second is about what is under way.
  Status flushed = stream_->flush(time);
  if (!flushed.has_value()) flushed = stream_->flush(std::max(until(end), milliseconds{0}));
  const Status closed = stream_->close(std::max(until(end), milliseconds{0}));
  if (is_bad(flushed)) return flushed.error();
  if (is_bad(closed)) return closed.error();
  return {};
}

std::optional<std::string> QueueSource::trouble() const {
  const std::scoped_lock lock(trouble_mutex_);
  if (connected_) return std::nullopt;
  return trouble_.empty() ? "not connected yet" : trouble_;
}

std::vector<PartitionLag> QueueSource::ends() const {
  const std::scoped_lock lock(mutex_);
  if (end_ < 0) return {};
  return {{kPartition, end_}};
}

Result<Findings> QueueSource::check() {
  auto connection = options_.connection;
  connection.deadline = std::min(connection.deadline, kCheckTimeout);
  auto client = client::Broker::open(connection);
  if (!client.has_value()) return client.error();
  const auto info = client->queue(options_.queue).describe();
  if (!info.has_value()) return client::explain(options_.connection, info.error());
  const client::QueueSettings& settings = info->settings;
  Findings said;
  said.push_back(fact(
      fmt::format("queue {}: {} messages wait, {} are leased, {} are delayed; a lease lasts {}",
                  info->name, info->stats.ready, info->stats.leased, info->stats.delayed,
                  format_duration(settings.visibility_timeout.value_or(milliseconds{0})))));
  if (const std::uint32_t attempts = settings.attempts_max.value_or(0); attempts != 0) {
    said.push_back(
        warning(fmt::format("queue {} dead-letters a message by itself after {} attempts, and "
                            "broken connections count as such; set its attempts_max to 0",
                            info->name, attempts)));
  }
  return said;
}

}  // namespace baton::pipeline
