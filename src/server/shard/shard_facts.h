#pragma once

#include <cstdint>
#include <string_view>
#include <variant>

#include "base/bytes.h"
#include "base/growing.h"
#include "base/result.h"
#include "base/rows.h"
#include "core/stream/catalog.h"
#include "storage/journal/journal.h"

/// What a shard itself, besides its machines, writes into its journal and checkpoint.
namespace baton {

/// The shard's only fact: it began to serve under this boot number.
struct Booted {
  std::uint64_t boot = 0;
};
using ShardFact = std::variant<Booted>;
extern const FactSet kShardFacts;
void encode(Encoder& out, const ShardFact& fact);
Result<ShardFact> decode_shard_fact(const FactFrame& frame);
/// Reads one fact of format 1; fails with malformed.
Result<ShardFact> decode_shard_fact_1(Decoder& in);

/// A record batch was appended to a partition. Only logs whose rounds carry records have this fact.
struct BatchAppended {
  StreamId stream;
  PartitionNumber partition;
  Offset base_offset;  // The offset of its first record.
  LeaderEpoch epoch;
  std::string_view bytes;  // As the producer sent them.
};
extern const FactSet kRecordFacts;
void encode(Encoder& out, const BatchAppended& fact);
/// `bytes` of the result point into `frame`.
Result<BatchAppended> decode_batch_appended(const FactFrame& frame);

/// The shard's own state in the checkpoint.
struct ShardState {
  std::uint64_t format = kStoreFormat;  // Of the version that made the checkpoint.
  Position position{1};                 // The first round that is not in the checkpoint.
  std::uint64_t boot = 0;
  Instant now;
};
void append_shard_state(RowBatch& batch, const ShardState& state);
/// Reads one row of the table `state` into `state`; ignores rows that it does not know. Fails with
/// store_too_new for a newer format.
Status read_shard_state(const Row& row, ShardState& state);

/// Ends the process with a message: after this failure the contents of the disk are unknown.
[[noreturn]] void fatal(std::string_view what, const Error& error);

}  // namespace baton
