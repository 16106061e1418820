#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "core/stream/catalog.h"

/// The bytes of the catalog's facts and rows.
///
///   StreamCreated    0  stream varint, name blob, partitions varint, settings, at i64
///   StreamUpdated    1  stream varint, settings
///   StreamDeleted    2  stream varint
///   ProducerStarted  3  stream varint, name blob, id varint, epoch varint
///   PartitionSynced  4  stream varint, partition varint, end varint
///
///   streams          key: stream u64 big-endian; value: name blob, settings, created_at i64,
///                    partitions varint, then the synced end of each, varint
///                    key: "next"; value: next stream varint, next producer varint
///   stream_producers key: stream u64 big-endian, name; value: id varint, epoch varint
namespace baton {
namespace {

constexpr std::string_view kNextKey = "next";
/// About what a row takes, for the bound of a delta.
constexpr std::size_t kRowBytes = 128;

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

StreamFact get_fact(Decoder& in) {
  switch (in.u8()) {
    case 0: {
      StreamCreated fact;
      fact.stream = get_stream(in);
      fact.name = get_name(in);
      fact.partitions = get_partitions(in);
      fact.settings = decode_stream_settings(in);
      fact.at = {in.fixed<std::int64_t>()};
      return fact;
    }
    case 1: {
      const StreamId stream = get_stream(in);
      return StreamUpdated{stream, decode_stream_settings(in)};
    }
    case 2: return StreamDeleted{get_stream(in)};
    case 3: {
      ProducerStarted fact;
      fact.stream = get_stream(in);
      fact.name = in.blob();
      const StreamInfo::Producer producer = get_producer(in);
      fact.id = producer.id;
      fact.epoch = producer.epoch;
      return fact;
    }
    case 4: {
      PartitionSynced fact;
      fact.stream = get_stream(in);
      fact.partition = PartitionNumber{
          static_cast<std::uint32_t>(get_bounded(in, limits::kPartitionsPerStreamMax - 1))};
      fact.end = get_offset(in);
      return fact;
    }
    default: in.fail(); return StreamDeleted{};
  }
}

std::string stream_key(StreamId id) {
  std::string key;
  Encoder(key).big_u64(id.value);
  return key;
}

std::string stream_row(const StreamInfo& stream) {
  std::string value;
  Encoder out(value);
  out.blob(stream.name);
  encode(out, stream.settings);
  out.fixed(stream.created_at.ns);
  out.varint(stream.partitions());
  for (const Offset end : stream.synced) out.varint(static_cast<std::uint64_t>(end.value));
  return value;
}

}  // namespace

void encode(Encoder& out, const StreamFact& fact) {
  out.u8(static_cast<std::uint8_t>(fact.index()));
  std::visit([&](const auto& known) { body(out, known); }, fact);
}

Result<StreamFact> decode_stream_fact(Decoder& in) {
  StreamFact fact = get_fact(in);
  if (!in.ok()) return Error{Errc::malformed, "a fact of a stream"};
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

Status StreamCatalog::load(Table table, const Row& row) {
  Decoder in(row.value);
  Decoder key(row.key);
  if (table == tables::kStreams && row.key == kNextKey) {
    next_stream_ = std::max(next_stream_, StreamId{in.varint()});
    const ProducerId next{get_bounded(in, std::numeric_limits<std::int64_t>::max())};
    next_producer_ = std::max(next_producer_, next);
  } else if (table == tables::kStreams) {
    StreamInfo stream;
    stream.id = StreamId{key.big_u64()};
    stream.name = get_name(in);
    stream.settings = decode_stream_settings(in);
    stream.created_at = {in.fixed<std::int64_t>()};
    stream.synced.resize(get_partitions(in));
    for (Offset& end : stream.synced) end = get_offset(in);
    names_[stream.name] = stream.id;
    streams_[stream.id] = std::move(stream);
  } else if (table == tables::kStreamProducers) {
    StreamInfo* const stream = known(StreamId{key.big_u64()});
    const StreamInfo::Producer producer = get_producer(in);
    if (stream != nullptr) stream->producers[std::string(key.rest())] = producer;
  }
  if (!in.finish() || !key.ok()) {
    return Error{Errc::store_corrupt,
                 fmt::format("a row of {} bytes in the table {}", row.value.size(), table.value)};
  }
  return {};
}

}  // namespace baton
