#include "pipeline/baton/dead_letter_queue.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <stop_token>
#include <thread>
#include <unordered_set>
#include <vector>

#include <baton/lease_stream.h>
#include <fmt/format.h>

#include "base/limits.h"
#include "pipeline/baton/queue_letter.h"
#include "sdk/base/channel.h"

namespace baton::pipeline {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kRegister{5'000};
constexpr milliseconds kNext{1'000};
constexpr milliseconds kConfirm{30'000};
constexpr milliseconds kExtendMin{5};

template <class Message>
FoundLetter letter_of(const Message& message) {
  auto letter = from_message(message.headers, message.payload);
  if (!letter.has_value()) {
    return Error{letter.error().code, fmt::format("{}: {}", message.id, letter.error().text)};
  }
  letter->id = message.id;
  return letter;
}

/// Keeps leased letters leased for any length of time until they are examined. Its own thread takes
/// every message off the stream.
class LeaseKeeper {
 public:
  using Tokens = std::vector<client::LeaseToken>;

  LeaseKeeper(client::LeaseStream& stream, milliseconds visibility)
      : stream_(stream),
        pause_(std::max(visibility / 3, kExtendMin)),
        thread_([this](const std::stop_token& stop) { run(stop); }) {}
  LeaseKeeper(const LeaseKeeper&) = delete;
  LeaseKeeper& operator=(const LeaseKeeper&) = delete;
  ~LeaseKeeper() { stop(); }

  Result<std::optional<client::LeasedMessage>> next(milliseconds timeout) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, timeout, [this] { return !waiting_.empty() || failure_.has_value(); });
    if (waiting_.empty()) {
      if (failure_.has_value()) return *failure_;
      return std::optional<client::LeasedMessage>();
    }
    std::optional<client::LeasedMessage> message = std::move(waiting_.front());
    waiting_.pop_front();
    return message;
  }
  /// Acks letters, which removes them.
  void ack(Tokens tokens) {
    {
      const std::scoped_lock lock(mutex_);
      for (const client::LeaseToken& token : tokens) held_.erase(token);
    }
    if (!tokens.empty()) stream_.ack(std::move(tokens));
  }
  /// Releases all leases without counting an attempt.
  void release() {
    stop();
    std::vector<client::Nack> items;
    items.reserve(held_.size());
    for (const client::LeaseToken& token : held_) {
      items.push_back({.token = token, .retry = client::Retry::release(), .reason = {}});
    }
    if (!items.empty()) stream_.nack(std::move(items));
  }

 private:
  void run(const std::stop_token& stop) {
    auto extend_at = std::chrono::steady_clock::now() + pause_;
    while (!stop.stop_requested()) {
      const auto left =
          std::chrono::ceil<milliseconds>(extend_at - std::chrono::steady_clock::now());
      auto messages = stream_.next_batch(std::clamp(left, milliseconds(0), pause_));
      bool over = false;
      {
        const std::scoped_lock lock(mutex_);
        if (messages.has_value()) {
          take(*std::move(messages));
        } else {
          failure_ = messages.error();
        }
        over = failure_.has_value();
      }
      changed_.notify_all();
      if (over) return;
      if (std::chrono::steady_clock::now() < extend_at) continue;
      extend();
      extend_at = std::chrono::steady_clock::now() + pause_;
    }
  }
  void take(std::vector<client::LeasedMessage> messages) {
    for (client::LeasedMessage& message : messages) {
      held_.insert(message.token);
      waiting_.push_back(std::move(message));
    }
  }
  void extend() {
    if (extending_->load()) return;  // Requests would pile up while the broker is unavailable.
    std::vector<client::Extension> items;
    {
      const std::scoped_lock lock(mutex_);
      items.reserve(held_.size());
      for (const client::LeaseToken& token : held_) items.push_back({.token = token});
    }
    if (items.empty()) return;
    extending_->store(true);
    stream_.extend(std::move(items), [extending = extending_](const client::ItemResults&) {
      extending->store(false);
    });
  }
  void stop() {
    if (!thread_.joinable()) return;
    thread_.request_stop();
    stream_.interrupt();
    thread_.join();
  }

  client::LeaseStream& stream_;
  const milliseconds pause_;
  const std::shared_ptr<std::atomic<bool>> extending_ = std::make_shared<std::atomic<bool>>(false);
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<client::LeasedMessage> waiting_;
  std::set<client::LeaseToken> held_;
  std::optional<Error> failure_;
  std::jthread thread_;
};

/// One run through a queue: every letter is leased once, and the letters that stay are released at
/// the end.
class LeasedLetters {
 public:
  LeasedLetters(LetterTaker& taker, client::LeaseStream& stream, milliseconds visibility)
      : taker_(taker), stream_(stream), keeper_(stream, visibility) {}

