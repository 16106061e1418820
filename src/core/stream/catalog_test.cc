#include "core/stream/catalog.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "base/fact_growth_test.h"

namespace baton {
namespace {

constexpr Instant kNow{1'700'000'000'000'000'000};

/// A catalog whose facts are kept as bytes, as a journal does.
class CatalogTest : public testing::Test {
 protected:
  CatalogTest() {
    catalog_.start([this](const StreamFact& fact) {
      Encoder out(facts_);
      encode(out, fact);
    });
  }
  void create(const std::string& name, std::uint32_t partitions) {
    const auto created = catalog_.create(name, partitions, {}, kNow);
    ASSERT_TRUE(created.has_value()) << to_string(created.error());
  }
  /// A new life: from the rows given, then from the facts since.
  static StreamCatalog recover(const RowBatch& rows, const std::string& facts) {
    StreamCatalog catalog;
    for (const Table table : {tables::kStreams, tables::kStreamProducers}) {
      for (const RowChange& change : rows.changes()) {
        if (change.table != table || change.kind != RowChange::Kind::put) continue;
        const Status loaded = catalog.load(table, {change.key, change.value});
        EXPECT_TRUE(loaded.has_value()) << to_string(loaded.error());
      }
    }
    Decoder in(facts);
    while (!in.empty()) {
      const auto fact = decode_stream_fact(in);
      EXPECT_TRUE(fact.has_value());
      if (!fact.has_value()) break;
      catalog.apply(*fact);
    }
    return catalog;
  }
  static void expect_same(const StreamCatalog& one, const StreamCatalog& other) {
    ASSERT_EQ(one.all().size(), other.all().size());
    for (const auto& [id, stream] : one.all()) {
      const StreamInfo* const twin = other.find(id);
      ASSERT_NE(twin, nullptr);
      EXPECT_EQ(twin->name, stream.name);
      EXPECT_EQ(twin->settings, stream.settings);
      EXPECT_EQ(twin->created_at, stream.created_at);
      EXPECT_EQ(twin->synced, stream.synced);
      EXPECT_EQ(twin->producers, stream.producers);
    }
  }

