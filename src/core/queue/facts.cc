#include "core/queue/facts.h"

#include <array>
#include <utility>

#include "base/growing.h"
#include "core/queue/fact_bytes.h"

namespace baton {
namespace queue_bytes {

void read(Decoder& in, QueueDeleted& fact) { fact.queue = get_queue(in); }
void read(Decoder& in, Leased& fact) {
  fact.queue = get_queue(in);
  fact.consumer_id = in.blob();
  fact.deadline = get_instant(in);
  fact.first = get_token(in);
  fact.items.resize(in.count(19));
  for (Leased::Item& item : fact.items) {
    item.sequence = get_sequence(in);
    item.id = get_id(in);
    item.bytes = static_cast<std::uint32_t>(in.varint());
    item.key = in.blob();
  }
}
void read(Decoder& in, Acked& fact) { fact.token = get_token(in); }
void read(Decoder& in, Extended& fact) {
  fact.token = get_token(in);
  fact.deadline = get_instant(in);
}
void read(Decoder& in, Ended& fact) {
  fact.token = get_token(in);
  fact.counted = in.u8() != 0;
  fact.due = get_optional_instant(in);
  fact.reason = in.blob();
}
void read(Decoder& in, DeadLettered& fact) {
  fact.token = get_token(in);
  fact.to = get_queue(in);
  fact.sequence = get_sequence(in);
  fact.reason = in.blob();
}
void read(Decoder& in, BecameReady& fact) {
  fact.queue = get_queue(in);
  fact.id = get_id(in);
  fact.due = get_instant(in);
  fact.sequence = get_sequence(in);
}
void read(Decoder& in, Removed& fact) {
  fact.place = get_place(in);
  fact.bytes = static_cast<std::uint32_t>(in.varint());
  fact.why = static_cast<Removed::Why>(in.u8());
}
void read(Decoder& in, Purged& fact) { fact.queue = get_queue(in); }
void read(Decoder& in, Redriven& fact) {
  fact.place = get_place(in);
  fact.to = get_queue(in);
  fact.sequence = get_sequence(in);
}

void read_rest(Decoder& in, Outgoing& fact) {
  fact.place = get_place(in);
  fact.token = get_token(in);
  fact.to = in.blob();
  fact.reason = in.blob();
}
void read_rest(Decoder& in, OutgoingDone& fact) {
  fact.queue = get_queue(in);
  fact.id = get_id(in);
}
void read_rest(Decoder& in, Received& fact) {
  fact.queue = get_queue(in);
  fact.sequence = get_sequence(in);
  fact.from_shard = in.varint();
  fact.message = get_message(in);
}
void read_rest(Decoder& in, ReceivedForgotten& fact) { fact.from_shard = in.varint(); }

}  // namespace queue_bytes

namespace {

using namespace queue_bytes;  // NOLINT(google-build-using-namespace)

// The number of a kind is its index in QueueFact, so that list only grows at its end. Kinds after
// the first kFirstKinds say what a reader that does not know them must do.
constexpr std::size_t kFirstKinds = 17;
constexpr std::array<std::string_view, std::variant_size_v<QueueFact>> kNames{
    "QueueCreated", "QueueUpdated", "QueueDeleted", "Enqueued",    "Leased",           "Acked",
    "Extended",     "Ended",        "DeadLettered", "BecameReady", "Removed",          "Purged",
    "Redriven",     "Outgoing",     "OutgoingDone", "Received",    "ReceivedForgotten"};

// What an Enqueued fact has besides the message.
constexpr unsigned kHasDue = 1;
constexpr unsigned kHasDedup = 2;

void put(Encoder& out, Uuid id) { out.raw(id.raw()); }
void put(Encoder& out, Instant at) { out.fixed(at.ns); }
void put(Encoder& out, LeaseToken token) {
  out.varint(token.boot);
  out.varint(token.number);
}
void put(Encoder& out, TransferId transfer) {
  out.varint(transfer.boot);
  out.varint(transfer.number);
}
void put(Encoder& out, const std::optional<Instant>& at) { put(out, at.value_or(Instant{0})); }
void put(Encoder& out, const MessagePlace& place) {
  out.varint(place.queue.value);
  put(out, place.id);
  out.blob(place.key);
  out.varint(place.sequence.value);
  put(out, place.due);
}

void body(Encoder& out, const QueueCreated& fact) {
  out.varint(fact.queue.value);
  out.blob(fact.name);
  encode(out, fact.settings);
}
void body(Encoder& out, const QueueUpdated& fact) {
  out.varint(fact.queue.value);
  encode(out, fact.settings);
}
void body(Encoder& out, const QueueDeleted& fact) { out.varint(fact.queue.value); }
void body(Encoder& out, const Enqueued& fact) {
  out.varint(fact.queue.value);
  out.varint(fact.sequence.value);
  out.u8(static_cast<std::uint8_t>((fact.due.has_value() ? kHasDue : 0U) |
                                   (fact.dedup.has_value() ? kHasDedup : 0U)));
  if (fact.due.has_value()) put(out, *fact.due);
  if (fact.dedup.has_value()) {
    for (const std::uint8_t byte : *fact.dedup) out.u8(byte);
  }
  out.blob(fact.message->bytes());
}
void body(Encoder& out, const Leased& fact) {
  out.varint(fact.queue.value);
  out.blob(fact.consumer_id);
  put(out, fact.deadline);
  put(out, fact.first);
  out.varint(fact.items.size());
  for (const Leased::Item& item : fact.items) {
    out.varint(item.sequence.value);
    put(out, item.id);
    out.varint(item.bytes);
    out.blob(item.key);
  }
}
void body(Encoder& out, const Acked& fact) { put(out, fact.token); }
void body(Encoder& out, const Extended& fact) {
  put(out, fact.token);
  put(out, fact.deadline);
}
void body(Encoder& out, const Ended& fact) {
  put(out, fact.token);
  out.u8(fact.counted ? 1 : 0);
  put(out, fact.due);
  out.blob(fact.reason);
}
void body(Encoder& out, const DeadLettered& fact) {
  put(out, fact.token);
  out.varint(fact.to.value);
  out.varint(fact.sequence.value);
  out.blob(fact.reason);
}
void body(Encoder& out, const BecameReady& fact) {
  out.varint(fact.queue.value);
  put(out, fact.id);
  put(out, fact.due);
  out.varint(fact.sequence.value);
}
void body(Encoder& out, const Removed& fact) {
  put(out, fact.place);
  out.varint(fact.bytes);
  out.u8(static_cast<std::uint8_t>(fact.why));
}
void body(Encoder& out, const Purged& fact) { out.varint(fact.queue.value); }
void body(Encoder& out, const Redriven& fact) {
  put(out, fact.place);
  out.varint(fact.to.value);
  out.varint(fact.sequence.value);
}
void body(Encoder& out, const Outgoing& fact) {
  put(out, fact.transfer);
  put(out, fact.place);
  put(out, fact.token);
  out.blob(fact.to);
  out.blob(fact.reason);
}
void body(Encoder& out, const OutgoingDone& fact) {
  put(out, fact.transfer);
  out.varint(fact.queue.value);
  put(out, fact.id);
}
void body(Encoder& out, const Received& fact) {
  put(out, fact.transfer);
  out.varint(fact.queue.value);
  out.varint(fact.sequence.value);
  out.varint(fact.from_shard);
  out.blob(fact.message->bytes());
}
void body(Encoder& out, const ReceivedForgotten& fact) {
  put(out, fact.transfer);
  out.varint(fact.from_shard);
}

/// The approximate size of the body, in bytes; exact enough where the body is large.
std::size_t about(const QueueFact& fact) {
  if (const auto* enqueued = std::get_if<Enqueued>(&fact)) {
    const std::size_t message = enqueued->message->bytes().size();
    return varint_bytes(enqueued->queue.value) + varint_bytes(enqueued->sequence.value) + 1 +
           (enqueued->due.has_value() ? sizeof(std::int64_t) : 0) +
           (enqueued->dedup.has_value() ? sizeof(DedupHash) : 0) + varint_bytes(message) + message;
  }
  if (const auto* leased = std::get_if<Leased>(&fact)) return 32 * leased->items.size();
  const auto* received = std::get_if<Received>(&fact);
  return received != nullptr ? received->message->bytes().size() : 0;
}

void read(Decoder& in, QueueCreated& fact) {
  fact.queue = get_queue(in);
  fact.name = in.blob();
  fact.settings = decode_settings(in);
}
void read(Decoder& in, QueueUpdated& fact) {
  fact.queue = get_queue(in);
  fact.settings = decode_settings(in);
}
void read(Decoder& in, Enqueued& fact) {
  fact.queue = get_queue(in);
  fact.sequence = get_sequence(in);
  const unsigned has = in.u8();
  if ((has & ~(kHasDue | kHasDedup)) != 0) in.fail();
  if ((has & kHasDue) != 0) fact.due = get_instant(in);
  if ((has & kHasDedup) != 0) {
    fact.dedup.emplace();
    for (std::uint8_t& byte : *fact.dedup) byte = in.u8();
  }
  fact.message = get_message(in);
}
template <Transferred Fact>
void read(Decoder& in, Fact& fact) {
  fact.transfer = get_transfer(in);
  read_rest(in, fact);
}

}  // namespace

constinit const FactSet kQueueFacts{.owner = FactOwner{1}, .name = "queues", .kinds = kNames};

void encode(Encoder& out, const QueueFact& fact) {
  write_fact<kFirstKinds>(out, kQueueFacts, fact, about(fact),
                          [&](const auto& happened) { body(out, happened); });
}

Result<QueueFact> decode_queue_fact(const FactFrame& frame) {
  return read_fact<QueueFact>(kQueueFacts, frame,
                              [](Decoder& in, auto& happened) { read(in, happened); });
}

Result<QueueFact> decode_queue_fact(Decoder& in) { return decode_queue_fact(read_frame(in)); }

}  // namespace baton
