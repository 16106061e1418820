// Golden bytes of everything that streams write to disk. A broker must read what any earlier one
// wrote, so the lines of stream_v1.txt never change; a new form gets new lines. BATON_RECORD=1
// appends those that are missing. The batches called "kafka" were made by kafka-python.

#include <map>
#include <string>

#include <gtest/gtest.h>

#include "compat/golden.h"
#include "core/stream/batch_samples.h"
#include "core/stream/producer_table.h"
#include "paths.h"
#include "storage/log/log_index.h"

namespace baton {
namespace {

using golden::Samples;
using golden::to_hex;

const std::string kFile = std::string(paths::kTests) + "/compat/stream_v1.txt";
constexpr ProducerStamp kProducer{ProducerId{7}, ProducerEpoch{2}, Sequence32{40}};

std::string batch(Compression compression) {
  std::string bytes = batch_samples::batch_of(batch_samples::records(), compression, kProducer);
  set_base_offset(std::span(bytes), Offset{0x0102030405}, LeaderEpoch{6});
  return bytes;
}

ProducerTable producers() {
  ProducerTable table;
  BatchHeader header;
  header.producer = kProducer;
  header.count = 3;
  header.last_offset_delta = 2;
  header.base_offset = Offset{1000};
  table.apply(header, Instant{1'700'000'000'000'000'001});
  header.producer.sequence = Sequence32{43};
  header.base_offset = Offset{1003};
  table.apply(header, Instant{1'700'000'000'000'000'002});
  header.producer = {ProducerId{8}, ProducerEpoch{0}, Sequence32{0x7ffffffe}};
  table.apply(header, Instant{5});
  return table;
}

/// Bytes that every version of the libraries writes alike.
Samples written_today() {
  Samples all;
  all["batch.none"] = batch(Compression::none);
  all["snapshot"] = producers().encode_snapshot(Offset{1006});
  encode_entry(OffsetEntry{.last = 0x01020304, .position = 0x05060708}, all["index.entry"]);
  encode_entry(TimeEntry{.greatest = batch_samples::kTime, .last = 0x01020304},
               all["timeindex.entry"]);
  return all;
}

Samples today() {
  Samples all = written_today();
  for (int codec = 1; codec <= 4; ++codec) {
    all["batch." + std::string(compression_name(Compression(codec)))] = batch(Compression(codec));
  }
  return all;
}

class StreamGolden : public ::testing::Test {
 protected:
  static void SetUpTestSuite() { golden::record_missing(kFile, today()); }
  StreamGolden() : bytes_(golden::read(kFile)) {}

  const std::string& bytes(const std::string& name) { return bytes_.at(name); }

 private:
  Samples bytes_;
};

TEST_F(StreamGolden, EveryKindHasItsLineAndIsWrittenLikeIt) {
  for (const auto& [name, written] : written_today()) {
    EXPECT_EQ(to_hex(written), to_hex(bytes(name))) << name;
  }
}

TEST_F(StreamGolden, OldBatchesAreReadable) {
  const auto expected = batch_samples::texts_of(batch(Compression::none));
  for (int codec = 0; codec <= 4; ++codec) {
    const std::string& old = bytes("batch." + std::string(compression_name(Compression(codec))));
    const auto checked = check_batch(old, {}, batch_samples::kNow);
    ASSERT_TRUE(checked.has_value()) << to_string(checked.error());
    EXPECT_EQ(checked->header().compression(), Compression(codec));
    EXPECT_EQ(checked->header().base_offset, Offset{0x0102030405});
    EXPECT_EQ(checked->header().leader_epoch, LeaderEpoch{6});
    EXPECT_EQ(checked->header().producer, kProducer);
    EXPECT_EQ(batch_samples::texts_of(old), expected);
  }
}

TEST_F(StreamGolden, BatchesOfAKafkaClientAreReadable) {
  for (int codec = 0; codec <= 4; ++codec) {
    const std::string& made = bytes("kafka." + std::string(compression_name(Compression(codec))));
    const auto checked = check_batch(made, {}, batch_samples::kNow);
    ASSERT_TRUE(checked.has_value()) << to_string(checked.error());
    EXPECT_EQ(checked->header().compression(), Compression(codec));
    EXPECT_EQ(batch_samples::texts_of(made),
              batch_samples::texts_of(batch_samples::batch_of(batch_samples::records())));
  }
}

// The same records give the same bytes, from the magic on: the bytes before it are the broker's.
TEST_F(StreamGolden, WeWriteWhatAKafkaClientWrites) {
  constexpr std::size_t kMagic = 16;
  const std::string ours = batch_samples::batch_of(batch_samples::records());
  EXPECT_EQ(to_hex(ours.substr(kMagic)), to_hex(bytes("kafka.none").substr(kMagic)));
}

TEST_F(StreamGolden, OldIndexesAndSnapshotsMeanWhatTheyMeant) {
  const OffsetEntry entry = decode_offset_entry(bytes("index.entry").data());
  EXPECT_EQ(entry, (OffsetEntry{.last = 0x01020304, .position = 0x05060708}));
  const TimeEntry time = decode_time_entry(bytes("timeindex.entry").data());
  EXPECT_EQ(time, (TimeEntry{.greatest = batch_samples::kTime, .last = 0x01020304}));
  const auto snapshot = ProducerTable::decode_snapshot(bytes("snapshot"));
  ASSERT_TRUE(snapshot.has_value()) << to_string(snapshot.error());
  EXPECT_EQ(snapshot->next, Offset{1006});
  const auto producer = snapshot->table.find(ProducerId{7});
  ASSERT_TRUE(producer.has_value());
  EXPECT_EQ(producer->epoch, ProducerEpoch{2});
  EXPECT_EQ(producer->last_seen, Instant{1'700'000'000'000'000'002});
  ASSERT_EQ(producer->size, 2);
  EXPECT_EQ(producer->batches[1],
            (ProducerTable::StoredBatch{
                .first = Sequence32{43}, .last = Sequence32{45}, .base_offset = Offset{1003}}));
  EXPECT_EQ(snapshot->table.find(ProducerId{8})->batches[0].last, Sequence32{0});
}

}  // namespace
}  // namespace baton
