#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <baton/result.h>

namespace baton::client {

/// A moment of the broker's clock. Only comparable with other moments of the same broker.
using BrokerTime = std::chrono::sys_time<std::chrono::nanoseconds>;
using Headers = std::map<std::string, std::string>;

/// A message on its way to a queue.
struct NewMessage {
  std::string payload{};
  Headers headers{};
  std::string fairness_key{};
  std::vector<std::string> throttle_keys{};
  std::chrono::milliseconds delay{0};
  /// A second message with this id within the queue's dedup window succeeds and stores nothing.
  std::string dedup_id{};
  std::chrono::milliseconds expires_after{0};  // 0 = never.
};

/// What became of one NewMessage.
struct EnqueueResult {
  std::string id{};  // Empty when refused.
  bool duplicate =
      false;  // Its dedup_id was known: `id` is the first message's, nothing was stored.
  std::optional<Error> error{};

  [[nodiscard]] bool ok() const { return !error.has_value(); }
};

/// Names one lease of one message. Opaque: keep it, send it back, compare it.
struct LeaseToken {
  std::string bytes{};

  auto operator<=>(const LeaseToken&) const = default;
};

/// A message that this consumer, and nobody else, may work on until its lease ends.
struct LeasedMessage {
  std::string id{};
  std::string payload{};
  Headers headers{};
  std::string fairness_key{};
  std::uint32_t attempt = 0;  // 1 for the first.
  BrokerTime enqueued_at{};
  BrokerTime lease_deadline{};
  LeaseToken token{};
  std::vector<std::string> throttle_keys{};
};

/// When a message that was given back is delivered again.
struct Retry {
  enum class Kind : std::uint8_t {
    backoff,  // After the queue's retry delay.
    after,    // After `delay`; 0 = at once.
    release,  // At once, as if never leased: no attempt is counted.
  };
  Kind kind = Kind::backoff;
  std::chrono::milliseconds delay{0};

  static Retry by_backoff() { return {}; }
  static Retry at_once() { return {.kind = Kind::after}; }
  static Retry after(std::chrono::milliseconds delay) {
    return {.kind = Kind::after, .delay = delay};
  }
  static Retry release() { return {.kind = Kind::release}; }
};

/// Gives one leased message back.
struct Nack {
  LeaseToken token{};
  Retry retry{};
  std::string reason{};  // Kept as the last error of a dead letter. Cut to 1 KiB.
};

/// Asks for more time with one leased message.
struct Extension {
  LeaseToken token{};
  std::chrono::milliseconds timeout{0};  // Counted from now; 0 = the queue's visibility timeout.
};

enum class MessageState : std::uint8_t { unspecified, ready, leased, delayed };

/// A message as an operator sees it, without leasing it.
struct PeekedMessage {
  std::string id{};
  std::string payload{};
  Headers headers{};
  std::string fairness_key{};
  std::uint32_t attempts = 0;  // Failed attempts so far.
  BrokerTime enqueued_at{};
  MessageState state = MessageState::unspecified;
  std::string consumer_id{};  // When leased.
  BrokerTime visible_at{};    // When leased or delayed: the deadline.
};

}  // namespace baton::client
