#include "core/queue/facts.h"

#include <utility>

#include "base/limits.h"
#include "base/tagged.h"

namespace baton {
namespace {

// Facts of transfers were written under these kinds before transfers had names of their own. They
// are still read.
constexpr std::uint8_t kOldBegin = 13;
constexpr std::uint8_t kOldEnd = 17;

// The byte a fact begins with is its place in QueueFact, behind the old kinds greater by their
// number; which is why that list only grows at its end.
template <class Fact, std::size_t I = 0>
consteval std::uint8_t tag_of() {
  if constexpr (std::is_same_v<Fact, std::variant_alternative_t<I, QueueFact>>) {
    return static_cast<std::uint8_t>(I < kOldBegin ? I : I + (kOldEnd - kOldBegin));
  } else {
    return tag_of<Fact, I + 1>();
  }
}

// Facts that can grow: a length, a version, and fields, of which a reader that knows fewer skips
// the rest.
constexpr std::uint8_t kVersion = 1;

template <class Write>
void put_growing(Encoder& out, const Write& write) {
  std::string bytes;
  Encoder inner(bytes);
  inner.u8(kVersion);
  write(inner);
  out.blob(bytes);
}

template <class Read>
void read_growing(Decoder& in, const Read& read) {
  Decoder inner(in.blob());
  if (inner.u8() != kVersion) in.fail();
  read(inner);
  if (!inner.ok()) in.fail();
}

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

Uuid get_id(Decoder& in) {
  const std::string_view raw = in.raw(16);
  return in.ok() ? Uuid::from_raw(raw) : Uuid{};
}
Instant get_instant(Decoder& in) { return {in.fixed<std::int64_t>()}; }
std::optional<Instant> get_optional_instant(Decoder& in) {
  const Instant at = get_instant(in);
  return at.ns == 0 ? std::nullopt : std::optional(at);
}
LeaseToken get_token(Decoder& in) {
  LeaseToken token;
  token.boot = in.varint();
  token.number = in.varint();
  return token;
}
TransferId get_transfer(Decoder& in) {
  TransferId transfer;
  transfer.boot = in.varint();
  transfer.number = in.varint();
  return transfer;
}
QueueId get_queue(Decoder& in) { return QueueId{in.varint()}; }
Sequence get_sequence(Decoder& in) { return Sequence{in.varint()}; }
MessagePlace get_place(Decoder& in) {
  MessagePlace place;
  place.queue = get_queue(in);
  place.id = get_id(in);
  place.key = in.blob();
  place.sequence = get_sequence(in);
  place.due = get_optional_instant(in);
  return place;
}
MessageRef get_message(Decoder& in) {
  const std::string_view bytes = in.blob();
  if (!in.ok()) return nullptr;
  auto parsed = Message::parse(bytes);
  if (!parsed.has_value()) {
    in.fail();
    return nullptr;
  }
  return *std::move(parsed);
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
  put(out, fact.due);
  out.u8(fact.dedup.has_value() ? 1 : 0);
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
  put_growing(out, [&](Encoder& inner) {
    put(inner, fact.transfer);
    put(inner, fact.place);
    put(inner, fact.token);
    inner.blob(fact.to);
    inner.blob(fact.reason);
  });
}
void body(Encoder& out, const OutgoingDone& fact) {
  put_growing(out, [&](Encoder& inner) {
    put(inner, fact.transfer);
    inner.varint(fact.queue.value);
    put(inner, fact.id);
  });
}
void body(Encoder& out, const Received& fact) {
  put_growing(out, [&](Encoder& inner) {
    put(inner, fact.transfer);
    inner.varint(fact.queue.value);
    inner.varint(fact.sequence.value);
    inner.varint(fact.from_shard);
    inner.blob(fact.message->bytes());
  });
}
void body(Encoder& out, const ReceivedForgotten& fact) {
  put_growing(out, [&](Encoder& inner) {
    put(inner, fact.transfer);
    inner.varint(fact.from_shard);
  });
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
void read(Decoder& in, QueueDeleted& fact) { fact.queue = get_queue(in); }
void read(Decoder& in, Enqueued& fact) {
  fact.queue = get_queue(in);
  fact.sequence = get_sequence(in);
  fact.due = get_optional_instant(in);
  if (in.u8() != 0) {
    fact.dedup.emplace();
    for (std::uint8_t& byte : *fact.dedup) byte = in.u8();
  }
  fact.message = get_message(in);
}
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

// The fields of transfers that both forms have, without the names.
void read_fields(Decoder& in, Outgoing& fact) {
  fact.place = get_place(in);
  fact.token = get_token(in);
  fact.to = in.blob();
  fact.reason = in.blob();
}
void read_fields(Decoder& in, OutgoingDone& fact) {
  fact.queue = get_queue(in);
  fact.id = get_id(in);
}
void read_fields(Decoder& in, Received& fact) {
  fact.queue = get_queue(in);
  fact.sequence = get_sequence(in);
  fact.from_shard = in.varint();
  fact.message = get_message(in);
}
void read_fields(Decoder& in, ReceivedForgotten& fact) { fact.from_shard = in.varint(); }

template <class Fact>
concept Transferred = requires(Fact fact) { fact.transfer; };

template <Transferred Fact>
void read(Decoder& in, Fact& fact) {
  read_growing(in, [&](Decoder& inner) {
    fact.transfer = get_transfer(inner);
    read_fields(inner, fact);
  });
}

void read_old(Decoder& in, Outgoing& fact) {
  read_fields(in, fact);
  fact.transfer = TransferId::of_message(fact.place.id);
}
void read_old(Decoder& in, OutgoingDone& fact) {
  read_fields(in, fact);
  fact.transfer = TransferId::of_message(fact.id);
}
void read_old(Decoder& in, Received& fact) {
  read_fields(in, fact);
  if (fact.message != nullptr) fact.transfer = TransferId::of_message(fact.message->id());
}
void read_old(Decoder& in, ReceivedForgotten& fact) {
  read_fields(in, fact);
  fact.transfer = TransferId::of_message(get_id(in));
}

}  // namespace

void encode(Encoder& out, const QueueFact& fact) {
  std::visit(
      [&](const auto& happened) {
        out.u8(tag_of<std::decay_t<decltype(happened)>>());
        body(out, happened);
      },
      fact);
}

Result<QueueFact> decode_queue_fact(Decoder& in) {
  QueueFact fact;
  const std::uint8_t tag = in.u8();
  const bool old = tag >= kOldBegin && tag < kOldEnd;
  const bool behind = tag >= kOldEnd;
  const auto place = static_cast<std::uint8_t>(behind ? tag - (kOldEnd - kOldBegin) : tag);
  const bool known = read_tagged(place, fact, [&](auto& one) {
    if constexpr (Transferred<std::decay_t<decltype(one)>>) {
      if (old) return read_old(in, one);
    }
    read(in, one);
  });
  if (!known || !in.ok()) return Error{Errc::malformed, "a fact of the queues"};
  return fact;
}

}  // namespace baton
