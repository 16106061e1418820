#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <baton/stream.h>
#include <baton/stream_producer.h>

#include "core/stream/compression.h"
#include "core/stream/records.h"

namespace baton::client {

/// A batch on its way, from the time it was closed until its result is known.
struct PendingBatch {
  /// What is known about the batch at the broker.
  enum class Fate : std::uint8_t {
    unsent,     // Not stored.
    in_flight,  // Sent on this session.
    unknown,    // Sent on a session that broke.
    rejected,   // Not stored, and not to be sent before the window starts anew.
  };

  PartitionNumber partition{};
  std::string bytes{};
  std::int32_t count = 0;
  std::size_t cost = 0;  // Counted against the bound on bytes.
  std::uint64_t first_record = 0;
  std::vector<StreamProducer::Callback> callbacks{};  // One per record, some empty.
  Fate fate = Fate::unsent;
  std::optional<ProducerStamp> stamp{};
  int tries = 0;
};
using PendingBatchPointer = std::unique_ptr<PendingBatch>;

/// Gathers records into one open batch per partition. Pure: time is an argument. Not thread-safe.
///
/// Invariant: opened_ names each open batch once, oldest first (and may name closed ones).
class BatchAccumulator {
 public:
  using Time = std::chrono::steady_clock::time_point;

  struct Options {
    std::uint32_t partitions = 1;
    std::size_t batch_bytes = 64UL * 1024;
    std::size_t batch_bytes_max = 1024UL * 1024;  // The broker's limit.
    std::chrono::microseconds linger{0};
    Compression compression = Compression::none;
  };

  explicit BatchAccumulator(const Options& options);

  /// Takes a record whose timestamp is set. Batches that were full are returned in `full`. Fails
  /// with the record's fault, and then leaves `callback` alone.
  Status add(const NewRecord& record, std::size_t cost, StreamProducer::Callback& callback,
             Time now, std::vector<PendingBatchPointer>& full);
  /// Closes and returns the batches that have waited long enough (`all`: every one), of partitions
  /// for which `may_send` is true; the others keep filling up.
  std::vector<PendingBatchPointer> take_due(Time now, bool all,
                                            const std::function<bool(PartitionNumber)>& may_send);
  /// When take_due() has something for a partition that may send; nullopt without open batches.
  [[nodiscard]] std::optional<Time> next_due(
      const std::function<bool(PartitionNumber)>& may_send) const;

  /// Records taken so far: the number of the next one.
  [[nodiscard]] std::uint64_t records() const { return records_; }
  /// The number of the oldest record in an open batch.
  [[nodiscard]] std::optional<std::uint64_t> oldest_record() const;

 private:
  struct Open {
    BatchBuilder builder;
    std::vector<StreamProducer::Callback> callbacks{};
    std::size_t cost = 0;
    std::uint64_t first_record = 0;
  };
  struct Opened {
    PartitionNumber partition{};
    std::uint64_t first_record = 0;
    Time at;
  };

  Result<PartitionNumber> partition_of(const NewRecord& record) const;
  Open& open_for(PartitionNumber partition);
  PendingBatchPointer close(PartitionNumber partition);
  [[nodiscard]] bool is_open(const Opened& opened) const;

  Options options_;
  std::vector<std::unique_ptr<Open>> open_;  // By partition; made when first needed.
  std::deque<Opened> opened_;
  std::set<std::uint64_t> first_records_;  // Of the open batches.
  std::uint64_t records_ = 0;
  PartitionNumber sticky_{};  // The partition for records without a key.
};

}  // namespace baton::client
