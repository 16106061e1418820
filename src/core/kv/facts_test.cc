// What is written to disk reads back the same, and the fuzzers' corpora are made of it.
// BATON_RECORD=1 writes corpus/ anew.

#include "core/kv/facts.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "base/fact_growth_test.h"
#include "core/kv/rows.h"

namespace baton {
namespace {

constexpr BucketId kBucket{300};
constexpr Instant kAt{1'700'000'000'000'000'001};
const KvSettings kSettings{.value_bytes_max = 1000,
                           .keys_max = 5,
                           .history_changes_max = 300,
                           .history_bytes_max = 70'000};
const KvEntry kEntry{.key = {},
                     .value = "v",
                     .revision = Revision{301},
                     .created_revision = Revision{7},
                     .version = 3,
                     .expires_at = kAt};

std::map<std::string, KvFact> facts() {
  return {
      {"0_bucket_created", KvBucketCreated{kBucket, "leases", kSettings, Revision{17}, kAt}},
      {"1_bucket_deleted", KvBucketDeleted{kBucket}},
      {"2_put", KvPut{kBucket, Revision{301}, "g.a", "value", kAt}},
      {"2_put_forever", KvPut{kBucket, Revision{302}, "g.a", "", Instant::never()}},
      {"3_removed", KvRemoved{kBucket, Revision{303}, "g.a"}},
      {"4_expired", KvExpired{kBucket, Revision{304}, "g.b"}},
  };
}

std::map<std::string, std::string> rows() {
  return {
      {"bucket_key", bucket_row_key(kBucket)},
      {"bucket", encode_row(KvBucketRow{"leases", kSettings, Revision{301}, kAt})},
      {"next", encode_row(KvNextRow{BucketId{301}, Revision{18}})},
      {"entry_key", entry_row_key(kBucket, "g.a")},
      {"entry", encode_row(kEntry)},
  };
}

using fact_growth::encoded;

std::string hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) {
    constexpr std::string_view kDigits = "0123456789abcdef";
    text += kDigits[static_cast<std::uint8_t>(c) >> 4U];
    text += kDigits[static_cast<std::uint8_t>(c) & 15U];
  }
  return text;
}

void compare_corpus(const std::filesystem::path& folder,
                    const std::map<std::string, std::string>& files) {
  const bool record = std::getenv("BATON_RECORD") != nullptr;
  if (record) std::filesystem::create_directories(folder);
  for (const auto& [name, bytes] : files) {
    if (record) std::ofstream(folder / name, std::ios::binary) << bytes;
    std::ifstream in(folder / name, std::ios::binary);
    const std::string read{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    EXPECT_EQ(read, bytes) << name;
  }
}

TEST(KvFacts, TheCorpusIsWhatTheEncoderWrites) {
  std::map<std::string, std::string> files;
  for (const auto& [name, fact] : facts()) files[name] = encoded(fact);
  compare_corpus("corpus/facts", files);
  compare_corpus("corpus/rows", rows());
}

TEST(KvFacts, EveryFactReadsBackAsItWasWritten) {
  std::set<std::size_t> kinds;
  for (const auto& [name, fact] : facts()) {
    const std::string bytes = encoded(fact);
    Decoder in(bytes);
    const Result<KvFact> decoded = decode_kv_fact(in);
    ASSERT_TRUE(decoded.has_value()) << name;
    EXPECT_TRUE(in.finish()) << name;
    EXPECT_EQ(decoded->index(), fact.index()) << name;
    EXPECT_EQ(encoded(*decoded), bytes) << name;
    kinds.insert(fact.index());
  }
  EXPECT_EQ(kinds.size(), std::variant_size_v<KvFact>);
}

// The bytes of format 1, for ever: journals in the field are made of them.
TEST(KvFacts, BytesOfFormat1StayReadable) {
  const auto all = facts();
  const auto expect_read = [&](const std::string& name, const std::string& digits) {
    std::string bytes;
    for (std::size_t i = 0; i < digits.size(); i += 2) {
      bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
    }
    Decoder in(bytes);
    const Result<KvFact> decoded = decode_kv_fact_1(in);
    ASSERT_TRUE(decoded.has_value() && in.finish()) << name;
    EXPECT_EQ(hex(encoded(*decoded)), hex(encoded(all.at(name)))) << name;
  };
  expect_read("0_bucket_created", "0001ac02066c6561736573e80705ac02f0a2041101002a36fe9c9717");
  expect_read("1_bucket_deleted", "0101ac02");
  expect_read("2_put", "0201ac02ad0203672e610576616c756501002a36fe9c9717");
  expect_read("2_put_forever", "0201ac02ae0203672e6100ffffffffffffff7f");
  expect_read("3_removed", "0301ac02af0203672e61");
  expect_read("4_expired", "0401ac02b00203672e62");
}

TEST(KvFacts, GoldenBytes) {
  const auto all = facts();
  EXPECT_EQ(hex(encoded(all.at("0_bucket_created"))),
            "0423ac02066c6561736573100202e80704010506"
            "02ac020803f0a2041101002a36fe9c9717");
  EXPECT_EQ(hex(encoded(all.at("1_bucket_deleted"))), "0c02ac02");
  EXPECT_EQ(hex(encoded(all.at("2_put"))), "1416ac02ad0203672e610576616c756501002a36fe9c9717");
  EXPECT_EQ(hex(encoded(all.at("2_put_forever"))), "1411ac02ae0203672e6100ffffffffffffff7f");
  EXPECT_EQ(hex(encoded(all.at("3_removed"))), "1c08ac02af0203672e61");
  EXPECT_EQ(hex(encoded(all.at("4_expired"))), "2408ac02b00203672e62");
}

TEST(KvRows, GoldenBytes) {
  const auto all = rows();
  EXPECT_EQ(hex(all.at("bucket_key")), "000000000000012c");
  EXPECT_EQ(hex(all.at("bucket")),
            "02066c6561736573100202e8070401050602ac020803f0a204ad0201002a36fe9c9717");
  EXPECT_EQ(hex(all.at("next")), "01ad0212");
  EXPECT_EQ(hex(all.at("entry_key")), "000000000000012c672e61");
  EXPECT_EQ(hex(all.at("entry")), "020cad02070301002a36fe9c971776");
}

// A later version may say more of each; this one reads what it knows, or says why it cannot.
TEST(KvFacts, AFieldToComeIsSkippedAndOneThatMustBeUnderstoodRefused) {
  const auto decode = [](Decoder& in) { return decode_kv_fact(in); };
  for (const auto& [name, fact] : facts()) {
    SCOPED_TRACE(name);
    fact_growth::expect_skipped(fact, decode);
    fact_growth::expect_refused(fact, kKvFacts, decode);
  }
}

TEST(KvFacts, ASettingToComeIsSkippedAndOneThatMustBeUnderstoodRefused) {
  fact_growth::expect_settings_grow(decode_kv_settings);
}

TEST(KvRows, AFieldToComeIsSkippedAndOneThatMustBeUnderstoodRefused) {
  std::string optional;
  std::string required;
  Encoder out(optional);
  put_field(out, 99, "more");
  Encoder more(required);
  put_field(more, 99, "more", Need{3});
  const std::string bucket = rows().at("bucket");
  EXPECT_EQ(encode_row(*decode_bucket_row(bucket + optional)), bucket);
  EXPECT_EQ(decode_bucket_row(bucket + required).error().code, Errc::store_too_new);
  const std::string next_row = rows().at("next");
  EXPECT_EQ(encode_row(*decode_kv_next_row(next_row + optional)), next_row);
  EXPECT_EQ(decode_kv_next_row(next_row + required).error().code, Errc::store_too_new);
  // An entry's fields are in its head: the rest is the value.
  const auto entry_with = [](const std::string& field) {
    const std::string entry = rows().at("entry");
    Decoder in(entry);
    std::string longer(1, static_cast<char>(in.u8()));
    Encoder(longer).blob(std::string(in.blob()) + field);
    return longer + std::string(in.rest());
  };
  EXPECT_EQ(*decode_entry_row(entry_with(optional)), kEntry);
  EXPECT_EQ(decode_entry_row(entry_with(required)).error().code, Errc::store_too_new);
}

// Rows of format 1 stay in stores: those of keys until the key is written again.
TEST(KvRows, BytesOfFormat1StayReadable) {
  const auto from_hex = [](const std::string& digits) {
    std::string bytes;
    for (std::size_t i = 0; i < digits.size(); i += 2) {
      bytes += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
    }
    return bytes;
  };
  const auto bucket =
      decode_bucket_row(from_hex("01066c6561736573e80705ac02f0a204ad0201002a36fe9c9717"));
  ASSERT_TRUE(bucket.has_value());
  EXPECT_TRUE(bucket->old);
  EXPECT_EQ(bucket->settings, kSettings);
  EXPECT_EQ(bucket->created_at, kAt);
  EXPECT_EQ(*decode_entry_row(from_hex("01ad02070301002a36fe9c971776")), kEntry);
}

TEST(KvRows, EveryRowReadsBackAsItWasWritten) {
  const auto all = rows();
  EXPECT_EQ(decode_bucket_row_key(all.at("bucket_key")).value(), kBucket);
  const KvBucketRow bucket = decode_bucket_row(all.at("bucket")).value();
  EXPECT_EQ(bucket.name, "leases");
  EXPECT_EQ(bucket.settings, kSettings);
  EXPECT_EQ(bucket.revision, Revision{301});
  EXPECT_EQ(bucket.created_at, kAt);
  EXPECT_EQ(decode_kv_next_row(all.at("next")).value().revision, Revision{18});
  EXPECT_EQ(decode_entry_row_key(all.at("entry_key")).value().key, "g.a");
  EXPECT_EQ(decode_entry_row(all.at("entry")).value(), kEntry);
}

TEST(KvFacts, EveryCutFactIsRefused) {
  for (const auto& [name, fact] : facts()) {
    const std::string bytes = encoded(fact);
    for (std::size_t length = 0; length < bytes.size(); ++length) {
      Decoder in(std::string_view(bytes).substr(0, length));
      EXPECT_FALSE(decode_kv_fact(in).has_value()) << name << " " << length;
    }
  }
}

TEST(KvRows, EveryCutRowIsRefused) {
  const auto all = rows();
  const auto cut = [&](const std::string& name, std::size_t bytes) {
    return std::string_view(all.at(name)).substr(0, all.at(name).size() - bytes);
  };
  for (std::size_t bytes = 1; bytes < all.at("bucket").size(); ++bytes) {
    EXPECT_FALSE(decode_bucket_row(cut("bucket", bytes)).has_value()) << bytes;
  }
  EXPECT_FALSE(decode_kv_next_row(cut("next", 1)).has_value());
  EXPECT_FALSE(decode_bucket_row_key(cut("bucket_key", 1)).has_value());
  EXPECT_FALSE(decode_entry_row_key(cut("entry_key", 3)).has_value());  // No key is left.
  EXPECT_FALSE(decode_entry_row(cut("entry", 2)).has_value());
}

TEST(KvFacts, WhatIsOutOfItsLimitsIsRefused) {
  const auto refused = [](const KvFact& fact) {
    const std::string bytes = encoded(fact);
    Decoder in(bytes);
    return !decode_kv_fact(in).has_value();
  };
  EXPECT_TRUE(refused(KvPut{kBucket, Revision{1}, "", "v", kAt}));
  EXPECT_TRUE(refused(KvPut{kBucket, Revision{1}, std::string(513, 'k'), "v", kAt}));
  EXPECT_TRUE(refused(KvPut{kBucket, Revision{0}, "k", "v", kAt}));
  EXPECT_TRUE(refused(
      KvPut{kBucket, Revision{1}, "k", std::string(limits::kKvValueBytesMax + 1, 'v'), kAt}));
  EXPECT_TRUE(refused(KvBucketCreated{kBucket, "a b", kSettings, Revision{1}, kAt}));
  KvSettings none = kSettings;
  none.keys_max = 0;
  EXPECT_TRUE(refused(KvBucketCreated{kBucket, "a", none, Revision{1}, kAt}));
  std::string newer("\x01\x02\xac\x02", 4);  // Version 2 of a KvBucketDeleted of format 1.
  Decoder in(newer);
  EXPECT_FALSE(decode_kv_fact_1(in).has_value());
}

}  // namespace
}  // namespace baton
