// Golden bytes of a shard's own facts, of the facts and rows of streams and groups, and of a round
// with facts of every machine: in format 1, which is read and no longer written, and in format 2.
// Lines never change; a new form gets new lines. BATON_RECORD=1 appends those of format 2 that are
// missing.

#include <string>
#include <type_traits>
#include <vector>

#include <gtest/gtest.h>

#include "compat/golden.h"
#include "core/group/facts.h"
#include "core/group/rows.h"
#include "core/queue/format_samples.h"
#include "paths.h"
#include "server/shard/round_facts.h"

namespace baton {
namespace {

using golden::Samples;
using golden::to_hex;

const GroupId kGroup{.stream = "orders", .partition = 300, .name = "billing"};
constexpr Instant kAt{1'700'000'000'000'000'001};
const coordinator_state::Record kRecord{.single_active = true,
                                        .handover = Handover::strict,
                                        .partition_index = PartitionIndex{3},
                                        .generation = Generation{300},
                                        .generation_at = kAt,
                                        .offset = GroupOffset{1'000'000},
                                        .offset_at = kAt + Duration{1}};

std::string file_of(int format) {
  return std::string(paths::kTests) + "/compat/shard_v" + std::to_string(format) + ".txt";
}

StreamSettings settings() {
  StreamSettings all;
  all.retention = Duration{5'000'000'000};
  all.retention_bytes = 600'000;
  all.segment_bytes = 70'000;
  all.fsync = {.kind = FsyncMode::Kind::interval, .interval = Duration{8'000'000}};
  all.batch_bytes_max = 9'000;
  return all;
}

std::map<std::string, CoordinatorFact> group_facts() {
  return {
      {"group.0_created", GroupCreated{kGroup, true, PartitionIndex{300}}},
      {"group.0_created_plain", GroupCreated{kGroup, false, kSimple}},
      {"group.0_created_strict", GroupCreated{kGroup, true, PartitionIndex{300}, Handover::strict}},
      {"group.1_generation_taken", GenerationTaken{kGroup, Generation{301}, kAt}},
      {"group.2_offset_stored",
       OffsetStored{kGroup, Generation{302}, GroupOffset{1ULL << 40U}, kAt}},
      {"group.3_forgotten", GroupForgotten{kGroup}},
  };
}

std::map<std::string, StreamFact> stream_facts() {
  return {
      {"stream.0_created", StreamCreated{StreamId{21}, "orders", 3, settings(), kAt}},
      {"stream.1_updated", StreamUpdated{StreamId{21}, StreamSettings{}}},
      {"stream.2_deleted", StreamDeleted{StreamId{21}}},
      {"stream.3_producer_started",
       ProducerStarted{StreamId{21}, "shop", ProducerId{300}, ProducerEpoch{4}}},
      {"stream.4_partition_synced",
       PartitionSynced{StreamId{21}, PartitionNumber{2}, Offset{70'000}}},
  };
}

template <class Fact>
std::string encoded(const Fact& fact) {
  std::string bytes;
  Encoder out(bytes);
  encode(out, fact);
  return bytes;
}

StreamCatalog catalog() {
  StreamCatalog made;
  made.apply(stream_facts().at("stream.0_created"));
  made.apply(stream_facts().at("stream.3_producer_started"));
  made.apply(stream_facts().at("stream.4_partition_synced"));
  return made;
}

/// One fact after the other, in the order in which a shard decides them.
std::string round() {
  std::string facts;
  begin_facts(facts);
  facts += encoded(ShardFact(Booted{300}));
  for (const auto& [name, fact] : format_samples::facts()) facts += encoded(fact);
  facts += encoded(stream_facts().at("stream.0_created"));
  facts += encoded(group_facts().at("group.0_created"));
  facts += encoded(KvFact(KvPut{BucketId{300}, Revision{301}, "g.a", "value", kAt}));
  return facts;
}

Samples today() {
  Samples all;
  for (const auto& [name, fact] : group_facts()) all[name] = encoded(fact);
  for (const auto& [name, fact] : stream_facts()) all[name] = encoded(fact);
  all["shard.0_booted"] = encoded(ShardFact(Booted{300}));
  all["records.0_batch_appended"] = encoded(BatchAppended{.stream = StreamId{21},
                                                          .partition = PartitionNumber{2},
                                                          .base_offset = Offset{70'000},
                                                          .epoch = LeaderEpoch{4},
                                                          .bytes = "batch"});
  all["row.groups.key"] = group_row_key(kGroup);
  all["row.groups.value"] = encode_row(kRecord);
  RowBatch rows;
  catalog().append_changed_rows(rows);
  for (const RowChange& change : rows.changes()) {
    const bool producers = change.table == tables::kStreamProducers;
    const std::string next = change.key == "next" ? "_next" : "";
    const std::string name = producers ? "row.stream_producers" : "row.streams" + next;
    all[name + ".key"] = change.key;
    all[name + ".value"] = change.value;
  }
  all["round"] = round();
  return all;
}

/// Every fact of a round, in the present format.
std::vector<std::string> facts_of(std::string_view facts) {
  std::vector<std::string> all;
  const Status read = visit_facts(facts, [&](const auto& fact) -> Status {
    all.push_back(encoded(fact));
    return {};
  });
  EXPECT_TRUE(read.has_value()) << to_string(read.error());
  return all;
}

/// Runs on each of the formats, which mean the same.
class ShardGolden : public ::testing::TestWithParam<int> {
 protected:
  static void SetUpTestSuite() { golden::record_missing(file_of(2), today()); }
  ShardGolden() : bytes_(golden::read(file_of(GetParam()))) {}

  const std::string& bytes(const std::string& name) { return bytes_.at(name); }

 private:
  Samples bytes_;
};

INSTANTIATE_TEST_SUITE_P(Formats, ShardGolden, ::testing::Values(1, 2));

TEST(ShardGolden2, EveryKindHasItsLineAndIsWrittenLikeIt) {
  golden::record_missing(file_of(2), today());
  const Samples known = golden::read(file_of(2));
  for (const auto& [name, written] : today()) {
    ASSERT_TRUE(known.contains(name)) << name;
    EXPECT_EQ(to_hex(written), to_hex(known.at(name))) << name;
  }
}

TEST_P(ShardGolden, OldFactsAreReadable) {
  for (const auto& [name, fact] : group_facts()) {
    Decoder in(bytes(name));
    const auto read = GetParam() == 1 ? decode_coordinator_fact_1(in) : decode_coordinator_fact(in);
    ASSERT_TRUE(read.has_value() && in.finish()) << name;
    EXPECT_EQ(encoded(*read), encoded(fact)) << name;
  }
  for (const auto& [name, fact] : stream_facts()) {
    Decoder in(bytes(name));
    const auto read = GetParam() == 1 ? decode_stream_fact_1(in) : decode_stream_fact(in);
    ASSERT_TRUE(read.has_value() && in.finish()) << name;
    EXPECT_EQ(encoded(*read), encoded(fact)) << name;
  }
  Decoder in(bytes("shard.0_booted"));
  const auto booted = GetParam() == 1 ? decode_shard_fact_1(in) : decode_shard_fact(read_frame(in));
  ASSERT_TRUE(booted.has_value() && in.finish());
  EXPECT_EQ(std::get<Booted>(*booted).boot, 300U);
}

TEST_P(ShardGolden, OldRowsMeanWhatTheyMeant) {
  EXPECT_EQ(*decode_group_row_key(bytes("row.groups.key")), kGroup);
  EXPECT_EQ(*decode_group_row(bytes("row.groups.value")), kRecord);
  StreamCatalog loaded;
  for (const char* name : {"row.streams", "row.streams_next"}) {
    const std::string row(name);
    ASSERT_TRUE(
        loaded.load(tables::kStreams, {bytes(row + ".key"), bytes(row + ".value")}).has_value());
  }
  ASSERT_TRUE(loaded
                  .load(tables::kStreamProducers,
                        {bytes("row.stream_producers.key"), bytes("row.stream_producers.value")})
                  .has_value());
  const StreamInfo* const stream = loaded.find(StreamId{21});
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(stream->name, "orders");
  EXPECT_EQ(stream->settings, settings());
  EXPECT_EQ(stream->created_at, kAt);
  EXPECT_EQ(stream->synced, (std::vector<Offset>{Offset{0}, Offset{0}, Offset{70'000}}));
  EXPECT_EQ(stream->producers.at("shop"),
            (StreamInfo::Producer{ProducerId{300}, ProducerEpoch{4}}));
  // Rows of format 1 are written anew by the next checkpoint.
  RowBatch rows;
  loaded.append_changed_rows(rows);
  EXPECT_EQ(rows.empty(), GetParam() == 2);
}

TEST_P(ShardGolden, ARoundHoldsTheSameFactsInEitherFormat) {
  EXPECT_EQ(is_format_1(bytes("round")), GetParam() == 1);
  const std::vector<std::string> read = facts_of(bytes("round"));
  EXPECT_EQ(read.size(), format_samples::facts().size() + 4);
  EXPECT_EQ(read, facts_of(round()));
}

TEST(ShardGolden2, ARoundWithAFactToComeIsReadWithoutItOrRefusedByName) {
  const auto with_fact = [](std::uint64_t tag, std::uint64_t since) {
    std::string facts;
    begin_facts(facts);
    facts += encoded(ShardFact(Booted{300}));
    Encoder out(facts);
    out.varint(tag);
    out.blob_of(0, [&] {
      out.varint(since);
      out.raw("whatever it says");
    });
    facts += encoded(QueueFact(Purged{QueueId{21}}));
    return facts;
  };
  const std::uint64_t kind = 500U << 3U | 1U;   // A fact of the queues.
  const std::uint64_t machine = 0U << 3U | 6U;  // A fact of a future machine.
  EXPECT_EQ(facts_of(with_fact(kind, 0)).size(), 2U);
  EXPECT_EQ(facts_of(with_fact(machine, 0)).size(), 2U);
  const auto refusal = [&](std::uint64_t tag) {
    const Status read = visit_facts(with_fact(tag, 3), [](const auto&) -> Status { return {}; });
    EXPECT_EQ(read.error().code, Errc::store_too_new);
    return read.error().text;
  };
  EXPECT_NE(refusal(kind).find("fact 500 of the queues must be understood and came with format 3"),
            std::string::npos);
  EXPECT_NE(refusal(machine).find("fact 0 of the machine 6 must be understood"), std::string::npos);
}

TEST(ShardGolden2, ARoundWithALengthThatIsNotThereIsRefused) {
  std::string facts = round();
  facts.pop_back();
  const Status read = visit_facts(facts, [](const auto&) -> Status { return {}; });
  ASSERT_FALSE(read.has_value());
  EXPECT_EQ(read.error().code, Errc::malformed);
}

TEST(ShardGolden2, MachinesKeepTheirNumbers) {
  EXPECT_EQ(kShardFacts.owner, FactOwner{0});
  EXPECT_EQ(kQueueFacts.owner, FactOwner{1});
  EXPECT_EQ(kStreamFacts.owner, FactOwner{2});
  EXPECT_EQ(kCoordinatorFacts.owner, FactOwner{3});
  EXPECT_EQ(kKvFacts.owner, FactOwner{4});
  EXPECT_EQ(kRecordFacts.owner, FactOwner{5});
}

}  // namespace
}  // namespace baton
