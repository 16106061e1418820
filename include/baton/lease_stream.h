#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <baton/connection.h>
#include <baton/message.h>
#include <baton/result.h>

namespace baton::client {

/// The broker's answer to a consumer that (re)connected.
struct Registration {
  std::string consumer_id{};
  std::chrono::milliseconds visibility_timeout{0};
};

/// What became of the items of one ack(), nack() or extend(). Every item that is not listed as a
/// failure succeeded.
struct ItemResults {
  struct Failure {
    std::size_t index = 0;  // Index of the item in the call's span.
    Error error{};
  };
  std::size_t items = 0;
  std::vector<Failure> failures{};

  [[nodiscard]] bool ok() const { return failures.empty(); }
};

struct LeaseStreamOptions {
  std::string consumer_id{};              // Empty: the broker chooses one.
  std::uint32_t in_flight_max = 0;        // Messages held and not yet acked; 0 = the broker's 256.
  std::uint64_t in_flight_bytes_max = 0;  // 0 = the broker's 16 MiB.
  /// How many messages this consumer works on at a time; 0 = the broker's 1. When the process dies,
  /// the messages it has begun (see begin()) count an attempt; if none, this many of the oldest.
  std::uint32_t concurrency = 0;
  /// Deliver only what add_credit() asked for (within in_flight_max).
  bool manual_credit = false;
  /// Off: the first broken connection ends the stream.
  bool reconnect = true;
  /// Beyond this many unconfirmed frames of acks, the next frame waits for one to be confirmed and
  /// gathers items meanwhile. Fewer make frames bigger and cheaper under load.
  std::size_t frames_ahead = 4;

  /// Called on a thread of the SDK, which must not be blocked; may be empty.
  std::function<void(const Registration&)> on_connected{};
  std::function<void(const Error&)> on_disconnected{};
  /// Likewise, for each item that failed and was sent without a callback.
  std::function<void(const Error&)> on_item_failed{};
};

class LeaseLink;

/// A consumer of one queue, pulled by its owner: next() hands out leased messages; ack(), nack()
/// and extend() go up in frames that gather by themselves.
///
/// After a broken connection the stream reconnects under the same consumer id. Messages that next()
/// had not handed out yet are forgotten and released. Acks without a result are sent again: they
/// count if the broker had restarted; if it had released the lease, they fail with lease_lost (as
/// does the repetition of an ack that had been stored while its result was lost).
///
/// Thread-safe. Result callbacks run one at a time, on a thread of the SDK (or, once the stream is
/// over, on the caller's): they must not block or throw, and may call anything but flush(),
/// close(), next*() and the destructor. The destructor closes without waiting for results; the
/// broker then releases what is left. Movable; a moved-from stream may only be destroyed or
/// assigned to.
class LeaseStream {
 public:
  using ResultCallback = std::function<void(const ItemResults&)>;

  struct Stats {
    std::uint64_t messages_received = 0;
    std::uint64_t items_sent = 0;  // Acks, nacks and extensions.
    std::uint64_t items_done = 0;
    std::uint64_t items_failed = 0;
    std::uint64_t frames_written = 0;
    std::uint64_t reconnects = 0;
  };

  // Queue::lease() opens one.

  LeaseStream(LeaseStream&&) noexcept;
  LeaseStream& operator=(LeaseStream&&) noexcept;
  LeaseStream(const LeaseStream&) = delete;
  LeaseStream& operator=(const LeaseStream&) = delete;
  ~LeaseStream();

  /// Waits for the broker to confirm the registration (unknown queue: fails with queue_not_found).
  Result<Registration> wait_until_registered(std::chrono::milliseconds timeout);

  /// The next message; nullopt when `timeout` passed or interrupt() was called. An Error means that
  /// the stream is over: closed (`cancelled`), refused by the broker, or given up.
  Result<std::optional<LeasedMessage>> next(std::chrono::milliseconds timeout);
  /// All messages that wait, at least one and at most `messages_max` (0 = all); empty where next()
  /// would answer nullopt.
  Result<std::vector<LeasedMessage>> next_batch(std::chrono::milliseconds timeout,
                                                std::size_t messages_max = 0);
  /// Makes the next*() that waits now, or the next one to wait, return empty at once.
  void interrupt();

  // Asynchronous. Without a callback, failures show in stats() and flush() only. When the stream is
  // over, items fail with its Error.

  void ack(LeaseToken token, ResultCallback callback = {});
  void ack(std::span<const LeaseToken> tokens, ResultCallback callback = {});
  void ack(std::vector<LeaseToken>&& tokens, ResultCallback callback = {});
  void nack(Nack item, ResultCallback callback = {});
  void nack(std::vector<Nack> items, ResultCallback callback = {});
  void extend(Extension item, ResultCallback callback = {});
  void extend(std::vector<Extension> items, ResultCallback callback = {});
  /// Tells the broker that work on these messages has begun. If this process dies, they count an
  /// attempt and the others that it holds do not. Has no result. Without begin(), the oldest count.
  void begin(std::vector<LeaseToken> tokens);
  /// With manual_credit: lets the broker deliver this many messages more.
  void add_credit(std::uint32_t messages);

  /// Waits until every item has its result. Answers the first failure since the last flush, or
  /// deadline_exceeded.
  Status flush(std::chrono::milliseconds timeout);
  /// Releases the messages that were not handed out, flushes, ends the stream.
  Status close(std::chrono::milliseconds timeout);

  [[nodiscard]] Stats stats() const;
  /// Whether the messages of the present connection may still be worked on, by the clock.
  [[nodiscard]] SessionLease lease() const;

 private:
  friend class Queue;
  explicit LeaseStream(std::unique_ptr<LeaseLink> link);

  std::unique_ptr<LeaseLink> link_;
};

}  // namespace baton::client
