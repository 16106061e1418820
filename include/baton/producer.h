#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <vector>

#include <baton/message.h>
#include <baton/result.h>

namespace baton::client {

struct ProducerOptions {
  // A frame is written when the one before it has been, with everything that gathered meanwhile: an
  // idle producer sends at once, a busy one sends big frames by itself.

  /// How long a frame that is not full waits for more messages before it is written. Rarely useful.
  std::chrono::microseconds linger{0};
  std::size_t batch_messages_max = 256;
  std::size_t batch_bytes_max = 256UL * 1024;
  /// Beyond this many unconfirmed frames, a frame waits until it is full or until one of them is
  /// confirmed. Fewer make frames bigger and cheaper under load.
  std::size_t frames_ahead = 4;

  /// What may be unconfirmed at once; beyond it send() blocks and try_send() fails. A single batch
  /// larger than these limits is sent alone.
  std::size_t in_flight_messages_max = 16'384;
  std::size_t in_flight_bytes_max = 64UL * 1024 * 1024;

  /// What happens to unconfirmed messages when the connection breaks. On: they are sent again, in
  /// order, so each message is stored AT LEAST ONCE; with a `dedup_id` in every message (and a
  /// reconnect within the queue's dedup window) that is EXACTLY ONCE. Off: they fail with
  /// `unavailable`, and may or may not have been stored.
  bool resend_unconfirmed = true;
};

class EnqueueLink;

/// Sends messages to one queue over a stream: batches by itself, reconnects by itself, keeps order.
///
/// Each message is confirmed exactly once: by its callback or future, with the broker's result or
/// with the Error that it failed with. Confirmations come in the order of sending. While the broker
/// is away messages wait (bounded by the in-flight limits) and are sent after the reconnect.
///
/// Thread-safe. Messages of one thread keep their order. Callbacks run one at a time, on a thread
/// of the SDK (or, once the producer is over, on the caller's): they must not block, must not
/// throw, and may call try_send() but not send(), flush(), close() or the destructor. The
/// destructor closes without waiting for confirmations. Movable; a moved-from producer may only be
/// destroyed or assigned to.
class Producer {
 public:
  using Callback = std::function<void(EnqueueResult)>;
  using BatchCallback = std::function<void(std::vector<EnqueueResult>)>;

  struct Stats {
    std::uint64_t messages_sent = 0;       // Accepted by send() and the like.
    std::uint64_t messages_confirmed = 0;  // Stored, or known as duplicates.
    std::uint64_t messages_failed = 0;
    std::uint64_t messages_in_flight = 0;
    std::uint64_t frames_written = 0;
    std::uint64_t messages_resent = 0;
    std::uint64_t reconnects = 0;
  };

  // Queue::producer() opens one.

  Producer(Producer&&) noexcept;
  Producer& operator=(Producer&&) noexcept;
  Producer(const Producer&) = delete;
  Producer& operator=(const Producer&) = delete;
  ~Producer();

  /// Blocks while too much is in flight. `callback` may be empty: then failures show in stats() and
  /// flush() only.
  void send(NewMessage message, Callback callback);
  std::future<EnqueueResult> send(NewMessage message);
  /// Does not block: returns false, and leaves `message` alone, when too much is in flight or the
  /// producer is closed.
  bool try_send(NewMessage& message, Callback callback);
  /// Sends many messages under one lock, with one callback: results in order. The cheapest way.
  /// Blocks while too much is in flight. `callback` may be empty.
  void send_batch(std::vector<NewMessage> messages, BatchCallback callback);

  /// Waits until everything sent before is confirmed or failed. Returns the first failure since the
  /// last flush, or deadline_exceeded.
  Status flush(std::chrono::milliseconds timeout);
  /// Refuses further messages, flushes, ends the stream. What is unconfirmed at the timeout fails
  /// with `unavailable`.
  Status close(std::chrono::milliseconds timeout);

  [[nodiscard]] Stats stats() const;

 private:
  friend class Queue;
  explicit Producer(std::unique_ptr<EnqueueLink> link);

  std::unique_ptr<EnqueueLink> link_;
};

}  // namespace baton::client
