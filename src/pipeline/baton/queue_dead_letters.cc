#include "pipeline/baton/queue_dead_letters.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/limits.h"
#include "pipeline/baton/queue_letter.h"
#include "sdk/base/channel.h"

namespace baton::pipeline {
namespace {

constexpr std::chrono::hours kDedupWindow{24};
constexpr std::chrono::hours kVisibility{1};
constexpr std::size_t kBytesPerCall = std::size_t{2} << 20U;

}  // namespace

Result<std::unique_ptr<QueueDeadLetters>> QueueDeadLetters::open(QueueDeadLetterOptions options) {
  BATON_TRY(const client::Broker broker, client::Broker::open(options.connection));
  const client::Queue queue = broker.queue(options.queue);
  client::QueueSettings settings;
  settings.dedup_window = kDedupWindow;
  settings.attempts_max = 0;                  // Examining a letter does not use up attempts,
  settings.visibility_timeout = kVisibility;  // and may take long.
  settings.payload_bytes_max = limits::kPayloadBytesMax;
  const auto created = queue.create(settings);
  // An operator may have created the queue with other settings on purpose.
  if (!created.has_value() && created.error().code != Errc::queue_exists) {
    return client::explain(options.connection, created.error());
  }
  return std::unique_ptr<QueueDeadLetters>(new QueueDeadLetters(std::move(options), queue));
}

Status QueueDeadLetters::write(std::span<const DeadLetter> letters) {
  std::vector<client::NewMessage> messages;
  std::size_t bytes = 0;
  for (const DeadLetter& letter : letters) {
    messages.push_back(to_message(letter));
    if (const std::size_t size = messages.back().payload.size(); size > limits::kPayloadBytesMax) {
      return Error{Errc::invalid_argument, fmt::format("{} bytes; a message has at most {}", size,
                                                       limits::kPayloadBytesMax)};
    }
    bytes += letter.record->bytes();
    if (bytes < kBytesPerCall) continue;
    BATON_TRY_STATUS(send(std::exchange(messages, {})));
    bytes = 0;
  }
  if (messages.empty()) return {};
  return send(std::move(messages));
}

Status QueueDeadLetters::send(std::vector<client::NewMessage> messages) {
  while (!messages.empty()) {
    const auto results = queue_.enqueue(messages);
    if (!results.has_value()) return results.error();
    std::vector<client::NewMessage> again;
    for (std::size_t i = 0; i < results->size(); ++i) {
      BATON_TRY(const bool stored, is_stored((*results)[i]));
      if (stored) continue;
      again.push_back(std::move(messages.at(i)));
      again.back().dedup_id.clear();
    }
    messages = std::move(again);
  }
  return {};
}

/// A letter stored twice is a nuisance, a letter stored nowhere is a loss. So a remembered dedup id
/// counts only while its message exists, since it may have been purged or sent back. If the queue
/// cannot remember more ids, letters are written without one.
Result<bool> QueueDeadLetters::is_stored(const client::EnqueueResult& result) {
  if (result.error.has_value()) {
    if (result.error->code == Errc::dedup_full) return false;
    return *result.error;
  }
  if (!result.duplicate) return true;
  const auto first = queue_.peek_message(result.id);
  if (first.has_value()) return true;
  if (first.error().code == Errc::message_not_found) return false;
  return first.error();
}

std::string QueueDeadLetters::name() const { return fmt::format("baton-queue:{}", options_.queue); }

}  // namespace baton::pipeline