  Result<std::uint64_t> run(std::uint64_t all) {
    auto seen = offer(all);
    keeper_.release();
    const Status closed = unless_lost(stream_.close(seen.has_value() ? kConfirm : kRegister));
    if (!seen.has_value()) return seen;
    BATON_TRY_STATUS(closed);
    return taker_.wants_more() ? all - *seen : 0;
  }

 private:
  struct Taken {
    std::string id;
    client::LeaseToken token;
  };

  /// Returns how many letters there were.
  Result<std::uint64_t> offer(std::uint64_t all) {
    std::uint64_t seen = 0;
    while (seen < all && taker_.wants_more()) {
      BATON_TRY(const auto leased, keeper_.next(kNext));
      // Other consumers hold the rest, or this one cannot hold more.
      if (!leased.has_value()) break;
      if (gone_.contains(leased->id)) {
        keeper_.ack({leased->token});
        continue;
      }
      ++seen;
      BATON_TRY(const bool taken, taker_.offer(letter_of(*leased)));
      if (taken) taken_.push_back({.id = leased->id, .token = leased->token});
      if (taker_.is_due()) BATON_TRY_STATUS(settle());
    }
    BATON_TRY_STATUS(settle());
    return seen;
  }

  /// Confirms the letters that were taken, and only then removes them from the queue.
  Status settle() {
    BATON_TRY(const auto refused, taker_.confirm());
    LeaseKeeper::Tokens tokens;
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      if (refused.contains(i)) continue;
      tokens.push_back(std::move(taken_[i].token));
      gone_.insert(std::move(taken_[i].id));
    }
    taken_.clear();
    keeper_.ack(std::move(tokens));
    return unless_lost(stream_.flush(kConfirm));
  }

  /// A letter whose lease has ended is delivered again: to this run, which knows that it was sent,
  /// or to another, which sends it twice. That is not a reason to stop.
  static Status unless_lost(const Status& status) {
    if (status.has_value() || status.error().code == Errc::lease_lost) return {};
    return status.error();
  }

  LetterTaker& taker_;
  client::LeaseStream& stream_;
  LeaseKeeper keeper_;
  std::vector<Taken> taken_;
  std::unordered_set<std::string> gone_;  // Ids of letters that this run has sent and confirmed.
};

}  // namespace

Result<std::unique_ptr<DeadLetterQueue>> DeadLetterQueue::open(const Endpoint& endpoint) {
  BATON_TRY(const client::Broker broker, client::Broker::open(connection_to(endpoint)));
  return std::unique_ptr<DeadLetterQueue>(
      new DeadLetterQueue(endpoint, broker.queue(endpoint.name)));
}

Status DeadLetterQueue::read(const std::function<bool(FoundLetter)>& see) {
  auto messages = queue_.peek(limits::kPeekMax);
  if (!messages.has_value()) return client::explain(connection_to(endpoint_), messages.error());
  for (const client::PeekedMessage& message : *messages) {
    if (!see(letter_of(message))) break;
  }
  return {};
}

Result<StoredLetter> DeadLetterQueue::find(const std::string& id) {
  auto message = queue_.peek_message(id);
  if (!message.has_value()) return client::explain(connection_to(endpoint_), message.error());
  return letter_of(*message);
}

Result<std::uint64_t> DeadLetterQueue::take(LetterTaker& taker) {
  const auto info = queue_.describe();
  if (!info.has_value()) return client::explain(connection_to(endpoint_), info.error());
  client::LeaseStreamOptions options;
  const std::uint64_t all = info->stats.ready;
  options.in_flight_max =
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(all, 1, limits::kInFlightMax));
  options.in_flight_bytes_max = limits::kInFlightBytesMax;
  auto stream = queue_.lease(std::move(options));
  if (!stream.has_value()) return stream.error();
  const auto registered = stream->wait_until_registered(kRegister);
  if (!registered.has_value()) return registered.error();
  return LeasedLetters(taker, *stream, registered->visibility_timeout).run(all);
}

}  // namespace baton::pipeline
