#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <baton/connection.h>
#include <baton/message.h>
#include <baton/queue.h>
#include <baton/result.h>

namespace baton::client {

/// Plain calls to a broker: queues and their administration, and one-off sends and acks. Each call
/// blocks until the answer or the deadline, and is tried once. For many messages use Producer and
/// LeaseStream or Consumer: a frame on a stream costs a tenth of a call.
///
/// Thread-safe: any number of threads may call at once. Movable; a moved-from client may only be
/// destroyed or assigned to. Owns its connection; no call may be running when it is destroyed.
class QueueClient {
 public:
  /// Checks the address and reads the TLS files. Does not wait for the broker: the first call does.
  static Result<QueueClient> connect(ConnectionOptions options);

  QueueClient(QueueClient&&) noexcept;
  QueueClient& operator=(QueueClient&&) noexcept;
  QueueClient(const QueueClient&) = delete;
  QueueClient& operator=(const QueueClient&) = delete;
  ~QueueClient();

  /// Waits until the broker is connected, retrying until `timeout`.
  Status wait_until_ready(std::chrono::milliseconds timeout);

  // Queues.

  Result<QueueInfo> create_queue(std::string_view name, const QueueSettings& settings = {});
  /// Changes the settings that are present; takes effect at once.
  Result<QueueInfo> update_queue(std::string_view name, const QueueSettings& settings);
  /// Removes the queue and every byte in it.
  Status delete_queue(std::string_view name);
  Result<std::vector<QueueInfo>> list_queues(std::string_view prefix = {});
  Result<QueueInfo> describe_queue(std::string_view name);

  // Messages. A batch that reaches the broker gets one result per item, in order: a bad item
  // never fails its neighbours. An Error of the whole call leaves the outcome of the items
  // unknown.

  /// Copies the messages into the request; the overload below moves them.
  Result<std::vector<EnqueueResult>> enqueue(std::string_view queue,
                                             std::span<const NewMessage> messages);
  Result<std::vector<EnqueueResult>> enqueue(std::string_view queue,
                                             std::vector<NewMessage>&& messages);
  Result<std::vector<Status>> ack(std::string_view queue, std::span<const LeaseToken> tokens);
  Result<std::vector<Status>> nack(std::string_view queue, std::span<const Nack> items);
  Result<std::vector<Status>> extend(std::string_view queue, std::span<const Extension> items);

  // Operators' tools.

  /// Shows at most `max` messages without leasing them; 0 = the broker's default of 10.
  Result<std::vector<PeekedMessage>> peek(std::string_view queue, std::uint32_t max = 0);
  /// Shows one message. Fails with message_not_found.
  Result<PeekedMessage> peek_message(std::string_view queue, std::string_view id);
  /// Removes every waiting message, and returns how many there were.
  Result<std::uint64_t> purge(std::string_view queue);
  /// Removes messages by id, leased or not.
  Result<std::vector<Status>> cancel(std::string_view queue, std::span<const std::string> ids);
  /// Moves dead letters of `dead_letter_queue` back. Has no deadline: a rate limit may slow it.
  Result<RedriveReport> redrive(std::string_view dead_letter_queue,
                                const RedriveOptions& options = {});

 private:
  struct State;
  explicit QueueClient(std::unique_ptr<State> state);

  std::unique_ptr<State> state_;
};

}  // namespace baton::client
