// Golden bytes of everything the queues write to disk. A broker must read what any earlier one
// wrote, so the lines of queue_v1.txt never change; a new form gets new lines. BATON_RECORD=1
// appends those that are missing.

#include <gtest/gtest.h>

#include <map>
#include <string>

#include "compat/golden.h"
#include "core/queue/format_samples.h"
#include "paths.h"

namespace baton::format_samples {
namespace {

using golden::to_hex;

const std::string kFile = std::string(paths::kTests) + "/compat/queue_v1.txt";

Samples today() {
  Samples all;
  for (const auto& [name, bytes] : fact_bytes()) all["fact." + name] = bytes;
  for (const auto& [name, bytes] : row_bytes()) all["row." + name] = bytes;
  for (const auto& [name, bytes] : message_bytes()) all["message." + name] = bytes;
  return all;
}

class QueueGolden : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { golden::record_missing(kFile, today()); }
  QueueGolden() : bytes_(golden::read(kFile)) {}

  const std::string& bytes(const std::string& name) { return bytes_.at(name); }

 private:
  Samples bytes_;
};

TEST_F(QueueGolden, EveryKindHasItsLineAndIsWrittenLikeIt) {
  const golden::Samples known = golden::read(kFile);
  for (const auto& [name, written] : today()) {
    ASSERT_TRUE(known.contains(name)) << name;
    EXPECT_EQ(to_hex(written), to_hex(known.at(name))) << name;
  }
}

TEST_F(QueueGolden, OldFactsAreReadable) {
  for (const auto& [name, fact] : facts()) {
    Decoder in(bytes("fact." + name));
    const Result<QueueFact> decoded = decode_queue_fact(in);
    ASSERT_TRUE(decoded.has_value() && in.finish()) << name;
    EXPECT_EQ(decoded->index(), fact.index()) << name;
    EXPECT_EQ(encoded(*decoded), encoded(fact)) << name;
  }
}

// Field by field, where two fields of one type could change places unnoticed.
TEST_F(QueueGolden, OldFactsMeanWhatTheyMeant) {
  Decoder in(bytes("fact.03_enqueued_delayed_dedup"));
  const auto enqueued = std::get<Enqueued>(*decode_queue_fact(in));
  EXPECT_EQ(enqueued.queue, QueueId{21});
  EXPECT_EQ(enqueued.sequence, Sequence{22});
  EXPECT_EQ(enqueued.due, kDue);
  ASSERT_TRUE(enqueued.dedup.has_value());
  EXPECT_EQ(enqueued.dedup->front(), 0xf0U);
  EXPECT_EQ(enqueued.message->payload(), new_message().payload);
  Decoder lease(bytes("fact.04_leased"));
  const auto leased = std::get<Leased>(*decode_queue_fact(lease));
  EXPECT_EQ(leased.consumer_id, "consumer-1");
  EXPECT_EQ(leased.deadline, kDeadline);
  EXPECT_EQ(leased.first, (LeaseToken{.boot = 300, .number = 70'000}));
  ASSERT_EQ(leased.items.size(), 2U);
  EXPECT_EQ(leased.items[0].id, id());
  EXPECT_EQ(leased.items[0].bytes, 23U);
  EXPECT_EQ(leased.items[0].key, "tenant");
}

// Before transfers had names of their own they went by the message's id: the other shard may
// remember them so.
TEST_F(QueueGolden, TransfersOfTheOldFormAreNamedByTheirMessage) {
  const TransferId named = TransferId::of_message(id());
  const auto read = [&](const std::string& name) {
    Decoder in(bytes(name));
    const Result<QueueFact> fact = decode_queue_fact(in);
    EXPECT_TRUE(fact.has_value() && in.finish()) << name;
    return *fact;
  };
  const auto outgoing = std::get<Outgoing>(read("fact.13_outgoing"));
  EXPECT_EQ(outgoing.transfer, named);
  EXPECT_EQ(outgoing.place.id, id());
  EXPECT_EQ(outgoing.place.key, "tenant");
  EXPECT_EQ(outgoing.token, (LeaseToken{.boot = 300, .number = 70'000}));
  EXPECT_EQ(outgoing.to, "elsewhere");
  EXPECT_EQ(outgoing.reason, "no luck");
  const auto done = std::get<OutgoingDone>(read("fact.14_outgoing_done"));
  EXPECT_EQ(done.transfer, named);
  EXPECT_EQ(done.queue, QueueId{21});
  EXPECT_EQ(done.id, id());
  const auto received = std::get<Received>(read("fact.15_received"));
  EXPECT_EQ(received.transfer, named);
  EXPECT_EQ(received.from_shard, 3U);
  EXPECT_EQ(received.message->payload(), new_message().payload);
  const auto forgotten = std::get<ReceivedForgotten>(read("fact.16_received_forgotten"));
  EXPECT_EQ(forgotten.transfer, named);
  EXPECT_EQ(forgotten.from_shard, 3U);
  EXPECT_EQ(bytes("row.received.key"), received_key(3, named));
  EXPECT_FALSE(decode_message_row(bytes("row.outgoing.value"))->transfer.has_value());
  EXPECT_EQ(decode_message_row(bytes("row.outgoing.value.2"))->transfer, transfer());
}

TEST_F(QueueGolden, OldRowsAreReadable) {
  const auto key = decode_message_key(bytes("row.messages.key"));
  ASSERT_TRUE(key.has_value());
  EXPECT_EQ(key->queue, QueueId{21});
  EXPECT_EQ(key->fairness_key, "tenant");
  EXPECT_EQ(key->sequence, Sequence{22});
  const auto message = decode_message_row(bytes("row.messages.value"));
  ASSERT_TRUE(message.has_value());
  EXPECT_EQ(message->message->payload(), new_message().payload);
  EXPECT_EQ(message->failure, nullptr);
  const auto outgoing = decode_message_row(bytes("row.outgoing.value"));
  ASSERT_TRUE(outgoing.has_value());
  EXPECT_EQ(outgoing->attempts, 2U);
  EXPECT_EQ(outgoing->failure->first, kEnqueued);
  EXPECT_EQ(outgoing->failure->last, kDeadline);
  EXPECT_EQ(outgoing->failure->reason, "no luck");
  EXPECT_EQ(outgoing->to, "elsewhere");
  const auto counts = decode_key_row(bytes("row.keys.value"));
  ASSERT_TRUE(counts.has_value());
  EXPECT_EQ(counts->head, Sequence{22});
  EXPECT_EQ(counts->count, 3'000U);
  const auto where = decode_id_row(bytes("row.ids.value"));
  ASSERT_TRUE(where.has_value());
  EXPECT_EQ(where->table, tables::kDelayed);
  EXPECT_EQ(where->key, bytes("row.delayed.key"));
}

TEST_F(QueueGolden, OldLeasesQueuesAndDedupIdsAreReadable) {
  const auto lease = decode_lease_row(bytes("row.leases.value"));
  ASSERT_TRUE(lease.has_value());
  EXPECT_EQ(lease->consumer_id, "consumer-1");
  EXPECT_EQ(lease->deadline, kDeadline);
  EXPECT_EQ(lease->token, (LeaseToken{.boot = 300, .number = 70'000}));
  EXPECT_EQ(lease->key, "tenant");
  EXPECT_EQ(lease->sequence, Sequence{22});
  const auto expiry = decode_time_key(bytes("row.lease_expiry.key"));
  ASSERT_TRUE(expiry.has_value());
  EXPECT_EQ(expiry->at, kDeadline);
  EXPECT_EQ(expiry->id, id());
  const auto queue = decode_queue_row(bytes("row.queues.value"));
  ASSERT_TRUE(queue.has_value());
  EXPECT_EQ(queue->id, QueueId{21});
  EXPECT_EQ(queue->next_sequence, Sequence{32});
  EXPECT_EQ(queue->purged_before, Sequence{33});
  EXPECT_EQ(queue->bytes, 34'000U);
  EXPECT_EQ(queue->delayed, 35U);
  EXPECT_EQ(queue->settings, settings());
  const auto dedup = decode_dedup_row(bytes("row.dedup.value"));
  ASSERT_TRUE(dedup.has_value());
  EXPECT_EQ(dedup->id, id());
  EXPECT_EQ(dedup->seen, kEnqueued);
}

TEST_F(QueueGolden, OldMessagesAreReadable) {
  const auto full = Message::parse(bytes("message.full"));
  ASSERT_TRUE(full.has_value());
  EXPECT_EQ((*full)->headers().size(), 2U);
  EXPECT_EQ((*full)->throttle_keys().size(), 2U);
  EXPECT_EQ((*full)->expires_at(), kDue);
  const auto bare = Message::parse(bytes("message.bare"));
  ASSERT_TRUE(bare.has_value());
  EXPECT_EQ((*bare)->expires_at(), Instant::never());
  EXPECT_EQ((*bare)->payload(), "");
}

}  // namespace
}  // namespace baton::format_samples
