#include "core/queue/types.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/limits.h"
#include "base/names.h"

namespace baton {
namespace {

Status validate_headers(const std::vector<Header>& headers) {
  if (headers.size() > limits::kHeadersPerMessage) {
    return Error{Errc::invalid_argument, fmt::format("headers has {} entries; the limit is {}",
                                                     headers.size(), limits::kHeadersPerMessage)};
  }
  std::size_t bytes = 0;
  for (const auto& [name, value] : headers) {
    if (name.empty()) return Error{Errc::invalid_argument, "headers has an entry with no name"};
    bytes += name.size() + value.size();
  }
  if (bytes > limits::kHeaderBytes) return too_long("headers", bytes, limits::kHeaderBytes);
  return {};
}

Status validate_throttle_keys(const std::vector<std::string>& keys) {
  if (keys.size() > limits::kThrottleKeysPerMessage) {
    return Error{Errc::invalid_argument,
                 fmt::format("throttle_keys has {} entries; the limit is {}", keys.size(),
                             limits::kThrottleKeysPerMessage)};
  }
  for (const std::string& key : keys) {
    if (key.empty()) return Error{Errc::invalid_argument, "throttle_keys has an empty entry"};
    if (key.size() > limits::kThrottleKeyBytes) {
      return too_long("a key in throttle_keys", key.size(), limits::kThrottleKeyBytes);
    }
  }
  return {};
}

Status validate_span(std::string_view field, Duration value, Duration limit) {
  if (value < Duration{0} || value > limit) {
    return Error{Errc::invalid_argument,
                 fmt::format("{} is {}; it may be 0 to {}", field, format_duration(value),
                             format_duration(limit))};
  }
  return {};
}

}  // namespace

TransferId TransferId::of_message(const Uuid& id) {
  Decoder in(id.raw());
  TransferId transfer;
  transfer.boot = in.big_u64();
  transfer.number = in.big_u64();
  return transfer;
}

Status validate(const NewMessage& message) {
  BATON_TRY_STATUS(validate_headers(message.headers));
  if (message.fairness_key.size() > limits::kFairnessKeyBytes) {
    return too_long("fairness_key", message.fairness_key.size(), limits::kFairnessKeyBytes);
  }
  BATON_TRY_STATUS(validate_throttle_keys(message.throttle_keys));
  if (message.dedup_id.size() > limits::kDedupIdBytes) {
    return too_long("dedup_id", message.dedup_id.size(), limits::kDedupIdBytes);
  }
  BATON_TRY_STATUS(validate_span("delay", message.delay, limits::kDelayMax));
  return validate_span("expires_after", message.expires_after, limits::kRetentionMax);
}

Status validate_queue_name(std::string_view name) {
  // The dead-letter queue of a queue with the longest name must have a valid name, too.
  const std::size_t suffix = name.ends_with(".dlq") ? 4 : 0;
  return validate_name("queue name", name, limits::kQueueNameBytes + suffix);
}

Status validate_consumer_id(std::string_view id) {
  return validate_name("consumer_id", id, limits::kConsumerIdBytes);
}

}  // namespace baton
