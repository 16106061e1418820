#include "pipeline/dead_letter_queue.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include <baton/lease_stream.h>

#include "base/parse.h"
#include "engine/dead_letter.h"
#include "source/client_errors.h"

namespace baton::pipeline {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kRegister{5'000};
constexpr milliseconds kNext{1'000};
constexpr milliseconds kConfirm{30'000};
constexpr std::uint32_t kHeld = 500;
constexpr std::uint32_t kPeekMax = 1000;  // The broker's limit.

std::uint32_t redrives_of(const StoredLetter& letter) {
  constexpr std::uint64_t kMost = 1'000'000;
  const auto count = parse_number(letter.what(std::string(kRedrivesHeader)), 0, kMost);
  return static_cast<std::uint32_t>(count.value_or(0));
}

/// One run through a queue: every letter is leased once. Those that stay are released at the end,
/// so that none is met twice.
class Redrive {
 public:
  Redrive(const RedriveRequest& request, RecordOutput& output, client::LeaseStream& stream)
      : request_(request), output_(output), stream_(stream) {}

  Result<RedriveCounts> run(std::uint64_t all) {
    const std::uint64_t limit = request_.limit == 0 ? all : request_.limit;
    for (std::uint64_t seen = 0; seen < all && counts_.redriven < limit; ++seen) {
      if (request_.give_up && request_.give_up()) break;
      auto message = stream_.next(kNext);
      if (!message.has_value()) return from_client(message.error());
      const std::optional<client::LeasedMessage>& leased = *message;
      if (!leased.has_value()) break;  // Somebody else took the rest.
      BATON_TRY_STATUS(handle(*leased));
      if (request_.progress) request_.progress(seen + 1, all);
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
    return counts_;
  }

 private:
  Status handle(const client::LeasedMessage& message) {
    auto letter = from_message(message.headers, message.payload);
    if (!letter.has_value()) {
      ++counts_.unreadable;
    } else if (letter->what("baton-pipeline") != request_.pipeline ||
               !matches(*letter, request_.where)) {
      ++counts_.other;
    } else if (redrives_of(*letter) >= request_.redrives_max) {
      ++counts_.worn_out;
    } else {
      ++counts_.redriven;
      if (!request_.dry_run) return send(*std::move(letter), message.token);
    }
    kept_.push_back(message.token);
    return {};
  }

  Status send(StoredLetter letter, const client::LeaseToken& token) {
    const std::uint32_t redrives = redrives_of(letter) + 1;
    Record record = std::move(letter.record);
    std::erase_if(record.headers,
                  [](const auto& header) { return header.first == kRedrivesHeader; });
    record.headers.emplace_back(kRedrivesHeader, std::to_string(redrives));
    BATON_TRY_STATUS(output_.send(std::move(record)));
    sent_.push_back(token);
    if (request_.rate > 0)
      std::this_thread::sleep_for(std::chrono::duration<double>(1 / request_.rate));
    return sent_.size() < kHeld / 2 ? Status() : settle();
  }

  /// What was sent is confirmed, and only then gone from the queue.
  Status settle() {
    BATON_TRY_STATUS(output_.flush(kConfirm));
    if (!sent_.empty()) stream_.ack(std::exchange(sent_, {}));
    const auto flushed = stream_.flush(kConfirm);
    if (!flushed.has_value()) return from_client(flushed.error());
    return {};
  }

  const RedriveRequest& request_;
  RecordOutput& output_;
  client::LeaseStream& stream_;
  RedriveCounts counts_;
  std::vector<client::LeaseToken> sent_;
  std::vector<client::LeaseToken> kept_;
};

}  // namespace

bool matches(const StoredLetter& letter, const LetterFilter& filter) {
  return std::ranges::all_of(filter, [&](const auto& wanted) {
    return letter.what("baton-" + wanted.first) == wanted.second;
  });
}

Result<DeadLetterQueue> DeadLetterQueue::open(const Endpoint& endpoint) {
  client::ConnectionOptions connection;
  connection.address = endpoint.address;
  auto client = client::QueueClient::connect(connection);
  if (!client.has_value()) return from_client(client.error());
  return DeadLetterQueue(endpoint, *std::move(client));
}

Result<std::vector<DeadLetterQueue::Entry>> DeadLetterQueue::list(std::uint32_t limit,
                                                                  const LetterFilter& where) {
  auto messages = client_.peek(endpoint_.name, where.empty() ? limit : kPeekMax);
  if (!messages.has_value()) return from_client(messages.error());
  std::vector<Entry> entries;
  for (const client::PeekedMessage& message : *messages) {
    if (entries.size() == limit) break;
    auto letter = from_message(message.headers, message.payload);
    if (letter.has_value() && matches(*letter, where)) {
      entries.push_back({message.id, *std::move(letter)});
    }
  }
  return entries;
}

Result<DeadLetterQueue::Entry> DeadLetterQueue::show(const std::string& id) {
  auto message = client_.peek_message(endpoint_.name, id);
  if (!message.has_value()) return from_client(message.error());
  BATON_TRY(StoredLetter letter, from_message(message->headers, message->payload));
  return Entry{message->id, std::move(letter)};
}

Result<RedriveCounts> DeadLetterQueue::redrive(const RedriveRequest& request,
                                               RecordOutput& output) {
  const auto info = client_.describe_queue(endpoint_.name);
  if (!info.has_value()) return from_client(info.error());
  client::LeaseStreamOptions options;
  options.connection.address = endpoint_.address;
  options.queue = endpoint_.name;
  // All of them are held until the end, or those that stay would come again and again.
  const std::uint64_t all = info->stats.ready;
  options.max_in_flight = static_cast<std::uint32_t>(std::clamp<std::uint64_t>(all, 1, 100'000));
  options.max_in_flight_bytes = std::uint64_t{1} << 30U;
  auto stream = client::LeaseStream::open(std::move(options));
  if (!stream.has_value()) return from_client(stream.error());
  const auto registered = (*stream)->wait_until_registered(kRegister);
  if (!registered.has_value()) return from_client(registered.error());
  return Redrive(request, output, **stream).run(all);
}

}  // namespace baton::pipeline
