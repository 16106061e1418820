#include "server/session/chunk.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "base/crc32c.h"
#include "core/stream/records.h"
#include "sim/fake_disk.h"
#include "storage/log/partition_log.h"

namespace baton {
namespace {

/// "1 @1700000000000 key=none vvv h=none;"
void append_text(std::string& out, RecordView record) {
  const auto text = [](const auto& bytes) { return bytes.has_value() ? *bytes : "none"; };
  out += fmt::format("{} @{} key={} {}", record.offset.value, record.timestamp.value,
                     text(record.key), text(record.value));
  while (const auto header = record.headers.next()) {
    out += fmt::format(" {}={}", header->name, text(header->value));
  }
  out += ';';
}

constexpr RecordEncoder kBatches = nullptr;
constexpr RecordEncoder kRecords = append_text;
constexpr Instant kNow{1'700'000'000'000'000'000};

class ChunkTest : public testing::Test {
 protected:
  ChunkTest() {
    EXPECT_TRUE(disk_.make_folder("streams").has_value());
    PartitionLog::Opening opening;
    opening.now = kNow;
    log_ = *PartitionLog::open(disk_, "streams/1-0", opening);
  }

  void append(const std::string& bytes) {
    const auto checked = check_batch(bytes, {.bytes_max = limits::kStreamBatchBytesMax}, kNow);
    ASSERT_TRUE(checked.has_value()) << to_string(checked.error());
    ASSERT_TRUE(log_->append({&*checked, 1}, LeaderEpoch{1}, kNow).has_value());
    log_->publish(*log_->sync());
  }
  static std::string make(int records, std::size_t bytes = 10,
                          Compression compression = Compression::none) {
    BatchBuilder builder(limits::kStreamBatchBytesMax);
    const std::string value(bytes, 'v');
    const RecordHeader header{.name = "h", .value = std::nullopt};
    for (int i = 0; i < records; ++i) {
      EXPECT_TRUE(builder
                      .add({.key = std::nullopt,
                            .value = value,
                            .headers = {&header, 1},
                            .timestamp = to_timestamp(kNow)})
                      .has_value());
    }
    return *builder.finish(compression);
  }
  Result<Chunk> read(std::int64_t from, RecordEncoder format, std::uint64_t records_max = 0,
                     std::uint64_t batches_max = 100) {
    PartitionReader reader = log_->reader();
    return read_chunk(reader, {.from = Offset{from},
                               .bytes_max = 1 << 20,
                               .batches_max = batches_max,
                               .records_max = records_max,
                               .encode_record = format});
  }
  FakeDisk disk_{1};
  std::unique_ptr<PartitionLog> log_;
};

TEST_F(ChunkTest, BatchesAreWholeAndRecordsAreThoseThatWereAskedFor) {
  append(make(3));
  append(make(3));
  auto chunk = read(1, kBatches);
  ASSERT_TRUE(chunk.has_value());
  EXPECT_EQ(chunk->batch_count, 2U);
  EXPECT_EQ(chunk->record_count, 5U);
  EXPECT_EQ(chunk->bytes, chunk->batches.size());
  EXPECT_EQ(chunk->next, Offset{6});

  chunk = read(1, kRecords);
  ASSERT_TRUE(chunk.has_value());
  EXPECT_EQ(std::ranges::count(chunk->records, ';'), 5);
  EXPECT_TRUE(chunk->records.starts_with("1 @1700000000000 key=none vvvvvvvvvv h=none;2 @"))
      << chunk->records;
  EXPECT_EQ(chunk->record_count, 5U);
  EXPECT_EQ(chunk->end, Offset{6});
}

TEST_F(ChunkTest, LimitsOfRecordsAndBatchesHold) {
  for (int i = 0; i < 4; ++i) append(make(3));
  auto chunk = read(0, kRecords, 4);
  ASSERT_TRUE(chunk.has_value());
  EXPECT_EQ(chunk->record_count, 4U);
  EXPECT_EQ(chunk->next, Offset{4});
  chunk = read(0, kBatches, 4);
  ASSERT_TRUE(chunk.has_value());
  EXPECT_EQ(chunk->batch_count, 2U) << "the batch that reaches it is the last";
  EXPECT_EQ(chunk->next, Offset{6});
  chunk = read(0, kBatches, 0, 1);
  ASSERT_TRUE(chunk.has_value());
  EXPECT_EQ(chunk->next, Offset{3});
  EXPECT_EQ(chunk->batches.size(), chunk->bytes);
  chunk = read(12, kBatches);
  ASSERT_TRUE(chunk.has_value());
  EXPECT_TRUE(chunk->empty());
}

// A chunk that waits for a slow client is counted by its size, and must not hold much more memory
// than that.
TEST_F(ChunkTest, WhatWasReadInVainIsNotKept) {
  for (int i = 0; i < 100; ++i) append(make(3, 1000));
  const auto one = read(0, kBatches, 0, 1);
  ASSERT_TRUE(one.has_value());
  EXPECT_LE(one->batches.capacity(), 2 * one->batches.size());
  const auto all = read(0, kBatches);
  ASSERT_TRUE(all.has_value());
  EXPECT_LE(all->batches.capacity(), 2 * all->batches.size());
}

// A few bytes on the disk can become many in a response.
TEST_F(ChunkTest, CompressedBatchesAreDecodedOnlyUntilThereIsEnough) {
  for (int i = 0; i < 20; ++i) append(make(100, 10'000, Compression::zstd));
  const auto chunk = read(0, kRecords);
  ASSERT_TRUE(chunk.has_value());
  EXPECT_LT(chunk->batch_count, 4U);
  EXPECT_LT(chunk->records.size(), std::size_t{4} << 20U);
  EXPECT_EQ(chunk->next.value, 100 * static_cast<std::int64_t>(chunk->batch_count));
}

// The broker stores a producer's compressed bytes without decoding them.
TEST_F(ChunkTest, WhatComesBeforeABatchThatCannotBeDecodedIsDelivered) {
  append(make(3));
  std::string bad = make(100, 1000, Compression::zstd);
  bad.replace(70, bad.size() - 70, std::string(bad.size() - 70, '\x5a'));
  // The checksum matches the garbage.
  const auto crc = crc32c(std::string_view(bad).substr(21));
  for (unsigned i = 0; i < 4; ++i) bad[17 + i] = static_cast<char>(crc >> (24U - 8U * i));
  append(bad);
  auto chunk = read(0, kRecords);
  ASSERT_TRUE(chunk.has_value()) << to_string(chunk.error());
  EXPECT_EQ(chunk->record_count, 3U);
  EXPECT_EQ(chunk->next, Offset{3});
  EXPECT_FALSE(read(3, kRecords).has_value());
  EXPECT_TRUE(read(0, kBatches).has_value());
}

// Read and Subscribe, in both formats, get their bytes here.
TEST_F(ChunkTest, ARecordThatTheDiskChangedIsAnErrorAndNotData) {
  append(make(3));
  append(make(3, 100));
  disk_.flip_bit("streams/1-0/00000000000000000000.log", 8 * (make(3).size() + 100));
  for (const RecordEncoder format : {kRecords, kBatches}) {
    const auto before = read(0, format);
    ASSERT_TRUE(before.has_value()) << to_string(before.error());
    EXPECT_EQ(before->next, Offset{3});
    const auto damaged = read(3, format);
    ASSERT_FALSE(damaged.has_value());
    EXPECT_NE(damaged.error().text.find("00000000000000000000.log at position"), std::string::npos);
  }
}

}  // namespace
}  // namespace baton
