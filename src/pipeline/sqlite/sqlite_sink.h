#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/ends/sql_sink.h"
#include "pipeline/sqlite/sqlite_database.h"
#include "pipeline/sqlite/sqlite_marks.h"

namespace baton::pipeline {

/// Writes rows to a SQLite file. SQLite has one writer, so all lanes share a connection.
class SqliteSink : public SqlSink {
 public:
  SqliteSink(std::string path, SqlSinkOptions options, schema::Schema schema,
             schema::Mapping mapping);

  Result<Findings> check(bool apply) override;
  std::unique_ptr<LaneWriter> writer(std::uint32_t lane) override;
  std::optional<flow::SinkError> probe() override;
  [[nodiscard]] std::string name() const override { return "sqlite:" + path_; }
  void set_origin(std::string origin) override { marks_.set_origin(std::move(origin)); }
  std::expected<SinkMarks, flow::SinkError> claim(std::uint32_t partition,
                                                  std::int64_t next) override;
  std::optional<flow::SinkError> settle(std::uint32_t partition, std::uint64_t epoch,
                                        std::int64_t next) override;

 private:
  class Writer;
  using MaybeError = std::optional<flow::SinkError>;

  MaybeError write(std::span<Item> items);
  MaybeError write_rows(std::span<Item> items);
  MaybeError write_item(Item& item);
  MaybeError insert(const schema::DocumentRows& rows, const schema::DocumentRows::Row& row);
  void blame(std::size_t table, flow::SinkError& error);
  MaybeError look_up(Item& item);
  MaybeError connect();
  MaybeError prepare_statements();
  void disconnect();

  [[nodiscard]] SqliteDatabase::Sync sync() const;
  Result<Findings> check_tables(bool apply);

  std::string path_;
  SqlSinkOptions options_;

  std::mutex mutex_;  // Guards the connection and its statements.
  SqliteDatabase database_;
  SqliteMarks marks_;
  std::vector<SqliteStatement> inserts_;  // By table.
  SqliteStatement look_up_;
};

}  // namespace baton::pipeline
