#include "pipeline/sqlite/sqlite_sink.h"

#include <array>
#include <filesystem>
#include <latch>
#include <numeric>
#include <thread>

#include <gtest/gtest.h>

#include "pipeline/engine/owned_partition.h"
#include "pipeline/orders/order_generator.h"
#include "pipeline/orders/orders.h"

namespace baton::pipeline {
namespace {

// Any number of processes may run one config, and any of them may be the first.
TEST(SqliteSink, WhoeverIsFirstMakesTheTables) {
  const std::filesystem::path path =
      std::filesystem::path(::testing::TempDir()) / "whoever_is_first.db";
  constexpr std::size_t kMany = 6;
  for (int round = 0; round < 10; ++round) {
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path.string() + suffix);
    std::array<std::size_t, kMany> made{};
    std::latch all_here(kMany);
    {
      std::vector<std::jthread> processes;
      for (std::size_t& count : made) {
        processes.emplace_back([&] {
          SqliteSink sink(path, {.exactly_once = true},
                          schema::Schema::compile(orders::order_schema()).value(),
                          schema::Mapping::compile(orders::order_mapping()).value());
          all_here.arrive_and_wait();
          const auto done = sink.check(true);
          EXPECT_TRUE(done.has_value()) << done.error().text;
          if (!done.has_value()) return;
          for (const Finding& one : *done) count += one.what == "table" ? 1 : 0;
        });
      }
    }
    EXPECT_EQ(std::accumulate(made.begin(), made.end(), std::size_t{0}), 5U);
  }
}

/// The error of check() about a table with the type `declared` where the mapping has a column of
/// `type`.
std::string complaint_about(schema::ColumnType type, const std::string& declared) {
  const std::string path = ::testing::TempDir() + "types_of_columns.db";
  for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path + suffix);
  SqliteDatabase database;
  EXPECT_FALSE(
      database.open(path, SqliteDatabase::Open::or_create, SqliteDatabase::Sync::checkpoints)
          .has_value());
  EXPECT_FALSE(database
                   .run("CREATE TABLE things (c " + declared +
                        ", _source TEXT, _partition INTEGER, _offset INTEGER)")
                   .has_value());
  const schema::RowMapping mapping{
      .tables = {{.name = "things",
                  .rows = "",
                  .columns = {{.name = "c", .path = "c", .type = type, .optional = true}}}},
      .key = ""};
  SqliteSink sink(path, {}, schema::Schema::compile("{}").value(),
                  schema::Mapping::compile(mapping).value());
  const auto checked = sink.check(false);
  return checked.has_value() ? "" : checked.error().text;
}

// SQLite would accept them, and store a price as text, or 007 as 7.
TEST(SqliteSink, AColumnOfAnotherTypeIsNamed) {
  using schema::ColumnType;
  EXPECT_EQ(complaint_about(ColumnType::integer, "TEXT"),
            "table things: column c is TEXT; it should be INTEGER");
  EXPECT_EQ(complaint_about(ColumnType::integer, "BLOB"),
            "table things: column c is BLOB; it should be INTEGER");
  EXPECT_EQ(complaint_about(ColumnType::boolean, ""),
            "table things: column c is of no type; it should be INTEGER");
  EXPECT_EQ(complaint_about(ColumnType::real, "varchar(20)"),
            "table things: column c is varchar(20); it should be REAL");
  EXPECT_EQ(complaint_about(ColumnType::text, "STRING"),
            "table things: column c is STRING; it should be TEXT");
  EXPECT_EQ(complaint_about(ColumnType::json, "REAL"),
            "table things: column c is REAL; it should be TEXT");
  EXPECT_EQ(complaint_about(ColumnType::timestamp, "INTEGER"),
            "table things: column c is INTEGER; it should be TEXT");
}

TEST(SqliteSink, ATypeByAnotherNameIsGood) {
  using schema::ColumnType;
  const std::vector<std::pair<ColumnType, std::string>> kGood = {
      {ColumnType::integer, "bigint"},
      {ColumnType::integer, "DECIMAL(20, 0)"},
      {ColumnType::boolean, "BOOLEAN"},
      {ColumnType::real, "double precision"},
      {ColumnType::real, "NUMERIC"},
      {ColumnType::text, "varchar(50)"},
      {ColumnType::text, ""},
      {ColumnType::json, "BLOB"},
      {ColumnType::timestamp, "DATETIME"},
      {ColumnType::timestamp, "TEXT"}};
  for (const auto& [type, declared] : kGood) EXPECT_EQ(complaint_about(type, declared), "");
}

