#include "pipeline/dead_letter_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <vector>

#include <baton/lease_stream.h>

#include "base/limits.h"
#include "sink/queue_letter.h"
#include "source/client_errors.h"

namespace baton::pipeline {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kRegister{5'000};
constexpr milliseconds kNext{1'000};
constexpr milliseconds kConfirm{30'000};
constexpr std::uint32_t kPeekMax = 1000;  // The broker's limit.

template <class Message>
FoundLetter letter_of(const Message& message) {
  auto letter = from_message(message.headers, message.payload);
  if (!letter.has_value()) {
    return Error{letter.error().code, fmt::format("{}: {}", message.id, letter.error().text)};
  }
  letter->id = message.id;
  return letter;
}

/// One run through a queue: every letter is leased once, and those that stay are released at the
/// end.
class LeasedLetters {
 public:
  LeasedLetters(LetterTaker& taker, client::LeaseStream& stream) : taker_(taker), stream_(stream) {}

  Result<std::uint64_t> run(std::uint64_t all) {
    std::uint64_t seen = 0;
    for (; seen < all && taker_.wants_more(); ++seen) {
      auto message = stream_.next(kNext);
      if (!message.has_value()) return from_client(message.error());
      const std::optional<client::LeasedMessage>& leased = *message;
      if (!leased.has_value()) break;  // Others have the rest, or we can hold no more.
      BATON_TRY(const bool taken, taker_.offer(letter_of(*leased)));
      (taken ? taken_ : kept_).push_back(leased->token);
      if (taker_.is_due()) BATON_TRY_STATUS(settle());
    }
    BATON_TRY_STATUS(settle());
    std::vector<client::Nack> kept;
    kept.reserve(kept_.size());
    for (const client::LeaseToken& token : kept_) {
      kept.push_back({.token = token, .retry = client::Retry::release(), .reason = {}});
    }
    if (!kept.empty()) stream_.nack(std::move(kept));
    const auto closed = stream_.close(kConfirm);
    if (!closed.has_value()) return from_client(closed.error());
    return taker_.wants_more() ? all - seen : 0;
  }

 private:
  /// What was taken is confirmed, and only then gone from the queue.
  Status settle() {
    BATON_TRY(const auto refused, taker_.confirm());
    std::vector<client::LeaseToken> gone;
    for (std::size_t i = 0; i < taken_.size(); ++i) {
      (refused.contains(i) ? kept_ : gone).push_back(std::move(taken_[i]));
    }
    taken_.clear();
    if (!gone.empty()) stream_.ack(std::move(gone));
    const auto flushed = stream_.flush(kConfirm);
    if (!flushed.has_value()) return from_client(flushed.error());
    return {};
  }

  LetterTaker& taker_;
  client::LeaseStream& stream_;
  std::vector<client::LeaseToken> taken_;
  std::vector<client::LeaseToken> kept_;
};

}  // namespace

Result<std::unique_ptr<DeadLetterQueue>> DeadLetterQueue::open(const Endpoint& endpoint) {
  client::ConnectionOptions connection;
  connection.address = endpoint.address;
  auto client = client::QueueClient::connect(connection);
  if (!client.has_value()) return from_client(client.error());
  return std::unique_ptr<DeadLetterQueue>(new DeadLetterQueue(endpoint, *std::move(client)));
}

Status DeadLetterQueue::read(const std::function<bool(FoundLetter)>& see) {
  auto messages = client_.peek(endpoint_.name, kPeekMax);
  if (!messages.has_value()) return from_client(messages.error());
  for (const client::PeekedMessage& message : *messages) {
    if (!see(letter_of(message))) break;
  }
  return {};
}

Result<StoredLetter> DeadLetterQueue::find(const std::string& id) {
  auto message = client_.peek_message(endpoint_.name, id);
  if (!message.has_value()) return from_client(message.error());
  return letter_of(*message);
}

Result<std::uint64_t> DeadLetterQueue::take(LetterTaker& taker) {
  const auto info = client_.describe_queue(endpoint_.name);
  if (!info.has_value()) return from_client(info.error());
  client::LeaseStreamOptions options;
  options.connection.address = endpoint_.address;
  options.queue = endpoint_.name;
  const std::uint64_t all = info->stats.ready;
  options.max_in_flight =
      static_cast<std::uint32_t>(std::clamp<std::uint64_t>(all, 1, limits::kMaxInFlightMax));
  options.max_in_flight_bytes = limits::kMaxInFlightBytesMax;
  auto stream = client::LeaseStream::open(std::move(options));
  if (!stream.has_value()) return from_client(stream.error());
  const auto registered = (*stream)->wait_until_registered(kRegister);
  if (!registered.has_value()) return from_client(registered.error());
  return LeasedLetters(taker, **stream).run(all);
}

}  // namespace baton::pipeline
