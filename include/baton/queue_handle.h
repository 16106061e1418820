#pragma once

#include <concepts>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <baton/connection.h>
#include <baton/consumer.h>
#include <baton/lease_stream.h>
#include <baton/message.h>
#include <baton/producer.h>
#include <baton/queue.h>
#include <baton/result.h>

namespace baton::client {

/// A queue of a Broker, by its name: made by Broker::queue(). For many messages use a producer and
/// a consumer or lease(): a frame on a stream costs a tenth of a call.
///
/// Thread-safe. A value: a copy uses the same connection.
class Queue {
 public:
  [[nodiscard]] const std::string& name() const { return name_; }

  // The queue itself.

  /// Succeeds if the queue exists with the same settings; fails with queue_exists if they differ.
  Result<QueueInfo> create(const QueueSettings& settings = {}) const;
  /// Changes the settings that are present; takes effect at once.
  Result<QueueInfo> update(const QueueSettings& settings) const;
  /// Removes the queue and every byte in it.
  Status drop() const;
  Result<QueueInfo> describe() const;

  // Streams of messages. Each has a connection of its own.

  /// Checks the options and starts connecting. Does not wait for the broker.
  Result<Producer> producer(ProducerOptions options = {}) const;
  /// Checks the options and starts. Does not wait for the broker.
  Result<Consumer> consumer(ConsumerOptions options, Consumer::Handler handler) const;
  /// For a handler that returns nothing: returning is an ack, throwing a nack.
  template <class F>
    requires std::is_void_v<std::invoke_result_t<F&, Delivery&>>
  Result<Consumer> consumer(ConsumerOptions options, F handler) const {
    return consumer(std::move(options),
                    Consumer::Handler([run = std::move(handler)](Delivery& delivery) mutable {
                      run(delivery);
                      return Outcome::ack();
                    }));
  }
  /// A consumer that is pulled. Checks the options and starts connecting. Does not wait for the
  /// broker.
  Result<LeaseStream> lease(LeaseStreamOptions options = {}) const;

  // Single calls. A batch that reaches the broker gets one result per item, in order: a bad item
  // never fails its neighbours. An Error of the whole call leaves the outcome of the items
  // unknown.

  /// Copies the messages into the request; the overload below moves them.
  Result<std::vector<EnqueueResult>> enqueue(std::span<const NewMessage> messages) const;
  Result<std::vector<EnqueueResult>> enqueue(std::vector<NewMessage>&& messages) const;
  Result<std::vector<Status>> ack(std::span<const LeaseToken> tokens) const;
  Result<std::vector<Status>> nack(std::span<const Nack> items) const;
  Result<std::vector<Status>> extend(std::span<const Extension> items) const;

  // For operators.

  /// Shows at most `messages_max` messages without leasing them; 0 = the broker's default of 10.
  Result<std::vector<PeekedMessage>> peek(std::uint32_t messages_max = 0) const;
  /// Shows one message. Fails with message_not_found.
  Result<PeekedMessage> peek_message(std::string_view id) const;
  /// Removes every waiting message, and returns how many there were.
  Result<std::uint64_t> purge() const;
  /// Removes messages by id, leased or not.
  Result<std::vector<Status>> cancel(std::span<const std::string> ids) const;
  /// Of a dead-letter queue: moves its messages back. Has no deadline: a rate limit may slow it.
  Result<RedriveReport> redrive(const RedriveOptions& options = {}) const;

 private:
  friend class Broker;
  Queue(ConnectionPointer connection, std::string_view name)
      : connection_(std::move(connection)), name_(name) {}
  static Result<std::vector<QueueInfo>> list(const ConnectionPointer& connection,
                                             std::string_view prefix);

  ConnectionPointer connection_;
  std::string name_;
};

}  // namespace baton::client
