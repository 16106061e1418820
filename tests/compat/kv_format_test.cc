// Golden bytes of everything that buckets write to disk, in format 1, which is read and no longer
// written, and in format 2. A broker must read what any earlier one wrote, so lines never change; a
// new form gets new lines. BATON_RECORD=1 appends those of format 2 that are missing.

#include <string>

#include <gtest/gtest.h>

#include "compat/golden.h"
#include "core/kv/facts.h"
#include "core/kv/machine.h"
#include "core/kv/rows.h"
#include "paths.h"

namespace baton {
namespace {

using golden::Samples;
using golden::to_hex;

std::string file_of(int format) {
  return std::string(paths::kTests) + "/compat/kv_v" + std::to_string(format) + ".txt";
}

constexpr BucketId kBucket{300};
constexpr Instant kAt{1'700'000'000'000'000'001};
const KvSettings kSettings{.value_bytes_max = 1000,
                           .keys_max = 5,
                           .history_changes_max = 300,
                           .history_bytes_max = 70'000};

std::string fact(const KvFact& happened) {
  std::string bytes;
  Encoder out(bytes);
  encode(out, happened);
  return bytes;
}

Samples today() {
  return {
      {"fact.bucket_created",
       fact(KvBucketCreated{kBucket, "leases", kSettings, Revision{17}, kAt})},
      {"fact.bucket_deleted", fact(KvBucketDeleted{kBucket})},
      {"fact.put", fact(KvPut{kBucket, Revision{301}, "g.a", "value", kAt})},
      {"fact.put_forever", fact(KvPut{kBucket, Revision{302}, "g.a", "", Instant::never()})},
      {"fact.removed", fact(KvRemoved{kBucket, Revision{303}, "g.a"})},
      {"fact.expired", fact(KvExpired{kBucket, Revision{304}, "g.b"})},
      {"row.bucket.key", bucket_row_key(kBucket)},
      {"row.bucket", encode_row(KvBucketRow{"leases", kSettings, Revision{301}, kAt})},
      {"row.next", encode_row(KvNextRow{BucketId{301}, Revision{18}})},
      {"row.entry.key", entry_row_key(kBucket, "g.a")},
      {"row.entry", encode_row(KvEntry{.key = {},
                                       .value = "v",
                                       .revision = Revision{301},
                                       .created_revision = Revision{7},
                                       .version = 3,
                                       .expires_at = kAt})},
  };
}

/// Runs on each of the formats, which mean the same.
class KvGolden : public ::testing::TestWithParam<int> {
 protected:
  static void SetUpTestSuite() { golden::record_missing(file_of(2), today()); }
  KvGolden() : bytes_(golden::read(file_of(GetParam()))) {}

  const std::string& bytes(const std::string& name) { return bytes_.at(name); }
  template <class Fact>
  Fact read(const std::string& name) {
    Decoder in(bytes(name));
    if (GetParam() == 1) {
      EXPECT_EQ(in.u8(), 4) << name;  // Layer 4 of a round of format 1.
    }
    auto decoded = GetParam() == 1 ? decode_kv_fact_1(in) : decode_kv_fact(in);
    EXPECT_TRUE(decoded.has_value() && in.empty()) << name;
    return std::get<Fact>(*decoded);
  }

 private:
  Samples bytes_;
};

INSTANTIATE_TEST_SUITE_P(Formats, KvGolden, ::testing::Values(1, 2));

TEST(KvGolden2, EveryKindHasItsLineAndIsWrittenLikeIt) {
  golden::record_missing(file_of(2), today());
  const Samples known = golden::read(file_of(2));
  for (const auto& [name, written] : today()) {
    ASSERT_TRUE(known.contains(name)) << name;
    EXPECT_EQ(to_hex(written), to_hex(known.at(name))) << name;
  }
}

TEST_P(KvGolden, OldFactsMeanWhatTheyMeant) {
  const auto created = read<KvBucketCreated>("fact.bucket_created");
  EXPECT_EQ(created.bucket, kBucket);
  EXPECT_EQ(created.name, "leases");
  EXPECT_EQ(created.settings, kSettings);
  EXPECT_EQ(created.revision, Revision{17});
  EXPECT_EQ(created.at, kAt);
  EXPECT_EQ(read<KvBucketDeleted>("fact.bucket_deleted").bucket, kBucket);
  const auto put = read<KvPut>("fact.put");
  EXPECT_EQ(put.revision, Revision{301});
  EXPECT_EQ(put.key, "g.a");
  EXPECT_EQ(put.value, "value");
  EXPECT_EQ(put.expires_at, kAt);
  EXPECT_EQ(read<KvPut>("fact.put_forever").expires_at, Instant::never());
  EXPECT_EQ(read<KvRemoved>("fact.removed").revision, Revision{303});
  EXPECT_EQ(read<KvExpired>("fact.expired").key, "g.b");
}

TEST_P(KvGolden, OldRowsMeanWhatTheyMeant) {
  EXPECT_EQ(*decode_bucket_row_key(bytes("row.bucket.key")), kBucket);
  const auto bucket = decode_bucket_row(bytes("row.bucket"));
  ASSERT_TRUE(bucket.has_value());
  EXPECT_EQ(bucket->name, "leases");
  EXPECT_EQ(bucket->settings, kSettings);
  EXPECT_EQ(bucket->revision, Revision{301});
  EXPECT_EQ(bucket->created_at, kAt);
  EXPECT_EQ(bucket->old, GetParam() == 1);
  const auto next_row = decode_kv_next_row(bytes("row.next"));
  ASSERT_TRUE(next_row.has_value());
  EXPECT_EQ(next_row->bucket, BucketId{301});
  EXPECT_EQ(next_row->revision, Revision{18});
  const auto key = decode_entry_row_key(bytes("row.entry.key"));
  ASSERT_TRUE(key.has_value());
  EXPECT_EQ(key->bucket, kBucket);
  EXPECT_EQ(key->key, "g.a");
  const auto entry = decode_entry_row(bytes("row.entry"));
  ASSERT_TRUE(entry.has_value());
  EXPECT_EQ(entry->value, "v");
  EXPECT_EQ(entry->revision, Revision{301});
  EXPECT_EQ(entry->created_revision, Revision{7});
  EXPECT_EQ(entry->version, 3U);
  EXPECT_EQ(entry->expires_at, kAt);
}

// The first checkpoint converts: a bucket that came from a row of format 1 is written anew, and no
// other bucket is.
TEST_P(KvGolden, ABucketOfFormat1IsWrittenAnewByTheNextCheckpoint) {
  KvMachine machine({}, [](const KvFact&) {});
  ASSERT_TRUE(
      machine.load(tables::kKvBuckets, {bytes("row.bucket.key"), bytes("row.bucket")}).has_value());
  RowBatch rows;
  machine.append_changed_rows(rows);
  std::string written;
  for (const RowChange& change : rows.changes()) {
    if (change.key == bytes("row.bucket.key")) written = change.value;
  }
  EXPECT_EQ(to_hex(written), GetParam() == 1 ? to_hex(today().at("row.bucket")) : "");
}

// The numbers of tables and layers are on the disk as well.
TEST(KvGolden2, TablesAndLayersKeepTheirNumbers) {
  EXPECT_EQ(tables::kKvBuckets.value, 14);
  EXPECT_EQ(tables::kKvEntries.value, 15);
  EXPECT_EQ(kKvFacts.owner, FactOwner{4});
}

}  // namespace
}  // namespace baton
