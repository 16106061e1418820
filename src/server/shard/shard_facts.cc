#include "server/shard/shard_facts.h"

#include <array>
#include <cstdlib>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "core/queue/rows.h"

namespace baton {
namespace {

// Kinds after the first kFirstKinds say what a reader that does not know them must do.
constexpr std::size_t kFirstKinds = 1;
constexpr std::array<std::string_view, std::variant_size_v<ShardFact>> kNames{"Booted"};
constexpr std::array<std::string_view, 1> kRecordNames{"BatchAppended"};

constexpr std::string_view kPositionKey = "position";
constexpr std::string_view kBootKey = "boot";
constexpr std::string_view kNowKey = "now";
constexpr std::string_view kFormatKey = "format";

std::string number_row(std::uint64_t number) {
  std::string value;
  Encoder(value).varint(number);
  return value;
}

}  // namespace

constinit const FactSet kShardFacts{.owner = FactOwner{0}, .name = "shard", .kinds = kNames};

void encode(Encoder& out, const ShardFact& fact) {
  write_fact<kFirstKinds>(out, kShardFacts, fact, 0,
                          [&](const Booted& booted) { out.varint(booted.boot); });
}

Result<ShardFact> decode_shard_fact(const FactFrame& frame) {
  return read_fact<ShardFact>(kShardFacts, frame,
                              [](Decoder& in, Booted& booted) { booted.boot = in.varint(); });
}

Result<ShardFact> decode_shard_fact_1(Decoder& in) {
  const std::uint8_t kind = in.u8();
  const Booted fact{in.varint()};
  if (!in.ok() || kind != 0) return Error{Errc::malformed, "a fact of the shard, format 1"};
  return fact;
}

constinit const FactSet kRecordFacts{
    .owner = FactOwner{5}, .name = "records", .kinds = kRecordNames};

void encode(Encoder& out, const BatchAppended& fact) {
  constexpr std::size_t kNumbers = 32;
  constexpr Need kNeed{2};  // Must be understood; every reader of format 2 does.
  out.varint(kRecordFacts.owner.value);
  out.blob_of(kNumbers + fact.bytes.size(), [&] {
    out.varint(kNeed.since);
    out.varint(fact.stream.value);
    out.varint(fact.partition.value);
    out.varint(static_cast<std::uint64_t>(fact.base_offset.value));
    out.varint(static_cast<std::uint32_t>(fact.epoch.value));
    out.blob(fact.bytes);
  });
}

Result<BatchAppended> decode_batch_appended(const FactFrame& frame) {
  Decoder in(frame.body);
  in.varint();
  BatchAppended fact;
  fact.stream = StreamId{in.varint()};
  const std::uint64_t partition = in.varint();
  fact.partition = PartitionNumber{static_cast<std::uint32_t>(partition)};
  fact.base_offset = Offset{static_cast<std::int64_t>(in.varint())};
  const std::uint64_t epoch = in.varint();
  fact.epoch = LeaderEpoch{static_cast<std::int32_t>(epoch)};
  fact.bytes = in.blob();
  skip_fields(in);
  const bool fits = partition <= 0xffffffffU && epoch <= 0x7fffffffU && fact.base_offset.value >= 0;
  if (!in.ok() || !fits) return unreadable_fact(kRecordFacts, frame, in);
  return fact;
}

void append_shard_state(RowBatch& batch, const ShardState& state) {
  batch.put(tables::kState, std::string(kFormatKey), number_row(kStoreFormat));
  batch.put(tables::kState, std::string(kPositionKey), number_row(state.position.value));
  batch.put(tables::kState, std::string(kBootKey), number_row(state.boot));
  batch.put(tables::kState, std::string(kNowKey),
            number_row(static_cast<std::uint64_t>(state.now.ns)));
}

Status read_shard_state(const Row& row, ShardState& state) {
  Decoder in(row.value);
  const std::uint64_t number = in.varint();
  if (row.key == kFormatKey && number > kStoreFormat) {
    return Error{
        Errc::store_too_new,
        fmt::format("the data folder has store format {}; this version knows {}: run the newer "
                    "version of baton that wrote it",
                    number, kStoreFormat)};
  }
  if (row.key == kFormatKey) state.format = number;
  if (row.key == kPositionKey) state.position = Position{number};
  if (row.key == kBootKey) state.boot = number;
  if (row.key == kNowKey) state.now = {static_cast<std::int64_t>(number)};
  return {};
}

void fatal(std::string_view what, const Error& error) {
  spdlog::critical("{}: {}; ending the process, because the contents of the disk are unknown", what,
                   to_string(error));
  spdlog::shutdown();
  std::_Exit(70);
}

}  // namespace baton
