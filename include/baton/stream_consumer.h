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
#include <baton/result.h>
#include <baton/stream.h>

namespace baton::client {

/// A place in a partition, and the seat under which it was reached.
struct StreamPosition {
  std::uint32_t partition = 0;
  std::uint64_t epoch = 0;   // 0 when not single-active.
  std::int64_t offset = -1;  // The next to read.

  bool operator==(const StreamPosition&) const = default;
};

/// What a handler gets: records of one partition, one after the other, at least one.
struct RecordBatch {
  std::uint32_t partition = 0;
  /// The fencing token of a single-active consumer: grows with every change of the seat. Hand it to
  /// whatever the handler writes to, and let that refuse smaller ones.
  std::uint64_t epoch = 0;
  std::vector<Record> records{};
  /// After the last record. A handler that wants no more sets it to the first record that it did
  /// not handle: the group goes on there, and this consumer gets no more of the partition.
  std::int64_t next_offset = 0;
  std::int64_t end_offset = 0;  // Of the partition, when the broker sent this: the lag follows.

  /// After this batch, for StreamConsumer::store_offset().
  [[nodiscard]] StreamPosition position() const {
    return {.partition = partition, .epoch = epoch, .offset = next_offset};
  }
};

/// When the offsets of handled records are stored.
struct OffsetStoring {
  /// Off: only store_offset() stores.
  bool automatic = true;
  std::uint64_t records = 10'000;             // After so many; 0 = not by number.
  std::chrono::milliseconds interval{1'000};  // So long after the last time; 0 = not by time.
};

struct StreamConsumerOptions {
  ConnectionOptions connection{};
  std::string stream{};
  std::vector<std::uint32_t> partitions{};  // [all]
  /// Whose offsets are stored. May be empty when not single-active: then none are.
  std::string group{};
  /// On: of all consumers of the group, one at a time gets the records of a partition.
  bool single_active = false;
  /// Single-active only. All consumers of a group must agree; as_group agrees with any.
  Handover handover = Handover::as_group;
  /// Where a group begins that has stored no offset.
  StartFrom from = StartFrom::next();
  OnGap on_gap = OnGap::close;
  std::string owner{};  // A label for people: who this is.

  /// What the broker may send ahead of the handlers; given back as they finish.
  std::uint64_t credit_batches = 64;
  std::uint64_t credit_bytes = 16UL * 1024 * 1024;
  /// Handlers that run at once, each of another partition.
  std::size_t concurrency = 1;
  OffsetStoring storing{};
  /// How long stop() in the destructor takes at most, apart from the handlers that still run.
  std::chrono::milliseconds stop_timeout{10'000};

  // Single-active only; may be empty. They run on the handlers' threads, in order with the handlers
  // of their partition.

  /// The seat is ours. `position` tells partition, epoch, and where delivery begins (-1 with
  /// ask_offset).
  std::function<void(const StreamPosition& position)> on_active{};
  /// The seat is to be given up, or is lost already. The last handler has returned; offsets may
  /// still be stored.
  std::function<void(std::uint32_t partition)> on_step_down{};
  /// The seat is about to go, or gone (also because the lease of the connection has ended): a
  /// handler of this partition that waits for something should return. Told at once, on a thread of
  /// the SDK, which must not be blocked.
  std::function<void(std::uint32_t partition)> on_losing{};
  /// Given: asked for the offset to begin at, instead of the stored one.
  std::function<std::int64_t(const StreamPosition& position)> ask_offset{};

  /// Told on a thread of the SDK, which must not be blocked; may be empty. Connections that break,
  /// offsets that could not be stored.
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
/// Thread-safe. stop() and the destructor wait for running handlers, so neither may be called by
/// one.
class StreamConsumer {
 public:
  using Handler = std::function<void(RecordBatch&)>;

  struct Stats {
    std::uint64_t records_handled = 0;
    std::uint64_t batches_handled = 0;
    std::uint64_t batches_dropped = 0;  // Came for a seat that was gone.
    std::uint64_t offsets_stored = 0;
    std::uint64_t seats = 0;  // Held now; all partitions when not single-active.
    std::uint64_t reconnects = 0;
  };

  /// Checks the options, asks the broker about the stream (waiting for it as long as the
  /// connection's `deadline` says), and starts.
  static Result<std::unique_ptr<StreamConsumer>> start(StreamConsumerOptions options,
                                                       Handler handler);

  StreamConsumer(const StreamConsumer&) = delete;
  StreamConsumer& operator=(const StreamConsumer&) = delete;
  StreamConsumer(StreamConsumer&&) = delete;
  StreamConsumer& operator=(StreamConsumer&&) = delete;
  /// stop(stop_timeout).
  ~StreamConsumer();

  /// Stores an offset and waits until it is confirmed. Fails with stale_epoch when the seat is
  /// another's by now, with lease_lost when it may be because no heartbeat was acknowledged, with
  /// deadline_exceeded at the timeout. May be called by handlers.
  Status store_offset(const StreamPosition& position,
                      std::chrono::milliseconds timeout = std::chrono::milliseconds{10'000});

  /// Takes no more, waits for the running handlers, stores their offsets, leaves the group. Answers
  /// the first offset that could not be stored, or how the consumer had ended before. A second call
  /// answers the same.
  Status stop(std::chrono::milliseconds timeout);
  /// Waits until the consumer ends by itself: refused by the broker (offset_out_of_range,
  /// stream_not_found), given up, a handler that threw; or stopped by another thread. Answers
  /// nothing at the timeout.
  [[nodiscard]] std::optional<Status> wait(std::chrono::milliseconds timeout);

  [[nodiscard]] Stats stats() const;
  /// Whether the seats that were given to this consumer may still be worked on, by the clock. A
  /// handler that takes longer than a second asks before each of its effects.
  [[nodiscard]] SessionLease lease() const;

 private:
  explicit StreamConsumer(std::unique_ptr<StreamConsumerRuntime> runtime);

  std::unique_ptr<StreamConsumerRuntime> runtime_;
};

}  // namespace baton::client