  std::string facts_;
  StreamCatalog catalog_;
};

TEST_F(CatalogTest, CreatingAgainIsFineWithTheSameSettingsOnly) {
  create("orders", 3);
  const auto again = catalog_.create("orders", 3, {}, kNow);
  ASSERT_TRUE(again.has_value());
  EXPECT_FALSE(again->second);
  const auto other = catalog_.create("orders", 4, {}, kNow);
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().code, Errc::stream_exists);
}

TEST_F(CatalogTest, RefusesWhatIsOutOfItsLimitsByName) {
  const auto none = catalog_.create("orders", 0, {}, kNow);
  ASSERT_FALSE(none.has_value());
  EXPECT_NE(none.error().text.find("partitions is 0"), std::string::npos);
  EXPECT_FALSE(catalog_.create("", 1, {}, kNow).has_value());
  EXPECT_FALSE(catalog_.create("a b", 1, {}, kNow).has_value());
  StreamSettingsPatch small;
  small.segment_bytes = 1;
  const auto refused = catalog_.create("orders", 1, small, kNow);
  ASSERT_FALSE(refused.has_value());
  EXPECT_NE(refused.error().text.find("segment_bytes"), std::string::npos);
  EXPECT_TRUE(facts_.empty());
}

TEST_F(CatalogTest, AProducerThatComesAgainGetsANewEpochAndOneWithoutANameANewId) {
  create("orders", 1);
  const auto first = catalog_.start_producer("orders", "shop");
  const auto again = catalog_.start_producer("orders", "shop");
  const auto nameless = catalog_.start_producer("orders", "");
  ASSERT_TRUE(first && again && nameless);
  EXPECT_EQ(again->id, first->id);
  EXPECT_EQ(again->epoch.value, first->epoch.value + 1);
  EXPECT_NE(nameless->id, first->id);
  EXPECT_EQ(catalog_.start_producer("nothing", "shop").error().code, Errc::stream_not_found);
}

// Ids name folders: one that comes again would show the records of another stream.
TEST_F(CatalogTest, AnIdNeverComesAgainNotEvenAfterARestart) {
  create("a", 1);
  ASSERT_TRUE(catalog_.remove("a").has_value());
  RowBatch rows;
  catalog_.append_changed_rows(rows);
  StreamCatalog next = recover(rows, "");
  const auto created = next.create("a", 1, {}, kNow);
  ASSERT_TRUE(created.has_value());
  EXPECT_EQ(created->first->id, StreamId{2});
}

TEST_F(CatalogTest, RowsAndFactsGiveTheSameStateInAnyMixture) {
  create("a", 2);
  create("b", 1);
  ASSERT_TRUE(catalog_.start_producer("a", "shop").has_value());
  catalog_.note_synced(StreamId{1}, PartitionNumber{1}, Offset{70});
  expect_same(recover({}, facts_), catalog_);

  RowBatch rows;
  catalog_.append_changed_rows(rows);
  const std::size_t checkpoint = facts_.size();
  expect_same(recover(rows, ""), catalog_);

  StreamSettingsPatch settings;
  settings.retention_bytes = 12345;
  ASSERT_TRUE(catalog_.update("b", settings).has_value());
  ASSERT_TRUE(catalog_.start_producer("a", "shop").has_value());
  catalog_.note_synced(StreamId{1}, PartitionNumber{0}, Offset{9});
  expect_same(recover(rows, facts_.substr(checkpoint)), catalog_);
}

TEST_F(CatalogTest, ADeletedStreamTakesItsRowsAlong) {
  create("a", 1);
  ASSERT_TRUE(catalog_.start_producer("a", "shop").has_value());
  RowBatch before;
  catalog_.append_changed_rows(before);
  ASSERT_TRUE(catalog_.remove("a").has_value());
  RowBatch after;
  catalog_.append_changed_rows(after);
  std::size_t erased = 0;
  for (const RowChange& change : after.changes()) {
    if (change.kind == RowChange::Kind::erase) ++erased;
  }
  EXPECT_EQ(erased, 2U);
  EXPECT_EQ(catalog_.changed_bytes(), 0U);
}

StreamSettings all_settings() {
  StreamSettings all;
  all.retention = Duration{5'000'000'000};
  all.retention_bytes = 600'000;
  all.segment_bytes = 70'000;
  all.fsync = {.kind = FsyncMode::Kind::interval, .interval = Duration{8'000'000}};
  all.batch_bytes_max = 9'000;
  return all;
}

std::vector<StreamFact> one_of_each() {
  return {StreamCreated{StreamId{21}, "orders", 3, all_settings(), kNow},
          StreamUpdated{StreamId{21}, all_settings()}, StreamDeleted{StreamId{21}},
          ProducerStarted{StreamId{21}, "shop", ProducerId{300}, ProducerEpoch{4}},
          PartitionSynced{StreamId{21}, PartitionNumber{2}, Offset{70'000}}};
}

TEST(CatalogBytes, EveryFactReadsBackWithOrWithoutAFieldToCome) {
  ASSERT_EQ(one_of_each().size(), std::variant_size_v<StreamFact>);
  const auto decode = [](Decoder& in) { return decode_stream_fact(in); };
  for (const StreamFact& fact : one_of_each()) {
    SCOPED_TRACE(fact.index());
    fact_growth::expect_skipped(fact, decode);
    fact_growth::expect_refused(fact, kStreamFacts, decode);
    fact_growth::expect_cut_is_malformed(fact, decode);
  }
}

TEST(CatalogBytes, SettingsReadBackAndThoseThatNobodyChangedTakeOneByte) {
  std::string bytes;
  Encoder out(bytes);
  encode(out, StreamSettings{});
  EXPECT_EQ(bytes.size(), 1U);
  encode(out, all_settings());
  Decoder in(bytes);
  EXPECT_EQ(decode_stream_settings(in), StreamSettings{});
  EXPECT_EQ(decode_stream_settings(in), all_settings());
  EXPECT_TRUE(in.finish());
}

TEST(CatalogBytes, ASettingToComeIsSkippedAndOneThatMustBeUnderstoodRefused) {
  fact_growth::expect_settings_grow(decode_stream_settings);
}

TEST(CatalogBytes, EveryRowCanGrow) {
  StreamCatalog catalog;
  for (const StreamFact& fact : one_of_each()) {
    if (!std::holds_alternative<StreamDeleted>(fact)) catalog.apply(fact);
  }
  RowBatch rows;
  catalog.append_changed_rows(rows);
  ASSERT_EQ(rows.changes().size(), 3U);  // A stream, its producer, and the next ids.
  for (const RowChange& row : rows.changes()) {
    SCOPED_TRACE(row.key);
    const auto load_with = [&](Need need) {
      std::string value = row.value;
      Encoder out(value);
      put_field(out, 99, "of a later version", need);
      return StreamCatalog().load(row.table, {row.key, value});
    };
    EXPECT_TRUE(load_with({}).has_value());
    const Status refused = load_with(Need{3});
    ASSERT_FALSE(refused.has_value());
    EXPECT_EQ(refused.error().code, Errc::store_too_new);
  }
}

// A row of format 1 is read, and the next checkpoint writes it in today's form.
TEST(CatalogBytes, ARowOfFormat1IsWrittenAnew) {
  std::string value;
  Encoder out(value);
  out.blob("orders");
  out.u8(1);
  out.fixed(all_settings().retention.count());
  out.varint(all_settings().retention_bytes);
  out.varint(all_settings().segment_bytes);
  out.u8(static_cast<std::uint8_t>(all_settings().fsync.kind));
  out.fixed(all_settings().fsync.interval.count());
  out.varint(all_settings().batch_bytes_max);
  out.fixed(kNow.ns);
  out.varint(2);
  out.varint(70);
  out.varint(80);
  std::string key;
  Encoder(key).big_u64(21);
  StreamCatalog catalog;
  ASSERT_TRUE(catalog.load(tables::kStreams, {key, value}).has_value());
  const StreamInfo* const stream = catalog.find(StreamId{21});
  ASSERT_NE(stream, nullptr);
  EXPECT_EQ(stream->settings, all_settings());
  EXPECT_EQ(stream->synced, (std::vector<Offset>{Offset{70}, Offset{80}}));
  RowBatch rows;
  catalog.append_changed_rows(rows);
  ASSERT_FALSE(rows.empty());
  StreamCatalog again;
  ASSERT_TRUE(again.load(tables::kStreams, {key, rows.changes().front().value}).has_value());
  EXPECT_EQ(again.find(StreamId{21})->settings, all_settings());
  RowBatch none;
  again.append_changed_rows(none);
  EXPECT_TRUE(none.empty());

  const std::string today = rows.changes().front().value;
  std::string optional = today;
  Encoder more(optional);
  put_field(more, 99, "more");
  EXPECT_TRUE(StreamCatalog().load(tables::kStreams, {key, optional}).has_value());
  std::string required = today;
  Encoder must(required);
  put_field(must, 99, "more", Need{3});
  const Status refused = StreamCatalog().load(tables::kStreams, {key, required});
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::store_too_new);
}

TEST(CatalogBytes, GarbageIsRefused) {
  for (const std::string& bytes : {std::string("\x09"), std::string("\x00\x01", 2),
                                   std::string("\x04\x01\xff\xff\xff\xff\x0f\x00", 8)}) {
    Decoder in(bytes);
    EXPECT_FALSE(decode_stream_fact_1(in).has_value());
  }
  for (const std::string& bytes :
       {std::string("\x4a"), std::string("\x02\x01\x01", 3),
        std::string("\x22\x07\x01\xff\xff\xff\xff\x0f\x00", 9),
        std::string("\x12\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x01")}) {
    Decoder in(bytes);
    EXPECT_FALSE(decode_stream_fact(in).has_value());
  }
  StreamCatalog catalog;
  EXPECT_FALSE(catalog.load(tables::kStreams, {"12345678", "junk"}).has_value());
  EXPECT_FALSE(catalog.load(tables::kStreams, {"short", ""}).has_value());
}

}  // namespace
}  // namespace baton
