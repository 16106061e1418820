#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"
#include "base/time.h"
#include "core/stream/limits.h"
#include "core/stream/record_batch.h"
#include "core/stream/types.h"

namespace baton {

/// What is to be done with a batch of an idempotent producer.
enum class ProducerVerdict : std::uint8_t {
  append,         // It is the next one.
  duplicate,      // One of the last five: its first result is known.
  old_duplicate,  // Stored before those five: its result is no longer known.
  gap,            // Something before it is missing, or it overlaps what is stored.
  stale_epoch,    // The producer has started again since.
  table_full,     // The partition remembers as many producers as it may.
};

/// "old_duplicate".
std::string_view producer_verdict_name(ProducerVerdict verdict);

/// What one partition remembers of its idempotent producers: the last five batches of each. Pure.
/// Owned by one partition's log; not thread-safe.
///
/// Sequences run from 0 to 2^31 - 1 and then begin again. A producer that is not known, or comes
/// with a new epoch, begins at 0: after an expiry it must ask for a new epoch, since nobody can say
/// any more what of it was stored.
class ProducerTable {
 public:
  /// A batch that was stored.
  struct StoredBatch {
    Sequence32 first;
    Sequence32 last;
    Offset base_offset;

    constexpr auto operator<=>(const StoredBatch&) const = default;
  };
  struct Producer {
    ProducerEpoch epoch;
    Instant last_seen;
    std::uint8_t size = 0;
    // Oldest first; only the first `size` mean anything.
    std::array<StoredBatch, limits::kProducerBatchesRemembered> batches{};

    bool operator==(const Producer&) const = default;
  };
  struct Answer {
    ProducerVerdict verdict;
    Offset base_offset;  // Of the first result, when it is a duplicate.
    std::string text;    // Why, when it is a gap, stale, or the table is full.
  };

  explicit ProducerTable(std::size_t producers_max = limits::kProducersPerPartition)
      : producers_max_(producers_max) {}

  /// What to do with a batch of `count` records. Changes nothing.
  [[nodiscard]] Answer check(const ProducerStamp& stamp, std::int32_t count) const;
  /// Takes note of a batch that was stored: called for each, live and in recovery. A batch without
  /// a producer is ignored.
  void apply(const BatchHeader& batch, Instant now);
  /// From now on, batches of `id` with an epoch below `epoch` are stale, and those of `epoch` begin
  /// at 0. For a producer that has started again but sent nothing here yet.
  void fence(ProducerId id, ProducerEpoch epoch, Instant now);
  /// Forgets those not seen since `before`; answers how many.
  std::size_t expire(Instant before);

  [[nodiscard]] std::size_t size() const { return producers_.size(); }
  /// What is known of one producer, to be put back by restore() when a write failed.
  [[nodiscard]] std::optional<Producer> find(ProducerId id) const;
  void restore(ProducerId id, const std::optional<Producer>& producer);

  /// As of `next`, the offset of the next record of the partition. The layout is at the top of
  /// producer_table.cc.
  [[nodiscard]] std::string encode_snapshot(Offset next) const;
  struct Snapshot;
  /// Fails with malformed, or with store_too_new.
  static Result<Snapshot> decode_snapshot(std::string_view bytes);

 private:
  std::size_t producers_max_;
  std::map<ProducerId, Producer> producers_;
};

struct ProducerTable::Snapshot {
  Offset next;
  ProducerTable table;
};

}  // namespace baton
