#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include <fmt/format.h>

#include "base/growing.h"
#include "core/stream/catalog.h"

/// The bytes of the catalog's facts and rows. Both can gain fields as base/growing.h says, and each
/// fact is framed.
///
///   StreamCreated    0  stream varint, name blob, partitions varint, settings, at i64
///   StreamUpdated    1  stream varint, settings
///   StreamDeleted    2  stream varint
///   ProducerStarted  3  stream varint, name blob, id varint, epoch varint
///   PartitionSynced  4  stream varint, partition varint, end varint
///
///   streams          key: stream u64 big-endian; value: u8 0, name blob, settings, created_at i64,
///                    partitions varint, then the synced end of each, varint; fields
///                    key: "next"; value: next stream varint, next producer varint; fields
///   stream_producers key: stream u64 big-endian, name; value: id varint, epoch varint; fields
///
/// Format 1, which is read and no longer written: a fact is kind u8 and the body, a row of
/// `streams` begins with the name, and settings are of format 1.
namespace baton {
namespace {

constexpr std::string_view kNextKey = "next";
/// About what a row takes, for the bound of a delta.
constexpr std::size_t kRowBytes = 128;
/// A stream's row begins with this, where format 1 has the length of the name, which is never 0.
constexpr std::uint8_t kStreamRow = 0;

// Kinds behind the first ones say what a reader shall do that does not know them.
constexpr std::size_t kFirstKinds = 5;
constexpr std::array<std::string_view, std::variant_size_v<StreamFact>> kNames{
    "StreamCreated", "StreamUpdated", "StreamDeleted", "ProducerStarted", "PartitionSynced"};

void body(Encoder& out, const StreamCreated& fact) {
  out.varint(fact.stream.value);
  out.blob(fact.name);
  out.varint(fact.partitions);
  encode(out, fact.settings);
  out.fixed(fact.at.ns);
}
void body(Encoder& out, const StreamUpdated& fact) {
  out.varint(fact.stream.value);
  encode(out, fact.settings);
}
void body(Encoder& out, const StreamDeleted& fact) { out.varint(fact.stream.value); }
void body(Encoder& out, const ProducerStarted& fact) {
  out.varint(fact.stream.value);
  out.blob(fact.name);
  out.varint(static_cast<std::uint64_t>(fact.id.value));
  out.varint(static_cast<std::uint64_t>(fact.epoch.value));
}
void body(Encoder& out, const PartitionSynced& fact) {
  out.varint(fact.stream.value);
  out.varint(fact.partition.value);
  out.varint(static_cast<std::uint64_t>(fact.end.value));
}

StreamId get_stream(Decoder& in) { return StreamId{in.varint()}; }
/// A number that is not negative and no larger than `max`.
std::int64_t get_bounded(Decoder& in, std::uint64_t max) {
  const std::uint64_t value = in.varint();
  if (value > max) in.fail();
  return in.ok() ? static_cast<std::int64_t>(value) : 0;
}
Offset get_offset(Decoder& in) {
  return Offset{get_bounded(in, std::numeric_limits<std::int64_t>::max())};
}
std::uint32_t get_partitions(Decoder& in) {
  const auto count = static_cast<std::uint32_t>(get_bounded(in, limits::kPartitionsPerStreamMax));
  if (count == 0) in.fail();
  return count;
}
StreamInfo::Producer get_producer(Decoder& in) {
  const ProducerId id{get_bounded(in, std::numeric_limits<std::int64_t>::max())};
  const ProducerEpoch epoch{
      static_cast<std::int16_t>(get_bounded(in, std::numeric_limits<std::int16_t>::max()))};
  return {id, epoch};
}
std::string get_name(Decoder& in) {
  std::string name(in.blob());
  if (!validate_stream_name(name).has_value()) in.fail();
  return name;
}

using ReadSettings = StreamSettings (*)(Decoder&);

void read(Decoder& in, StreamCreated& fact, ReadSettings settings) {
  fact.stream = get_stream(in);
  fact.name = get_name(in);
  fact.partitions = get_partitions(in);
  fact.settings = settings(in);
  fact.at = {in.fixed<std::int64_t>()};
}
void read(Decoder& in, StreamUpdated& fact, ReadSettings settings) {
  fact.stream = get_stream(in);
  fact.settings = settings(in);
}
void read(Decoder& in, StreamDeleted& fact, ReadSettings /*settings*/) {
  fact.stream = get_stream(in);
}
void read(Decoder& in, ProducerStarted& fact, ReadSettings /*settings*/) {
  fact.stream = get_stream(in);
  fact.name = in.blob();
  const StreamInfo::Producer producer = get_producer(in);
  fact.id = producer.id;
  fact.epoch = producer.epoch;
}
void read(Decoder& in, PartitionSynced& fact, ReadSettings /*settings*/) {
  fact.stream = get_stream(in);
  fact.partition = PartitionNumber{
      static_cast<std::uint32_t>(get_bounded(in, limits::kPartitionsPerStreamMax - 1))};
  fact.end = get_offset(in);
}

std::string stream_key(StreamId id) {
  std::string key;
  Encoder(key).big_u64(id.value);
  return key;
}

std::string stream_row(const StreamInfo& stream) {
  std::string value;
  Encoder out(value);
  out.u8(kStreamRow);
  out.blob(stream.name);
  encode(out, stream.settings);
  out.fixed(stream.created_at.ns);
  out.varint(stream.partitions());
  for (const Offset end : stream.synced) out.varint(static_cast<std::uint64_t>(end.value));
  return value;
}

}  // namespace

constinit const FactSet kStreamFacts{.owner = FactOwner{2}, .name = "streams", .kinds = kNames};

void encode(Encoder& out, const StreamFact& fact) {
  write_fact<kFirstKinds>(out, kStreamFacts, fact, 0,
                          [&](const auto& happened) { body(out, happened); });
}

Result<StreamFact> decode_stream_fact(const FactFrame& frame) {
  return read_fact<StreamFact>(kStreamFacts, frame, [](Decoder& in, auto& happened) {
    read(in, happened, decode_stream_settings);
  });
}

Result<StreamFact> decode_stream_fact(Decoder& in) { return decode_stream_fact(read_frame(in)); }

Result<StreamFact> decode_stream_fact_1(Decoder& in) {
  StreamFact fact;
  const bool known =
      read_tagged(in.u8(), fact, [&](auto& one) { read(in, one, decode_stream_settings_1); });
  if (!known || !in.ok()) return Error{Errc::malformed, "a fact of a stream, format 1"};
  return fact;
}

std::size_t StreamCatalog::changed_bytes() const {
  return kRowBytes * (changed_.size() + deleted_.size() + changed_producers_.size());
}

void StreamCatalog::append_changed_rows(RowBatch& batch) {
  if (changed_bytes() == 0) return;
  for (const StreamId id : changed_) {
    batch.put(tables::kStreams, stream_key(id), stream_row(streams_.at(id)));
  }
  for (const auto& [id, partitions] : deleted_) batch.erase(tables::kStreams, stream_key(id));
  for (const auto& [id, name] : changed_producers_) {
    const StreamInfo* const stream = find(id);
    if (stream == nullptr) {
      batch.erase(tables::kStreamProducers, stream_key(id) + name);
      continue;
    }
    const StreamInfo::Producer& producer = stream->producers.at(name);
    std::string value;
    Encoder out(value);
    out.varint(static_cast<std::uint64_t>(producer.id.value));
    out.varint(static_cast<std::uint64_t>(producer.epoch.value));
    batch.put(tables::kStreamProducers, stream_key(id) + name, std::move(value));
  }
  std::string next;
  Encoder out(next);
  out.varint(next_stream_.value);
  out.varint(static_cast<std::uint64_t>(next_producer_.value));
  batch.put(tables::kStreams, std::string(kNextKey), std::move(next));
  changed_.clear();
  deleted_.clear();
  changed_producers_.clear();
}

void StreamCatalog::load_stream(StreamId id, const Row& row, Decoder& in) {
  StreamInfo stream;
  stream.id = id;
  const bool old = !row.value.starts_with(static_cast<char>(kStreamRow));
  if (!old) in.u8();
  stream.name = get_name(in);
  stream.settings = old ? decode_stream_settings_1(in) : decode_stream_settings(in);
  stream.created_at = {in.fixed<std::int64_t>()};
  stream.synced.resize(get_partitions(in));
  for (Offset& end : stream.synced) end = get_offset(in);
  // The next checkpoint writes it as it is written today.
  if (old) changed_.insert(stream.id);
  names_[stream.name] = stream.id;
  streams_[stream.id] = std::move(stream);
}

Status StreamCatalog::load(Table table, const Row& row) {
  Decoder in(row.value);
  Decoder key(row.key);
  if (table == tables::kStreams && row.key == kNextKey) {
    next_stream_ = std::max(next_stream_, StreamId{in.varint()});
    const ProducerId next{get_bounded(in, std::numeric_limits<std::int64_t>::max())};
    next_producer_ = std::max(next_producer_, next);
  } else if (table == tables::kStreams) {
    load_stream(StreamId{key.big_u64()}, row, in);
  } else if (table == tables::kStreamProducers) {
    StreamInfo* const stream = known(StreamId{key.big_u64()});
    const StreamInfo::Producer producer = get_producer(in);
    if (stream != nullptr) stream->producers[std::string(key.rest())] = producer;
  }
  skip_fields(in);
  if (!in.ok() || !key.ok()) {
    return unreadable(in, Errc::store_corrupt,
                      fmt::format("a row of the table '{}'",
                                  table == tables::kStreams ? "streams" : "stream_producers"));
  }
  return {};
}

}  // namespace baton
