#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <baton/connection.h>
#include <baton/numbers.h>
#include <baton/result.h>
#include <baton/stream.h>

namespace baton::client {

/// A position in a partition, and the epoch of the seat under which it was reached.
struct StreamPosition {
  PartitionNumber partition{};
  Epoch epoch{};              // 0 when not single-active.
  Offset offset = kNoOffset;  // The next offset to read.

  bool operator==(const StreamPosition&) const = default;
};

/// What a handler gets: records of one partition, one after the other, at least one.
struct RecordBatch {
  PartitionNumber partition{};
  /// The fencing token of a single-active consumer: grows with every change of the seat. Pass it to
  /// the system that the handler writes to, and let that system refuse smaller ones.
  Epoch epoch{};
  std::vector<Record> records{};
  /// The offset after the last record. A handler that wants no more sets it to the first record it
  /// did not handle: the group continues there, and this consumer is done with the partition.
  Offset next_offset{};
  Offset end_offset{};  // Of the partition, when the broker sent this: gives the lag.

  /// The position after this batch, for StreamConsumer::store_offset().
  [[nodiscard]] StreamPosition position() const {
    return {.partition = partition, .epoch = epoch, .offset = next_offset};
  }
};

/// When the offsets of handled records are stored.
struct OffsetStoring {
  /// Off: only store_offset() stores.
  bool automatic = true;
  std::uint64_t records = 10'000;             // After this many records; 0 = not by number.
  std::chrono::milliseconds interval{1'000};  // This long after the last time; 0 = not by time.
};

struct StreamConsumerOptions {
  std::vector<PartitionNumber> partitions{};  // [all]
  /// The group whose offsets are stored. May be empty (nothing is stored) if not single-active.
  std::string group{};
  /// On: of all consumers of the group, one at a time gets the records of a partition.
  bool single_active = false;
  /// Single-active only. All consumers of a group must agree; as_group agrees with any.
  Handover handover = Handover::as_group;
  /// Where a group without a stored offset begins.
  StartFrom from = StartFrom::next();
  OnGap on_gap = OnGap::close;
  std::string owner{};  // A label for people: who this consumer is.

  /// How much the broker may send ahead of the handlers; returned to it as they finish.
  std::uint64_t credit_batches = 64;
  std::uint64_t credit_bytes = 16UL * 1024 * 1024;
  /// Handlers that run at once, each for another partition.
  std::size_t concurrency = 1;
  OffsetStoring storing{};
  /// How long close() in the destructor takes at most, not counting handlers that still run.
  std::chrono::milliseconds close_timeout{10'000};

  // Single-active only; may be empty. They run on the handlers' threads, in order with the handlers
  // of their partition.

  /// This consumer has the seat. `position` tells partition, epoch, and where delivery begins
  /// (kNoOffset with ask_offset).
  std::function<void(const StreamPosition& position)> on_active{};
  /// The seat is to be given up, or is lost already. The last handler has returned; offsets may
  /// still be stored.
  std::function<void(PartitionNumber partition)> on_step_down{};
  /// The seat is about to be lost, or is lost (also because the lease of the connection has ended):
  /// a handler of this partition that waits for something should return. Called at once, on a
  /// thread of the SDK, which must not be blocked.
  std::function<void(PartitionNumber partition)> on_losing{};
  /// If set, called for the offset to begin at, instead of using the stored one.
  std::function<Offset(const StreamPosition& position)> ask_offset{};

  /// Called on a thread of the SDK, which must not be blocked; may be empty. Reports connections
  /// that break, and offsets that could not be stored.
  std::function<void(const Error&)> on_error{};
};

class StreamConsumerRuntime;

/// Runs a handler for the records of a stream, in order within each partition; stores offsets and
/// reconnects by itself.
///
/// A record counts as handled when its handler returned. After a crash, records handled since the
/// last stored offset come again: at least once. After an ordinary hand-over nothing comes twice
/// and nothing is missed: the handler under way finishes, its offset is stored and confirmed, and
/// only then does the broker hear that the seat is free. A handler should therefore be done well
/// within the broker's hand-over time-out (10 s); one that is not loses its seat, and this consumer
/// joins the group again.
///
/// A handler that throws ends the consumer: what it failed on must not be skipped.
///
/// Thread-safe. close() and the destructor wait for running handlers, so neither may be called by
/// one. Movable; a moved-from consumer may only be destroyed or assigned to.
class StreamConsumer {
 public:
  using Handler = std::function<void(RecordBatch&)>;

  struct Stats {
    std::uint64_t records_handled = 0;
    std::uint64_t batches_handled = 0;
    std::uint64_t batches_dropped = 0;  // Arrived for a seat that was gone.
    std::uint64_t offsets_stored = 0;
    std::uint64_t seats = 0;  // Held now; all partitions when not single-active.
    std::uint64_t reconnects = 0;
  };

  // Stream::consumer() opens one.

  StreamConsumer(StreamConsumer&&) noexcept;
  StreamConsumer& operator=(StreamConsumer&&) noexcept;
  StreamConsumer(const StreamConsumer&) = delete;
  StreamConsumer& operator=(const StreamConsumer&) = delete;
  /// Calls close(close_timeout).
  ~StreamConsumer();

  /// Stores an offset and waits until it is confirmed. Fails with stale_epoch when another consumer
  /// has the seat by now, with lease_lost when that is possible because no heartbeat was
  /// acknowledged, with deadline_exceeded at the timeout. Handlers may call it.
  Status store_offset(const StreamPosition& position,
                      std::chrono::milliseconds timeout = std::chrono::milliseconds{10'000});

  /// Takes no more records, waits for the running handlers, stores their offsets, leaves the group.
  /// Returns the Error of the first offset that could not be stored, or how the consumer had ended
  /// before. A second call returns the same.
  Status close(std::chrono::milliseconds timeout);
  /// Waits until the consumer ends: refused by the broker (offset_out_of_range, stream_not_found),
  /// after giving up, because a handler threw, or closed by another thread. nullopt when `timeout`
  /// passed.
  [[nodiscard]] std::optional<Status> wait(std::chrono::milliseconds timeout);

  [[nodiscard]] Stats stats() const;
  /// Whether this consumer may still work on the seats it was given, by the clock. A handler that
  /// takes longer than a second asks before each of its effects.
  [[nodiscard]] SessionLease lease() const;

 private:
  friend class Stream;
  explicit StreamConsumer(std::unique_ptr<StreamConsumerRuntime> runtime);

  std::unique_ptr<StreamConsumerRuntime> runtime_;
};

}  // namespace baton::client
