#include <cstdint>

#include "base/tagged.h"
#include "core/queue/fact_bytes.h"

/// Reads facts of format 1, which is no longer written: u8 kind, then the body, without a length.
namespace baton {
namespace {

using namespace queue_bytes;  // NOLINT(google-build-using-namespace)

// Transfers had these kinds before they had names. Their later kinds have a length and a version.
constexpr std::uint8_t kNamelessBegin = 13;
constexpr std::uint8_t kNamelessEnd = 17;
constexpr std::uint8_t kTransferVersion = 1;

void read_1(Decoder& in, QueueCreated& fact) {
  fact.queue = get_queue(in);
  fact.name = in.blob();
  fact.settings = decode_settings_1(in);
}
void read_1(Decoder& in, QueueUpdated& fact) {
  fact.queue = get_queue(in);
  fact.settings = decode_settings_1(in);
}
void read_1(Decoder& in, Enqueued& fact) {
  fact.queue = get_queue(in);
  fact.sequence = get_sequence(in);
  fact.due = get_optional_instant(in);
  if (in.u8() != 0) {
    fact.dedup.emplace();
    for (std::uint8_t& byte : *fact.dedup) byte = in.u8();
  }
  fact.message = get_message(in);
}
template <Transferred Fact>
void read_1(Decoder& in, Fact& fact) {
  Decoder inner(in.blob());
  if (inner.u8() != kTransferVersion) in.fail();
  fact.transfer = get_transfer(inner);
  read_rest(inner, fact);
  if (!inner.ok()) in.fail();
}
template <class Fact>
void read_1(Decoder& in, Fact& fact) {
  queue_bytes::read(in, fact);
}

// Transfers without a name are named by their message's id.
void read_nameless(Decoder& in, Outgoing& fact) {
  read_rest(in, fact);
  fact.transfer = TransferId::of_message(fact.place.id);
}
void read_nameless(Decoder& in, OutgoingDone& fact) {
  read_rest(in, fact);
  fact.transfer = TransferId::of_message(fact.id);
}
void read_nameless(Decoder& in, Received& fact) {
  read_rest(in, fact);
  if (fact.message != nullptr) fact.transfer = TransferId::of_message(fact.message->id());
}
void read_nameless(Decoder& in, ReceivedForgotten& fact) {
  read_rest(in, fact);
  fact.transfer = TransferId::of_message(get_id(in));
}

}  // namespace

Result<QueueFact> decode_queue_fact_1(Decoder& in) {
  QueueFact fact;
  const std::uint8_t kind = in.u8();
  const bool nameless = kind >= kNamelessBegin && kind < kNamelessEnd;
  const int shift = kind >= kNamelessEnd ? kNamelessEnd - kNamelessBegin : 0;
  const bool known = read_tagged(static_cast<std::uint8_t>(kind - shift), fact, [&](auto& one) {
    if constexpr (Transferred<std::decay_t<decltype(one)>>) {
      if (nameless) return read_nameless(in, one);
    }
    read_1(in, one);
  });
  if (!known || !in.ok()) return Error{Errc::malformed, "a fact of the queues, format 1"};
  return fact;
}

}  // namespace baton