/// A file with the tables of orders, changed by `sql`; orders are written in one batch, or one by
/// one.
class SqliteOrders {
 public:
  SqliteOrders(const std::string& sql, const schema::RowMapping& mapping)
      : sink_(fresh_path(), {}, schema::Schema::compile(orders::order_schema()).value(),
              schema::Mapping::compile(mapping).value()) {
    EXPECT_TRUE(sink_.check(true).has_value());
    run(sql);
  }
  static void run(const std::string& sql) {
    SqliteDatabase database;
    EXPECT_FALSE(
        database.open(path(), SqliteDatabase::Open::existing, SqliteDatabase::Sync::checkpoints)
            .has_value());
    const auto error = database.run(sql);
    EXPECT_FALSE(error.has_value()) << error->text;
  }
  /// Writes orders 0, 1, 2; returns "class: text" of the error.
  std::string write(Items& items) {
    const auto preparer = sink_.preparer();
    for (std::int64_t number = 0; items.size() < 3; ++number) {
      Item item;
      item.record.offset = number;
      item.record.value = generator_.generate_valid(static_cast<std::uint64_t>(number)).bytes;
      item.assignment = assignment_;
      item.prepared = preparer->prepare(item.record).value();
      items.push_back(std::move(item));
    }
    return write_some(items);
  }
  std::string write_some(std::span<Item> items) {
    const auto error = sink_.writer(0)->write(items);
    return error.has_value() ? std::string(to_string(error->error_class)) + ": " + error->text : "";
  }

 private:
  static std::string path() { return ::testing::TempDir() + "orders_that_are_refused.db"; }
  static std::string fresh_path() {
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(path() + suffix);
    return path();
  }

  SqliteSink sink_;
  orders::OrderGenerator generator_{7};
  std::shared_ptr<OwnedPartition> assignment_ = std::make_shared<OwnedPartition>(0, 1, 0);
};

constexpr const char* kThrowAway =
    "CREATE TRIGGER throw_away BEFORE INSERT ON orders WHEN NEW._offset = 1 "
    "BEGIN SELECT RAISE(IGNORE); END";

// The row is nowhere, so it must not count as a duplicate.
TEST(SqliteSink, ARowThatIsThrownAwayIsNoDuplicate) {
  schema::RowMapping without_key = orders::order_mapping();
  without_key.key.clear();
  for (const schema::RowMapping& mapping : {orders::order_mapping(), without_key}) {
    SqliteOrders orders(kThrowAway, mapping);
    Items items;
    const std::string refused =
        "unknown: the row was not taken, and its key is not there: a trigger?";
    EXPECT_EQ(orders.write(items), refused);
    for (const Item& item : items) EXPECT_EQ(item.fate, Fate::open);
    EXPECT_EQ(orders.write_some(std::span(items).first(1)), "");
    EXPECT_EQ(orders.write_some(std::span(items).subspan(1, 1)), refused);
    SqliteOrders::run("DROP TRIGGER throw_away");
    EXPECT_EQ(orders.write_some(std::span(items).subspan(1)), "");
    for (const Item& item : items) EXPECT_EQ(item.fate, Fate::applied);
  }
}

// A halt would last for ever, though only one record cannot be indexed and the table is right.
TEST(SqliteSink, WhatARowMakesOfAnIndexIsNoMistakeOfTheConfig) {
  const std::string index =
      "CREATE INDEX computed ON orders (CASE WHEN _offset = 1 "
      "THEN json_extract(customer_id, '$.a') END)";
  SqliteOrders orders(index, orders::order_mapping());
  Items items;
  EXPECT_EQ(orders.write(items), "unknown: malformed JSON");
  EXPECT_EQ(orders.write_some(std::span(items).first(1)), "");
  EXPECT_EQ(orders.write_some(std::span(items).subspan(1, 1)), "unknown: malformed JSON");
  // Every row would meet this error.
  SqliteOrders::run("DROP TABLE items");
  EXPECT_EQ(orders.write_some(std::span(items).subspan(2)), "config: no such table: items");
}

TEST(SqliteSink, ADocumentIsKnownByItsKey) {
  const orders::OrderGenerator generator(7);
  const Record record{.value = generator.generate_valid(1).bytes};
  const auto key_with = [&](const schema::RowMapping& mapping) {
    SqliteSink sink("", {}, schema::Schema::compile(orders::order_schema()).value(),
                    schema::Mapping::compile(mapping).value());
    const auto prepared = sink.preparer()->prepare(record);
    return std::string(prepared.value()->key());
  };
  schema::RowMapping mapping = orders::order_mapping();
  EXPECT_EQ(key_with(mapping), generator.generate_valid(1).order_uid);
  mapping.key.clear();
  EXPECT_EQ(key_with(mapping), "");
}

}  // namespace
}  // namespace baton::pipeline
