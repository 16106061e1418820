// Golden bytes of everything the queues write to disk, in format 1, which is read and no longer
// written, and in format 2. A broker must read what any earlier one wrote, so lines never change; a
// new form gets new lines. BATON_RECORD=1 appends those of format 2 that are missing.

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "compat/golden.h"
#include "core/queue/format_samples.h"
#include "core/queue/machine.h"
#include "paths.h"

namespace baton::format_samples {
namespace {

using golden::to_hex;

std::string file_of(int format) {
  return std::string(paths::kTests) + "/compat/queue_v" + std::to_string(format) + ".txt";
}

Samples today() {
  Samples all;
  for (const auto& [name, bytes] : fact_bytes()) all["fact." + name] = bytes;
  for (const auto& [name, bytes] : row_bytes()) all["row." + name] = bytes;
  for (const auto& [name, bytes] : message_bytes()) all["message." + name] = bytes;
  return all;
}

/// Runs on each of the formats, which mean the same.
class QueueGolden : public ::testing::TestWithParam<int> {
 protected:
  static void SetUpTestSuite() { golden::record_missing(file_of(2), today()); }
  QueueGolden() : bytes_(golden::read(file_of(GetParam()))) {}

  const std::string& bytes(const std::string& name) { return bytes_.at(name); }
  /// The fact of a line, which must use up the whole line.
  Result<QueueFact> fact(const std::string& name) {
    Decoder in(bytes(name));
    Result<QueueFact> decoded = GetParam() == 1 ? decode_queue_fact_1(in) : decode_queue_fact(in);
    EXPECT_TRUE(decoded.has_value() && in.finish()) << name;
    return decoded;
  }
  /// Format 1 numbered the facts of transfers anew when they got names.
  [[nodiscard]] static std::string line_of(const std::string& name) {
    static const std::map<std::string, std::string> kRenumbered{
        {"13_outgoing", "17_outgoing"},
        {"14_outgoing_done", "18_outgoing_done"},
        {"15_received", "19_received"},
        {"16_received_forgotten", "20_received_forgotten"}};
    const auto renumbered = kRenumbered.find(name);
    const bool changed = GetParam() == 1 && renumbered != kRenumbered.end();
    return "fact." + (changed ? renumbered->second : name);
  }

 private:
  Samples bytes_;
};

INSTANTIATE_TEST_SUITE_P(Formats, QueueGolden, ::testing::Values(1, 2));

TEST(QueueGolden2, EveryKindHasItsLineAndIsWrittenLikeIt) {
  golden::record_missing(file_of(2), today());
  const golden::Samples known = golden::read(file_of(2));
  for (const auto& [name, written] : today()) {
    ASSERT_TRUE(known.contains(name)) << name;
    EXPECT_EQ(to_hex(written), to_hex(known.at(name))) << name;
  }
}

// What did not change needs no conversion: these rows and keys have the same bytes in both formats.
TEST(QueueGolden2, KeysAndSmallRowsAreThoseOfFormat1) {
  const golden::Samples before = golden::read(file_of(1));
  for (const auto& [name, written] : today()) {
    if (!name.starts_with("row.") || !before.contains(name)) continue;
    const bool changed = name == "row.messages.value" || name == "row.outgoing.value" ||
                         name == "row.outgoing.value.2" || name == "row.queues.value" ||
                         name == "row.ids.value";
    EXPECT_EQ(written == before.at(name), !changed) << name;
  }
}

TEST_P(QueueGolden, OldFactsAreReadable) {
  for (const auto& [name, written] : facts()) {
    const Result<QueueFact> decoded = fact(line_of(name));
    ASSERT_TRUE(decoded.has_value()) << name;
    EXPECT_EQ(decoded->index(), written.index()) << name;
    EXPECT_EQ(encoded(*decoded), encoded(written)) << name;
  }
}

// Field by field, because two fields of one type could change places unnoticed.
TEST_P(QueueGolden, OldFactsMeanWhatTheyMeant) {
  const auto enqueued = std::get<Enqueued>(*fact("fact.03_enqueued_delayed_dedup"));
  EXPECT_EQ(enqueued.queue, QueueId{21});
  EXPECT_EQ(enqueued.sequence, Sequence{22});
  EXPECT_EQ(enqueued.due, kDue);
  ASSERT_TRUE(enqueued.dedup.has_value());
  EXPECT_EQ(enqueued.dedup->front(), 0xf0U);
  EXPECT_EQ(enqueued.message->payload(), new_message().payload);
  const auto leased = std::get<Leased>(*fact("fact.04_leased"));
  EXPECT_EQ(leased.consumer_id, "consumer-1");
  EXPECT_EQ(leased.deadline, kDeadline);
  EXPECT_EQ(leased.first, (LeaseToken{.boot = 300, .number = 70'000}));
  ASSERT_EQ(leased.items.size(), 2U);
  EXPECT_EQ(leased.items[0].id, id());
  EXPECT_EQ(leased.items[0].bytes, 23U);
  EXPECT_EQ(leased.items[0].key, "tenant");
}

// Before transfers had names of their own, they were known by the message's id: the other shard may
// remember them under it.
TEST_P(QueueGolden, TransfersOfTheOldFormAreNamedByTheirMessage) {
  if (GetParam() != 1) return;  // Format 2 never had them.
  const TransferId named = TransferId::of_message(id());
  const auto read = [&](const std::string& name) { return *fact(name); };
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

TEST_P(QueueGolden, OldRowsAreReadable) {
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

TEST_P(QueueGolden, OldLeasesQueuesAndDedupIdsAreReadable) {
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
  EXPECT_EQ(queue->old, GetParam() == 1);
  const auto dedup = decode_dedup_row(bytes("row.dedup.value"));
  ASSERT_TRUE(dedup.has_value());
  EXPECT_EQ(dedup->id, id());
  EXPECT_EQ(dedup->seen, kEnqueued);
}

// The first checkpoint converts: a queue that came from a row of format 1 is written anew, and no
// other queue is.
TEST_P(QueueGolden, AQueueOfFormat1IsWrittenAnewByTheNextCheckpoint) {
  QueueMachine machine({}, 1);
  ASSERT_TRUE(machine.load(tables::kQueues, {"orders", bytes("row.queues.value")}).has_value());
  machine.loaded();
  RowBatch rows;
  append_rows(machine.seal(), rows);
  std::string written;
  for (const RowChange& change : rows.changes()) {
    if (change.table == tables::kQueues) written = change.value;
  }
  EXPECT_EQ(to_hex(written), GetParam() == 1 ? to_hex(today().at("row.queues.value")) : "");
}

TEST_P(QueueGolden, OldMessagesAreReadable) {
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
