#include "sink/sqlite_sink.h"

#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <latch>
#include <numeric>
#include <thread>

#include "schema/order_generator.h"
#include "schema/orders.h"

namespace baton::pipeline {
namespace {

// Any number of processes may run one config, and all of them may be the first.
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
          SqliteSink sink({.path = path, .exactly_once = true},
                          schema::Schema::compile(schema::order_schema()).value(),
                          schema::Mapping::compile(schema::order_mapping()).value());
          all_here.arrive_and_wait();
          const auto done = sink.check(true);
          EXPECT_TRUE(done.has_value()) << done.error().text;
          if (!done.has_value()) return;
          for (const std::string& line : *done) count += line.starts_with("made table") ? 1 : 0;
        });
      }
    }
    EXPECT_EQ(std::accumulate(made.begin(), made.end(), std::size_t{0}), 4U);
  }
}

/// What check() says of a table that has `declared` where the mapping has a column of `type`.
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
  SqliteSink sink({.path = path}, schema::Schema::compile("{}").value(),
                  schema::Mapping::compile(mapping).value());
  const auto checked = sink.check(false);
  return checked.has_value() ? "" : checked.error().text;
}

// SQLite would take them, and keep a price as text, or 007 as 7.
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

TEST(SqliteSink, ADocumentIsKnownByItsKey) {
  const schema::OrderGenerator generator(7);
  const Record record{.value = generator.generate_valid(1).bytes};
  const auto key_with = [&](const schema::RowMapping& mapping) {
    SqliteSink sink({}, schema::Schema::compile(schema::order_schema()).value(),
                    schema::Mapping::compile(mapping).value());
    const auto prepared = sink.preparer()->prepare(record);
    return std::string(prepared.value()->key());
  };
  schema::RowMapping mapping = schema::order_mapping();
  EXPECT_EQ(key_with(mapping), generator.generate_valid(1).order_uid);
  mapping.key.clear();
  EXPECT_EQ(key_with(mapping), "");
}

}  // namespace
}  // namespace baton::pipeline
