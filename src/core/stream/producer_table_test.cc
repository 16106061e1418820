#include "core/stream/producer_table.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/crc32c.h"

namespace baton {
namespace {

constexpr Instant kNow{1'000'000};
constexpr ProducerId kAlice{7};
constexpr std::int32_t kLast = std::numeric_limits<std::int32_t>::max();

ProducerStamp stamp(std::int32_t sequence, std::int16_t epoch = 0, ProducerId id = kAlice) {
  return {id, ProducerEpoch{epoch}, Sequence32{sequence}};
}

BatchHeader batch(const ProducerStamp& producer, std::int32_t count, std::int64_t offset) {
  BatchHeader header;
  header.base_offset = Offset{offset};
  header.last_offset_delta = count - 1;
  header.count = count;
  header.producer = producer;
  return header;
}

/// Ten records a batch, from sequence 0, at offsets 1000, 1010 and so on.
ProducerTable with_batches(int count) {
  ProducerTable table;
  for (int i = 0; i < count; ++i) {
    EXPECT_EQ(table.check(stamp(10 * i), 10).verdict, ProducerVerdict::append);
    table.apply(batch(stamp(10 * i), 10, 1000 + 10 * i), kNow);
  }
  return table;
}

TEST(ProducerTable, TheLastFiveAreRememberedWithTheirResult) {
  const ProducerTable table = with_batches(8);
  for (int i = 0; i < 8; ++i) {
    const auto answer = table.check(stamp(10 * i), 10);
    if (i < 3) {
      EXPECT_EQ(answer.verdict, ProducerVerdict::old_duplicate) << i;
    } else {
      EXPECT_EQ(answer.verdict, ProducerVerdict::duplicate) << i;
      EXPECT_EQ(answer.base_offset, Offset{1000 + 10 * i});
    }
  }
  EXPECT_EQ(table.check(stamp(80), 3).verdict, ProducerVerdict::append);
}

TEST(ProducerTable, AGapIsAnErrorThatNamesWhatIsMissing) {
  const auto answer = with_batches(2).check(stamp(30), 10);
  EXPECT_EQ(answer.verdict, ProducerVerdict::gap);
  EXPECT_EQ(answer.text, "producer 7 sent sequence 30, but 20 is expected");
}

// To call it a duplicate would lose the records that are new.
TEST(ProducerTable, ABatchThatOverlapsWhatIsStoredIsNoDuplicate) {
  const ProducerTable table = with_batches(2);
  EXPECT_EQ(table.check(stamp(15), 10).verdict, ProducerVerdict::gap);
  EXPECT_EQ(table.check(stamp(10), 20).verdict, ProducerVerdict::gap);
  EXPECT_EQ(table.check(stamp(10), 5).verdict, ProducerVerdict::old_duplicate);
}

TEST(ProducerTable, AnOldEpochIsRefusedAndANewOneBeginsAtZero) {
  ProducerTable table = with_batches(2);
  EXPECT_EQ(table.check(stamp(5, 1), 1).verdict, ProducerVerdict::gap);
  EXPECT_EQ(table.check(stamp(0, 1), 1).verdict, ProducerVerdict::append);
  table.apply(batch(stamp(0, 1), 1, 2000), kNow);
  const auto answer = table.check(stamp(20, 0), 10);
  EXPECT_EQ(answer.verdict, ProducerVerdict::stale_epoch);
  EXPECT_NE(answer.text.find("epoch 1"), std::string::npos);
  EXPECT_EQ(table.check(stamp(0, 1), 1).base_offset, Offset{2000});
  // What the old epoch stored is not what the new one repeats.
  EXPECT_EQ(table.check(stamp(10, 1), 10).verdict, ProducerVerdict::gap);
}

TEST(ProducerTable, AFencedProducerIsRefusedThoughItsSuccessorSentNothingYet) {
  ProducerTable table = with_batches(1);
  table.fence(kAlice, ProducerEpoch{3}, kNow);
  EXPECT_EQ(table.check(stamp(10, 2), 1).verdict, ProducerVerdict::stale_epoch);
  EXPECT_EQ(table.check(stamp(0, 3), 1).verdict, ProducerVerdict::append);
  table.fence(kAlice, ProducerEpoch{1}, kNow);
  EXPECT_EQ(table.check(stamp(0, 2), 1).verdict, ProducerVerdict::stale_epoch);
  table.fence(ProducerId{99}, ProducerEpoch{5}, kNow);
  EXPECT_EQ(table.check(stamp(0, 4, ProducerId{99}), 1).verdict, ProducerVerdict::stale_epoch);
}

TEST(ProducerTable, AnUnknownProducerBeginsAtZero) {
  const ProducerTable table;
  EXPECT_EQ(table.check(stamp(0), 1).verdict, ProducerVerdict::append);
  EXPECT_EQ(table.check(stamp(1), 1).verdict, ProducerVerdict::gap);
}

TEST(ProducerTable, SequencesBeginAgainAfterTheGreatest) {
  ProducerTable table;
  table.apply(batch(stamp(kLast - 4), 3, 100), kNow);  // Ends with kLast - 2.
  EXPECT_EQ(table.check(stamp(kLast - 1), 4).verdict, ProducerVerdict::append);
  table.apply(batch(stamp(kLast - 1), 4, 103), kNow);  // kLast - 1, kLast, 0, 1.
  EXPECT_EQ(table.check(stamp(kLast - 1), 4).verdict, ProducerVerdict::duplicate);
  EXPECT_EQ(table.check(stamp(2), 1).verdict, ProducerVerdict::append);
  EXPECT_EQ(table.check(stamp(3), 1).verdict, ProducerVerdict::gap);
  EXPECT_EQ(table.check(stamp(kLast), 2).verdict, ProducerVerdict::old_duplicate);
  EXPECT_EQ(table.check(stamp(0), 1).verdict, ProducerVerdict::old_duplicate);
}

TEST(ProducerTable, ThoseNotSeenAreForgottenAndTheTableIsBounded) {
  ProducerTable table(2);
  table.apply(batch(stamp(0, 0, ProducerId{1}), 1, 0), Instant{10});
  table.apply(batch(stamp(0, 0, ProducerId{2}), 1, 1), Instant{20});
  EXPECT_EQ(table.check(stamp(0, 0, ProducerId{3}), 1).verdict, ProducerVerdict::table_full);
  EXPECT_EQ(table.check(stamp(1, 0, ProducerId{1}), 1).verdict, ProducerVerdict::append);
  EXPECT_EQ(table.expire(Instant{20}), 1U);
  EXPECT_EQ(table.check(stamp(0, 0, ProducerId{3}), 1).verdict, ProducerVerdict::append);
  EXPECT_EQ(table.check(stamp(1, 0, ProducerId{1}), 1).verdict, ProducerVerdict::gap);
}

TEST(ProducerTable, BatchesWithoutAProducerLeaveNoTrace) {
  ProducerTable table;
  table.apply(batch(stamp(-1, -1, ProducerId{-1}), 1, 0), kNow);
  EXPECT_EQ(table.size(), 0U);
}

TEST(ProducerTable, AFailedWriteIsUndone) {
  ProducerTable table = with_batches(2);
  const std::string before = table.encode_snapshot(Offset{0});
  const auto alice = table.find(kAlice);
  const auto bob = table.find(ProducerId{8});
  table.apply(batch(stamp(20), 10, 1020), kNow);
  table.apply(batch(stamp(0, 0, ProducerId{8}), 10, 1030), kNow);
  table.restore(kAlice, alice);
  table.restore(ProducerId{8}, bob);
  EXPECT_EQ(table.encode_snapshot(Offset{0}), before);
}

TEST(ProducerTable, ASnapshotComesBackWhole) {
  ProducerTable table = with_batches(8);
  table.apply(batch(stamp(0, 4, ProducerId{123'456'789}), 2, 77), Instant{5});
  const std::string bytes = table.encode_snapshot(Offset{1080});
  const auto snapshot = ProducerTable::decode_snapshot(bytes);
  ASSERT_TRUE(snapshot.has_value()) << to_string(snapshot.error());
  EXPECT_EQ(snapshot->next, Offset{1080});
  EXPECT_EQ(snapshot->table.find(kAlice), table.find(kAlice));
  EXPECT_EQ(snapshot->table.encode_snapshot(Offset{1080}), bytes);
}

TEST(ProducerTable, ADamagedSnapshotIsRefused) {
  const std::string bytes = with_batches(3).encode_snapshot(Offset{30});
  for (std::size_t bit = 0; bit < 8 * bytes.size(); ++bit) {
    std::string damaged = bytes;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << (bit % 8)));
    EXPECT_FALSE(ProducerTable::decode_snapshot(damaged).has_value()) << bit;
  }
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_FALSE(ProducerTable::decode_snapshot(bytes.substr(0, size)).has_value()) << size;
  }
}

// A version is believed when the checksum vouches for it.
TEST(ProducerTable, ASnapshotOfANewerVersionIsToldFromADamagedOne) {
  std::string newer = with_batches(3).encode_snapshot(Offset{30});
  newer[8] = 2;
  EXPECT_EQ(ProducerTable::decode_snapshot(newer).error().code, Errc::malformed);
  newer.resize(newer.size() - sizeof(std::uint32_t));
  Encoder(newer).fixed(crc32c(newer));
  EXPECT_EQ(ProducerTable::decode_snapshot(newer).error().code, Errc::store_too_new);
}

}  // namespace
}  // namespace baton
