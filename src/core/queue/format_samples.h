#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/queue/facts.h"
#include "core/queue/rows.h"

/// For tests only: one value of each kind that is written to disk, with no two numbers alike. They
/// are the fuzzers' first corpus and the golden bytes of tests/compat.
namespace baton::format_samples {

using Samples = std::map<std::string, std::string>;

inline constexpr Instant kEnqueued{1'700'000'000'000'000'001};
inline constexpr Instant kDue{1'700'000'000'000'000'002};
inline constexpr Instant kDeadline{1'700'000'000'000'000'003};

inline Uuid id() {
  return Uuid::from_raw({"\x01\x8b\xcf\xe5\x68\x00\x71\x02\x83\x04\x05\x06\x07\x08\x09\x0a", 16});
}

inline NewMessage new_message() {
  NewMessage sent;
  sent.payload = std::string("pay\0load", 8);
  sent.headers = {{"content-type", "text"}, {"empty", ""}};
  sent.fairness_key = "tenant";
  sent.throttle_keys = {"api", "db"};
  return sent;
}

inline MessageRef stored_message() { return Message::make(new_message(), id(), kEnqueued, kDue); }

inline QueueSettings settings() {
  QueueSettings all;
  all.visibility_timeout = Duration{4'000'000'000};
  all.attempts_max = 5;
  all.dead_letter_queue = "graveyard";
  all.retry_delay = Duration{6'000'000};
  all.retry_delay_max = Duration{7'000'000'000};
  all.release_on_disconnect = false;
  all.payload_bytes_max = 80'000;
  all.messages_max = 9'000;
  all.bytes_max = 10'000'000;
  all.retention = Duration{11'000'000'000};
  all.dedup_window = Duration{12'000'000'000};
  all.dedup_ids_max = 13'000;
  all.fairness_cost = FairnessCost::byte;
  all.weights = {{"a", 14}, {"b", 15}};
  all.throttles = {{"api", {.rate = 16.5, .burst = 17}}};
  return all;
}

inline MessagePlace place(bool delayed) {
  return {.queue = QueueId{21},
          .id = id(),
          .key = "tenant",
          .sequence = Sequence{22},
          .due = delayed ? std::optional(kDue) : std::nullopt};
}

inline TransferId transfer() { return {.boot = 301, .number = 80'000}; }

inline std::map<std::string, QueueFact> facts() {
  const LeaseToken token{.boot = 300, .number = 70'000};
  DedupHash hash{};
  for (std::size_t i = 0; i < hash.size(); ++i) hash[i] = static_cast<std::uint8_t>(0xf0U + i);
  return {
      {"00_queue_created", QueueCreated{QueueId{21}, "orders", settings()}},
      {"01_queue_updated", QueueUpdated{QueueId{21}, QueueSettings{}}},
      {"02_queue_deleted", QueueDeleted{QueueId{21}}},
      {"03_enqueued", Enqueued{QueueId{21}, Sequence{22}, {}, {}, stored_message()}},
      {"03_enqueued_delayed_dedup",
       Enqueued{QueueId{21}, Sequence{22}, kDue, hash, stored_message()}},
      {"04_leased", Leased{QueueId{21},
                           "consumer-1",
                           kDeadline,
                           token,
                           {{Sequence{22}, id(), 23, "tenant"}, {Sequence{24}, Uuid{}, 25, ""}}}},
      {"05_acked", Acked{token}},
      {"06_extended", Extended{token, kDeadline}},
      {"07_ended", Ended{token, false, {}, ""}},
      {"07_ended_counted_due", Ended{token, true, kDue, "no luck"}},
      {"08_dead_lettered", DeadLettered{token, QueueId{26}, Sequence{27}, "no luck"}},
      {"09_became_ready", BecameReady{QueueId{21}, id(), kDue, Sequence{28}}},
      {"10_removed_expired", Removed{place(false), 29, Removed::Why::expired}},
      {"10_removed_cancelled", Removed{place(true), 29, Removed::Why::cancelled}},
      {"11_purged", Purged{QueueId{21}}},
      {"12_redriven", Redriven{place(false), QueueId{30}, Sequence{31}}},
      {"13_outgoing", Outgoing{transfer(), place(false), token, "elsewhere", "no luck"}},
      {"14_outgoing_done", OutgoingDone{transfer(), QueueId{21}, id()}},
      {"15_received", Received{transfer(), QueueId{21}, Sequence{22}, 3, stored_message()}},
      {"16_received_forgotten", ReceivedForgotten{transfer(), 3}},
  };
}

inline std::string encoded(const QueueFact& fact) {
  std::string bytes;
  Encoder out(bytes);
  encode(out, fact);
  return bytes;
}

inline Samples fact_bytes() {
  Samples samples;
  for (const auto& [name, fact] : facts()) samples[name] = encoded(fact);
  return samples;
}

inline Samples row_bytes() {
  const LeaseToken token{.boot = 300, .number = 70'000};
  const auto failure = std::make_shared<const FailureNote>(
      FailureNote{.first = kEnqueued, .last = kDeadline, .reason = "no luck"});
  const MessageRow message{.sequence = Sequence{22},
                           .attempts = 0,
                           .failure = {},
                           .to = {},
                           .message = stored_message()};
  MessageRow failed = message;
  failed.attempts = 2;
  failed.failure = failure;
  failed.to = "elsewhere";
  MessageRow leaving = failed;
  leaving.transfer = transfer();
  std::string state;
  Encoder(state).varint(300);
  return {
      {"messages.key", message_key(QueueId{21}, "tenant", Sequence{22})},
      {"messages.value", encode_row(message)},
      {"outgoing.key", queue_and_id(QueueId{21}, id().raw())},
      {"outgoing.value", encode_row(failed)},
      {"outgoing.value.2", encode_row(leaving)},
      {"keys.key", fairness_key_row(QueueId{21}, "tenant")},
      {"keys.value", encode_row(KeyRow{.head = Sequence{22}, .count = 3'000})},
      {"ids.value", encode_row(IdRow{tables::kDelayed, time_key(kDue, QueueId{21}, id())})},
      {"leases.key", queue_and_id(QueueId{21}, id().raw())},
      {"leases.value", encode_row(LeaseRow{.consumer_id = "consumer-1",
                                           .deadline = kDeadline,
                                           .token = token,
                                           .bytes = 23,
                                           .key = "tenant",
                                           .sequence = Sequence{22}})},
      {"lease_expiry.key", time_key(kDeadline, QueueId{21}, id())},
      {"delayed.key", time_key(kDue, QueueId{21}, id())},
      {"dedup.value", encode_row(DedupRow{.id = id(), .seen = kEnqueued})},
      {"queues.value", encode_row(QueueRow{.id = QueueId{21},
                                           .next_sequence = Sequence{32},
                                           .purged_before = Sequence{33},
                                           .bytes = 34'000,
                                           .delayed = 35,
                                           .settings = settings()})},
      {"received.key", received_key(3, TransferId::of_message(id()))},
      {"received.key.2", received_key(3, transfer())},
      {"state.next_queue_id", state},
  };
}

inline Samples message_bytes() {
  const auto bare = Message::make({}, id(), kEnqueued, Instant::never());
  return {{"full", std::string(stored_message()->bytes())}, {"bare", std::string(bare->bytes())}};
}

}  // namespace baton::format_samples
