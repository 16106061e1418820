// Any fact of any kind reads back as it was written.

#include <cstdint>
#include <optional>
#include <string>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "core/queue/facts.h"

namespace baton {
namespace {

std::uint64_t number() {
  // Numbers of every length.
  return *rc::gen::arbitrary<std::uint64_t>() >> *rc::gen::inRange(0U, 64U);
}
std::uint32_t small() { return static_cast<std::uint32_t>(number()); }
std::string text(std::size_t bytes_max) {
  auto bytes = *rc::gen::container<std::string>(rc::gen::arbitrary<char>());
  return bytes.substr(0, bytes_max);
}
std::string name() {
  return "q" + *rc::gen::container<std::string>(rc::gen::elementOf(std::string("abc.-_09")));
}
Uuid id() {
  Uuid made;
  for (std::uint8_t& byte : made.bytes) byte = *rc::gen::arbitrary<std::uint8_t>();
  return made;
}
Instant instant() { return {static_cast<std::int64_t>(number() >> 1U | 1U)}; }
std::optional<Instant> maybe_instant() {
  return *rc::gen::arbitrary<bool>() ? std::optional(instant()) : std::nullopt;
}
LeaseToken token() { return {.boot = number(), .number = number()}; }
TransferId transfer() { return {.boot = number(), .number = number()}; }
MessageRef message() {
  NewMessage sent;
  for (std::uint64_t i = *rc::gen::inRange(1, 20); i > 0; --i) sent.payload += text(1'000);
  sent.fairness_key = text(limits::kFairnessKeyBytes);
  if (*rc::gen::arbitrary<bool>()) sent.headers = {{"h" + text(20), text(200)}};
  if (*rc::gen::arbitrary<bool>()) sent.throttle_keys = {"t" + text(20)};
  return Message::make(sent, id(), instant(), instant());
}
Duration span(Duration most) {
  return Duration{
      static_cast<std::int64_t>(number() % (static_cast<std::uint64_t>(most.count()) + 1))};
}
QueueSettings settings() {
  QueueSettings all;
  if (*rc::gen::arbitrary<bool>()) return all;
  all.visibility_timeout = std::max(limits::kVisibilityTimeoutMin, span(std::chrono::hours{12}));
  all.attempts_max = small() % (limits::kAttemptsMax + 1);
  if (*rc::gen::arbitrary<bool>()) all.dead_letter_queue = name().substr(0, 100);
  all.retry_delay = span(limits::kDelayMax);
  all.retry_delay_max = std::max(all.retry_delay, span(limits::kDelayMax));
  all.release_on_disconnect = *rc::gen::arbitrary<bool>();
  all.payload_bytes_max = 1 + number() % limits::kPayloadBytesMax;
  all.messages_max = number();
  all.bytes_max = number();
  all.retention = span(limits::kRetentionMax);
  all.dedup_window = span(limits::kDedupWindowMax);
  all.dedup_ids_max = number() % (limits::kDedupIdsMax + 1);
  all.fairness_cost = *rc::gen::element(FairnessCost::message, FairnessCost::byte);
  for (int i = *rc::gen::inRange(0, 4); i > 0; --i) {
    all.weights[text(100)] = 1 + small() % limits::kWeightMax;
    all.throttles["t" + text(100)] = {.rate = 0.5 + static_cast<double>(small() % 1'000),
                                      .burst = 1 + number() % limits::kThrottleBurstMax};
  }
  return all;
}
MessagePlace place() {
  return {.queue = QueueId{number()},
          .id = id(),
          .key = text(200),
          .sequence = Sequence{number()},
          .due = maybe_instant()};
}
Leased leased() {
  Leased fact{.queue = QueueId{number()},
              .consumer_id = text(200),
              .deadline = instant(),
              .first = token(),
              .items = {}};
  for (int i = *rc::gen::inRange(0, 20); i > 0; --i) {
    fact.items.push_back({Sequence{number()}, id(), small(), text(100)});
  }
  return fact;
}
std::optional<DedupHash> maybe_hash() {
  if (*rc::gen::arbitrary<bool>()) return std::nullopt;
  return id().bytes;
}

QueueFact fact_of(std::size_t kind) {
  const QueueId queue{number()};
  const Sequence sequence{number()};
  switch (kind) {
    case 0: return QueueCreated{queue, text(200), settings()};
    case 1: return QueueUpdated{queue, settings()};
    case 2: return QueueDeleted{queue};
    case 3: return Enqueued{queue, sequence, maybe_instant(), maybe_hash(), message()};
    case 4: return leased();
    case 5: return Acked{token()};
    case 6: return Extended{token(), instant()};
    case 7: return Ended{token(), *rc::gen::arbitrary<bool>(), maybe_instant(), text(200)};
    case 8: return DeadLettered{token(), queue, sequence, text(200)};
    case 9: return BecameReady{queue, id(), instant(), sequence};
    case 10: return Removed{place(), small(), Removed::Why::cancelled};
    case 11: return Purged{queue};
    case 12: return Redriven{place(), queue, sequence};
    case 13: return Outgoing{transfer(), place(), token(), text(200), text(200)};
    case 14: return OutgoingDone{transfer(), queue, id()};
    case 15: return Received{transfer(), queue, sequence, number(), message()};
    default: return ReceivedForgotten{transfer(), number()};
  }
}

std::string encoded(const QueueFact& fact) {
  std::string bytes;
  Encoder out(bytes);
  encode(out, fact);
  return bytes;
}

// Facts follow each other in the journal, so the decoder must also stop exactly at the end of each.
RC_GTEST_PROP(QueueFacts, AnyFactReadsBackAsItWasWritten, ()) {
  for (std::size_t kind = 0; kind < std::variant_size_v<QueueFact>; ++kind) {
    const QueueFact fact = fact_of(kind);
    RC_ASSERT(fact.index() == kind);
    const std::string bytes = encoded(fact);
    Decoder in(bytes);
    const Result<QueueFact> read = decode_queue_fact(in);
    RC_ASSERT(read.has_value() && in.finish());
    RC_ASSERT(read->index() == kind);
    RC_ASSERT(encoded(*read) == bytes);
    if (kind <= 1) {
      const auto settings_of = [](const QueueFact& of) {
        const auto* created = std::get_if<QueueCreated>(&of);
        return created != nullptr ? created->settings : std::get<QueueUpdated>(of).settings;
      };
      RC_ASSERT(settings_of(*read) == settings_of(fact));
    }
  }
}

}  // namespace
}  // namespace baton
