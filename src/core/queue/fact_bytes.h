#pragma once

#include <optional>

#include "base/bytes.h"
#include "core/queue/facts.h"

/// The parts of facts, and the bodies that are equal in formats 1 and 2. Only for facts.cc and
/// facts_1.cc.
namespace baton::queue_bytes {

inline Uuid get_id(Decoder& in) {
  const std::string_view raw = in.raw(16);
  return in.ok() ? Uuid::from_raw(raw) : Uuid{};
}
inline Instant get_instant(Decoder& in) { return {in.fixed<std::int64_t>()}; }
inline std::optional<Instant> get_optional_instant(Decoder& in) {
  const Instant at = get_instant(in);
  return at.ns == 0 ? std::nullopt : std::optional(at);
}
inline LeaseToken get_token(Decoder& in) {
  LeaseToken token;
  token.boot = in.varint();
  token.number = in.varint();
  return token;
}
inline TransferId get_transfer(Decoder& in) {
  TransferId transfer;
  transfer.boot = in.varint();
  transfer.number = in.varint();
  return transfer;
}
inline QueueId get_queue(Decoder& in) { return QueueId{in.varint()}; }
inline Sequence get_sequence(Decoder& in) { return Sequence{in.varint()}; }
inline MessagePlace get_place(Decoder& in) {
  MessagePlace place;
  place.queue = get_queue(in);
  place.id = get_id(in);
  place.key = in.blob();
  place.sequence = get_sequence(in);
  place.due = get_optional_instant(in);
  return place;
}
inline MessageRef get_message(Decoder& in) { return Message::parse(in.blob(), in); }

// Bodies.
void read(Decoder& in, QueueDeleted& fact);
void read(Decoder& in, Leased& fact);
void read(Decoder& in, Acked& fact);
void read(Decoder& in, Extended& fact);
void read(Decoder& in, Ended& fact);
void read(Decoder& in, DeadLettered& fact);
void read(Decoder& in, BecameReady& fact);
void read(Decoder& in, Removed& fact);
void read(Decoder& in, Purged& fact);
void read(Decoder& in, Redriven& fact);
// The part of a transfer's fact that follows the transfer's name in format 2. In the first form of
// format 1 it is the whole body.
void read_rest(Decoder& in, Outgoing& fact);
void read_rest(Decoder& in, OutgoingDone& fact);
void read_rest(Decoder& in, Received& fact);
void read_rest(Decoder& in, ReceivedForgotten& fact);

template <class Fact>
concept Transferred = requires(Fact fact) { fact.transfer; };

}  // namespace baton::queue_bytes
