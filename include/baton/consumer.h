#pragma once

#include <atomic>
#include <chrono>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>

#include <baton/connection.h>
#include <baton/message.h>
#include <baton/result.h>

namespace baton::client {

/// What a handler wants done with its message.
struct Outcome {
  bool acked = true;
  Retry retry{};         // Used when not acked.
  std::string reason{};  // Kept as the last error of a dead letter.

  static Outcome ack() { return {}; }
  static Outcome nack(std::string reason, Retry retry = Retry::by_backoff()) {
    return {.acked = false, .retry = retry, .reason = std::move(reason)};
  }
  /// Gives the message back as if it had never been leased: no attempt is counted.
  static Outcome release() { return {.acked = false, .retry = Retry::release(), .reason = {}}; }
};

/// A message that is being handled. Valid until the handler returns.
///
/// message() belongs to the handler's thread and may be moved from (except for its token, of which
/// the consumer keeps its own copy); lost() and closing() may be called from any thread.
class Delivery {
 public:
  Delivery(LeasedMessage& message, const std::atomic<bool>& lost, const std::atomic<bool>& closing)
      : message_(&message), lost_(&lost), closing_(&closing) {}

  [[nodiscard]] LeasedMessage& message() { return *message_; }
  [[nodiscard]] const LeasedMessage& message() const { return *message_; }
  /// Whether the lease is over: somebody else may hold the message now, and this handler's outcome
  /// will be refused. A long handler asks now and then, and returns early.
  [[nodiscard]] bool lost() const { return lost_->load(std::memory_order_acquire); }
  /// Whether the consumer is being closed: a long handler may want to return Outcome::release().
  [[nodiscard]] bool closing() const { return closing_->load(std::memory_order_acquire); }

 private:
  LeasedMessage* message_;
  const std::atomic<bool>* lost_;
  const std::atomic<bool>* closing_;
};

struct ConsumerOptions {
  std::string consumer_id{};          // Empty: the broker chooses one.
  std::size_t concurrency = 1;        // Handlers that run at once, each on its own thread.
  std::uint32_t in_flight_max = 256;  // Messages held and not yet acked; at least `concurrency`.
  std::uint64_t in_flight_bytes_max = 0;  // 0 = the broker's 16 MiB.
  /// Extends the leases of all messages held (handled or waiting for a handler) at half of their
  /// visibility timeout.
  bool extend_leases = true;
  /// How long close() in the destructor takes at most, not counting handlers that still run.
  std::chrono::milliseconds close_timeout{10'000};

  /// Called on a thread of the SDK, which must not be blocked; may be empty. Reports connections
  /// that break, and outcomes that the broker refused (lease_lost).
  std::function<void(const Error&)> on_error{};
};

class ConsumerRuntime;

/// Runs a handler for each message of a queue on `concurrency` threads; acks, nacks, extends and
/// reconnects by itself.
///
/// A handler that returns normally decides by its Outcome; one that throws nacks with the
/// exception's what() as reason. Every message is handled at least once; a message whose lease was
/// lost before its handler began is skipped.
///
/// Thread-safe. close() and the destructor wait for running handlers, so neither may be called by
/// one. Movable; a moved-from consumer may only be destroyed or assigned to.
class Consumer {
 public:
  using Handler = std::function<Outcome(Delivery&)>;

  struct Stats {
    std::uint64_t handled = 0;
    std::uint64_t acked = 0;     // Acked by the handler; confirmed or not.
    std::uint64_t nacked = 0;    // Including exceptions, not releases.
    std::uint64_t released = 0;  // Released by the handler.
    std::uint64_t lost = 0;      // Messages whose lease ended while this consumer held them.
    std::uint64_t extended = 0;
    std::uint64_t reconnects = 0;
  };

  // Queue::consumer() opens one.

  Consumer(Consumer&&) noexcept;
  Consumer& operator=(Consumer&&) noexcept;
  Consumer(const Consumer&) = delete;
  Consumer& operator=(const Consumer&) = delete;
  /// Calls close(close_timeout).
  ~Consumer();

  /// Drains: takes no more messages, waits for running handlers, releases what no handler began,
  /// waits for the broker's results until `timeout`, ends the stream. Later calls return the same.
  Status close(std::chrono::milliseconds timeout);
  /// Waits until the consumer ends: refused by the broker (queue_not_found), after giving up, or
  /// closed by another thread. nullopt when `timeout` passed.
  [[nodiscard]] std::optional<Status> wait(std::chrono::milliseconds timeout);

  [[nodiscard]] Stats stats() const;
  /// Whether the messages of this consumer's present connection may still be worked on, by the
  /// clock. When the lease ends, on_error is called with lease_lost, no further handler begins, and
  /// the consumer connects again.
  [[nodiscard]] SessionLease lease() const;

 private:
  friend class Queue;
  explicit Consumer(std::unique_ptr<ConsumerRuntime> runtime);

  std::unique_ptr<ConsumerRuntime> runtime_;
};

}  // namespace baton::client
