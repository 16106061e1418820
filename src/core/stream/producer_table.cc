#include "core/stream/producer_table.h"

#include <algorithm>
#include <span>

#include <fmt/format.h>

#include "base/assert.h"
#include "base/bytes.h"
#include "base/crc32c.h"

// A snapshot, version 1. Numbers are little-endian.
//
//    0  8 bytes  "BATONPRD"
//    8  uint32   format version: 1
//   12  int64    the partition's next offset when it was taken
//   20  varint   number of producers, in order of their ids, each:
//                  int64 id, int16 epoch, int64 last seen (nanoseconds since 1970),
//                  u8 number of batches, oldest first, each:
//                    int32 first sequence, int32 last sequence, int64 base offset
//       uint32   CRC-32C of everything before it

namespace baton {
namespace {

constexpr std::string_view kMagic = "BATONPRD";
constexpr std::uint32_t kVersion = 1;
constexpr std::size_t kVersionEnd = 12;
constexpr std::size_t kProducerBytesMin = 8 + 2 + 8 + 1;
// Sequences are numbers modulo 2^31: what is less than half of that ahead lies ahead.
constexpr std::uint32_t kSequenceMask = 0x7fffffffU;
constexpr std::uint32_t kSequenceHalf = 0x40000000U;
constexpr Sequence32 kFirst{0};

constexpr std::array<std::string_view, 6> kVerdictNames{"append", "duplicate",   "old_duplicate",
                                                        "gap",    "stale_epoch", "table_full"};

constexpr Sequence32 sequence_after(Sequence32 sequence, std::int32_t count) {
  const std::uint32_t sum =
      static_cast<std::uint32_t>(sequence.value) + static_cast<std::uint32_t>(count);
  return Sequence32{static_cast<std::int32_t>(sum & kSequenceMask)};
}

/// True when `sequence` comes before `other` on the circle.
constexpr bool lies_before(Sequence32 sequence, Sequence32 other) {
  const std::uint32_t distance =
      (static_cast<std::uint32_t>(sequence.value) - static_cast<std::uint32_t>(other.value)) &
      kSequenceMask;
  return distance >= kSequenceHalf;
}

Sequence32 expected_next(const ProducerTable::Producer& producer) {
  if (producer.size == 0) return kFirst;
  return sequence_after(producer.batches[producer.size - 1U].last, 1);
}

void remember(ProducerTable::Producer& producer, const ProducerTable::StoredBatch& batch) {
  auto& batches = producer.batches;
  if (producer.size == batches.size()) {
    std::ranges::move(batches.begin() + 1, batches.end(), batches.begin());
    --producer.size;
  }
  batches[producer.size++] = batch;
}

void encode_producer(Encoder& out, ProducerId id, const ProducerTable::Producer& producer) {
  out.fixed(id.value);
  out.fixed(producer.epoch.value);
  out.fixed(producer.last_seen.ns);
  out.u8(producer.size);
  for (std::size_t i = 0; i < producer.size; ++i) {
    out.fixed(producer.batches[i].first.value);
    out.fixed(producer.batches[i].last.value);
    out.fixed(producer.batches[i].base_offset.value);
  }
}

ProducerTable::Producer decode_producer(Decoder& in) {
  ProducerTable::Producer producer;
  producer.epoch = ProducerEpoch{in.fixed<std::int16_t>()};
  producer.last_seen = Instant{in.fixed<std::int64_t>()};
  const std::uint8_t size = in.u8();
  if (size > producer.batches.size() || producer.epoch.value < 0) in.fail();
  for (std::size_t i = 0; i < size && in.ok(); ++i) {
    ProducerTable::StoredBatch batch;
    batch.first = Sequence32{in.fixed<std::int32_t>()};
    batch.last = Sequence32{in.fixed<std::int32_t>()};
    batch.base_offset = Offset{in.fixed<std::int64_t>()};
    if (batch.first.value < 0 || batch.last.value < 0 || batch.base_offset.value < 0) in.fail();
    producer.batches[i] = batch;
  }
  producer.size = size;
  return producer;
}

ProducerTable::Answer answer(ProducerVerdict verdict, std::string text = {}) {
  return {verdict, Offset{-1}, std::move(text)};
}

ProducerTable::Answer gap(const ProducerStamp& stamp, Sequence32 expected, std::string_view why) {
  return answer(ProducerVerdict::gap,
                fmt::format("producer {} sent sequence {}, but {} is expected{}", stamp.id.value,
                            stamp.sequence.value, expected.value, why));
}

ProducerTable::Answer check_known(const ProducerTable::Producer& known, const ProducerStamp& stamp,
                                  std::int32_t count) {
  if (stamp.epoch < known.epoch) {
    return answer(ProducerVerdict::stale_epoch,
                  fmt::format("producer {} sent epoch {}, but it has started again with epoch {}",
                              stamp.id.value, stamp.epoch.value, known.epoch.value));
  }
  if (stamp.epoch > known.epoch) {
    if (stamp.sequence == kFirst) return answer(ProducerVerdict::append);
    return gap(stamp, kFirst, ", since its epoch is new");
  }
  const Sequence32 last = sequence_after(stamp.sequence, count - 1);
  for (const ProducerTable::StoredBatch& batch : std::span(known.batches).first(known.size)) {
    if (batch.first == stamp.sequence && batch.last == last) {
      return {ProducerVerdict::duplicate, batch.base_offset, {}};
    }
  }
  const Sequence32 expected = expected_next(known);
  if (stamp.sequence == expected) return answer(ProducerVerdict::append);
  if (!lies_before(stamp.sequence, expected)) return gap(stamp, expected, "");
  // Only what is stored to its last record is a repeat; else new records would be lost with it.
  if (lies_before(last, expected)) return answer(ProducerVerdict::old_duplicate);
  return gap(stamp, expected, ": it overlaps what is stored");
}

Error bad_snapshot(std::string_view why) {
  return {Errc::malformed, fmt::format("producer snapshot: {}", why)};
}

Status check_frame(std::string_view bytes) {
  if (bytes.size() < kVersionEnd + sizeof(std::uint32_t) || !bytes.starts_with(kMagic)) {
    return bad_snapshot("it does not begin like one");
  }
  // First of all: a damaged version must not be taken for a newer one.
  const std::size_t body = bytes.size() - sizeof(std::uint32_t);
  if (Decoder(bytes.substr(body)).fixed<std::uint32_t>() != crc32c(bytes.substr(0, body))) {
    return bad_snapshot("the checksum does not fit");
  }
  const auto version = Decoder(bytes.substr(kMagic.size())).fixed<std::uint32_t>();
  if (version > kVersion) {
    return Error{
        Errc::store_too_new,
        fmt::format("producer snapshot: version {}; the latest known is {}", version, kVersion)};
  }
  if (version != kVersion) return bad_snapshot(fmt::format("version {}", version));
  return {};
}

}  // namespace

std::string_view producer_verdict_name(ProducerVerdict verdict) {
  const auto number = static_cast<std::size_t>(verdict);
  return number < kVerdictNames.size() ? kVerdictNames[number] : "unknown";
}

ProducerTable::Answer ProducerTable::check(const ProducerStamp& stamp, std::int32_t count) const {
  const auto found = producers_.find(stamp.id);
  if (found != producers_.end()) return check_known(found->second, stamp, count);
  if (stamp.sequence != kFirst) return gap(stamp, kFirst, ": it is not known here, or no longer");
  if (producers_.size() < producers_max_) return answer(ProducerVerdict::append);
  return answer(
      ProducerVerdict::table_full,
      fmt::format("the partition remembers {} producers, which is the limit", producers_max_));
}

void ProducerTable::apply(const BatchHeader& batch, Instant now) {
  if (!batch.idempotent()) return;
  Producer& producer = producers_[batch.producer.id];
  if (producer.epoch != batch.producer.epoch) producer.size = 0;
  producer.epoch = batch.producer.epoch;
  producer.last_seen = std::max(producer.last_seen, now);
  remember(producer, {.first = batch.producer.sequence,
                      .last = sequence_after(batch.producer.sequence, batch.last_offset_delta),
                      .base_offset = batch.base_offset});
}

void ProducerTable::fence(ProducerId id, ProducerEpoch epoch, Instant now) {
  const auto found = producers_.find(id);
  if (found != producers_.end() && found->second.epoch >= epoch) return;
  // Even of one that is not known here: its old self might still begin.
  producers_[id] = Producer{.epoch = epoch, .last_seen = now, .size = 0, .batches = {}};
}

std::size_t ProducerTable::expire(Instant before) {
  return std::erase_if(producers_,
                       [&](const auto& entry) { return entry.second.last_seen < before; });
}

std::optional<ProducerTable::Producer> ProducerTable::find(ProducerId id) const {
  const auto found = producers_.find(id);
  if (found == producers_.end()) return std::nullopt;
  return found->second;
}

void ProducerTable::restore(ProducerId id, const std::optional<Producer>& producer) {
  if (producer) {
    producers_[id] = *producer;
  } else {
    producers_.erase(id);
  }
}

std::string ProducerTable::encode_snapshot(Offset next) const {
  std::string bytes;
  Encoder out(bytes);
  out.raw(kMagic);
  out.fixed(kVersion);
  out.fixed(next.value);
  out.varint(producers_.size());
  for (const auto& [id, producer] : producers_) encode_producer(out, id, producer);
  out.fixed(crc32c(bytes));
  return bytes;
}

Result<ProducerTable::Snapshot> ProducerTable::decode_snapshot(std::string_view bytes) {
  BATON_TRY_STATUS(check_frame(bytes));
  Decoder in(bytes.substr(kVersionEnd, bytes.size() - kVersionEnd - sizeof(std::uint32_t)));
  Snapshot snapshot{.next = Offset{in.fixed<std::int64_t>()}, .table = ProducerTable{}};
  if (snapshot.next.value < 0) in.fail();
  const std::uint64_t count = in.count(kProducerBytesMin);
  for (std::uint64_t i = 0; i < count && in.ok(); ++i) {
    const ProducerId id{in.fixed<std::int64_t>()};
    const auto& known = snapshot.table.producers_;
    if (id.value < 0 || (!known.empty() && known.rbegin()->first >= id)) in.fail();
    const Producer producer = decode_producer(in);
    if (in.ok()) snapshot.table.producers_.emplace(id, producer);
  }
  if (!in.finish()) return bad_snapshot("its length or a value is wrong");
  return snapshot;
}

}  // namespace baton
