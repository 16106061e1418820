#include "server/shard/shard_facts.h"

#include <array>
#include <cstdlib>

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include "core/queue/rows.h"

namespace baton {
namespace {

// Kinds behind the first ones say what a reader shall do that does not know them.
constexpr std::size_t kFirstKinds = 1;
constexpr std::array<std::string_view, std::variant_size_v<ShardFact>> kNames{"Booted"};

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
  spdlog::critical("{}: {}; ending the process, for what the disk holds is no longer known", what,
                   to_string(error));
  spdlog::shutdown();
  std::_Exit(70);
}

}  // namespace baton
