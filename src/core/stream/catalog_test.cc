#include "core/stream/catalog.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

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

TEST(CatalogBytes, GarbageIsRefused) {
  for (const std::string& bytes : {std::string("\x09"), std::string("\x00\x01", 2),
                                   std::string("\x04\x01\xff\xff\xff\xff\x0f\x00", 8)}) {
    Decoder in(bytes);
    EXPECT_FALSE(decode_stream_fact(in).has_value());
  }
  StreamCatalog catalog;
  EXPECT_FALSE(catalog.load(tables::kStreams, {"12345678", "junk"}).has_value());
  EXPECT_FALSE(catalog.load(tables::kStreams, {"short", ""}).has_value());
}

}  // namespace
}  // namespace baton
