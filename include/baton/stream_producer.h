#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <string>

#include <baton/result.h>
#include <baton/stream.h>

namespace baton::client {

struct StreamProducerOptions {
  /// On: each record is stored EXACTLY ONCE and in order, over reconnects and restarts of the
  /// broker. Off: AT LEAST ONCE, and not necessarily in order when the broker refuses for a while.
  bool idempotent = true;
  /// A name that outlives the process: a producer that opens under it fences off the one before.
  /// Empty: a new identity, which no other producer can take over.
  std::string producer{};

  /// How long a batch that is not full waits for more records. While the partition has the maximum
  /// number of unconfirmed batches (5), the batch keeps filling up.
  std::chrono::microseconds linger{1'000};
  /// Target size of a batch, before compression. A larger record is sent alone, up to the stream's
  /// batch_bytes_max.
  std::size_t batch_bytes = 64UL * 1024;
  RecordCompression compression = RecordCompression::none;

  /// What may be unconfirmed at once; beyond it send() blocks, for at most `send_timeout`, and
  /// try_send() fails. A single record that is bigger is sent alone.
  std::size_t buffer_bytes_max = 32UL * 1024 * 1024;
  std::chrono::milliseconds send_timeout{60'000};
};

class AppendLink;

/// Sends records to one stream: chooses their partitions, makes batches, reconnects by itself.
///
/// Each record is confirmed exactly once, by its callback or future: with partition and offset, or
/// with the Error that it failed with. Confirmations of one partition come in the order of sending.
/// While the broker is away records wait, bounded by `buffer_bytes_max`, and are sent after the
/// reconnect under their old sequence numbers, by which the broker recognises those it has already.
///
/// Records with a key go to the partition that Kafka's default partitioner would choose. Records
/// without a key stick to one partition until its batch is full or sent, then to the next.
///
/// A batch that the broker refuses for good fails its own records only: those behind it were not
/// stored either, so the producer asks for a new epoch (which also shuts out batches of the old
/// epoch that are still on their way) and sends them under it, in order. A producer whose name
/// another process took over is finished: everything fails with producer_fenced.
///
/// Thread-safe. Records of one thread keep their order within a partition. Callbacks run one at a
/// time, on a thread of the SDK (or, for a record refused at once, on the caller's): they must not
/// block, must not throw, and may call try_send() but not send(), flush(), close() or the
/// destructor. The destructor closes without waiting for confirmations. Movable; a moved-from
/// producer may only be destroyed or assigned to.
class StreamProducer {
 public:
  using Callback = std::function<void(AppendResult)>;

  struct Stats {
    std::uint64_t records_sent = 0;       // Accepted by send() and the like.
    std::uint64_t records_confirmed = 0;  // Stored, or known as duplicates.
    std::uint64_t records_failed = 0;
    std::uint64_t bytes_in_flight = 0;
    std::uint64_t batches_written = 0;
    std::uint64_t batches_resent = 0;
    std::uint64_t frames_written = 0;
    std::uint64_t epochs = 0;  // New epochs asked for after a refused batch.
    std::uint64_t reconnects = 0;
  };

  // Stream::producer() opens one.

  StreamProducer(StreamProducer&&) noexcept;
  StreamProducer& operator=(StreamProducer&&) noexcept;
  StreamProducer(const StreamProducer&) = delete;
  StreamProducer& operator=(const StreamProducer&) = delete;
  ~StreamProducer();

  /// Blocks while too much is unconfirmed; after `send_timeout` the record fails with
  /// resource_exhausted. `callback` may be empty: then failures show in stats() and flush() only.
  void send(NewRecord record, Callback callback);
  std::future<AppendResult> send(NewRecord record);
  /// Does not block: returns false, and leaves `record` alone, when too much is unconfirmed or the
  /// producer is closed.
  bool try_send(NewRecord& record, Callback callback);

  /// Waits until everything sent before is confirmed or failed, without lingering. Returns the
  /// first failure since the last flush, or deadline_exceeded.
  Status flush(std::chrono::milliseconds timeout);
  /// Refuses further records, flushes, ends the stream. What is unconfirmed at the timeout fails
  /// with `unavailable`, and may or may not have been stored.
  Status close(std::chrono::milliseconds timeout);

  [[nodiscard]] std::uint32_t partitions() const;
  [[nodiscard]] Stats stats() const;

 private:
  friend class Stream;
  explicit StreamProducer(std::unique_ptr<AppendLink> link);

  std::unique_ptr<AppendLink> link_;
};

}  // namespace baton::client
